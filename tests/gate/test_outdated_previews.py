"""A preview shows one moment: if the file is another when the call is about to run, people are asked again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset
from tests.attacks.kept import YES, Place
from tests.gate.agents import calls
from tests.server.api_desk import ApiDesk, yes
from tests.server.web_desk import Page

from signoff import ApprovalDecision, Signoff, resume
from signoff.core.card import card_for
from signoff.core.request import ApprovalRequest, State
from signoff.testing import ScriptedModel
from signoff.toolsets.builtin.files.file_toolset import filesystem

WRITE = ("write_file", {"path": "a.txt", "content": "new\n"})


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.close()


class TextFile:
    """A file beside which the tools work."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.directory.mkdir()

    @property
    def text(self) -> str:
        return (self.directory / "a.txt").read_text()

    def holds(self, text: str, *, name: str = "a.txt") -> None:
        (self.directory / name).write_text(text)


@pytest.fixture
def file(tmp_path: Path) -> TextFile:
    return TextFile(tmp_path / "files")


class Person:
    """Approves what is asked, one after the other, and something happens while they read."""

    def __init__(self, *meanwhile: Callable[[], object], edits: dict[str, Any] | None = None) -> None:
        self.meanwhile = list(meanwhile)
        self.edits = edits
        self.seen: list[ApprovalRequest] = []

    async def choose(self, request: ApprovalRequest, *, mode: Any) -> ApprovalDecision:
        self.seen.append(request)
        if self.meanwhile:
            self.meanwhile.pop(0)()
        edits, self.edits = self.edits, None
        return ApprovalDecision(approved=True, edited_args=edits)

    @property
    def diffs(self) -> list[str]:
        """The changed lines of each diff that was shown."""
        return [changes(one) for one in self.seen]


def changes(request: ApprovalRequest) -> str:
    preview = card_for(request).preview
    assert preview is not None
    return " ".join(line for line in preview.text.splitlines()[2:] if line[:1] in "+-")


def agent(gate: Signoff, file: TextFile, *turns: list[tuple[str, dict[str, Any]]]) -> Agent[Any, Any]:
    said = [*(calls(*each) for each in turns), {"say": "{{last}}"}]
    output: Any = [str, DeferredToolRequests] if gate.wait == "suspend" else str
    return Agent(ScriptedModel(said), output_type=output, toolsets=[filesystem(file.directory)], capabilities=[gate])


@pytest.mark.parametrize("before", ["old\n", None])
async def test_a_file_that_changed_while_a_person_read_is_shown_anew(file: TextFile, before: str | None) -> None:
    if before is not None:
        file.holds(before)
    ana = Person(lambda: file.holds("theirs\n"))
    await agent(Signoff([], approver=ana), file, [WRITE]).run("go")
    assert ana.diffs == ["+new" if before is None else "-old +new", "-theirs +new"]
    assert file.text == "new\n"
    card = card_for(ana.seen[1])
    assert card.changed.startswith("`a.txt` changed after ") and "no longer counts" in card.changed
    assert "basis" not in [one.name for one in card.details]


class Till(FunctionToolset[Any]):
    """A toolset of somebody's own, which says what its preview is made from, and does not look again."""

    def __init__(self) -> None:
        self.balance = 100
        super().__init__([self.pay])

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        left = self.balance - args["amount"]
        return {"preview": f"{left} are left", "basis": {"the balance": str(self.balance)}}

    def pay(self, amount: int) -> str:
        self.balance -= amount
        return "paid"


async def test_any_toolset_may_say_what_its_preview_is_made_from() -> None:
    till = Till()

    def spend() -> None:
        till.balance -= 50

    ana = Person(spend)
    turns = [calls(("pay", {"amount": 30})), {"say": "done"}]
    await Agent(ScriptedModel(turns), toolsets=[till], capabilities=[Signoff([], approver=ana)]).run("go")
    assert [one.metadata["preview"] for one in ana.seen] == ["70 are left", "20 are left"]
    assert (card_for(ana.seen[1]).changed.partition(" after ")[0], till.balance) == ("the balance changed", 20)


async def test_what_is_shown_may_come_back(file: TextFile) -> None:
    file.holds("old\n")
    ana = Person(lambda: (file.holds("theirs\n"), file.holds("old\n")))
    await agent(Signoff([], approver=ana), file, [WRITE]).run("go")
    assert (ana.diffs, file.text) == (["-old +new"], "new\n")


async def test_two_writes_to_one_file_in_one_answer(file: TextFile) -> None:
    ana = Person()
    other = ("write_file", {"path": "a.txt", "content": "newer\n"})
    await agent(Signoff([], approver=ana), file, [WRITE, other]).run("go")
    assert ana.diffs[:2] == ["+new", "+newer"]
    assert ana.diffs[2:] in (["-new +newer"], ["-newer +new"]), "whichever came second was asked about again"
    text = ana.diffs[2].rpartition("+")[2]
    assert file.text == f"{text}\n"
    [before] = card_for(ana.seen[2]).recent
    assert before == "Write a.txt: done", "what the file was changed by"


async def test_edits_of_one_file_hold_as_long_as_the_lines_that_were_shown_are_the_same(file: TextFile) -> None:
    lines = [f"line {number}\n" for number in range(40)]
    file.holds("".join(lines))
    edits = [("edit_file", {"path": "a.txt", "old": f"line {one}\n", "new": f"LINE {one}\n+\n"}) for one in (5, 20, 35)]
    ana = Person()
    await agent(Signoff([], approver=ana), file, edits).run("go")
    assert len(ana.seen) == 3
    assert file.text.count("LINE") == 3
    near = ("edit_file", {"path": "a.txt", "old": "line 11\n", "new": "LINE 11\n"})
    ben = Person(lambda: file.holds(file.text.replace("line 10\n", "LINE 10\n")))
    await agent(Signoff([], approver=ben), file, [near]).run("go")
    assert ben.diffs == ["-line 11 +LINE 11"] * 2
    assert " LINE 10" in str(ben.seen[1].metadata["diff"])


@pytest.mark.parametrize(
    ("call", "shown"),
    [
        (("delete_file", {"path": "a.txt"}), ["-old", "-theirs"]),
        (("move_file", {"source": "b.txt", "target": "a.txt", "overwrite": True}), ["-old +b", "-theirs +b"]),
    ],
)
async def test_what_is_deleted_or_replaced_is_what_was_shown(
    file: TextFile, call: tuple[str, dict[str, Any]], shown: list[str]
) -> None:
    file.holds("old\n")
    file.holds("b\n", name="b.txt")
    ana = Person(lambda: file.holds("theirs\n"))
    await agent(Signoff([], approver=ana), file, [call]).run("go")
    assert ana.diffs == shown


def leads_to(file: TextFile, directory: str) -> None:
    """Let the link `d` lead to another directory."""
    link = file.directory / "d"
    link.unlink(missing_ok=True)
    link.symlink_to(directory)


@pytest.mark.parametrize(
    "call",
    [
        ("write_file", {"path": "d/a.txt", "content": "new\n"}),
        ("write_file", {"path": "d/b.txt", "content": "new\n"}),
        ("write_file", {"path": "d/deep/b.txt", "content": "new\n"}),
        ("edit_file", {"path": "d/a.txt", "old": "old", "new": "new"}),
        ("delete_file", {"path": "d/a.txt"}),
        ("delete_file", {"path": "d/empty/"}),
        ("move_file", {"source": "d/a.txt", "target": "b.txt"}),
        ("move_file", {"source": "top.txt", "target": "d/b.txt"}),
        ("move_file", {"source": "top.txt", "target": "d/a.txt", "overwrite": True}),
    ],
    ids=str,
)
async def test_a_link_that_leads_elsewhere_by_now_is_asked_about(
    file: TextFile, call: tuple[str, dict[str, Any]]
) -> None:
    for name in ("one", "two"):
        (file.directory / name / "empty").mkdir(parents=True)
        file.holds("old\n", name=f"{name}/a.txt")
    file.holds("top\n", name="top.txt")
    leads_to(file, "one")
    ana = Person(lambda: leads_to(file, "two"))
    await agent(Signoff([], approver=ana), file, [call]).run("go")
    assert [("one/" in str(one.metadata), "two/" in str(one.metadata)) for one in ana.seen] == [
        (True, False),
        (False, True),
    ]
    ben = Person()
    await agent(Signoff([], approver=ben), file, [call]).run("go")
    assert len(ben.seen) == 1


async def test_an_edit_that_would_have_failed_is_asked_about_with_its_diff(file: TextFile) -> None:
    file.holds("theirs\n")
    ana = Person(lambda: file.holds("old\n"))
    await agent(Signoff([], approver=ana), file, [("edit_file", {"path": "a.txt", "old": "old", "new": "new"})]).run(
        "go"
    )
    assert ["it will fail" in str(one.metadata.get("reason")) for one in ana.seen] == [True, False]
    assert file.text == "new\n"


async def test_an_edited_answer_holds_for_the_file_that_was_shown(file: TextFile) -> None:
    file.holds("old\n")
    ana = Person(lambda: file.holds("theirs\n"), edits={"path": "a.txt", "content": "mine\n"})
    await agent(Signoff([], approver=ana), file, [WRITE]).run("go")
    assert ana.diffs == ["-old +new", "-theirs +mine"]
    ben = Person(lambda: file.holds("theirs\n"), edits={"path": "b.txt", "content": "mine\n"})
    await agent(Signoff([], approver=ben), file, [WRITE]).run("go")
    assert (len(ben.seen), file.text) == (1, "theirs\n"), "no card has shown the other file"


async def test_a_change_at_the_very_last_moment_is_not_overwritten(
    place: Place, file: TextFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.holds("old\n")
    ana = Person()
    gate = Signoff([], approver=ana, store=place.store())
    claim, after = gate.broker.claim, ["theirs\n"]

    async def claims(*args: Any, **options: Any) -> ApprovalRequest:
        claimed = await claim(*args, **options)
        if after:
            file.holds(after.pop())
        return claimed

    monkeypatch.setattr(gate.broker, "claim", claims)
    await agent(gate, file, [WRITE]).run("go")
    assert ana.diffs == ["-old +new", "-theirs +new"]
    assert file.text == "new\n"
    await gate.broker.store.flush()
    states = [(await gate.broker.get(one.id)).state for one in ana.seen]
    assert states == [State.CANCELLED, State.SUCCEEDED]


async def test_a_waiting_question_shows_what_the_other_one_left(place: Place, file: TextFile) -> None:
    other = ("write_file", {"path": "a.txt", "content": "newer\n"})

    def process() -> tuple[Signoff, Agent[Any, Any]]:
        gate = place.gate([])
        return gate, agent(gate, file, [WRITE, other])

    gate, waits = process()
    await waits.run("go")
    first, second = await gate.pending()
    assert changes(second) == "+newer"
    await gate.answer(first.id, YES, by="ana")
    gate, waits = process()
    await resume(waits, first.run)
    assert file.text == "new\n"
    [renewed] = await gate.pending()
    assert changes(renewed) == "-new +newer"
    assert card_for(renewed).changed == "`a.txt` changed after this was asked"
    assert (await gate.broker.get(second.id)).state is State.CANCELLED
    await gate.answer(renewed.id, YES, by="ana")
    gate, waits = process()
    await resume(waits, first.run)
    assert file.text == "newer\n"


async def test_api_web_and_log_say_that_the_file_changed(place: Place, file: TextFile, tmp_path: Path) -> None:
    file.holds("old\n")
    desk = ApiDesk(tmp_path, rules="policy:\n  - ask: write_file\n")
    try:
        rules = str(desk.file)
        gate = place.gate(rules)
        await agent(gate, file, [WRITE]).run("go")
        [asked] = await gate.pending()
        await desk.post(f"/requests/{asked.id}/votes", yes(asked))
        file.holds("theirs\n")
        gate = place.gate(rules)
        await resume(agent(gate, file, [WRITE]), asked.run)
        assert file.text == "theirs\n"
        [anew] = (await desk.get("/requests"))["requests"]
        shown = (await desk.get(f"/requests/{anew['id']}"))["card"]
        assert "-theirs\n+new" in shown["preview"]["text"]
        why = "`a.txt` changed after the question; ben approved it"
        assert why in shown["changed"]
        page = (await desk.client.get(f"http://inbox.test/requests/{anew['id']}", headers={"x-who": "ben"})).text
        assert why in Page(page).words and "theirs" in Page(page).words
        before = await desk.get(f"/requests/{asked.id}")
        assert before["state"] == "cancelled"
        told = [one["what"] for one in (await desk.get("/audit"))["events"] if why in one["what"]]
        assert [one.partition(":")[0] for one in told] == ["cancelled", "Write a.txt"]
        await desk.post(f"/requests/{anew['id']}/votes", yes(await gate.broker.get(anew["id"])))
        await resume(agent(place.gate(rules), file, [WRITE]), asked.run)
        assert file.text == "new\n"
    finally:
        await desk.close()
