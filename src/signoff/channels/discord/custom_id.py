"""What a button means, as its custom id says: the same before and after any restart.

`signoff:1:approve:REQUEST:DIGEST` and a last part that a few verbs have. Whoever sends one of these has shown nothing
yet: who they are, where it comes from and what it is about are looked up.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

PREFIX = "signoff:1:"
LONGEST = 100
"""Characters that Discord lets a custom id have."""
_SHAPE = re.compile(
    r"signoff:1:(?P<verb>[a-z_]+):(?P<request>[A-Za-z0-9_-]{1,40}):(?P<digest>[0-9a-f]{12})(?::(?P<rest>[\w.-]{1,24}))?"
)


class Verb(StrEnum):
    """What pressing it does."""

    APPROVE = "approve"
    DENY = "deny"
    DENY_NOTE = "deny_note"
    """Opens a form; submitted under the same id."""
    EDIT = "edit"
    """Opens a form; submitted under the same id."""
    REMEMBER = "remember"
    """Shows what can be remembered; picked from a menu under the same id, the offer and its scope as the value."""
    REMEMBER_YES = "remember_yes"
    """Approves and remembers what `rest` names: `OFFER-SCOPE`."""
    WHOLE = "whole"
    """Gives whoever pressed it everything, as a file."""
    ALL_APPROVE = "all_approve"
    ALL_DENY = "all_deny"
    """`request` is the first of those asked at once, `digest` is `digest_of_all` of those that still wait."""
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A press of a button, or a form that was submitted."""

    verb: Verb
    request: str
    digest: str
    """The beginning of the digest of what was shown: the arguments that would run."""
    rest: str = ""

    @property
    def id(self) -> str:
        """As a custom id."""
        made = f"{PREFIX}{self.verb}:{self.request}:{self.digest[:12]}" + (f":{self.rest}" if self.rest else "")
        assert len(made) <= LONGEST, "request ids are short"
        return made

    @classmethod
    def of(cls, custom_id: str) -> Press | None:
        """What a custom id means; None where it is none of ours, or was made up."""
        found = _SHAPE.fullmatch(custom_id)
        if found is None or found["verb"] not in list(Verb):
            return None
        return cls(verb=Verb(found["verb"]), request=found["request"], digest=found["digest"], rest=found["rest"] or "")


def is_ours(custom_id: str) -> bool:
    """Whether a custom id claims to be one of ours, whatever it says."""
    return custom_id.startswith("signoff:")
