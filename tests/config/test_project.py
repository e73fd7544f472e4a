"""The project file: where it is found, its toolsets and defaults, and the user's own rules over it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tests.policy.rules import call

from signoff.config import find_project, load_policy, load_settings, no_settings, user_file
from signoff.config.files import from_here
from signoff.core.verdict import Effect, OnTimeout
from signoff.errors import WrongFile
from signoff.policy.layers import Layers
from signoff.policy.policy_text import read_written, written

WHOLE = """\
model: anthropic:claude-sonnet-5
toolsets:
  project_files:
    use: filesystem_rw
    config: {root: src}
    policy: [{allow: {tool: write_file, path: {inside: drafts}}}]
  orders_db:
    use: "mycompany.toolsets:DatabaseToolset"
    config: {dsn: "${DATABASE_URL}", pool: {size: 4, timeout: 5}}
    policy: [{allow: data.read}, {ask: data.write, by: ops}]
    labels: {"list_*": data.read, drop: [data.write, money]}
  reports_db:
    extends: orders_db
    config: {readonly: true, pool: {size: 1}}
    labels: {drop: data.write}
  strict_db: {extends: reports_db, policy: [{deny: data.write}]}
  tickets: {use: mcp, config: {command: [python, server.py]}}
plugins: {allow: ["mycompany.*", "other:Thing*"]}
locked: true
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "signoff.yaml").write_text(WHOLE)
    return tmp_path


def own_rules(text: str) -> Path:
    file = Path(user_file() or "")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def test_a_whole_file(here: Path) -> None:
    settings = load_settings("signoff.yaml")
    assert list(settings.toolsets) == ["project_files", "orders_db", "reports_db", "strict_db", "tickets"]
    assert settings.plugins == ("mycompany.*", "other:Thing*")
    assert settings.locked
    assert settings.directory == os.path.realpath(here)
    assert settings.policy.rules == ()
    assert settings.layers == (settings.policy,)
    files = settings.toolsets["project_files"]
    assert (files.use, files.config) == ("filesystem_rw", {"root": "src"})
    assert settings.toolsets["tickets"].policy is None
    assert settings.toolsets["orders_db"].labels == {"list_*": ("data.read",), "drop": ("data.write", "money")}


@pytest.mark.usefixtures("here")
def test_a_toolsets_rules_are_named_after_it_and_start_where_its_tools_do() -> None:
    toolsets = load_settings("signoff.yaml").toolsets
    policy = toolsets["project_files"].policy
    assert policy is not None
    assert [rule.id for rule in policy.rules] == ["project_files/rule-1"]
    assert policy.judge(call("write_file", path="drafts/a")).effect is Effect.ALLOW
    assert policy.judge(call("write_file", path=os.path.realpath("src/drafts/a"))).effect is Effect.ALLOW
    assert policy.judge(call("write_file", path=os.path.realpath("drafts/a"))).effect is Effect.ASK
    other = toolsets["orders_db"].policy
    assert other is not None
    assert other.root == os.path.realpath(".")


def test_a_root_with_a_variable_is_not_known_yet(here: Path) -> None:
    text = "toolsets: {a: {use: filesystem_rw, config: {root: '${DATA}'}, policy: [{deny: {path: x}}]}}"
    (here / "signoff.yaml").write_text(text)
    policy = load_settings("signoff.yaml").toolsets["a"].policy
    assert policy is not None
    assert policy.root == os.path.realpath(here)


@pytest.mark.usefixtures("here")
@pytest.mark.mission("P7")
def test_p7_a_toolset_extends_another() -> None:
    toolsets = load_settings("signoff.yaml").toolsets
    reports, strict = toolsets["reports_db"], toolsets["strict_db"]
    assert reports.use == strict.use == "mycompany.toolsets:DatabaseToolset"
    merged = {"dsn": "${DATABASE_URL}", "pool": {"size": 1, "timeout": 5}, "readonly": True}
    assert reports.config == strict.config == merged
    assert toolsets["orders_db"].config["pool"] == {"size": 4, "timeout": 5}, "what is extended stays as it is"
    assert reports.labels == {"list_*": ("data.read",), "drop": ("data.write",)}
    assert reports.policy is not None
    assert [rule.id for rule in reports.policy.rules] == ["reports_db/rule-1", "reports_db/rule-2"]
    assert strict.policy is not None
    assert [(rule.id, rule.effect) for rule in strict.policy.rules] == [("strict_db/rule-1", Effect.DENY)]
    assert reports.config_spots["pool.size"].place.line == 14
    assert reports.config_spots["pool.timeout"].place.line == 9
    assert reports.config_spots["dsn"].place.line == 9


@pytest.mark.mission("P7")
def test_p7_defaults_stand_below_every_toolset(here: Path) -> None:
    (here / "signoff.yaml").write_text(
        "defaults:\n"
        "  toolset: {config: {root: data, pool: {size: 3}}, policy: [{deny: {path: '**/.env'}}], labels: {a: money}}\n"
        "toolsets:\n"
        "  one: {use: filesystem_ro}\n"
        "  two: {use: filesystem_ro, config: {pool: {wait: 1}}, policy: [{allow: read_file}], labels: {b: money}}\n"
    )
    toolsets = load_settings("signoff.yaml").toolsets
    one, two = toolsets["one"], toolsets["two"]
    assert one.config == {"root": "data", "pool": {"size": 3}}
    assert two.config == {"root": "data", "pool": {"size": 3, "wait": 1}}
    assert one.policy is not None
    assert two.policy is not None
    assert [rule.id for rule in one.policy.rules] == ["one/rule-1"]
    assert one.policy.root == os.path.realpath(here / "data")
    assert [rule.effect for rule in two.policy.rules] == [Effect.ALLOW]
    assert two.labels == {"a": ("money",), "b": ("money",)}


def test_the_nearest_file_upwards(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = here / "a" / "b"
    deep.mkdir(parents=True)
    assert find_project() == "signoff.yaml"
    assert find_project(str(deep)) == str(here / "signoff.yaml")
    monkeypatch.chdir(deep)
    assert find_project() == str(here / "signoff.yaml")
    (deep / "signoff.yaml").write_text("policy: []")
    assert find_project() == "signoff.yaml"


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("directory", "this is a directory"),
        ("pipe", "this is no regular file"),
        ("link", "this symbolic link is broken"),
    ],
)
def test_one_above_never_decides_in_the_place_of_what_is_no_file(here: Path, kind: str, says: str) -> None:
    (here / "signoff.yaml").write_text("policy: [{allow: '*'}]")
    deep = here / "a" / "b"
    deep.mkdir(parents=True)
    name = here / "a" / "signoff.yaml"
    make = {"directory": name.mkdir, "pipe": lambda: os.mkfifo(name), "link": lambda: name.symlink_to("gone.yaml")}
    make[kind]()
    with pytest.raises(WrongFile, match=says) as caught:
        find_project(str(deep))
    assert caught.value.place is not None
    assert caught.value.place.file == str(name)
    assert caught.value.fix
    name.rmdir() if kind == "directory" else name.unlink()
    assert find_project(str(deep)) == str(here / "signoff.yaml")


def test_a_link_to_a_file_is_a_file(here: Path) -> None:
    (here / "a").mkdir()
    (here / "a" / "signoff.yaml").symlink_to("../signoff.yaml")
    assert find_project(str(here / "a")) == str(here / "a" / "signoff.yaml")


def test_a_path_is_told_from_here_unless_it_is_shorter_from_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert from_here(below / "c.yaml") == "c.yaml"
    assert from_here("../c.yaml") == from_here(tmp_path / "a" / "c.yaml") == "../c.yaml"
    assert from_here("/nofile.yaml") == "/nofile.yaml"
    monkeypatch.chdir("/")
    assert from_here("srv/shop/c.yaml") == "/srv/shop/c.yaml", "a helper that works in `/` drops no slash"


def test_no_file_anywhere(tmp_path: Path) -> None:
    if any((above / "signoff.yaml").exists() for above in tmp_path.parents):
        pytest.skip("somebody has a signoff.yaml above the directory for temporary files")
    assert find_project(str(tmp_path)) is None


def test_the_users_own_rules_stand_over_the_projects(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy: [{allow: [deploy, write_file]}]")
    file = own_rules("policy: [{deny: deploy}, {ask: {path: private}}]")
    settings = load_settings("signoff.yaml")
    assert settings.user is not None
    assert [rule.id for rule in settings.user.rules] == ["user/rule-1", "user/rule-2"]
    assert [rule.id for rule in settings.policy.rules] == ["rule-1"]
    assert settings.user.rules[0].place.file == str(file)
    layers = Layers(settings.layers)
    assert layers.judge(call("deploy")).effect is Effect.DENY
    assert layers.judge(call("write_file", path="public")).effect is Effect.ALLOW
    assert layers.judge(call("write_file", path=os.path.realpath("private"))).effect is Effect.ASK
    assert load_policy("signoff.yaml").rules == settings.policy.rules


def test_the_users_own_rules_hold_where_there_is_no_file(here: Path) -> None:
    assert no_settings().user is None
    own_rules("policy: [{deny: deploy}]")
    settings = no_settings()
    assert (settings.file, settings.directory) == ("", os.path.realpath(here))
    assert Layers(settings.layers).judge(call("deploy")).effect is Effect.DENY
    assert Layers(settings.layers).judge(call("other")).effect is Effect.ASK


@pytest.mark.mission("C9")
def test_c9_where_the_project_is_locked_the_users_own_rules_only_tighten(here: Path) -> None:
    own = (
        "policy:\n  - {allow: '*'}\n  - {deny: drop}\n"
        "  - {ask: deploy, timeout: 5m, on_timeout: allow}\n  - {id: mail, ask: send}\n"
    )
    own_rules(own)
    (here / "signoff.yaml").write_text("policy: [{allow: read}]\n")
    free = load_settings("signoff.yaml")
    assert Layers(free.layers).judge(call("write")).effect is Effect.ALLOW
    assert free.unheard == ()
    (here / "signoff.yaml").write_text("policy: [{allow: read}]\nlocked: true\n")
    settings = load_settings("signoff.yaml")
    layers = Layers(settings.layers)
    said = {tool: layers.judge(call(tool)).effect for tool in ("read", "write", "drop", "deploy", "send")}
    assert said == {
        "read": Effect.ALLOW,
        "write": Effect.ASK,
        "drop": Effect.DENY,
        "deploy": Effect.ASK,
        "send": Effect.ASK,
    }
    assert layers.judge(call("deploy")).requirement.on_timeout is OnTimeout.DENY
    assert settings.user is not None
    assert [rule.id for rule in settings.user.rules] == ["user/rule-2", "user/rule-3", "mail"]
    assert [rule.id for rule in settings.unheard] == ["user/rule-1", "user/rule-3"]
    told = [problem.what for problem in settings.warnings if problem.kind == "locked"]
    assert [what.partition(":")[0] for what in told] == [
        "user/rule-1 is ignored here",
        "user/rule-3 denies when nobody answers in time",
    ]
    assert settings.user.revision != free.layers[0].revision, "an approval under other rules is none under these"
    kept = written(layers)
    assert kept is not None
    again = read_written(kept)
    assert [rule.id for rule in again.policies[0].rules] == ["user/rule-2", "user/rule-3", "mail"]
    assert again.revision == layers.revision, "whoever judges an edit elsewhere has the same rules"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "there is no `policy` here"),
        ("policy: []\nmodel: x", "2:1: model: unknown key `model`"),
        ("policy: [{alow: x}]", "unknown effect `alow`"),
        ("policy: [", "this is not YAML"),
    ],
)
def test_a_users_own_file_that_is_wrong_is_never_passed_over(text: str, says: str) -> None:
    file = own_rules(text)
    with pytest.raises(WrongFile) as caught:
        load_settings("signoff.yaml")
    assert says in str(caught.value)
    assert str(caught.value).startswith(str(file))
    with pytest.raises(WrongFile):
        no_settings()


def test_a_users_own_file_that_leads_nowhere(here: Path) -> None:
    file = own_rules("policy: []")
    file.unlink()
    file.symlink_to(here / "gone.yaml")
    with pytest.raises(WrongFile, match="this symbolic link is broken"):
        load_settings("signoff.yaml")


def test_a_relative_config_home_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    monkeypatch.setenv("HOME", "/home/ana")
    assert user_file() == "/home/ana/.config/signoff/policy.yaml"


def test_what_is_odd_in_a_toolsets_rules_is_told_once(here: Path) -> None:
    (here / "signoff.yaml").write_text(
        "people: {ana: {roles: dev}}\n"
        "toolsets:\n"
        "  a: {use: sql, policy: [{ask: execute, by: ops}]}\n"
        "  b: {extends: a}\n"
    )
    warnings = load_settings("signoff.yaml").warnings
    assert [problem.what.split(" ", 1)[1] for problem in warnings] == [
        "needs the role `ops`, which nobody in `people` has"
    ]


@pytest.mark.parametrize(
    ("text", "place", "says", "fix"),
    [
        ("toolsets: []", ":1:11: toolsets", "a mapping of names to toolsets, not a list", ""),
        ("toolsets: {a: {use: sql, config: [1]}}", ":1:34: toolsets.a.config", "what the toolset takes", ""),
        ("toolsets: {a: {use: a b}}", ":1:21: toolsets.a.use", "bad name `a b`", "without spaces"),
        ("toolsets: {a: {use: 'm:1x'}}", ":1:21: toolsets.a.use", "not a class path", "package.module:Class"),
        ("toolsets: {a: {use: sql, labels: {'[': money}}}", ':1:35: toolsets.a.labels["["]', "bad pattern", ""),
        ("toolsets: {a: {use: sql, labels: {x: []}}}", ":1:38: toolsets.a.labels.x", "the list is empty", ""),
        ("toolsets: {a: {extends: [b]}}", ":1:25: toolsets.a.extends", "the name of a toolset, not a list", ""),
        ("toolsets: {a: {extends: a}}", ":1:25: toolsets.a.extends", "a cycle: a > a", ""),
        ("policy: []\ndefaults: {toolset: {confg: {}}}", ":2:22: defaults.toolset.confg", "unknown key", "`config`"),
        ("policy: []\ndefaults: {worker: {limits: {requests: no}}}", ":2:40:", "for some YAML readers", ""),
        ("policy: []\ndefaults: {worker: {polcy: []}}", ":2:21: defaults.worker.polcy", "unknown key", "`policy`"),
        ("policy: []\ndefaults: {worker: {policy: [{allow: x}]}}", ":2:31:", "can only tighten", "`policy`"),
        ("policy: []\ndefaults: {worker: {toolsets: {a: {root: x}}}}", ":2:35:", "by name", "signoff.yaml"),
        ("policy: []\nplugins: {allow: [3]}", ":2:19: plugins.allow[0]", "a module", ""),
    ],
)
def test_a_wrong_file(here: Path, text: str, place: str, says: str, fix: str) -> None:
    (here / "signoff.yaml").write_text(text)
    with pytest.raises(WrongFile) as caught:
        load_settings("signoff.yaml")
    assert str(caught.value.place).startswith(f"signoff.yaml{place}")
    assert says in caught.value.what
    assert fix in caught.value.fix


def test_nothing_allowed_is_a_list_of_nothing(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy: []\nplugins: {allow: []}\ntoolsets:\n")
    settings = load_settings("signoff.yaml")
    assert (settings.plugins, settings.toolsets) == ((), {})
