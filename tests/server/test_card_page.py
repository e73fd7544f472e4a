"""What a card says is true: who agreed to what, who said what became of it, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.server.web_desk import Element, Page, WebDesk

from signoff.config.settings import Person
from signoff.core.access import Permission
from signoff.core.comment import CommentKind
from signoff.core.decision import ApprovalDecision
from signoff.core.lifecycle import Lost, advance
from signoff.core.people import Actor, ActorKind, Delegation
from signoff.core.request import ApprovalRequest, State
from signoff.core.run import SavedRun
from signoff.core.verdict import OnTimeout, Requirement
from signoff.server.edit_form import form_fields
from signoff.server.state import RunControl
from signoff.testing.office import ANA, BEN

PEOPLE = {
    "ana": Person(name="ana", roles=frozenset({"ops"})),
    "ben": Person(name="ben", roles=frozenset({"ops"})),
}
TWO = Requirement(role="ops", quorum=2)
MAIL = {"to": "bo@example.com", "subject": "Lunch", "copies": 1}
SCHEMA = {
    "type": "object",
    "properties": {"to": {"type": "string"}, "subject": {"type": "string"}, "copies": {"type": "integer"}},
}


def button(page: Page, name: str) -> dict[str, str]:
    return page.all("button", data_do=name)[0].attributes


def vote(desk: WebDesk, request_id: str, **body: Any) -> Any:
    card = desk.get(f"/requests/{request_id}").all("article")[0].attributes
    sent = {"decision": "approve", "args_digest": card["data-digest"], **body}
    return desk.client.post(f"/api/v1/requests/{request_id}/votes", json=sent)


def test_votes_for_other_arguments_do_not_count_for_those_on_the_card() -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=TWO, args=MAIL, schema=SCHEMA)
    assert vote(desk, request_id, args={**MAIL, "copies": 3}).json()["state"] == "pending"
    desk.actor = BEN
    page = desk.get(f"/requests/{request_id}")
    assert "0 of 2 approved" in page.words
    assert "asked 1 changed to 3" in page.words
    assert "Approve these arguments" in page.words
    assert "1 more person has to approve" in page.words  # what is on the card
    assert "0 of 2 approved" in desk.get("/fragments/list").words
    digest = button(page, "approve-these")["data-digest"]
    answer = vote(desk, request_id, as_voted=digest).json()
    assert answer["state"] == "approved"
    assert answer["args"]["copies"] == 3
    page = desk.get(f"/requests/{request_id}")
    assert "What was approved:" in page.words
    assert "asked 1 changed to 3" in page.words


def test_long_arguments_that_somebody_else_wrote_are_read_first() -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=TWO, args=MAIL, schema=SCHEMA)
    vote(desk, request_id, args={**MAIL, "subject": "word " * 200})
    desk.actor = BEN
    page = desk.get(f"/requests/{request_id}")
    assert [one for one in page.all("details") if "data-must-read" in one.attributes]
    digest = button(page, "approve-these")["data-digest"]
    assert vote(desk, request_id, as_voted=digest).json()["type"] == "urn:signoff:not-read"
    desk.do(desk.state.inbox.opened(request_id, BEN))
    assert vote(desk, request_id, as_voted=digest).json()["state"] == "approved"


def test_only_arguments_that_somebody_approved_are_approved_as_voted() -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=TWO, args=MAIL, schema=SCHEMA)
    assert vote(desk, request_id, as_voted="0" * 64).json()["type"] == "urn:signoff:args-changed"
    both = vote(desk, request_id, as_voted="0" * 64, args=MAIL)
    assert both.status_code == 422


def test_whoever_approved_is_told_so_and_what_is_missing() -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=TWO)
    vote(desk, request_id)
    page = desk.get(f"/requests/{request_id}")
    assert page.words.count("You approved. One more person has to.") == 2  # what happens next, and the lock
    assert button(page, "approve")["aria-disabled"] == "true"
    assert "aria-disabled" not in button(page, "deny")
    assert "It runs once" not in page.words
    desk.actor = BEN
    page = desk.get(f"/requests/{request_id}")
    assert "It runs once" in page.words
    assert "aria-disabled" not in button(page, "approve")


@pytest.mark.parametrize(
    ("happened", "words"), [(True, "ben says: it happened."), (False, "ben says: it did not happen.")]
)
def test_who_says_what_became_of_a_call_is_named(*, happened: bool, words: str) -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=Requirement(timeout=timedelta(hours=1)))
    broker = desk.office.broker
    assert desk.get("/").has("data-deadline")

    async def lose() -> None:
        await broker.answer(request_id, ApprovalDecision(approved=True, note="fine"), by=ANA)
        claimed = await broker.claim(request_id)
        lost = advance(claimed, Lost(), desk.office.clock.now())
        await desk.office.store.write("lose", lambda tx: tx.requests.put(lost))

    desk.do(lose())
    page = desk.get(f"/requests/{request_id}")
    assert "It counts as run." in page.words
    assert "The approval is void." in page.words
    assert "What was approved:" in page.words and "What ran:" not in page.words
    assert not desk.get("/").has("data-deadline"), "it was answered, and waits for nobody's answer"
    desk.do(broker.tell(request_id, happened=happened, by=BEN, note="I looked"))
    page = desk.get(f"/requests/{request_id}")
    assert words in page.words
    assert "Note: I looked" in page.words
    assert "It returned" not in page.words
    assert words in desk.get("/history").words


def test_a_call_that_was_handed_over_is_not_said_to_have_run() -> None:
    desk = WebDesk()
    request_id = desk.ask()
    broker = desk.office.broker

    async def hand_over() -> None:
        await broker.answer(request_id, ApprovalDecision(approved=True), by=ANA)
        await broker.hand_over([request_id])

    desk.do(hand_over())
    for path in (f"/requests/{request_id}", "/history"):
        page = desk.get(path)
        assert "handed over" in page.words
        assert "it ran" not in page.words
    assert "handed to the program that asked" in desk.get(f"/requests/{request_id}").words


@pytest.mark.parametrize(
    ("on_timeout", "card", "history"),
    [
        (OnTimeout.DENY, "Nobody answered in time.", "expired: Nobody answered in time."),
        (
            OnTimeout.ALLOW,
            "Approved by the rule, because nobody answered.",
            "approved the rule, because nobody answered",
        ),
    ],
)
def test_silence_is_said_to_be_why(on_timeout: OnTimeout, card: str, history: str) -> None:
    desk = WebDesk()
    request_id = desk.ask(need=Requirement(timeout=timedelta(minutes=1), on_timeout=on_timeout))
    desk.office.clock.advance(timedelta(minutes=2))
    desk.get("/")
    assert card in desk.get(f"/requests/{request_id}").words
    assert history in desk.get("/history").words
    assert "nobody in time" not in desk.get("/history").words


def test_why_it_was_cancelled_is_said() -> None:
    desk = WebDesk()
    request_id = desk.ask()
    desk.do(desk.office.broker.cancel(request_id, "the run was stopped"))
    assert "Withdrawn. " in desk.get(f"/requests/{request_id}").words
    assert "Reason: the run was stopped" in desk.get(f"/requests/{request_id}").words
    assert "the run was stopped" in desk.get("/history").words


def test_a_lock_says_why_and_a_veto_may_deny() -> None:
    desk = WebDesk(people=PEOPLE)
    page = desk.get(f"/requests/{desk.ask(need=Requirement(role='boss', veto='ops'))}")
    assert "ana does not have the role boss" in page.words
    assert button(page, "approve")["aria-disabled"] == "true"
    assert "aria-disabled" not in button(page, "deny")
    page = desk.get(f"/requests/{desk.ask(need=Requirement(role='boss'), args=MAIL)}")
    assert button(page, "deny")["aria-disabled"] == "true"
    assert button(page, "claim")["aria-disabled"] == "true"


def test_what_happens_next_is_said_for_the_person_who_reads_it() -> None:
    desk = WebDesk(people=PEOPLE)
    desk.office.broker.people.follow(lambda: {name: one.roles for name, one in PEOPLE.items()})
    mine = desk.get(f"/requests/{desk.ask(need=TWO)}")
    assert (
        "Your approval counts. 1 more person has to approve" in mine.words
        and "It does not run. The agent" in mine.words
    )
    assert mine.all("button", data_do="edit") and not mine.has("data-shortage")
    for need in (Requirement(role="boss", quorum=2), Requirement(role="boss")):
        page = desk.get(f"/requests/{desk.ask(need=need, args=MAIL | {'copies': need.quorum})}")
        assert page.words.count("Your answer would not count: ana does not have the role boss") >= 2
        for untrue in ("Your approval counts", "It runs once", "It does not run. The agent"):
            assert untrue not in page.words
        assert not page.all("button", data_do="edit") and not page.all("button", data_do="remember")
        assert "Too few people: nobody who is listed may approve it" in page.words
    short = desk.ask(need=replace(TWO, quorum=3), args=MAIL | {"copies": 3})
    page = desk.get(f"/requests/{short}")
    assert "Too few people: only 2 listed people may approve it, so it cannot run" in page.words
    assert "It does not run, even then" in page.words and "more person has to approve" not in page.words
    assert "too few people" in [text.strip() for text, _ in page.texts], "its row says so"
    desk.do(desk.office.broker.answer(short, ApprovalDecision(approved=True), by=ANA))
    voted = desk.get(f"/requests/{short}").words
    assert "You approved, but too few people may." in voted and "people have to" not in voted


def test_a_settled_card_and_the_history_name_everybody_who_approved() -> None:
    desk = WebDesk(people=PEOPLE)
    asked = desk.ask(need=TWO)
    for by in (BEN, ANA):
        desk.do(desk.office.broker.answer(asked, ApprovalDecision(approved=True), by=by))
    words = desk.get(f"/requests/{asked}").words
    assert " ana, ben " in words.partition("Outcome")[2].partition("Who asks")[0]
    assert " Answers ✓" in words and "so far" not in words
    assert " ana, ben " in desk.get("/history").words


def test_a_deputy_is_told_in_whose_place_they_answer() -> None:
    desk = WebDesk(people=PEOPLE)
    now = desk.office.clock.now()
    away = Delegation(absent="ben", deputy="ana", since=now, until=now + timedelta(days=1), by="ben")
    desk.do(desk.office.broker.people.delegate(away))
    page = desk.get(f"/requests/{desk.ask(need=Requirement(role='boss'))}")
    assert "If you approve in place of ben" in page.words
    assert "aria-disabled" not in button(page, "approve")


def test_a_halt_is_on_the_card_and_leads_to_the_switch() -> None:
    desk = WebDesk()
    request_id = desk.ask()
    desk.do(desk.office.broker.switch.halt(by="ana", why="fire"))
    page = desk.get(f"/requests/{request_id}")
    assert "It does not run yet: everything is halted." in page.words
    assert page.all("a", href="/settings#switch")
    assert "fire" in page.words


class Hindered:
    """What runs agents, and cannot go on with any. See `signoff.server.state.RunControl`."""

    async def start(self, worker: str, prompt: str, *, input: Mapping[str, Any] | None, requester: str) -> str:
        raise NotImplementedError

    async def resume(self, run_id: str) -> None:
        raise NotImplementedError

    async def hindrance(self, run_id: str) -> str:
        return "its \u202edirectory is gone"

    def workers(self) -> Mapping[str, str]:
        return {}


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        (None, "This server runs no agents."),
        (Hindered(), "This server cannot resume its run: its ⟦U+202E⟧directory is gone"),
    ],
)
def test_the_card_says_where_the_run_stands_that_waits_for_it(runs: RunControl | None, words: str) -> None:
    desk = WebDesk(runs=runs)
    broker = desk.office.broker

    async def prepare() -> str:
        run = await broker.runs.begin(SavedRun(id="run-1", prompt="x"), put_down=True)
        [asked] = await broker.open([ApprovalRequest(tool_call_id="c", tool_name="send_mail", run=run.id)])
        await broker.answer(asked.id, ApprovalDecision(approved=True), by=ANA)
        return asked.id

    request_id = desk.do(prepare())
    assert words in desk.get(f"/requests/{request_id}").words


def test_questions_are_marked_in_the_list_and_what_a_model_answers_is_a_claim() -> None:
    desk = WebDesk()
    request_id = desk.ask()
    comments = desk.office.broker.comments
    asked = desk.do(comments.add(request_id, "Why?", by=ANA, kind=CommentKind.QUESTION))
    assert desk.get("/").all("span", class_="tag warn")
    model = Actor(name="clerk", kind=ActorKind.MODEL)
    desk.do(comments.add(request_id, "Because.", by=model, kind=CommentKind.ANSWER, answers=asked.id))
    page = desk.get("/")
    assert not page.all("span", class_="tag warn")
    assert page.all("blockquote", class_="claim comment-text")
    assert "The model's claim, not verified." in page.words


def test_rows_are_drawn_anew_by_their_ids() -> None:
    desk = WebDesk()
    first, second = (one.request.id for one in desk.do(desk.office.ask(count=2)))
    desk.do(desk.office.broker.assign(second, "ben", by=BEN))
    desk.do(desk.office.broker.answer(first, ApprovalDecision(approved=True), by=ANA))
    page = desk.get(f"/fragments/rows?id={first}&id={second}&id=nothing")
    assert [one.attributes["data-row"] for one in page.all("a", class_="row")] == [second]
    assert "taken by ben" in page.words


def test_many_are_read_together_although_one_is_not_there() -> None:
    desk = WebDesk()
    ids = [one.request.id for one in desk.do(desk.office.ask(count=52))]
    page = desk.get("/fragments/selection?id=nothing&" + "&".join(f"id={one}" for one in ids))
    assert len([one for one in page.all("li") if "data-request" in one.attributes]) == 49
    assert "50 of 53 selected are shown" in page.words


def test_how_many_wait_is_in_the_title_of_every_page() -> None:
    desk = WebDesk()
    desk.do(desk.office.ask(count=3))
    for path in ("/", "/runs", "/history", "/insights", "/settings"):
        page = desk.get(path)
        assert "(3) " in page.words, path
        assert "/favicon.svg?n=3" in page.source


@pytest.mark.parametrize("text", ["a\rb", "a\r\nb", "a\x1b[1mb", "a\0b", "a\u202eb", "a\x85b"])
def test_what_an_input_would_lose_is_edited_as_json(text: str) -> None:
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "list": {"type": "array", "items": {"type": "string"}}},
    }
    for value in ({"text": text}, {"list": [text]}):
        [one] = [field for field in form_fields(schema, value) if field.given]
        assert one.kind == "json"
        assert one.hides
        assert one.value.isascii()
    [plain] = [field for field in form_fields(schema, {"text": "a  \n\n\n\n\n\n\n\n\tb "}) if field.given]
    assert plain.kind == "lines"


def test_numbers_stand_in_the_form_as_they_are_and_with_their_limits() -> None:
    desk = WebDesk()
    schema = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 3}, "ok": {"type": "integer"}}}
    page = desk.get(f"/requests/{desk.ask(args={'n': 2**60 + 1, 'ok': True}, schema=schema)}")
    assert [one for one in page.all("input") if one.attributes.get("value") == str(2**60 + 1)]
    assert "whole number, at least 3" in page.words


def test_expired_with_too_few_votes() -> None:
    desk = WebDesk(people=PEOPLE)
    request_id = desk.ask(need=Requirement(role="ops", quorum=2, timeout=timedelta(minutes=1)))
    vote(desk, request_id)
    desk.office.clock.advance(timedelta(minutes=2))
    desk.get("/")
    assert desk.do(desk.office.broker.get(request_id)).state is State.EXPIRED
    assert "Too few people answered in time." in desk.get(f"/requests/{request_id}").words


def hidden_in_due(page: Page) -> list[Element]:
    hidden = (one for one in page.all("span") if "hidden" in one.attributes)
    return [one for one in hidden if "due" in one.parents[-1].attributes.get("class", "").split()]


def test_what_is_overdue_is_not_due_in_some_time() -> None:
    desk = WebDesk()
    request_id = desk.ask(need=Requirement(timeout=timedelta(minutes=1), on_timeout=OnTimeout.PARK))
    page = desk.get("/")
    assert "then it stays open." in page.words
    assert not hidden_in_due(page)
    desk.office.clock.advance(timedelta(minutes=2))
    page = desk.get(f"/fragments/requests/{request_id}")  # nobody has looked at the deadlines yet
    assert "overdue" in page.words
    assert len(hidden_in_due(page)) == 1  # "time left"


def test_who_is_no_admin_is_told_that_they_write_no_rule() -> None:
    words = "Only an admin may write a rule."
    assert words in WebDesk(permissions=frozenset({Permission.READ, Permission.ANSWER})).get("/").words
    assert words not in WebDesk().get("/").words


def test_who_must_agree_and_what_was_answered_before_are_said() -> None:
    desk = WebDesk(people=PEOPLE)
    need = Requirement(role="ops", quorum=2, not_by=frozenset({"requester"}), veto="boss")
    before = desk.ask(need=Requirement(), args=MAIL, schema=SCHEMA)
    assert vote(desk, before).json()["state"] == "approved"
    request_id = desk.ask(need=need, args=MAIL, schema=SCHEMA)
    page = desk.get(f"/requests/{request_id}")
    assert "2 people with the role ops , but not the requester; may also deny: the role boss" in page.words
    assert "Exactly this call: approved once" in page.words
