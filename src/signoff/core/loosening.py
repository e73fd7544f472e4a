"""How a run was loosened when it was started: every approver, every list and the audit log are told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Loosened:
    """How flags let a run do more without asking than its project says. False if they did not."""

    auto_approve: bool = False
    """`--mode auto_approve`: calls that the policy asks about run unasked, unless it requires particular people."""
    policies: tuple[str, ...] = ()
    """`--policy`: files that replaced the project's own policy; relative to the project's directory if inside it."""

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
        """What to tell people, one line each. File names in it are not safe to show yet."""
        mode = (
            ("calls that anybody may approve run without a question (--mode auto_approve)",)
            if self.auto_approve
            else ()
        )
        return (*mode, *(f"another policy than the project's: {name} (--policy)" for name in self.policies))


NOT_LOOSENED = Loosened()
