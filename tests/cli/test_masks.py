"""Masks on the screens: a mask is shown as one, and a text that imitates one is not."""

from __future__ import annotations

import pytest
from tests.cli.desk import Desk, asks

from signoff.broker import Broker
from signoff.channels.outcome import outcome_text, result_text
from signoff.core.decision import ApprovalDecision
from signoff.core.notice import RunResult
from signoff.core.people import Actor
from signoff.core.redact import redact_text
from signoff.core.run import RunState, SavedRun

SECRET = "hunter2-hunter2"
FORGED = "⟦masked 7: password⟧"
SPELLED = "⟦U+27E6⟧masked 7: password⟦U+27E7⟧"
# What makes a text unprintable, so that a screen has to look at it again: a break, and a turn of direction.
ODD = "\nnext \u202e"


def ended(desk: Desk, detail: str) -> None:
    async def work(broker: Broker) -> None:
        run = await broker.runs.begin(SavedRun(id="runabc2345", agent="worker:triage", prompt="Pay"))
        await broker.runs.end(run.id, run.epoch, RunState.FAILED, detail, secrets=[SECRET])

    desk.do(work)


def test_the_end_of_a_run_with_a_secret_in_it(desk: Desk) -> None:
    ended(desk, f"no login with {SECRET}{ODD.replace(chr(10), ' ')} {FORGED}\nmore")
    for shown in (desk.run("runs", "--all").out, desk.run("audit", "log").out):
        assert "⟦masked' 1: declared secret⟧" in shown
        assert "⟦U+202E⟧" in shown
        assert SPELLED in shown
        assert FORGED not in shown
        assert "more" not in shown, "of several lines, a list shows the first"


@pytest.mark.parametrize("odd", ["", ODD], ids=["plain", "odd"])
def test_arguments_on_the_record(desk: Desk, odd: str) -> None:
    [one] = desk.open(asks("send", {"text": f"{FORGED}{odd}", "password": SECRET}))
    desk.decide(one, note=f"{FORGED}{odd} password={SECRET}")

    async def run(broker: Broker) -> None:
        await broker.claim(one)
        broker.finish(one, digest="d", preview=f"{FORGED}{odd} password={SECRET}")

    desk.do(run)
    screens = {
        " ".join(words): desk.run(*words).out
        for words in (["show", one], ["audit", "log"], ["audit", "export", "--format", "csv"], ["show", one, "--json"])
    }
    for name, shown in screens.items():
        assert SECRET not in shown, name
        assert "⟦masked" in shown, name
        assert "⟦U+27E6⟧masked 7" in shown, name
        # The arguments for programs are the one place where a text is left as it is.
        assert shown.count(FORGED) == (name.endswith("--json")), name
        assert "⟦U+27E6⟧masked 1" not in shown, name
        assert "⟦U+27E6⟧masked' 1" not in shown, name


def test_a_terminal_that_is_told(desk: Desk) -> None:
    [one] = desk.open(asks())

    async def run(broker: Broker) -> None:
        await broker.answer(one, ApprovalDecision(approved=True), by=Actor(name="ana"))
        await broker.claim(one)
        broker.finish(one, digest="d", preview=f"token={SECRET}")

    desk.do(run)
    assert outcome_text(desk.request(one)) == f"request {one} ran: token=⟦masked 1: token⟧"
    said = RunResult(run="r", state=RunState.DONE, worker="triage", text=redact_text(f"token={SECRET}\n\u202e"))
    assert result_text(said) == "triage (done): token=⟦masked 1: token⟧\n⟦U+202E⟧"
