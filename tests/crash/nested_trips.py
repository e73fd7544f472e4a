"""Trips on which agents run inside calls of other agents."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tests.crash.trips import RUN, Act, Inside, Trip

NEVER = "(?!)"
WRITES = r": (in the transaction|committed)$"
STEPS = r": committed$|^shown pay|^(pay|hand|pass_on) (began|started|done)"
HELD = r"^(take|claim|enter|pause|ask|outcome)\b.*: committed$|^shown pay|^hand "
"""Steps around a call that is claimed, and has a run inside it."""
AROUND = r"^(enter|pause)\b.*: committed$|^(outcome|outcome \(2\)): committed$"
"""The writes that are made about no other call, and what is on record when the run inside is over, and the call."""
ADDED = r"^(enter|pause)\b.*: committed$"
"""The writes that are made about no other call."""


def _acts(inside: Inside) -> tuple[Act, ...]:
    """A run that ends with each question and is resumed with the answer, from the outermost call to the innermost."""
    rounds = 1 if inside.at_once else len(inside.jobs)  # as a rule; on a busy machine the second may ask later
    asked = (*(inside.tools if inside.approved else ()), *("pay" for _ in range(rounds)))
    acts = [RUN]
    for number, tool in enumerate(asked, 1):
        again = f" {number}" if number > 1 else ""
        acts += [Act(f"answer{again}", "answer", tools=(tool,)), Act(f"resume{again}", "resume")]
    return tuple(acts)


def _trip(name: str, title: str, inside: Inside, *, waits: bool) -> Trip:
    two = len(inside.jobs) > 1
    in_place = (RUN,) if two else (RUN, Act("answer", "answer", tools=("pay",)))
    return Trip(
        name=name,
        title=title,
        inside=inside,
        acts=in_place if waits else _acts(inside),
        turns=inside.turns_of(inside.agents[0]),
        rules=inside.rules,
        waits=waits,
        at_terminal=waits and two,
        shown=SHOWN.get(name, NEVER),
        every_day=EVERY_DAY.get(name, NEVER),
    )


SHOWN = {
    "2 levels, asked about, goes on, suspended": WRITES,
    "2 levels, asked about, goes on, in place": HELD,
    "2 levels, asked about, ends, suspended": HELD,
    "3 levels, asked about, ends, in place": STEPS,
    "3 levels, allowed, goes on, suspended": STEPS,
}
"""Of the trips below, those that are in the table of docs/internals/fault-points.md, and with which of their points."""
EVERY_DAY = {
    "2 levels, asked about, goes on, suspended": AROUND,
    "2 levels, asked about, goes on, in place": r"^(ask \(2\)|claim|claim \(2\)): committed$|^hand (began|done)",
    "2 levels, asked about, ends, suspended": AROUND,
    "3 levels, asked about, ends, in place": r"^(claim|outcome) \(3\): committed$",
}
"""The same, of what is played every day; on PostgreSQL `ADDED`, of one of them."""


def _each() -> Iterator[Trip]:
    for levels, approved, goes_on, waits in product((2, 3), (False, True), (False, True), (True, False)):
        words = (
            f"{levels} levels",
            "asked about" if approved else "allowed",
            "goes on" if goes_on else "ends",
            "in place" if waits else "suspended",
        )
        name = ", ".join(words)
        title = (
            f"{levels - 1} of them inside calls that {'a person approved' if approved else 'a rule allows'}, "
            f"whose tools {'do something after that' if goes_on else 'do nothing after that'}; "
            f"{'the process waits' if waits else 'everything ends and is resumed'}"
        )
        inside = Inside(levels=levels, approved=approved, goes_on=goes_on)
        yield _trip(name, title, inside, waits=waits)
    both = "pay the shop and pay the shop again"
    for at_once, waits in product((False, True), repeat=2):
        name = f"two inside, {'at once' if at_once else 'in turn'}, {'in place' if waits else 'suspended'}"
        inside = Inside(approved=True, goes_on=True, job=both, at_once=at_once)
        yield _trip(name, f"an approved call runs two agents {name[12:]}", inside, waits=waits)


NESTED = {one.name: one for one in _each()}
