"""What is remembered: it covers what it says and nothing else, and it says everything that is stored."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.matches import ANY, below, facts_of, match, up_to
from tests.profiles import examples
from tests.tables import table

from signoff.core.call import Call
from signoff.core.codec import GRANT
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.grant import Grant
from signoff.core.people import Actor
from signoff.core.terms import Budget, Scope, Terms, amount_of
from signoff.policy.grant_text import grant_text, terms_in
from signoff.policy.match_result import Truth
from signoff.policy.offer import key_of, written_value
from signoff.policy.remembered import covers, is_unreadable

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def grant(**more: Any) -> Grant:
    given: dict[str, Any] = {
        "tool": "pay",
        "memory_key": call().memory_key,
        "approved": True,
        "scope": Scope.PROJECT,
        "summary": "pay(amount=5)",
    }
    return Grant(**{**given, **more})


def call(amount: object = 5, **more: Any) -> Call:
    return Call(tool="pay", args={"amount": amount}, **more)


def covered(one: Grant, made: Call) -> bool:
    return covers(one, facts_of(made)) is Truth.YES


def in_docs(path: object, directory: str = "docs", **leads: str) -> bool:
    """Whether an approval for the directory covers a path, which may lead elsewhere."""
    one = grant(memory_key="", match=match(path=below(directory)))
    return covered(one, Call(tool="pay", args={"path": path}, resolved={str(path): lead for lead in leads.values()}))


def spend(budgeted: Grant, amounts: Sequence[object], at: datetime = NOON) -> Grant:
    """The grant after all of these calls, as far as it let them through."""
    for amount in amounts:
        one = call(amount)
        if not budgeted.why_asleep(one, at):
            budgeted = budgeted.used_for(one, at)
    return budgeted


# --- the text ---

words = st.sampled_from(["a", "any", "true", "b c", "x; once", 'q"', "päy", "a, b", "", "x (arguments 0)", "in run r"])
values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, "", "a", "b, c 1", "true", '"']),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=3,
)
conditions = st.one_of(
    values.map(written_value),
    st.sampled_from(["docs", "docs/x", 'a"', "a, b"]).map(below),
    st.sampled_from([0, 1, 5, 5.5, 10**20]).map(up_to),
    st.just(ANY),
    st.sampled_from([{"in": ["a", "any"]}, {"below": "docs"}, {"nonsense": 1}, {"first_words": "pytest"}]),
)
moments = st.sampled_from(
    [NOON + timedelta(seconds=seconds, microseconds=tiny) for seconds in (0, 1, 30, 60) for tiny in (0, 1, 500_000)]
)
budgets = st.builds(
    Budget, arg=words, limit=st.sampled_from([Decimal(1), Decimal("1.5"), Decimal("1e3")]), daily=st.booleans()
)
keys = st.sampled_from([call(amount).memory_key for amount in range(4)])
grants = st.builds(
    Grant,
    tool=words,
    memory_key=keys,
    approved=st.booleans(),
    scope=st.sampled_from(list(Scope)),
    where=words,
    schema_hash=st.sampled_from(["", "1" * 64, "2" * 64]),
    toolset=st.none() | words,
    directory=st.sampled_from(["", ".", "docs", "the project's directory", 'a"; once']),
    agent=words,
    asked_by=st.lists(st.sampled_from(["1" * 12, "2" * 12]), unique=True, max_size=2).map(tuple),
    match=st.none()
    | st.dictionaries(words.map(key_of), conditions, max_size=3).map(lambda args: match(**args))
    | st.sampled_from([{}, {"path": "docs/**"}, {"args": {"a": 1}}]),
    until=st.none() | moments,
    max_uses=st.none() | st.integers(1, 3),
    budget=st.none() | budgets,
    summary=words,
)


def meaning(one: Grant) -> tuple[object, ...]:
    """Everything about a grant that decides what it covers, where, and for how long."""
    said = _typed(one.match) if one.match is not None else None
    where = "" if one.scope is Scope.PROJECT else one.where
    exact = one.memory_key if one.match is None else ""
    limits = (one.until, one.max_uses, one.budget)
    place = (one.toolset, one.agent, one.directory, one.asked_by)
    return (one.tool, one.approved, one.scope, where, exact, said, limits, place, one.schema_hash)


def _typed(value: object) -> str:
    """As JSON sees it: to Python, 1 and True are equal."""
    if isinstance(value, dict):
        return repr(sorted((name, _typed(item)) for name, item in value.items()))
    if isinstance(value, list):
        return repr([_typed(item) for item in value])
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"number {float(value)}" if number else f"{type(value).__name__} {value!r}"


@given(grants, grants)
@examples(1_000, daily=30)
def test_grants_that_mean_different_things_never_read_the_same(one: Grant, other: Grant) -> None:
    assume(meaning(one) != meaning(other))
    assert grant_text(one) != grant_text(other)


@given(grants, st.data())
@examples(4_000, daily=25)
def test_a_small_difference_shows(one: Grant, data: st.DataObject) -> None:
    """As above, where two grants differ in one thing only: that is where a text would be careless."""
    other = data.draw(grants)
    names = ("tool", "memory_key", "approved", "where", "schema_hash", "toolset", "match", "until", "max_uses")
    name = data.draw(st.sampled_from([*names, "budget", "scope", "directory", "agent", "asked_by"]))
    changed = replace(one, **{name: getattr(other, name)})
    assume(meaning(one) != meaning(changed))
    assert grant_text(one) != grant_text(changed)


@examples(1_000, daily=30)
@given(grants)
def test_every_condition_stands_in_the_text(one: Grant) -> None:
    text = grant_text(one)
    for term in (terms_in(one.match, approved=one.approved) or ()) if one.match is not None else ():
        assert term.text(approved=one.approved) in text
    assert ("cannot be read" in text) is is_unreadable(one)
    assert one.until is None or f"until {one.until:%Y-%m-%d %H:%M}" in text
    assert one.max_uses is None or (f"at most {one.max_uses} times" if one.max_uses > 1 else "; once") in text
    assert one.budget is None or f"at most {one.budget.limit}" in text
    assert one.budget is None or ("each day (UTC)" if one.budget.daily else "in all") in text
    ends = one.until is not None or one.max_uses is not None or one.scope in (Scope.RUN, Scope.SESSION)
    assert text.startswith(("allow " if ends else "always ") if one.approved else "never ")
    assert "anywhere in this project" in text or one.scope is not Scope.PROJECT


def test_the_text_says_all_there_is_in_words() -> None:
    whole = grant(
        match=match(to="bob", amount=up_to(5), note=ANY),
        scope=Scope.WORKER,
        where="triage > payer",
        until=datetime(2026, 5, 24, 20, tzinfo=timezone(timedelta(hours=2))),
        max_uses=3,
        budget=Budget(arg="amount", limit=Decimal(200), daily=True),
        toolset="bank",
        schema_hash="0123456789abcdef",
    )
    assert grant_text(whole) == (
        'allow pay, with to "bob", amount from 0 to 5, any note; for worker "triage > payer"; '
        "until 2026-05-24 18:00 UTC; at most 3 times; amount at most 200 each day (UTC); in the toolset bank; "
        "until the tool's definition changes (0123456789ab)"
    )
    key = call().memory_key
    assert grant_text(grant(max_uses=1, approved=False)) == (
        f"never pay, exactly as in: pay(amount=5) (arguments {key[:12]}); anywhere in this project; "
        "unless a rule allows it; once"
    )


def test_a_summary_cannot_pass_for_a_limit() -> None:
    sly = grant(summary="pay 5; in run r1; once")
    assert grant_text(sly).startswith('always pay, exactly as in: "pay 5; in run r1; once" (arguments ')
    assert grant_text(sly).endswith("); anywhere in this project")


def test_a_text_does_not_round_the_end() -> None:
    ends = [NOON, NOON + timedelta(seconds=59), NOON + timedelta(microseconds=1)]
    assert [grant_text(grant(until=end)).split("; ")[-1] for end in ends] == [
        "until 2026-01-01 12:00 UTC",
        "until 2026-01-01 12:00:59 UTC",
        "until 2026-01-01 12:00:00.000001 UTC",
    ]


# --- what it covers ---


def test_exactly_means_exactly_whatever_the_spelling() -> None:
    exact = grant()
    assert covered(exact, call(5)) and covered(exact, call(5.0))
    for other in (5.01, 4, "5", True, None, [5], 1_000_000):
        assert not covered(exact, call(other)), other
    assert not covered(exact, Call(tool="pay", args={"amount": 5, "more": 1}))
    assert not covered(exact, Call(tool="payout", args={"amount": 5}))


@pytest.mark.parametrize("change", [{"schema_hash": "new"}, {"toolset": "another bank"}])
def test_a_tool_that_changed_is_another_tool(change: dict[str, str]) -> None:
    for one in (grant(), grant(memory_key="", match=match(amount=ANY))):
        assert covered(one, call())
        assert not covered(one, call(**change))


def test_a_pattern_speaks_of_all_arguments_and_no_others() -> None:
    wide = grant(memory_key="", match=match(amount=up_to(5)))
    assert covered(wide, call(3))
    for args in ({}, {"amount": 3, "currency": "EUR"}, {"Amount": 3}):
        assert not covered(wide, Call(tool="pay", args=args))


@table(
    ("amount", "fits"),
    [
        (0, True),
        (1, True),
        (1.0, True),
        (-0.0, True),
        (1.0000001, False),
        (1_000_000, False),
        (-1, False),
        (-1_000_000, False),
        (float("nan"), False),
        (float("inf"), False),
        (float("-inf"), False),
        (True, False),
        (False, False),
        ("1", False),
        ("0.5", False),
        (None, False),
        ([1], False),
        ({"amount": 1}, False),
        (10**400, False),
        (5e-324, True),
    ],
)
def test_always_on_one_dollar_is_no_leave_for_a_million(amount: object, fits: bool) -> None:
    budget = grant(memory_key="", match=match(amount=up_to(1)), budget=Budget(arg="amount", limit=Decimal(1)))
    assert (covered(budget, call(amount)) and not budget.why_asleep(call(amount), NOON)) is fits


def test_an_amount_too_long_to_be_written_down_is_still_too_much() -> None:
    assert not covered(grant(memory_key="", match=match(amount=up_to(1))), call(10**5_000))


PATHS = [
    ("docs/a.md", True),
    ("docs/x/y.md", True),
    ("docs/ä b.md", True),
    ("docs/...", True),
    ("docs/100%.md", True),
    ("docs/(group)/[slug]/a.md", True),
    ("docs/%2e%2e/a.md", False),
    ("docs/%2E%2e%2Fa.md", False),
    ("docs/x%5c..%5ca.md", False),
    ("docs", False),
    ("docs/", False),
    ("docs2/a.md", False),
    ("/docs/a.md", False),
    ("./docs/a.md", False),
    ("docs/../a.md", False),
    ("docs/..", False),
    ("docs/.", False),
    ("docs/./a.md", False),
    ("docs/x/../../a.md", False),
    ("docs//a.md", False),
    ("docs///etc/passwd", False),
    ("//docs/a.md", False),
    ("docs/..\\a.md", False),
    ("docs\\..\\a.md", False),
    ("docs/a\\b", False),
    ("docs/a.md\0", False),
    ("docs/\0/../../etc", False),
    ("docs/a\n/../../etc", False),
    ("docs/.. ", False),
    ("docs/ ../a.md", False),
    ("docs/..\t/a.md", False),
    ("docs/..\u200b/a.md", False),
    ("docs/\u202egm.a", False),
    (" docs/a.md", False),
    ("DOCS/a.md", False),
    ("", False),
]


@table(("path", "inside"), PATHS)
def test_a_path_that_leaves_its_directory_is_not_inside(path: str, inside: bool) -> None:
    assert in_docs(path) is inside


@pytest.mark.parametrize("value", [None, 5, True, ["docs/a.md"], {"docs/a.md": 1}])
def test_what_is_no_text_is_no_path(value: object) -> None:
    assert not in_docs(value)


def test_a_link_leads_out_of_the_directory() -> None:
    assert not in_docs("docs/link/a.md", leads="/etc/a.md")
    assert in_docs("docs/a.md", leads="docs/a.md")
    assert in_docs("/srv/app/docs/a.md", "/srv/app/docs", leads="/srv/app/docs/a.md")
    assert not in_docs("/srv/app/docs/a.md", "/srv/app/docs", leads="/srv/other/a.md")
    assert not in_docs("//srv/app/docs/a.md", "/srv/app/docs")


@given(st.lists(st.sampled_from(["a", "docs", "..", ".", "", " ", "..\\", "\0", "x/..", "//", "\\", "~"]), max_size=6))
@examples(4_000)
def test_no_path_that_is_put_together_leaves_the_directory(steps: list[str]) -> None:
    path = "docs/" + "/".join(steps)
    if in_docs(path):
        depth = 0
        for one in path.replace("\\", "/").split("/"):
            depth += {"..": -1, ".": 0, "": 0}.get(one.strip("\0 "), 1)
            assert depth >= 1
        assert "\0" not in path and "\\" not in path


# --- how long, how often, how much ---


def test_it_ends() -> None:
    until = grant(until=NOON)
    assert not until.why_asleep(call(), NOON - timedelta(microseconds=1))
    assert until.why_asleep(call(), NOON) == "ended at 2026-01-01 12:00 UTC"
    assert grant(revoked_at=NOON, revoked_by="ana").why_asleep(call(), NOON) == "revoked by ana"


def test_it_is_used_up() -> None:
    twice = grant(max_uses=2)
    assert spend(twice, [5, 5, 5, 5]).used == 2
    assert spend(twice, [5, 5]).why_asleep(call(), NOON) == "used 2 times, its limit"


NO_AMOUNTS = [-1, -200, float("nan"), float("inf"), float("-inf"), True, False, "5", "-5", None, [5], {}]


@table("odd", NO_AMOUNTS)
@table("daily", [False, True])
def test_what_is_no_amount_neither_uses_a_budget_nor_refills_it(odd: object, daily: bool) -> None:
    budgeted = grant(budget=Budget(arg="amount", limit=Decimal(10), daily=daily))
    spent = spend(budgeted, [6, odd, odd])
    assert (spent.used, spent.spent) == (1, 6)
    assert spent.why_asleep(call(odd), NOON) == "amount is not an amount"
    assert spend(spent, [odd, 5, odd, 4, 0]).spent == 10
    assert amount_of(odd) is None


def test_a_missing_amount_is_none() -> None:
    budgeted = grant(budget=Budget(arg="amount", limit=Decimal(10)))
    assert budgeted.why_asleep(Call(tool="pay", args={}), NOON) == "amount is not an amount"


tiny_and_large = st.sampled_from([0, 1, 3, 0.1, 0.2, 0.3, 1e-30, 5e-324, 1e16, 10**30, 199.99, 1e300, 10**400])
amounts = st.one_of(tiny_and_large, st.integers(0, 250), st.floats(0, 250), st.sampled_from(NO_AMOUNTS))


@given(st.lists(amounts, max_size=20), st.sampled_from([1, 3, 28, 50]))
@examples(4_000, daily=50)
def test_a_budget_is_never_exceeded_not_even_by_rounding(sums: list[object], digits: int) -> None:
    limit = Decimal(200)
    budgeted = grant(budget=Budget(arg="amount", limit=limit))
    with localcontext() as context:
        context.prec = digits  # of the program around us, which is none of a budget's business
        let_through, exact = budgeted, Fraction(0)
        for one in sums:
            after = spend(let_through, [one])
            if after.used > let_through.used:
                assert isinstance(one, int | float) and not isinstance(one, bool)
                exact += Fraction(Decimal(repr(one)) if isinstance(one, float) else one)
            let_through = after
    assert exact <= Fraction(limit)
    assert Fraction(let_through.spent) == exact


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 12)), max_size=25))
@examples(3_000, daily=50)
def test_a_daily_budget_is_not_refilled_by_clocks_that_disagree(uses: list[tuple[int, int]]) -> None:
    """Each machine has its own clock: whatever they say in whatever order, a day has one budget."""
    budgeted = grant(budget=Budget(arg="amount", limit=Decimal(10), daily=True))
    newest, by_day = -9, dict[int, int]()
    for day, amount in uses:
        after = spend(budgeted, [amount], NOON + day * DAY)
        if after.used > budgeted.used:
            newest = max(newest, day)
            by_day[newest] = by_day.get(newest, 0) + amount
        budgeted = after
    assert all(spent <= 10 for spent in by_day.values())


def test_a_daily_budget_is_whole_again_the_next_day() -> None:
    budgeted = grant(budget=Budget(arg="amount", limit=Decimal(10), daily=True))
    late = NOON.replace(hour=23, minute=59)
    spent = spend(budgeted, [6, 5], late)
    assert (spent.spent_by(late), spent.spent_by(late + timedelta(minutes=1))) == (6, 0)
    assert spend(spent, [5], late + timedelta(minutes=1)).spent == 5
    elsewhere = (late + timedelta(minutes=1)).astimezone(timezone(timedelta(hours=-8)))
    assert spent.spent_by(elsewhere) == 0, "a day is a day in UTC, wherever one looks from"
    whole = grant(budget=Budget(arg="amount", limit=Decimal(10)))
    assert spend(spend(whole, [6]), [6], NOON + DAY).spent == 6


@given(st.one_of(amounts, st.text(max_size=3), st.lists(st.integers(), max_size=1)))
def test_an_amount_is_a_number_one_can_spend(value: object) -> None:
    amount = amount_of(value)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    sane = number and (isinstance(value, int) or math.isfinite(value)) and value >= 0  # type: ignore[operator]
    assert (amount is not None) is sane
    assert amount is None or (amount.is_finite() and amount >= 0)


# --- where it comes from, and where it holds ---


def test_it_holds_where_it_was_given() -> None:
    for scope in (Scope.RUN, Scope.SESSION, Scope.WORKER):
        here = grant(scope=scope, where="here")
        assert here.reaches({scope: "here"})
        assert not here.reaches({scope: "there"}) and not here.reaches({})
        others = {one: "here" for one in Scope if one is not scope}
        assert not here.reaches(others)
        assert not grant(scope=scope, where="").reaches({scope: ""}), "nowhere is not everywhere"
    assert grant().reaches({})


def test_what_a_person_says_is_what_is_kept() -> None:
    terms = Terms(
        scope=Scope.WORKER,
        match=match(amount=up_to(5)),
        until=NOON,
        max_uses=3,
        budget=Budget(arg="amount", limit=Decimal(9)),
    )
    said = ApprovalDecision(approved=True, terms=terms, note="fine", by=Actor(name="ana"), at=NOON)
    made = call(schema_hash="s", toolset="bank", worker=("triage",))
    kept = Grant.of(made, said, summary="pay 5", where={Scope.WORKER: "triage", Scope.RUN: "r1"})
    assert (kept.match, kept.until, kept.max_uses, kept.budget) == (terms.match, NOON, 3, terms.budget)
    assert (kept.scope, kept.where, kept.memory_key) == (Scope.WORKER, "triage", "")
    assert (kept.schema_hash, kept.toolset, kept.by, kept.at, kept.note) == ("s", "bank", "ana", NOON, "fine")
    assert (kept.used, kept.spent, kept.revoked_at) == (0, 0, None)
    assert {one.name for one in fields(terms)} <= {one.name for one in fields(Grant)}, "nothing a person says is lost"


@pytest.mark.parametrize(("said", "scope"), [(Remember.SESSION, Scope.SESSION), (Remember.ALWAYS, Scope.PROJECT)])
def test_without_more_words_it_is_exactly_this_call(said: Remember, scope: Scope) -> None:
    kept = Grant.of(call(), ApprovalDecision(approved=False, remember=said), where={Scope.SESSION: "s1"})
    assert (kept.scope, kept.approved, kept.match) == (scope, False, None)
    assert covered(kept, call()) and not covered(kept, call(6))


def test_a_yes_is_for_the_very_text_and_a_no_for_all_its_unicode_forms() -> None:
    composed, apart = Call(tool="read", args={"path": "café"}), Call(tool="read", args={"path": "cafe\u0301"})
    assert composed.memory_key == apart.memory_key
    for seen, other in ((composed, apart), (apart, composed)):
        yes = Grant.of(seen, ApprovalDecision(approved=True, remember=Remember.ALWAYS))
        no = Grant.of(seen, ApprovalDecision(approved=False, remember=Remember.ALWAYS))
        assert (covered(yes, seen), covered(yes, other)) == (True, False)
        assert (covered(no, seen), covered(no, other)) == (True, True)
        assert GRANT.from_text(GRANT.to_text(yes)) == yes
