"""What a person needs to know beside the call itself: what the run is for, and how it came to the call."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST_PROMPT = 1_000
LONGEST_WORDS = 2_000
MOST_CALLS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """A call that the run made before."""

    summary: str
    """One line, secrets masked."""
    outcome: str
    """`success`, `failed`, `denied`, or `retried`: the model was told to call it otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What led to a request. Texts are shortened, and not yet safe to show."""

    prompt: str = ""
    """What the outermost run was told to do."""
    words: str = ""
    """What the model said in the turn that made the call. A claim: nothing checks it."""
    recent: tuple[PastCall, ...] = ()
    """The last calls before this one, oldest first."""


NO_CONTEXT = RequestContext()


def shortened(text: str, longest: int) -> str:
    """A text that is at most so long; one that is cut ends with `…`."""
    text = text.strip()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
