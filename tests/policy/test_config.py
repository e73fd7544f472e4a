"""`signoff.yaml`: what is read, and what a wrong file says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.policy.rules import call

from signoff.config import Person, load_policy, load_settings
from signoff.core.verdict import Effect
from signoff.errors import PolicyError, WrongFile

WHOLE = """\
model: anthropic:claude-sonnet-5
people:
  ana: {roles: [ops, dev], discord: "102938475610293847", slack: U04, email: ana@example.com}
  bob: {roles: ops}
  eve: {}
policy:
  - {allow: {path: src/**}}
  - {ask: deploy, by: ops, quorum: 2}
"""


def written(directory: Path, text: str | bytes) -> Path:
    file = directory / "signoff.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_a_whole_file(tmp_path: Path) -> None:
    settings = load_settings(written(tmp_path, WHOLE))
    assert settings.model == "anthropic:claude-sonnet-5"
    assert settings.people["ana"] == Person(
        name="ana",
        roles=frozenset({"ops", "dev"}),
        accounts={"discord": "102938475610293847", "slack": "U04", "email": "ana@example.com"},
    )
    assert settings.people["bob"].roles == {"ops"}
    assert settings.people["eve"] == Person(name="eve")
    assert settings.file == str(tmp_path / "signoff.yaml")
    assert settings.policy.file == settings.file
    assert settings.warnings == ()


def test_relative_paths_start_from_the_file(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    written(tmp_path / "real", WHOLE)
    policy = load_policy(tmp_path / "link" / "signoff.yaml")
    assert policy.root == os.path.realpath(tmp_path / "real")
    assert policy.judge(call("x", path="src/a")).effect is Effect.ALLOW
    assert policy.judge(call("x", path=str(tmp_path / "real/src/a"))).effect is Effect.ALLOW
    moved = load_policy(tmp_path / "link" / "signoff.yaml", root=tmp_path)
    assert moved.judge(call("x", path=str(tmp_path / "real/src/a"))).effect is Effect.ASK


def test_a_file_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, WHOLE)
    monkeypatch.chdir(tmp_path)
    policy = load_policy("signoff.yaml")
    assert policy.root == os.path.realpath(tmp_path)
    assert str(policy.rules[0].place) == "signoff.yaml:7:5: policy[0]"


@pytest.mark.parametrize(
    ("text", "place", "says", "fix"),
    [
        ("", ":1:1", "there is no `policy` here", "policy:\n      - {allow: read_file}"),
        ("people: {}", ":1:1", "there is no `policy` here", "- {allow: read_file}"),
        ("polcy: []", ":1:1: polcy", "unknown key `polcy`", "did you mean `policy`?"),
        ("policy: []\nstore: [x]", ":2:8: store", "a store such as sqlite:FILE", ""),
        ("policy: []\nstore: 'x://${NO_SUCH_NAME}'", ":2:8: store", "no NO_SUCH_NAME", "set it"),
        ("policy: []\nplugins: {}", ":2:10: plugins", "this allows nothing", "{allow: [mycompany.*]}"),
        ("policy: []\nlocked: maybe", ":2:9: locked", "true or false, not a text", ""),
        ("policy: []\npeople: {ana: {discord: '10'}}", ":2:25: people.ana.discord", "15 to 20 digits", "Copy ID"),
        ("policy: []\nmodel: 3", ":2:8: model", "the name of a model, not a number", "quotes"),
        ("policy: []\npeople: [ana]", ":2:9: people", "a mapping of names", ""),
        ("policy: []\npeople: {ana: ops}", ":2:15: people.ana", "a mapping such as", ""),
        ("policy: []\npeople: {ana: {role: ops}}", ":2:16: people.ana.role", "unknown key `role`", "`roles`"),
        ("policy: []\npeople: {ana: {roles: []}}", ":2:23: people.ana.roles", "the list is empty", ""),
        ("policy: []\npeople: {ana: {roles: [1]}}", ":2:24: people.ana.roles[0]", "a role, not a number", ""),
        ("policy: []\npeople: {ana: {discord: 10}}", ":2:25: people.ana.discord", "not a number", "quotes"),
        ('policy: []\npeople: {" ": {}}', ':2:10: people[" "]', "a person needs a name", ""),
        ("policy: [{alow: x}]", ":1:11: policy[0].alow", "unknown effect `alow`", "did you mean `allow`?"),
        ("- a", ":1:1", "a mapping with `policy`, not a list", ""),
        ("policy: [", ":", "this is not YAML", ""),
    ],
)
def test_a_wrong_file(tmp_path: Path, text: str, place: str, says: str, fix: str) -> None:
    file = written(tmp_path, text)
    with pytest.raises(PolicyError) as caught:
        load_settings(file)
    assert str(caught.value.place).startswith(f"{file}{place}")
    assert says in caught.value.what
    assert fix in caught.value.fix


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(WrongFile, match=r"there is no file .*nope.yaml\n  `signoff init`"):
        load_policy(tmp_path / "nope.yaml")
    with pytest.raises(WrongFile, match="cannot be read: Is a directory"):
        load_policy(tmp_path)
    with pytest.raises(WrongFile, match="cannot be read: embedded null"):
        load_policy("a\0b")
    with pytest.raises(WrongFile, match=r"signoff.yaml:2: this is not UTF-8 text"):
        load_policy(written(tmp_path, b"policy: []\n# caf\xe9\n"))
    with pytest.raises(WrongFile, match="larger than 5 MB"):
        load_policy(written(tmp_path, "#" * 5_000_001))


def test_roles_nobody_has_are_told(tmp_path: Path) -> None:
    text = """\
people: {ana: {roles: [ops]}, bob: {roles: [dev]}}
policy:
  - {ask: a, by: opps}
  - {ask: b, by: dev, timeout: 5m, on_timeout: escalate, escalate_to: boss}
  - {ask: c, by: ops, quorum: 2}
  - {ask: d, quorum: 3}
  - {ask: e, quorum: 2}
  - {ask: f, timeout: 5m, on_timeout: escalate, escalate_to: {role: ops, quorum: 2}}
  - {ask: g, timeout: 5m, on_timeout: escalate, escalate_to: ops}
"""
    settings = load_settings(written(tmp_path, text))
    assert [(problem.what, problem.fix, problem.place.line) for problem in settings.warnings] == [
        ("rule-1 needs the role `opps`, which nobody in `people` has", "did you mean `ops`?", 3),
        ("rule-2 needs the role `boss`, which nobody in `people` has", "known here: `dev`, `ops`", 4),
        ("rule-3 needs 2 people, and `people` has 1 who may answer", "", 5),
        ("rule-4 needs 3 people, and `people` has 2 who may answer", "", 6),
        ("once escalated, rule-6 needs 2 people with the role `ops`, and `people` has 1", "", 8),
    ]
    assert load_settings(written(tmp_path, "policy: [{ask: a, by: opps}]")).warnings == ()
