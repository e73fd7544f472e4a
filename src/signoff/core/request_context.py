"""What a person needs to know beside the call itself: what the run is for, and how it came to the call."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.loosening import NOT_LOOSENED, Loosened

LONGEST_PROMPT = 1_000
LONGEST_WORDS = 2_000
MOST_CALLS = 3
MOST_ANSWERS = 100
"""So many answers of a kind are counted; there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call that the run made before."""

    summary: str
    """One line, secrets masked."""
    outcome: str
    """`success`, `failed`, `denied`, or `retried`: the model was told to call it otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many requests people approved and denied, each up to `MOST_ANSWERS`."""

    approved: int = 0
    denied: int = 0


NO_TALLY = Tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnswers:
    """How people answered the like before, in the same store, when the question was asked.

    A request counts once, for what settled it. What a mode, a script, memory or the end of its time settled does not
    count, nor what was withdrawn. Approved with other arguments, it counts for the tool alone.
    """

    call: Tally = NO_TALLY
    """The same tool with exactly the same arguments."""
    target: Tally = NO_TALLY
    """The same tool with the same arguments, whatever was to be written (`Call.free`)."""
    tool: Tally = NO_TALLY
    """The tool, by its name, whatever the arguments."""


NO_ANSWERS = EarlierAnswers()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What led to a request. Texts are shortened, and not yet safe to show."""

    prompt: str = ""
    """What the outermost run was told to do."""
    words: str = ""
    """What the model said in the turn that made the call. A claim: nothing checks it."""
    recent: tuple[PastCall, ...] = ()
    """The last calls before this one, oldest first."""
    answers: EarlierAnswers = NO_ANSWERS
    """How people answered the like before."""
    loosened: Loosened = NOT_LOOSENED
    """What whoever started the run loosened."""


NO_CONTEXT = RequestContext()


def shortened(text: str, longest: int) -> str:
    """A text that is at most so long; one that is cut ends with `…`."""
    text = text.strip()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
