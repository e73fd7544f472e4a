"""The text output of `signoff policy explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from signoff.policy.explain import Explanation


def explanation_lines(explanation: Explanation) -> Iterator[str]:
    """Yield the lines of an explanation, for people."""
    yield explanation.sentence
    if explanation.rule is not None:
        yield f"decided by {explanation.rule.id} at {explanation.rule.place}"
    for error in explanation.verdict.errors:
        yield f"could not be checked: {error}"
    about = [one for one in explanation.considered if one.names_tool]
    if about:
        yield ""
        yield "rules considered:"
        width = max(len(one.rule.id) for one in about)
        for one in about:
            mark = "*" if one.decided else " "
            text = one.why or one.rule.text
            yield f"{mark} {one.rule.id:{width}}  {one.rule.effect:5}  {one.truth.value:7}  {text}"
    others = len(explanation.considered) - len(about)
    if others:
        yield f"  {others} {'rule is' if others == 1 else 'rules are'} about other tools"
