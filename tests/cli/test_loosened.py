"""A run that flags loosened says so wherever it is looked at, from then on, and `doctor` says who can loosen."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.cli.desk import Desk, Said

PROJECT = "people:\n  ana: {roles: [ops]}\npolicy:\n  - {ask: write_file, by: ops}\n  - {ask: '*'}\n"
CALL = '{tool: write_file, args: {path: out.txt, content: "x"}}'
WRITES = f"- calls: [{CALL}]\n- calls: [{CALL}]\n- say: done\n"
MODE = "calls that anybody may approve run without a question (--mode auto_approve)"
OTHER = "another policy than the project's: loose.yaml (--policy)"

pytestmark = pytest.mark.mission("C9")


@pytest.fixture
def shop(desk: Desk) -> Desk:
    Path("signoff.yaml").write_text(PROJECT)
    Path("loose.yaml").write_text(PROJECT)
    Path("workers").mkdir()
    Path("workers/writer.yaml").write_text("instructions: Write.\ntoolsets: [filesystem_rw]\n")
    Path("workers/boss.yaml").write_text("instructions: Delegate.\ndelegates: [writer]\n")
    Path("writes.yaml").write_text(WRITES)
    desk.types("")
    for name in ("SIGNOFF_MODEL", "SIGNOFF_ASK", "SIGNOFF_DENY", "SIGNOFF_POLICY"):
        desk.monkeypatch.delenv(name, raising=False)
    return desk


def run(shop: Desk, *flags: str, worker: str = "writer") -> Said:
    model = f"script:{shop.directory / 'writes.yaml'}"
    done = shop.run("run", worker, "Write it", "--model", model, "--suspend", "--json", *flags)
    assert done.code == 3, done.err
    return done


def told(shop: Desk, begun: Said) -> dict[str, Any]:
    """What every place says of a run that waits, for programs."""
    name, request = begun.rows[-1]["run"], begun.rows[-1]["waiting"][0]["request"]
    [listed] = [one for one in shop.run("runs", "--json").data["runs"] if one["id"] == name]
    [item] = [one for one in shop.run("inbox", "--json").data["requests"] if one["id"] == request]
    shown = shop.run("show", request, "--json").data
    events = {one["kind"]: one["body"] for one in shown["history"]}
    return {
        "runs": listed["loosened"],
        "runs show": shop.run("runs", "show", name, "--json").data["run"]["loosened"],
        "inbox": item["loosened"],
        "card": shown["card"]["loosened"],
        "asked": events["asked"].get("loosened", []),
    }


def record(shop: Desk, run_id: str) -> list[tuple[str, Any]]:
    rows = shop.run("audit", "log", "--run", run_id, "--json").rows
    return [(one["kind"], one["body"].get("loosened")) for one in rows if one["kind"].startswith("run ")]


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        ((), []),
        (("--policy", "signoff.yaml"), []),
        (("--policy", "loose.yaml"), [OTHER]),
        (("--mode", "auto_approve"), [MODE]),
        (("--deny", "move_file", "--ask", "read_file"), []),
        (("--mode", "auto_approve", "--policy", "loose.yaml"), [MODE, OTHER]),
    ],
)
def test_c9_a_run_that_was_loosened_says_it_everywhere(shop: Desk, flags: tuple[str, ...], lines: list[str]) -> None:
    begun = run(shop, *flags)
    places = told(shop, begun)
    assert places == dict.fromkeys(places, lines)
    name, request = begun.rows[-1]["run"], begun.rows[-1]["waiting"][0]["request"]
    assert record(shop, name) == [("run started", lines or None)]
    pages = (("runs",), ("runs", "show", name), ("inbox",), ("show", request))
    for page in (shop.run(*one).out for one in pages):
        flat = " ".join(page.replace("|", " ").split())
        assert flat.count("LOOSENED") == len(lines), page
        assert all(line in flat for line in lines)
    log = shop.run("audit", "log", "--run", name).out
    assert [line.partition("loosened: ")[2][:40] for line in log.splitlines() if "loosened" in line] == [
        line[:40] for line in lines[:1]
    ]


@pytest.mark.parametrize("flags", [(), ("--policy", "loose.yaml")])
def test_c9_an_answer_remembered_in_such_a_run_says_so(shop: Desk, flags: tuple[str, ...]) -> None:
    request = run(shop, *flags).rows[-1]["waiting"][0]["request"]
    assert shop.run("approve", request, "--remember", "exact", "--yes").code == 0
    listed = " ".join(shop.run("grants", "list").out.split())
    assert ("given in a run that was loosened" in listed) is bool(flags)


def test_c9_what_is_resumed_under_another_policy_is_loosened_from_then_on(shop: Desk) -> None:
    begun = run(shop)
    name, first = begun.rows[-1]["run"], begun.rows[-1]["waiting"][0]["request"]
    assert shop.run("approve", first).code == 0
    paused = shop.run("resume", name, "--policy", "loose.yaml", "--suspend", "--json")
    assert paused.code == 3, paused.err
    [again] = paused.rows[-1]["waiting"]
    assert again["request"] != first
    assert shop.run("show", again["request"], "--json").data["card"]["loosened"] == [OTHER]
    assert shop.run("show", first, "--json").data["card"]["loosened"] == [], "it was asked before"
    assert record(shop, name) == [("run started", None), ("run resumed", [OTHER])]
    assert shop.run("approve", again["request"]).code == 0
    done = shop.run("resume", name, "--policy", "signoff.yaml", "--json")
    assert done.code == 0, done.err
    [kept] = shop.run("runs", "--all", "--json").data["runs"]
    assert kept["loosened"] == [OTHER], "what it did before, it did under that"


def test_c9_a_worker_that_is_called_says_it_and_so_does_a_process_that_goes_on(shop: Desk) -> None:
    Path("signoff.yaml").write_text("policy:\n  - {ask: write_file}\n  - {allow: worker_call}\n")
    Path("loose.yaml").write_text("policy:\n  - {ask: write_file}\n  - {allow: worker_call}\n")
    Path("delegates.yaml").write_text(
        "- calls: [{tool: worker_call, args: {worker: writer, prompt: go}}]\n- say: done\n"
    )
    for worker, script in (("boss", "delegates"), ("writer", "writes")):
        file = Path("workers") / f"{worker}.yaml"
        file.write_text(f"model: script:../{script}.yaml\n{file.read_text()}")
    begun = shop.run("run", "boss", "Go", "--suspend", "--json", "--policy", "loose.yaml")
    [waits] = begun.rows[-1]["waiting"]
    shown = shop.run("show", waits["request"], "--json").data
    assert (shown["worker"], shown["card"]["loosened"]) == (["boss", "writer"], [OTHER])
    assert shop.run("approve", waits["request"]).code == 0
    paused = shop.run("resume", begun.rows[-1]["run"], "--suspend", "--json")
    [waits] = paused.rows[-1]["waiting"]
    assert shop.run("show", waits["request"], "--json").data["card"]["loosened"] == [OTHER]


def test_c9_only_a_project_can_be_loosened_by_another_file(shop: Desk) -> None:
    """Where the file is the only one there is, it takes nobody's place."""
    Path("signoff.yaml").unlink()
    assert told(shop, run(shop, "--policy", "loose.yaml"))["runs"] == []
    Path("signoff.yaml").write_text(PROJECT)
    Path("elsewhere").mkdir()
    (outside := shop.directory.parent / "outside.yaml").write_text(PROJECT)
    shop.monkeypatch.chdir("elsewhere")
    begun = run(shop, "--policy", "../loose.yaml")
    assert told(shop, begun)["card"] == [OTHER], "named from the project's directory"
    worker = str(shop.directory / "workers" / "writer.yaml")
    begun = run(shop, "--policy", str(outside), worker=worker)
    assert told(shop, begun)["card"] == [f"another policy than the project's: {outside} (--policy)"]
    assert told(shop, run(shop, "--policy", "../signoff.yaml", worker=worker))["card"] == []


def test_c9_doctor_says_who_can_loosen(shop: Desk) -> None:
    def looked() -> tuple[str, Any]:
        page = " ".join(shop.run("doctor").out.split())
        return page.partition("can loosen ")[2].partition(" store ")[0], shop.run("doctor", "--json").data["loosening"]

    both = ["--mode auto_approve", "--policy FILE"]
    assert looked() == (
        "anyone who starts a run, with --mode auto_approve or --policy FILE; the run says so. "
        "`locked: true` in signoff.yaml prevents both",
        {"locked": None, "flags": both},
    )
    Path("signoff.yaml").write_text(PROJECT + "locked: true\n")
    text, data = looked()
    assert text.startswith("nobody: the policy is locked (signoff.yaml:6:")
    assert data["flags"] == [] and data["locked"].startswith("signoff.yaml:6:")
    Path("signoff.yaml").unlink()
    assert looked()[1] == {"locked": None, "flags": both[:1]}


def test_the_card_says_how_people_answered_before(shop: Desk) -> None:
    for answer in ("approve", "deny", "approve"):
        waits = run(shop).rows[-1]["waiting"][0]["request"]
        assert shop.run(answer, waits).code == 0
    waits = run(shop).rows[-1]["waiting"][0]["request"]
    said = "exactly this call: approved twice, denied once"
    assert shop.run("show", waits, "--json").data["card"]["answers"].startswith(said)
    assert f"earlier  {said}" in shop.run("show", waits).out


@pytest.mark.parametrize(
    ("flags", "lines"),
    [
        ((), []),
        (("--mode", "auto_approve"), [MODE]),
        (("--mode", "auto_approve", "--policy", "loose.yaml"), [MODE, OTHER]),
    ],
)
def test_c9_a_run_that_was_loosened_says_it_at_its_start(shop: Desk, flags: tuple[str, ...], lines: list[str]) -> None:
    model = f"script:{shop.directory / 'writes.yaml'}"
    begun = shop.run("run", "writer", "Write it", "--model", model, "--suspend", *flags)
    expected = [f"LOOSENED: {'; '.join(lines)}"] if lines else []
    assert [line for line in begun.err.splitlines() if "LOOSENED" in line] == expected
    assert not lines or begun.err.startswith(expected[0]), "before all else"
    assert "LOOSENED" not in begun.out
    program = run(shop, *flags)
    assert program.rows[0].get("loosened", []) == lines
    assert "LOOSENED" not in program.err, "it is in the JSON"


def test_c9_a_call_that_runs_by_a_remembered_answer_says_whose_and_when(shop: Desk) -> None:
    begun = run(shop)
    name, first = begun.rows[-1]["run"], begun.rows[-1]["waiting"][0]["request"]
    assert shop.run("approve", first, "--remember", "exact", "--yes").code == 0
    done = shop.run("resume", name)
    assert done.code == 0, done.err
    [grant] = shop.run("grants", "list", "--json").data["grants"]
    [said] = [line for line in done.err.splitlines() if "remembered" in line]
    assert re.search(rf"  answer of ana, (just now|\d+ s ago) \(grant {grant['id']}\)$", said), said
    [kept] = [line for line in shop.run("audit", "log").out.splitlines() if "  remembered  " in line]
    assert re.search(rf"  ana  .*: grant {grant['id']}", kept), "the audit log says whose and which, too"
