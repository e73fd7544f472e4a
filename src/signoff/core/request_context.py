"""The context of a request: the prompt of the run, and what led to the call."""

from __future__ import annotations

from dataclasses import dataclass

from signoff.core.loosening import NOT_LOOSENED, Loosened

LONGEST_PROMPT = 1_000
LONGEST_WORDS = 2_000
LONGEST_SESSION = 200
_SHORT, _LONGEST_SHORT = 8, 16
MOST_CALLS = 3
MOST_ANSWERS = 100
"""Answers of a kind are counted up to this number; there may be more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastCall:
    """An earlier call of the run."""

    summary: str
    """One line, with secrets masked."""
    outcome: str
    """`success`, `failed`, `denied`, or `retried`: the tool did not accept it, and the model was told to try again.

    Of a command that failed: `exit code 1`, or why it was stopped.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many requests people approved and denied, each up to `MOST_ANSWERS`."""

    approved: int = 0
    denied: int = 0


NO_TALLY = Tally()


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnswers:
    """How people answered similar calls before, in the same store, at the time of asking.

    A request counts once, for the answer that settled it. It does not count if a mode, a script, a grant or a timeout
    settled it, or if it was cancelled. If it was approved with edited arguments, it counts for the tool only.
    """

    call: Tally = NO_TALLY
    """The same tool with exactly the same arguments."""
    target: Tally = NO_TALLY
    """The same tool with the same arguments, except free text (`Call.free`)."""
    tool: Tally = NO_TALLY
    """The tool by its name, with any arguments."""


NO_ANSWERS = EarlierAnswers()


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """What led to a request. Texts are shortened, and not safe to show yet."""

    prompt: str = ""
    """The prompt of the outermost run."""
    words: str = ""
    """What the model said in the turn that made the call. Nothing checks it."""
    recent: tuple[PastCall, ...] = ()
    """The last calls before this one, oldest first."""
    answers: EarlierAnswers = NO_ANSWERS
    """How people answered similar calls before."""
    loosened: Loosened = NOT_LOOSENED
    """How the run was loosened."""
    session: str = ""
    """The id of the session, if an agent in another program makes the call."""
    directory: str = ""
    """The directory that it makes the call in."""
    is_claimed: bool = False
    """Whether session and directory are only what that agent says, and signoff does not go by them."""

    def session_text(self, *, short: bool = False) -> str:
        """Return the session and its directory on one line, not safe to show yet; empty without a session.

        With `short` only the end of a long id, for a list: ids that begin with a time begin alike.
        """
        if not self.session:
            return ""
        is_cut = short and len(self.session) > _LONGEST_SHORT
        told = f"…{self.session[-_SHORT:]}" if is_cut else self.session
        told += f" in {self.directory}" if self.directory else ""
        return f"{told}, as the agent says" if self.is_claimed and not short else told


NO_CONTEXT = RequestContext()


def shortened(text: str, longest: int) -> str:
    """Truncate a text to at most `longest` characters; a truncated text ends with `…`."""
    text = text.strip()
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
