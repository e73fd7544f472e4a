"""Custom ids of buttons and forms: they say what a button does, the same before and after a restart.

The format is `signoff:1:approve:REQUEST:DIGEST`, with one more part for a few verbs. A custom id proves nothing: who
pressed, where, and what it is about are looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "signoff:1:"
LONGEST = 100
"""Maximum characters of a custom id on Discord."""
_SHAPE = re.compile(
    r"signoff:1:(?P<verb>[a-z_]+):(?P<request>[A-Za-z0-9_-]{1,40}):(?P<digest>[0-9a-f]{12})(?::(?P<rest>[\w.-]{1,24}))?"
)


class Verb(StrEnum):
    """What a button does."""

    APPROVE = "approve"
    DENY = "deny"
    DENY_NOTE = "deny_note"
    """Opens a form, which is submitted under the same id."""
    EDIT = "edit"
    """Opens a form, which is submitted under the same id."""
    REMEMBER = "remember"
    """Shows what can be remembered in a menu under the same id; the value is the offer and its scope."""
    REMEMBER_YES = "remember_yes"
    """Approves and remembers what `rest` names: `OFFER-SCOPE`."""
    WHOLE = "whole"
    """Sends the whole call as a file to the person who pressed."""
    ALL_APPROVE = "all_approve"
    ALL_DENY = "all_deny"
    """`request` is the first of the batch, `digest` is `digest_of_all` of those still pending."""
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A press of a button, or a submitted form."""

    verb: Verb
    request: str
    digest: str
    """The first digits of the digest of what was shown: the arguments that would run."""
    rest: str = ""

    @property
    def id(self) -> str:
        """The custom id."""
        made = f"{PREFIX}{self.verb}:{self.request}:{self.digest[:12]}" + (f":{self.rest}" if self.rest else "")
        assert len(made) <= LONGEST, "request ids are short"
        return made

    @classmethod
    def of(cls, custom_id: str) -> Press | None:
        """Parse a custom id; None if it is not ours or malformed."""
        found = _SHAPE.fullmatch(custom_id)
        if found is None or found["verb"] not in list(Verb):
            return None
        return cls(verb=Verb(found["verb"]), request=found["request"], digest=found["digest"], rest=found["rest"] or "")


def is_ours(custom_id: str) -> bool:
    """Whether a custom id claims to be ours, valid or not."""
    return custom_id.startswith("signoff:")
