"""What a remembered answer covers and what not, over a real directory with links: the table `calls_like_it.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant
from signoff.core.offer import offers
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Terms
from signoff.core.verdict import Effect, Verdict
from signoff.gate.likeness import read_for_memory, with_likeness

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
        call=with_likeness(one, str(root)),
        verdict=Verdict(effect=Effect.ASK),
    )


def granted(case: Mapping[str, Any], root: Path) -> Grant:
    one = call(case, case["args"], root)
    request = asked(one, root)
    found = {offer.name: offer for offer in offers(request)}
    return Grant.of(one, ApprovalDecision(approved=True, terms=Terms(pattern=found[case["vary"]].pattern)))


def covered(grant: Grant, one: Call, root: Path) -> bool:
    return grant.covers(read_for_memory(one, str(root)))


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
