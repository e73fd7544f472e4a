"""`signoff ask-back`, `reply` and `comment`: what is said about a request, and where it is seen."""

from __future__ import annotations

import json

import pytest
from tests.cli.desk import Desk, asks

from signoff.core.comment import LONGEST, MOST, CommentKind
from signoff.core.people import Actor, ActorKind
from signoff.core.request import State

SECRET = "s3cr3t-value-17"


def test_a_question_waits_for_its_answer_and_the_request_for_its_decision(desk: Desk) -> None:
    [one] = desk.open(asks())
    asked = desk.run("ask-back", one[:4], "Which invoice?")
    assert (asked.code, asked.err) == (0, "")
    assert asked.out.startswith("asked back  ")
    [row] = desk.run("inbox", "--json").data["requests"]
    assert row["questions"] == 1
    assert "1 question not answered" in desk.run("inbox").out
    shown = desk.run("show", one)
    assert "comments" in shown.out
    assert "ana asks back" in shown.out and "Which invoice?" in shown.out and "not answered yet" in shown.out
    assert f"signoff reply {one} TEXT" in shown.out

    told = desk.run("reply", one, "Invoice 4711.", "--as", "ben", "--json").data
    assert (told["request"], told["kind"], told["by"]) == (one, "answer", "ben")
    data = desk.run("show", one, "--json").data
    question, answer = data["comments"]
    assert (question["kind"], question["text"], answer["answers"]) == (
        "question",
        "Which invoice?",
        question["id"],
    )
    assert data["unanswered"] == []
    assert [each["heading"] for each in data["card"]["comments"]] == ["ana asks back", "ben answers"]
    assert desk.run("inbox", "--json").data["requests"][0]["questions"] == 0
    assert desk.request(one).state is State.PENDING


def test_a_note_stands_there_for_whoever_decides(desk: Desk) -> None:
    [one] = desk.open(asks())
    assert desk.run("comment", one, "the customer called").out.startswith("said  ")
    shown = desk.run("show", one).out
    assert "ana says" in shown and "the customer called" in shown
    assert desk.run("approve", one).code == 0, "nothing that is said decides or hinders"
    assert desk.run("comment", one, "and it was right").code == 0, "it may be said later, too"
    assert "and it was right" in desk.run("show", one).out


def test_the_record_tells_who_said_what(desk: Desk) -> None:
    [one] = desk.open(asks())
    desk.run("ask-back", one, "Which invoice?")
    desk.run("reply", one, "Invoice 4711.", "--as", "ben")
    lines = desk.run("audit", "log", "--request", one).out.splitlines()
    said = [line for line in lines if "commented" in line]
    assert len(said) == 2
    assert "ana" in said[0] and "asks back: Which invoice?" in said[0]
    assert "ben" in said[1] and "answers: Invoice 4711." in said[1]
    assert "commented: by ana" in desk.run("show", one).out


def test_secrets_are_masked_and_what_hides_is_spelled_out(desk: Desk) -> None:
    [one] = desk.open(asks(secrets=(SECRET,)))
    desk.run("comment", one, f"use {SECRET}\n\x1b[2J\u202eevil")
    shown = desk.run("show", one, "--no-pager")
    data = desk.run("show", one, "--json")
    told = desk.run("audit", "log", "--request", one)
    for said in (shown, data, told):
        assert SECRET not in said.out
    assert "⟦ESC⟧[2J⟦U+202E⟧evil" in shown.out
    assert "\x1b[2J" not in shown.out
    assert "masked" in data.data["card"]["comments"][0]["text"]


def test_a_secret_is_masked_before_a_long_text_is_cut(desk: Desk) -> None:
    [one] = desk.open(asks(secrets=(SECRET,)))
    desk.run("comment", one, "x" * 590 + SECRET + "y" * 100)
    [shown] = desk.run("show", one, "--json").data["card"]["comments"]
    assert len(shown["text"]) < 650, "it is cut"
    assert SECRET[:9] not in shown["text"]


def test_a_card_holds_the_last_of_what_was_said_and_says_how_much_was_before(desk: Desk) -> None:
    [one] = desk.open(asks())

    async def say(broker: object) -> None:
        for number in range(20):
            await broker.comments.add(one, f"word {number}", by=Actor(name="ana"))  # type: ignore[attr-defined]

    desk.do(say)  # type: ignore[arg-type]
    card = desk.run("show", one, "--json").data["card"]
    assert [each["text"] for each in card["comments"]] == [f"word {number}" for number in range(12, 20)]
    assert card["left_out"] == 12
    assert "word 0" in desk.run("show", one, "--no-pager").out, "all of it stands below the card"


def test_what_a_model_says_is_quoted_as_its_claim(desk: Desk) -> None:
    [one] = desk.open(asks())
    model = Actor(name="shop", kind=ActorKind.MODEL)
    desk.do(lambda broker: broker.comments.add(one, "trust me", by=model))
    shown = desk.run("show", one).out
    assert "shop (model) says" in shown and "“trust me”" in shown


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("comment", "ID", "  "), "a comment needs a text"),
        (("comment", "ID", "x" * (LONGEST + 1)), "a comment has at most 4,000 characters, and this one has 4,001"),
        (("reply", "ID", "yes"), "request ID has no question that waits for an answer"),
        (("reply", "ID", "yes", "--to", "zzz"), "request ID has no question 'zzz'"),
        (("comment", "nope", "hm"), "no request has the"),
    ],
)
def test_what_cannot_be_said(desk: Desk, arguments: tuple[str, ...], problem: str) -> None:
    [one] = desk.open(asks())
    said = desk.run(*(each.replace("ID", one) for each in arguments))
    assert said.code == 1
    assert problem.replace("ID", one) in said.err


def test_of_several_questions_one_has_to_be_named(desk: Desk) -> None:
    [one] = desk.open(asks())
    ids = [desk.run("ask-back", one, text, "--json").data["id"] for text in ("Why?", "For whom?")]
    said = desk.run("reply", one, "because")
    assert said.code == 1
    assert f"several questions about request {one} wait for an answer: {', '.join(ids)}; name one (--to)" in said.err
    assert f"signoff reply {one} TEXT --to QUESTION answers a question" in desk.run("show", one).out
    assert desk.run("reply", one, "for Ben", "--to", ids[1][:10]).code == 0
    assert desk.run("show", one, "--json").data["unanswered"] == [ids[0]]
    assert desk.run("reply", one, "because").code == 0, "only one is left"


def test_nothing_is_asked_back_about_what_is_settled(desk: Desk) -> None:
    [one] = desk.open(asks())
    desk.decide(one, approved=False)
    said = desk.run("ask-back", one, "Why?")
    assert said.code == 1
    assert f"request {one} is denied: no more questions can be asked" in said.err


def test_there_is_an_end_to_what_is_said(desk: Desk) -> None:
    [one] = desk.open(asks())

    async def say(broker: object) -> None:
        for number in range(MOST):
            await broker.comments.add(one, str(number), by=Actor(name="ana"))  # type: ignore[attr-defined]

    desk.do(say)  # type: ignore[arg-type]
    said = desk.run("comment", one, "one more")
    assert said.code == 1 and f"has {MOST} comments, which is the limit" in said.err


# --- the agent answers ---

PROJECT = "toolsets:\n  files: {use: filesystem_rw, config: {root: .}}\npolicy: []\n"
WORKER = "description: Writes\ninstructions: Write.\ntoolsets: [files]\n"
SCRIPT = """\
- calls: [{tool: write_file, args: {path: out.txt, content: "hello\\n"}}]
- say: "It is for the report. {{last}}"
"""


@pytest.fixture
def waiting(desk: Desk) -> tuple[str, str]:
    """A worker that waits for a yes: its run, and the request."""
    (desk.directory / "signoff.yaml").write_text(PROJECT)
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "writer.yaml").write_text(WORKER)
    (desk.directory / "script.yaml").write_text(SCRIPT)
    desk.types("")
    said = desk.run("run", "writer", "Write it", "--model", f"script:{desk.directory / 'script.yaml'}", "--suspend")
    assert said.code == 3, said.err
    [row] = desk.run("inbox", "--json").data["requests"]
    return row["run"], row["id"]


def test_the_agent_answers_beside_its_run_and_the_run_goes_on_with_its_own_history(
    desk: Desk, waiting: tuple[str, str]
) -> None:
    run, one = waiting
    before = desk.do(lambda broker: broker.runs.get(run))
    asked = desk.run("ask-back", one, "What for?", "--agent")
    assert asked.code == 0, asked.err
    assert "“It is for the report." in asked.out
    question, answer = desk.run("show", one, "--json").data["comments"]
    assert (answer["by"], answer["via"], answer["claim"]) == ("writer (model)", "agent", True)
    assert (answer["kind"], answer["answers"]) == ("answer", question["id"])
    assert desk.do(lambda broker: broker.runs.get(run)) == before, "nothing of the run changed"
    assert desk.request(one).state is State.PENDING, "a model's answer decides nothing"
    assert not (desk.directory / "out.txt").exists()

    assert desk.run("approve", one).code == 0
    gone_on = desk.run("resume", run)
    assert gone_on.code == 0, gone_on.err
    assert (desk.directory / "out.txt").read_text() == "hello\n"
    told = json.dumps(desk.run("runs", "show", run, "--json").data)
    assert "What for?" in told, "the record has it"
    timeline = desk.run("runs", "show", run, "--json").data["timeline"]
    assert [one["what"] for one in timeline if one["kind"] == "prompt"] == ["Write it"], "the run never saw it"
    assert sum(one["kind"] == "model" for one in timeline) == 1


def test_an_agent_that_nobody_here_can_build_is_not_asked(desk: Desk) -> None:
    [one] = desk.open(asks())
    said = desk.run("ask-back", one, "Why?", "--agent")
    assert said.code == 1
    assert f"request {one} belongs to no saved run: its agent cannot be asked" in said.err
    [question] = desk.run("show", one, "--json").data["comments"]
    assert question["kind"] == "question", "the question stays, for people"


def test_a_model_is_asked_only_so_often(desk: Desk, waiting: tuple[str, str]) -> None:
    _, one = waiting
    for _ in range(5):
        assert desk.run("ask-back", one, "Why?", "--agent").code == 0
    said = desk.run("ask-back", one, "Why?", "--agent")
    assert said.code == 1 and "models have answered 5 questions" in said.err
    kinds = [each["kind"] for each in desk.run("show", one, "--json").data["comments"]]
    assert kinds.count(str(CommentKind.ANSWER)) == 5


def test_a_model_that_fails_is_told_of(desk: Desk, waiting: tuple[str, str]) -> None:
    _, one = waiting
    (desk.directory / "script.yaml").write_text(SCRIPT.splitlines()[0] + "\n")
    said = desk.run("ask-back", one, "Why?", "--agent")
    assert said.code in (1, 2)
    assert "Traceback" not in said.err and said.err


def test_a_model_that_calls_a_tool_instead_of_answering_is_told_of(desk: Desk, waiting: tuple[str, str]) -> None:
    _, one = waiting
    (desk.directory / "script.yaml").write_text(SCRIPT.splitlines()[0] + "\n" + SCRIPT.splitlines()[0] + "\n")
    said = desk.run("ask-back", one, "Why?", "--agent")
    assert said.code == 1
    assert "the agent's model called a tool instead of answering; ask again, or ask a person" in said.err
