"""What may be remembered besides exactly this call: one thing wider, never a whole tool, spelled out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matches import ANY, below, facts_of, match, up_to, varying
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Keeps
from signoff.core.grant import Grant
from signoff.core.remembering import LEADS_TO, may_be_remembered
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope, Terms
from signoff.core.verdict import Effect, Requirement, Verdict
from signoff.policy.grant_text import ArgumentTerm, offer_text, terms_in
from signoff.policy.match_result import Truth
from signoff.policy.offer import Offer, offers, wider_terms
from signoff.policy.remembered import covers


def request(args: dict[str, Any], tool: str = "write_file", **call: Any) -> ApprovalRequest:
    made = Call(tool=tool, args=args, schema_hash="s", **call)
    return ApprovalRequest(
        tool_call_id="c1",
        tool_name=tool,
        args=args,
        call=made,
        may_vary=varying(made),
        verdict=Verdict(effect=Effect.ASK),
    )


def matches(args: dict[str, Any], tool: str = "write_file", **call: Any) -> list[Mapping[str, Any]]:
    return [one.match for one in offers(request(args, tool, **call)) if one.match is not None]


def remembered(one: Offer, asked: ApprovalRequest) -> Grant:
    assert asked.call is not None
    return Grant.of(asked.call, ApprovalDecision(approved=True, terms=Terms(match=one.match)))


def terms(one: Offer) -> Sequence[ArgumentTerm]:
    assert one.match is not None
    found = terms_in(one.match)
    assert found is not None
    return found


def covered(grant: Grant, call: Call) -> bool:
    return covers(grant, facts_of(call)) is Truth.YES


CALM = "(no files known to hold secrets or settings, or to be run by tools)"


# --- what is offered ---


def test_a_file_in_a_directory() -> None:
    exact, free, wide = offers(asked := request({"path": "docs/a.md", "content": "x", "mode": "w"}))
    text = partial(offer_text, asked)
    assert (exact.name, exact.match) == ("exact", None)
    assert text(exact) == "write_file with exactly these arguments"
    assert (free.name, text(free)) == ("content", 'write_file with path "docs/a.md", any content, mode "w"')
    assert wide.name == "path"
    assert text(wide) == f'write_file with path any path inside "docs" {CALM}, any content, mode "w"'
    assert wide.match == match(path=below("docs"), content=ANY, mode="w")


def test_an_amount() -> None:
    _, wide = offers(asked := request({"to": "bob", "amount": 5, "message": "hi"}, "refund"))
    assert offer_text(asked, wide) == 'refund with to "bob", amount from 0 to 5, message "hi"', (
        "all but the amount stays as it is"
    )


def test_where_labels_say_that_it_is_about_files_any_name_may_hold_a_path() -> None:
    assert not matches({"where": "docs/a.md"})
    assert matches({"where": "docs/a.md"}, labels=frozenset({"fs.write"}))


def test_what_is_written_is_left_open_where_something_says_what_for() -> None:
    _, free = offers(asked := request({"to": "bob@example.com", "subject": "Hello", "body": "hi"}, "send_mail"))
    assert offer_text(asked, free) == 'send_mail with to "bob@example.com", any subject, any body'
    assert not matches({"subject": "Hello", "body": "hi"}, "send_mail"), "nothing says to whom"
    assert not matches({"to": "", "body": "hi"}, "send_mail")
    assert matches({"path": "a.md", "content": "x"}), "one file, whatever is written into it"
    for tool in ("delete_note", "click", "apply_manifest", "closeIssue"):
        assert not matches({"page": "bank", "text": "Transfer"}, tool), "the text says what is done, or to what"
    assert not matches({"path": "docs/.env", "content": "x"})


def test_a_rule_that_wants_a_role_is_remembered_by_that_role() -> None:
    verdict = Verdict(effect=Effect.ASK, requirement=Requirement(role="ops"))
    asked = request({"path": "docs/a.md"}).changed_to(verdict=verdict)
    assert may_be_remembered(asked) and len(offers(asked)) == 2
    assert not may_be_remembered(asked.changed_to(escalated=True)), "somebody else answers in their place"


def test_a_command_by_its_first_words() -> None:
    asked = request({"command": "pytest -x tests/a.py", "timeout": 60}, "shell", start="/srv")
    _, wide = offers(asked)
    assert wide.match == match(command={"first_words": "pytest -x"}, timeout=60)
    assert offer_text(asked, wide) == (
        'shell with command "pytest -x *" where * is names and paths below the directory it runs in, of the kind it is '
        "for, no options, timeout 60"
    )
    edited = ApprovalDecision(approved=True, edited_args={"command": "rm -r tests", "timeout": 60})
    assert len(offers(asked.changed_to(decision=edited))) == 1, "the words are of what was asked about"


# --- how far, at a terminal ---

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_calls_like_it_are_remembered_for_the_session_or_for_good() -> None:
    asked = request({"path": "docs/a.md"}, conversation_id="c")
    [wide] = matches({"path": "docs/a.md"})
    assert wider_terms(asked, NOON) == (Terms(scope=Scope.SESSION, match=wide), Terms(match=wide))
    assert wider_terms(request({"path": "docs/a.md"}), NOON) == (Terms(match=wide),), "no session is known"
    assert not wider_terms(asked.changed_to(keeps=Keeps.EXACTLY), NOON)
    assert not wider_terms(request({"to": "bob"}), NOON)


def test_an_amount_is_remembered_until_the_day_is_over() -> None:
    [terms] = wider_terms(request({"to": "bob", "amount": 5}, "refund", conversation_id="c"), NOON)
    assert terms.until == datetime(2026, 5, 5, tzinfo=UTC)
    [late] = wider_terms(request({"to": "bob", "amount": 5}, "refund"), NOON.replace(hour=23))
    assert late.until == datetime(2026, 5, 6, tzinfo=UTC), "an hour is not worth it"


def test_edited_arguments_are_what_is_remembered() -> None:
    asked = request({"path": "docs/a.md", "content": "x"})
    edited = asked.changed_to(
        decision=ApprovalDecision(approved=True, edited_args={"path": "notes/b.md", "content": "y"})
    )
    assert [one.name for one in offers(edited)] == ["exact"], "where the paths lead is not known"


# --- what is not ---


@table(
    "change",
    [
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(role="ops", quorum=2))},
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(role="ops")), "keeps": Keeps.EXACTLY},
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(role="ops")), "keeps": Keeps.RUN},
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(quorum=2))},
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(not_by=frozenset({"owner"})))},
        {"verdict": Verdict(effect=Effect.ASK, requirement=Requirement(veto="security"))},
        {"verdict": Verdict(effect=Effect.ASK, errors=("a rule failed",))},
        {"metadata": {LEADS_TO: "another call"}},
        {"call": None},
        {"call": Call(tool="write_file", args={"path": "docs/a.md"}, unreadable=("handle: a socket",))},
    ],
)
def test_nothing_where_particular_people_are_asked_or_something_is_in_doubt(change: dict[str, Any]) -> None:
    asked = request({"path": "docs/a.md"}).changed_to(**change)
    assert not may_be_remembered(asked)
    assert offers(asked) == ()


def test_nothing_after_it_was_escalated_to_somebody_in_particular() -> None:
    verdict = Verdict(effect=Effect.ASK, requirement=Requirement(escalate_to="boss"))
    asked = request({"path": "docs/a.md"}).changed_to(verdict=verdict)
    assert offers(asked) and not offers(asked.changed_to(escalated=True))


PROGRAMS = [
    {"command": "git log docs/a.md"},
    {"cmd": "ls docs/a"},
    {"Command": "ls docs/a"},
    {"shell_command": "ls docs/a"},
    {"shellCommand": "ls docs/a"},
    {"commands": ["ls docs/a"]},
    {"code": "open('docs/a')"},
    {"python_code": "1/2"},
    {"sql": "select a/b from t"},
    {"sql_query": "select 1/2"},
    {"query": "select 1/2"},
    {"statement": "select 1/2"},
    {"script": "bin/run.sh"},
    {"expression": "a/b"},
    {"bash": "a/b"},
    {"argv": ["bin/sh", "-c", "x"]},
    {"path": "docs/a.md", "command": "touch"},
    {"file": "docs/a.py", "code": "x", "content": "y"},
]


@table("args", PROGRAMS)
def test_no_pattern_over_what_is_run_as_a_program(args: dict[str, Any]) -> None:
    assert not matches(args, "do_it")
    assert not matches(args, "do_it", labels=frozenset({"fs.write"}))


@pytest.mark.parametrize("tool", ["run", "run_script", "bash", "python", "execute_sql", "runTests", "shell"])
def test_no_pattern_over_which_program_is_run(tool: str) -> None:
    assert not matches({"path": "scripts/a.sh"}, tool)


def test_no_pattern_over_a_tool_that_is_labelled_as_running_programs() -> None:
    assert not matches({"path": "docs/a.md", "content": "x"}, labels=frozenset({"proc.exec"}))
    assert not matches({"path": "docs/a.md", "content": "x"}, labels=frozenset({"proc.exec", "fs.write"}))
    assert not matches({"amount": 5}, "pay", labels=frozenset({"proc.exec"}))


def test_not_every_text_with_a_slash_is_a_path() -> None:
    for name, value in (
        ("url", "https://example.com/a"),
        ("endpoint", "example.com/a"),
        ("text", "either/or"),
        ("prompt", "read docs/a.md"),
        ("to", "team/bob"),
        ("branch", "feature/x"),
    ):
        assert not matches({name: value}), name


@table(
    "path",
    [
        "docs/",
        "/a.md",
        "/etc/passwd",
        "/home/ana/a.md",
        "~/a.md",
        "~/.ssh/id",
        "./a.md",
        "../a.md",
        "docs/../a.md",
        "docs/./a.md",
        "docs//a.md",
        "//srv/share/x/a.md",
        "docs/..",
        "docs/.. ",
        "docs\\..\\a.md",
        "C:/Users/ana/a.md",
        "docs/a\0",
        "docs/a\nb",
        "docs/\u202ea.md",
        "https://example.com/docs/a.md",
        "docs/$(id)",
        "docs/a;rm",
        "docs/*",
        "docs/{a,b}",
        "docs/%2e%2e/a",
        "",
        "/",
    ],
)
def test_no_pattern_from_a_path_that_is_not_written_plainly_or_too_near_the_top(path: str) -> None:
    assert not matches({"path": path, "content": "x"})


def test_no_pattern_from_a_path_that_leads_elsewhere() -> None:
    leads = {"docs/link/a.md": "/etc/a.md"}
    assert not matches({"path": "docs/link/a.md"}, resolved=leads)
    assert matches({"path": "docs/a.md"}, resolved=leads)


@pytest.mark.parametrize("amount", [-5, True, "5", None, float("nan"), float("inf"), [5]])
def test_no_pattern_from_what_is_no_amount(amount: object) -> None:
    assert not matches({"to": "bob", "amount": amount}, "pay")


def test_a_smaller_account_number_is_not_less_of_an_account() -> None:
    args = {"account": 12345, "account_number": 99, "customer_id": 7, "amount": 5}
    assert matches(args, "pay", labels=frozenset({"money"})) == [match(**{**args, "amount": up_to(5)})]
    assert not matches({"account": 12345}, "pay", labels=frozenset({"money"}))
    assert not matches({"price_list_id": 12345}, "pay")


@pytest.mark.parametrize("labels", [frozenset[str](), frozenset({"money"}), frozenset({"money", "fs.write"})])
def test_money_is_never_left_open_beside_something_else(labels: frozenset[str]) -> None:
    args = {"file": "invoices/a.pdf", "amount": 5, "message": "hi", "content": "x"}
    for one in matches(args, "pay_invoice", labels=labels):
        assert one == match(**{**args, "amount": up_to(5)})


# --- whatever the call ---

names = st.sampled_from(
    "path file folder amount price total_cost message content text body to url command sql account_id value n".split()
)
values = st.one_of(
    st.sampled_from(["docs/a.md", "docs/x/y.md", "/srv/app/docs/a.md", "x", "", "a/b c", "../x", "docs/../x", "a\\b"]),
    st.sampled_from([0, 1, 5, -5, 2.5, 10**20, True, False, None, 1e300]),
    st.lists(st.sampled_from(["docs/a.md", 5]), max_size=2),
)
calls = st.builds(
    request,
    st.dictionaries(names, values, max_size=5),
    st.sampled_from(["write_file", "pay", "refund", "shell", "do_it", "run"]),
    labels=st.frozensets(st.sampled_from(["fs.write", "money", "proc.exec", "net.egress"]), max_size=2),
)


@given(calls)
@examples(5_000, daily=50)
def test_whatever_is_offered_covers_the_call_and_widens_one_thing_only(asked: ApprovalRequest) -> None:
    assert asked.call is not None
    offered = offers(asked)
    assert offered[0].match is None
    assert len({offer_text(asked, one) for one in offered}) == len(offered), "no two read the same"
    for one in offered[1:]:
        assert covered(remembered(one, asked), asked.call)
        said = terms(one)
        assert [term.arg for term in said] == list(asked.args)
        wide = next((term for term in said if term.kind in ("below", "up to")), None)
        free = [term.arg for term in said if term.kind == "any"]
        assert one.name == (wide.arg if wide is not None else free[0])
        assert len(free) < len(said), "something says what for"
        for term in said:
            assert term.text() in offer_text(asked, one)
            if term.kind == "is":
                assert term.value == asked.args[term.arg]
            elif term.kind == "any":
                assert wide is None or wide.kind == "below", "nothing is left open beside an amount"
                assert term.arg in ("content", "text", "body", "message")
        if wide is not None and wide.kind == "up to":
            assert wide.value == asked.args[wide.arg], "no more than was asked about"


@given(calls)
@examples(3_000, daily=50)
def test_no_offer_is_a_whole_tool(asked: ApprovalRequest) -> None:
    programs = {"command", "sql"} & set(asked.args)
    money = {"amount", "price", "total_cost", "value"} & set(asked.args)
    call = asked.call
    assert call is not None
    for one in offers(asked)[1:]:
        assert not programs and "proc.exec" not in call.labels and call.tool not in ("shell", "run")
        for term in terms(one):
            if term.kind != "below" or "fs.write" not in call.labels:  # which says where the paths are
                assert term.arg not in money or term.kind in ("is", "up to")
                assert term.arg not in ("to", "url", "account_id", "n") or term.kind == "is"


elsewhere = st.lists(
    st.sampled_from(["..", ".", "", "docs", "a.md", "\0", "..\\", " ..", "..\u200b", "etc", "~", "\\", "%2e%2e"]),
    min_size=1,
    max_size=6,
)


@given(elsewhere, st.sampled_from(["", "/", "docs/", "//docs/", "docs\\", "./docs/", "docs/x/"]))
@examples(5_000, daily=50)
def test_a_directory_that_was_offered_never_covers_what_is_outside(steps: list[str], start: str) -> None:
    asked = request({"path": "docs/a.md", "content": "x"})
    grant = remembered(offers(asked)[2], asked)
    path = start + "/".join(steps)
    if covered(grant, Call(tool="write_file", args={"path": path, "content": "anything"}, schema_hash="s")):
        assert path.startswith("docs/")
        assert all(step.strip() not in ("", ".", "..") for step in path.split("/"))
        assert not set(path) & {"\\", "\0", "\u200b"} and "%2e" not in path
        led = {path: "/somewhere/else"}
        assert not covered(
            grant, Call(tool="write_file", args={"path": path, "content": "x"}, schema_hash="s", resolved=led)
        )


@given(st.one_of(st.integers(), st.floats(), st.booleans(), st.text(max_size=3), st.sampled_from([10**400, -0.0])))
@examples(3_000, daily=50)
def test_always_on_one_dollar_covers_nothing_above_one_dollar(amount: object) -> None:
    asked = request({"to": "bob", "amount": 1}, "pay")
    grant = remembered(offers(asked)[1], asked)
    if covered(grant, Call(tool="pay", args={"to": "bob", "amount": amount}, schema_hash="s")):
        assert isinstance(amount, int | float) and not isinstance(amount, bool) and 0 <= amount <= 1
    assert not covered(grant, Call(tool="pay", args={"to": "eve", "amount": 1}, schema_hash="s"))
