"""What a remembered answer covers and what not, over a real directory with links: the table `calls_like_it.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from benchmarks import corpora

from signoff.core.call import Call
from signoff.core.codec import GRANT
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Terms
from signoff.core.verdict import Effect, Verdict
from signoff.disk_steps import DiskSteps
from signoff.gate.likeness import read_for_memory, varying
from signoff.policy.match_result import Truth
from signoff.policy.offer import offers
from signoff.policy.remembered import covers

TABLE = tomllib.loads(Path(__file__).with_name("calls_like_it.toml").read_text("utf-8"))["case"]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("docs/sub", "docs/x", "tests/sub", "outside"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("docs", "tests"):
        (tmp_path / name / "out").symlink_to("/etc")
        (tmp_path / name / "near").symlink_to("sub")
    (tmp_path / "package.json").write_text('{"extends": "./docs/shared.json"}')
    (tmp_path / "docs" / "shared.json").write_text("{}")
    return tmp_path


def call(case: Mapping[str, Any], args: Mapping[str, Any], root: Path, **changes: Any) -> Call:
    given = {
        "tool": case["tool"],
        "args": {name: _here(value, root) for name, value in args.items() if name != "covered"},
        "labels": frozenset(case.get("labels", ())),
        "start": _here(case.get("start", ""), root),
        "directory": ".",
        "schema_hash": "s",
        "worker": ("tidy",),
    }
    return Call(**{**given, **changes})


def _here(value: Any, root: Path) -> Any:
    return value.replace("$ROOT", str(root)) if isinstance(value, str) else value


def asked(one: Call, root: Path) -> ApprovalRequest:
    return ApprovalRequest(
        id="r",
        tool_call_id="c",
        tool_name=one.tool,
        args=one.args,
        call=one,
        may_vary=varying(one, str(root)),
        verdict=Verdict(effect=Effect.ASK),
    )


def granted(case: Mapping[str, Any], root: Path, *, approved: bool = True) -> Grant:
    one = call(case, case["args"], root)
    request = asked(one, root)
    found = {offer.name: offer for offer in offers(request)}
    return Grant.of(one, ApprovalDecision(approved=approved, terms=Terms(match=found[case["vary"]].match)))


def covered(grant: Grant, one: Call, root: Path) -> bool:
    found = covers(grant, read_for_memory(one, str(root)))
    assert covers(GRANT.from_text(GRANT.to_text(grant)), read_for_memory(one, str(root))) is found, "as it is stored"
    return found is Truth.YES


@pytest.mark.parametrize("case", TABLE, ids=[case["name"] for case in TABLE])
def test_calls_like_it_and_calls_that_only_look_so(case: Mapping[str, Any], root: Path) -> None:
    grant = granted(case, root)
    wrong = [args for args in [case["args"], *case["covers"]] if not covered(grant, call(case, args, root), root)]
    assert not wrong, "these are like it"
    wrong = [args for args in case["asks"] if covered(grant, call(case, args, root), root) is not ("covered" in args)]
    assert not wrong, "about these people are asked"
    first = call(case, case["args"], root)
    other = [
        {"tool": first.tool.upper()},
        {"tool": f"{first.tool}*"},
        {"toolset": "other"},
        {"schema_hash": "changed"},
        {"directory": "sub"},
        {"worker": ("admin",)},
    ]
    assert not [each for each in other if covered(grant, first.changed(**each), root)], "it is another call"


DENIED = """
    docs/b.md docs docs/ ./docs/b.md docs//b.md docs/../docs/b.md src/../docs/.env docs/near/b.md other/../docs/bin/x
    $ROOT/docs/b.md //$ROOT/docs/b.md docs/%2e/b.md docs\\b.md docs/..​/docs/b.md away/b.md
"""
NOT_DENIED = "docs2/b.md src/b.md doc $ROOT/src/b.md docs/../src/b.md docs/out/b.md"


def test_a_no_to_a_directory_holds_however_a_path_is_spelled(root: Path) -> None:
    (root / "away").symlink_to("docs")
    [case] = [one for one in TABLE if one["name"] == "a directory"]
    denial = granted(case, root, approved=False)

    def denied(path: str) -> bool:
        return covered(denial, call(case, {"path": path, "content": "y"}, root, directory="sub"), root)

    assert not [path for path in DENIED.split() if not denied(path)]
    assert [path for path in NOT_DENIED.split() if denied(path)] == ["docs/out/b.md"], "a link may be another tomorrow"


@pytest.mark.skipif(not corpora.DIRECTORY.is_dir(), reason="the corpora are not part of the project")
def test_no_line_of_the_corpora_is_like_another_but_for_names(root: Path) -> None:
    """What an approval covers of thousands of lines begins with the same words, and nothing dangerous hides there."""
    lines = {case.text: case.dangerous for case in corpora.shell_cases()}
    case = {"tool": "shell", "start": "$ROOT"}
    read = {line: read_for_memory(call(case, {"command": line}, root), str(root)) for line in lines}
    for line, facts in read.items():
        for offer in offers(asked(facts.call, root))[1:]:
            grant = Grant.of(facts.call, ApprovalDecision(approved=True, terms=Terms(match=offer.match)))
            assert offer.match is not None
            words = offer.match["args"]["command"]["first_words"]
            stored = GRANT.from_text(GRANT.to_text(grant))
            found = [other for other, facts in read.items() if covers(stored, facts) is Truth.YES]
            assert found == [other for other, facts in read.items() if covers(grant, facts) is Truth.YES]
            assert line in found and all(f"{other} ".startswith(f"{words} ") for other in found)
            assert words.startswith(("mkdir", line)) or not any(lines[other] for other in found)


def test_nothing_is_like_a_call_whose_paths_cannot_be_followed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grants = {case["name"]: (case, granted(case, root)) for case in TABLE if "below" in str(granted(case, root).match)}
    monkeypatch.setattr("signoff.gate.likeness.DiskSteps", lambda: DiskSteps(0))
    assert grants
    for case, grant in grants.values():
        again = call(case, case["args"], root)
        assert not covered(grant, again, root) and varying(again, str(root)) == ()
