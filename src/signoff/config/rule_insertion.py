"""One more rule in the text of a `signoff.yaml`. Nothing else of it changes: comments, layout, quotes and order stay.

Where the rule goes is told by the places that the reader of the file knows. What comes out is read again, and has to
be the old rules and exactly this one; otherwise it is refused, with the lines to paste by hand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from signoff.core.canonical import canonical
from signoff.errors import CannotCanonicalise, Place, PolicyError
from signoff.policy.composer import read_document
from signoff.policy.document import Document, Node
from signoff.policy.engine import Policy
from signoff.policy.parse import policy_in
from signoff.policy.placed_value import ConfigValue
from signoff.policy.policy_source import read_policy
from signoff.policy.rule import Rule
from signoff.policy.rule_text import flow_text, rule_lines

POLICY = "policy"

_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")
"""What ends a line for YAML: more than for Python's universal newlines, less than for `str.splitlines`."""
_DASH = re.compile(r"( *)-(?: .*)?")


@dataclass(frozen=True, slots=True)
class Added:
    """The text of a file with one more rule, and the policy that it holds."""

    text: str
    policy: Policy
    at: int
    """Which of the rules is the new one, counted from 0."""

    @property
    def rule(self) -> Rule:
        return self.policy.rules[self.at]


def add_rule(text: str, rule: Mapping[str, Any], *, at: int, file: str, root: str | None) -> Added:
    """The text with `rule` (JSON values) before the rule number `at`, counted from 0; or at the end of the rules.

    `root` is the directory that relative paths in rules start from. Raises `PolicyError` where the text itself
    is wrong, where the rule does not go with the others, and where it cannot be put there without touching anything
    else: then with the lines to paste by hand.
    """
    old = read_document(text, file=file)
    before = _policy(old, root)
    if not 0 <= at <= len(before.rules):
        raise ValueError(f"there are {len(before.rules)} rules, so none can be put before number {at}")
    problem: PolicyError | None = None
    for changed in dict.fromkeys(_candidates(text, old, rule, at)):
        try:
            new = read_document(changed, file=file)
            if not _is_meant(old, new, rule, at):
                continue
            after = _policy(new, root)
        except PolicyError as error:
            problem = problem or error
            continue
        if _same(before.rules, (*after.rules[:at], *after.rules[at + 1 :])):
            return Added(changed, after, at)
    if problem is not None and not problem.what.startswith("this is not YAML"):
        raise problem  # the file could be written, and then it would be wrong
    place = old.place_of((POLICY,)) if before.rules else Place(file)
    pasted = "\n".join(f"    {line}" for line in rule_lines(rule))
    raise PolicyError(
        "no line can be added here without changing anything else",
        place=place,
        fix=f"nothing was written; paste it by hand, under `policy`:\n{pasted}",
    )


def policy_in_text(text: str, *, file: str, root: str | None) -> Policy:
    """The policy in the text of a `signoff.yaml`: no rules where it has toolsets and no `policy`."""
    return _policy(read_document(text, file=file), root)


def lines_of(text: str) -> list[str]:
    """The lines of a file as YAML counts them, without what ends them."""
    lines = _BREAK.split(text)
    return lines[:-1] if not lines[-1] else lines


def _policy(document: Document, root: str | None) -> Policy:
    top = ConfigValue.top(document)
    entries = top.entries() if top.value is not None else {}
    if POLICY not in entries and "toolsets" in entries:
        return Policy(rules=(), file=document.file, root=root)
    return read_policy(policy_in(top, entries), root=root)


def _is_meant(old: Document, new: Document, rule: Mapping[str, Any], at: int) -> bool:
    """Whether all values of the file are the same, but for the rule that is there too."""
    was, now = cast("dict[str, Any]", old.value), new.value
    rules: list[Any] = [*was.get(POLICY, ())]
    rules.insert(at, rule)
    try:
        return canonical(now) == canonical({**was, POLICY: rules})
    except CannotCanonicalise:
        return False


def _same(before: Sequence[Rule], after: Sequence[Rule]) -> bool:
    """Whether the rules say the same. Those without an id of their own are counted, so they may have another number."""
    nowhere = Place("")
    return [replace(one, id="", place=nowhere) for one in before] == [
        replace(one, id="", place=nowhere) for one in after
    ]


# --- where it may go ---


def _candidates(text: str, document: Document, rule: Mapping[str, Any], at: int) -> Iterator[str]:
    """Texts that may be meant, the best first. Each is checked by whoever asks, so none has to be right."""
    lines = TextLines(text)
    node = document.root.child(POLICY)
    if node is None:
        yield from _first_rule(lines, document.root, rule)
    elif node.style == "block":
        yield from _in_lines(lines, document, node, rule, at)
    elif node.style == "flow":
        yield from _in_brackets(lines, node, rule, at)


def _in_lines(lines: TextLines, document: Document, node: Node, rule: Mapping[str, Any], at: int) -> Iterator[str]:
    items = cast("Sequence[Node]", node.children)
    indent = lines.dash_before(items[0])
    if indent is None:
        return
    written = [indent + line for line in rule_lines(rule)]
    if at > 0:
        # Right behind the rule above: comments that follow it stay with the rule below, which they are about.
        yield lines.after(items[at - 1].end, written)
    else:
        yield lines.after((document.root.keys[POLICY][0], 2), written)
        yield lines.after((items[0].line - 1, 2), written)


def _in_brackets(lines: TextLines, node: Node, rule: Mapping[str, Any], at: int) -> Iterator[str]:
    items = cast("Sequence[Node]", node.children)
    written = flow_text(rule)
    if not items:
        yield lines.inserted((node.end[0], node.end[1] - 1), written)
    elif at < len(items):
        spot = (items[at].line, items[at].column)
        yield lines.inserted(spot, f"{written},{lines.indent_at(spot) or ' '}")
    else:
        spot = (items[-1].line, items[-1].column)
        yield lines.inserted(items[-1].end, f",{lines.indent_at(spot) or ' '}{written}")


def _first_rule(lines: TextLines, root: Node, rule: Mapping[str, Any]) -> Iterator[str]:
    """A key `policy` with the rule, behind everything else."""
    if root.style != "block":
        return
    indent = " " * (root.column - 1)
    written = [f"{indent}{POLICY}:", *(f"{indent}  {line}" for line in rule_lines(rule))]
    yield lines.after((len(lines.spans), 2), written)
    yield lines.after(root.end, written)


class TextLines:
    """A text by its lines and columns, both counted from 1, as the reader of the file counts them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: list[tuple[int, int]] = []
        """Where each line starts, and where the next one does."""
        start = 0
        for found in _BREAK.finditer(text):
            self.spans.append((start, found.end()))
            start = found.end()
        if start < len(text) or not self.spans:
            self.spans.append((start, len(text)))

    def _line(self, number: int) -> str:
        """A line without what ends it."""
        start, end = self.spans[number - 1]
        return _BREAK.sub("", self.text[start:end])

    def _break(self, number: int) -> str:
        """What ends a line; where nothing does, what ends the first one of the file."""
        start, end = self.spans[number - 1]
        found = _BREAK.search(self.text, start, end) or _BREAK.search(self.text)
        return found[0] if found else "\n"

    def after(self, end: tuple[int, int], written: Sequence[str]) -> str:
        """The text with lines behind the one that something ends on."""
        number = min(end[0] - (end[1] == 1), len(self.spans))
        if number < 1:
            first = self._break(1)
            return "".join(f"{line}{first}" for line in written) + self.text
        cut, ends = self.spans[number - 1][1], self._break(number)
        if _BREAK.search(self.text, *self.spans[number - 1]):
            return self.text[:cut] + "".join(f"{line}{ends}" for line in written) + self.text[cut:]
        return self.text[:cut] + "".join(f"{ends}{line}" for line in written) + self.text[cut:]

    def inserted(self, spot: tuple[int, int], written: str) -> str:
        """The text with something before a place."""
        at = self.spans[spot[0] - 1][0] + spot[1] - 1
        return self.text[:at] + written + self.text[at:]

    def indent_at(self, spot: tuple[int, int]) -> str:
        """A line break and the blanks before what is the first thing on its line; empty where something is before."""
        before = self._line(spot[0])[: spot[1] - 1]
        return self._break(spot[0]) + before if before.strip(" ") == "" and spot[0] > 1 else ""

    def dash_before(self, item: Node) -> str | None:
        """The blanks before the dash of a list's item; None where it is written in another way."""
        for number in range(item.line, 0, -1):
            line = self._line(number)
            if number == item.line:
                line = line[: item.column - 1]
            if line.strip() and not line.lstrip().startswith("#"):
                found = _DASH.fullmatch(line)
                return found[1] if found else None
        return None
