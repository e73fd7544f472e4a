"""What came of the calls of a run, as its page, the API and `signoff runs show` tell it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests
from tests.server.web_desk import WebDesk

from signoff import Signoff, resume
from signoff.cli.runs_command import _timeline  # pyright: ignore[reportPrivateUsage]
from signoff.core.call import Call
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import Lost, advance
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.testing import Office, ScriptedModel
from signoff.testing.office import ANA
from signoff.views.json_form import read
from signoff.views.run_view import RunHistoryView

RULES = [{"allow": "look"}, {"ask": "push"}]
SECRET = "correct-horse-battery"
LONG = "".join(f"line {number}\n" for number in range(500))
RESULTS = {
    "tests": "F...\nFAILED tests/test_a.py\n1 failed, 3 passed\n[exit code 1]",
    "fine": "first\nsecond",
    "long": f"{LONG}[exit code 3]",
    "secret": f"the word is {SECRET}\n[exit code 2]",
}


async def ran(tmp_path: Path) -> tuple[Signoff, str]:
    """A run whose calls were allowed, edited, and approved as they were."""
    turns = [
        {"calls": [{"tool": "look", "args": {"at": one}} for one in RESULTS]},
        {"calls": [{"tool": "push", "args": {"to": "main"}}, {"tool": "push", "args": {"to": "fork"}}]},
        {"say": "done"},
    ]
    gate = Signoff(RULES, wait="suspend", store=f"sqlite:{tmp_path / 's.db'}", secrets=[SECRET])
    agent = Agent(ScriptedModel(turns), name="shop", output_type=[str, DeferredToolRequests], capabilities=[gate])

    @agent.tool_plain
    def look(at: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Look at something."""
        return RESULTS[at]

    @agent.tool_plain
    def push(to: str) -> str:  # pyright: ignore[reportUnusedFunction]
        """Push."""
        return f"pushed to {to}\nas asked" if to != "fork" else f"{LONG}no such remote\n[exit code 128]"

    await agent.run("Release it.")
    first, second = await gate.pending()
    recent = [one.rpartition(": ")[2] for one in card_for(first).recent]
    assert recent == ["done", "exit code 3", "exit code 2"]  # the last three
    await gate.answer(first.id, ApprovalDecision(approved=True, edited_args={"to": "staging"}), by="ana")
    await gate.answer(second.id, ApprovalDecision(approved=True), by="ana")
    await resume(agent, first.run)
    return gate, first.run


def test_a_call_that_a_person_told_of_says_who_and_what() -> None:
    desk = WebDesk()
    broker = desk.office.broker

    async def lost() -> None:
        await broker.runs.begin(SavedRun(id="runabc2345", agent="worker:triage"))
        call = Call(tool="pay", args={}, call_id="c1", run_id="r", conversation_id="talk")
        asked = ApprovalRequest(tool_call_id="c1", tool_name="pay", args={}, call=call, run="runabc2345")
        [request] = await broker.open([asked])
        await broker.answer(request.id, ApprovalDecision(approved=True), by=ANA)
        gone = advance(await broker.claim(request.id), Lost(), desk.office.clock.now())
        await desk.office.store.write("lose", lambda tx: tx.requests.put(gone))
        await broker.tell(request.id, happened=False, by=ANA)

    desk.do(lost())
    assert "ana says: it did not happen." in desk.get("/runs/runabc2345").words


def test_what_ran_with_results_exit_codes_and_edits(tmp_path: Path) -> None:
    desk = WebDesk()
    gate, run = desk.do(ran(tmp_path))
    desk = WebDesk(office=Office(gate.broker.store))
    page = desk.get(f"/runs/{run}")
    assert 'What was changed: to: "staging", not "main"' in page.words
    assert 'push(to="staging")' in page.words
    ends = [text for text, around in page.texts if around[-1:] and around[-1].attributes.get("class") == "tag warn"]
    assert sorted(ends) == ["exit code 1", "exit code 128", "exit code 128", "exit code 2", "exit code 3"]
    shown = [text for text, around in page.texts if any(one.tag == "pre" for one in around)]
    assert "pushed to staging\nas asked" in shown
    assert any(one.startswith("F...\nFAILED tests/test_a.py") for one in shown)
    assert SECRET not in page.source
    assert all(len(one) < 800 for one in shown)  # however long the result is
    api: dict[str, Any] = desk.client.get(f"/api/v1/runs/{run}").json()
    codes = [one["exit_code"] for one in api["timeline"] if one["kind"] == "ran"]
    assert sorted(codes, key=str) == [1, 128, 2, 3, None, None]
    lines = "\n".join(_timeline(read(RunHistoryView, api)))
    for words in ("ran, exit 1 ", "1 failed, 3 passed", "ran, exit 128", "shop", "first …"):
        assert words in lines
    assert SECRET not in lines and "rule rule-" not in lines
