"""What whoever started a run loosened: the run says it to everybody who is asked, in lists and in the record."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosened:
    """How flags let a run do more unasked than its project says. False where they did not."""

    auto_approve: bool = False
    """`--mode auto_approve`: calls that the policy asks about run unasked, where it wants nobody in particular."""
    policies: tuple[str, ...] = ()
    """`--policy`: files that took the place of the project's own, each named from the project's directory if inside."""

    def __bool__(self) -> bool:
        return self.auto_approve or bool(self.policies)

    def __or__(self, other: Loosened) -> Loosened:
        if not other or other == self:
            return self
        return Loosened(
            auto_approve=self.auto_approve or other.auto_approve,
            policies=tuple(dict.fromkeys((*self.policies, *other.policies))),
        )

    @property
    def texts(self) -> tuple[str, ...]:
        """What to tell people, a line each. Names of files in it are not yet safe to show."""
        mode = (
            ("calls that anybody may approve run without a question (--mode auto_approve)",)
            if self.auto_approve
            else ()
        )
        return (*mode, *(f"another policy than the project's: {name} (--policy)" for name in self.policies))


NOT_LOOSENED = Loosened()
