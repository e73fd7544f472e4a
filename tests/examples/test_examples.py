"""Every example, typed from its own README at a real terminal: offline, with its approvals, down to what is on disk."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from tests import start
from tests.examples.transcript import Session, Step, results_last, steps
from tests.profiles import NIGHTLY
from tests.toolsets.test_third_party import installed

EXAMPLES = Path(__file__).parents[2] / "examples"
OF_WORKERS = ("hello", "file_organizer", "code_review", "delegation", "third_party_database", "mcp")
SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)

__all__ = ["installed"]


def readme(name: str) -> str:
    return (EXAMPLES / name / "README.md").read_text("utf-8")


@pytest.fixture
def sits_down(tmp_path: Path) -> Callable[..., tuple[Session, Path]]:
    """A person at a terminal, and where their copy of an example is."""

    def begin(name: str, **environment: str) -> tuple[Session, Path]:
        return Session.with_example(EXAMPLES / name, tmp_path, **environment), tmp_path / "examples" / name

    return begin


Begin = Callable[..., tuple[Session, Path]]


def events(session: Session) -> list[dict[str, str]]:
    """The record, as a program reads it."""
    done = start.run(
        [*start.SIGNOFF, "audit", "log", "--json", "--limit", "200"],
        cwd=session.directory,
        env=dict(session.environment),
        capture_output=True,
        text=True,
        check=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_hello(sits_down: Begin) -> None:
    session, here = sits_down("hello")
    session.has_shell = True
    session.play(readme("hello"))
    assert (here / "notes" / "hello.txt").read_text() == "Hello, Ana!\nHello, Ben!\n"


def test_hello_with_a_no(sits_down: Begin) -> None:
    session, here = sits_down("hello")
    enter, run, _ = steps(readme("hello"))
    session.type(enter)
    seen = session.type(Step(run.command, "your answer > d\n"))
    assert "permission_denied" in seen
    assert not (here / "notes" / "hello.txt").exists()


def test_calls_that_begin_while_others_run_are_shown_before_any_result_and_later_ones_are_not() -> None:
    at_once = ["  allowed       a()\n", "  allowed       b()\n", "  result        a: 1\n", "  result        b: 2\n"]
    one, two, *ended = at_once
    later = "  allowed       c()\n  result        c: 3\n"
    three = "  allowed       d()\n"
    assert results_last("".join([one, two, ended[0], three, ended[1]])) == "".join([one, two, three, *ended])
    assert results_last("".join([*at_once, later])) == "".join([*at_once, later])


@pytest.mark.nightly
def test_file_organizer(sits_down: Begin) -> None:
    session, here = sits_down("file_organizer")
    before = {file.read_text() for file in (here / "desk" / "inbox").iterdir()}
    session.play(readme("file_organizer"))
    filed = here / "desk" / "filed"
    assert [file.name for file in sorted((filed / "invoices").iterdir())] == [
        "2031-03-04-cafe-mowe.txt",
        "2031-04-11-roof-repair.txt",
    ]
    assert "Roof repair" in (filed / "invoices" / "2031-04-11-roof-repair.txt").read_text(), "where the person said"
    assert {file.read_text() for file in filed.rglob("*.txt")} == before
    assert (here / "desk" / "lists" / "letters.md").read_text() == "- 2031-05-02-thanks-from-ben.txt\n"
    assert [one["kind"] for one in events(session)].count("asked") == 4, "three moves and one of the two lists"


def test_code_review(sits_down: Begin) -> None:
    session, here = sits_down("code_review")
    session.play(readme("code_review"))
    review = (here / "reviews" / "whole-amounts.md").read_text()
    assert re.search(r"The tests: 2 passed in \d", review), "they ran for real"
    assert "this shell only reads: `sed -i` " in review, "the model is told why"
    assert "// 100" in (here / "shop" / "prices.py").read_text(), "nothing was changed"


def test_delegation(sits_down: Begin) -> None:
    session, here = sits_down("delegation")
    session.play(readme("delegation"))
    assert "(100 - discount)" in (here / "project" / "prices.py").read_text()
    assert (here / "project" / "issues" / "7.md").exists(), "triage's rule holds three levels down"
    scribe = yaml.safe_load((here / "workers" / "scribe.yaml").read_text())
    assert scribe["toolsets"] == ["changing"]
    assert scribe["limits"] == {"requests": 8}
    assert scribe["metadata"] == {"created_by": "foreman"}
    assert (here / "project" / "CHANGES.md").read_text() == "- Discounts are taken off again (issue 7).\n"


@pytest.mark.nightly
def test_delegation_with_a_no_three_levels_down(sits_down: Begin) -> None:
    session, here = sits_down("delegation")
    before = (here / "project" / "prices.py").read_text()
    told = "- calls: [{tool: final_result, args: {changed: ['{{last}}']}}]\n"
    script = (here / "scripts" / "fixer.yaml").read_text().splitlines(keepends=True)
    (here / "scripts" / "fixer.yaml").write_text(script[0] + told)
    typed = list(steps(readme("delegation")))
    for step in typed[:2]:
        assert session.is_as_printed(step.printed, session.type(step))
    approve = next(step.command for step in typed if step.command.startswith("signoff approve"))
    resume = next(step for step in typed if step.command.startswith("signoff resume"))
    session.type(Step(approve.replace("approve", "deny").replace("plus was wrong", "not on a Friday"), ""))
    told_at_last = session.type(resume)[-300:].replace("┃", " ").split()
    assert "not on a Friday" in " ".join(told_at_last), "the fixer is told, and passes it on"
    assert (here / "project" / "prices.py").read_text() == before


# --- those whose README names commands only ---


def shell_commands(name: str) -> list[str]:
    """What the README types, without what installs packages: that is the tests' own business."""
    found = SHELL.search(readme(name))
    assert found is not None
    lines = [shlex.join(shlex.split(line, comments=True)) for line in found[1].splitlines()]
    return [line for line in lines if line and not line.startswith("pip install")]


def orders(here: Path) -> list[str]:
    with closing(sqlite3.connect(here / "orders.db")) as database:
        return [state for (state,) in database.execute("SELECT state FROM orders ORDER BY id")]


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        ("a", ["paid", "late", "late"]),
        pytest.param("d", ["paid", "open", "open"], marks=pytest.mark.nightly),  # `hello` and `mcp` are denied daily
    ],
)
def test_third_party_database(sits_down: Begin, installed: Path, answer: str, after: list[str]) -> None:
    session, here = sits_down("third_party_database", PYTHONPATH=str(installed))
    *before, run = shell_commands("third_party_database")
    for command in before:
        session.type(Step(command, ""))
    seen = session.type(Step(run, f"your answer > {answer}\n"))
    assert orders(here) == after
    assert seen.count("your answer > ") == 1, "reads ran unasked, and the rest was refused"
    for refusal in ("this database is read-only", "tables stay where they are"):
        assert refusal in seen


def test_mcp(sits_down: Begin) -> None:
    pytest.importorskip("mcp")
    session, here = sits_down("mcp")
    enter, listed, run = shell_commands("mcp")
    session.type(Step(enter, ""))
    if NIGHTLY:  # a second start of the server; tests/cli/test_toolsets_commands.py lists what a server has daily
        assert "delete_ticket" in session.type(Step(listed, "")), "the server was started, and said what it has"
    session.type(Step(run, "your answer > o\nyour answer > a\nyour answer > d\n"))
    tickets = json.loads((here / "tickets.json").read_text())
    assert len(tickets["17"]["comments"]) == 2, "the comment was approved"
    assert tickets["18"]["state"] == "open", "closing was denied, and deleting is denied by the policy"


# --- all of them ---


@pytest.mark.parametrize("name", OF_WORKERS)
def test_it_has_what_it_takes(name: str) -> None:
    here = EXAMPLES / name
    assert (here / "signoff.yaml").exists()
    assert [file for file in (here / "workers").iterdir() if file.suffix in (".yaml", ".md")]
    assert [*here.glob("script.yaml"), *here.glob("scripts/*.yaml")], "it runs without a model"
    assert "model" in readme(name)


def test_the_list_of_examples_is_complete() -> None:
    there = {directory.name for directory in EXAMPLES.iterdir() if directory.is_dir()}
    assert there == {*OF_WORKERS, "mail", "fastapi", "mounted_inbox", "service"}
    linked = re.findall(r"\]\((\w+)/\)", (EXAMPLES / "README.md").read_text("utf-8"))
    assert sorted(linked) == sorted(there)
