"""Insert a rule into the text of a `signoff.yaml`. Everything else stays: comments, layout, quotes and order.

The parser's positions say where the rule goes. The result is parsed again, and must be the old rules and exactly this
one; otherwise it is refused, with the lines to paste by hand.
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
"""Line breaks in YAML: more than Python's universal newlines, fewer than `str.splitlines`."""
_DASH = re.compile(r"( *)-(?: .*)?")


@dataclass(frozen=True, slots=True)
class Added:
    """The text of a file with the inserted rule, and its policy."""

    text: str
    policy: Policy
    at: int
    """The index of the new rule, counted from 0."""

    @property
    def rule(self) -> Rule:
        return self.policy.rules[self.at]


def add_rule(text: str, rule: Mapping[str, Any], *, at: int, file: str, root: str | None) -> Added:
    """Insert `rule` (JSON values) before the rule number `at`, counted from 0; or at the end of the rules.

    `root` is the directory that relative paths in rules start from. Raises `PolicyError` if the text itself is wrong,
    if the rule does not go with the others, or if it cannot be inserted without changing anything else: then with the
    lines to paste by hand.
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
        raise problem  # a rule can be inserted, but the file would be wrong then
    place = old.place_of((POLICY,)) if before.rules else Place(file)
    pasted = "\n".join(f"    {line}" for line in rule_lines(rule))
    raise PolicyError(
        "no line can be added here without changing anything else",
        place=place,
        fix=f"nothing was written; paste it by hand, under `policy`:\n{pasted}",
    )


def policy_in_text(text: str, *, file: str, root: str | None) -> Policy:
    """The policy in the text of a `signoff.yaml`: no rules if it has toolsets and no `policy`."""
    return _policy(read_document(text, file=file), root)


def lines_of(text: str) -> list[str]:
    """The lines of a file as YAML counts them, without their line breaks."""
    lines = _BREAK.split(text)
    return lines[:-1] if not lines[-1] else lines


def _policy(document: Document, root: str | None) -> Policy:
    top = ConfigValue.top(document)
    entries = top.entries() if top.value is not None else {}
    if POLICY not in entries and "toolsets" in entries:
        return Policy(rules=(), file=document.file, root=root)
    return read_policy(policy_in(top, entries), root=root)


def _is_meant(old: Document, new: Document, rule: Mapping[str, Any], at: int) -> bool:
    """Whether all values of the file are the same, except for the new rule."""
    was, now = cast("dict[str, Any]", old.value), new.value
    rules: list[Any] = [*was.get(POLICY, ())]
    rules.insert(at, rule)
    try:
        return canonical(now) == canonical({**was, POLICY: rules})
    except CannotCanonicalise:
        return False


def _same(before: Sequence[Rule], after: Sequence[Rule]) -> bool:
    """Whether the rules are the same. Those without an id are numbered, so their numbers may differ."""
    nowhere = Place("")
    return [replace(one, id="", place=nowhere) for one in before] == [
        replace(one, id="", place=nowhere) for one in after
    ]


# --- where to insert it ---


def _candidates(text: str, document: Document, rule: Mapping[str, Any], at: int) -> Iterator[str]:
    """Yield texts that may be right, the best first. The caller verifies each."""
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
        # Directly after the rule above: comments that follow it stay with the rule below, which they are about.
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
    """Add a key `policy` with the rule, after everything else."""
    if root.style != "block":
        return
    indent = " " * (root.column - 1)
    written = [f"{indent}{POLICY}:", *(f"{indent}  {line}" for line in rule_lines(rule))]
    yield lines.after((len(lines.spans), 2), written)
    yield lines.after(root.end, written)


class TextLines:
    """A text by its lines and columns, both counted from 1, as the parser counts them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.spans: list[tuple[int, int]] = []
        """The start of each line, and of the next one."""
        start = 0
        for found in _BREAK.finditer(text):
            self.spans.append((start, found.end()))
            start = found.end()
        if start < len(text) or not self.spans:
            self.spans.append((start, len(text)))

    def _line(self, number: int) -> str:
        """A line without its line break."""
        start, end = self.spans[number - 1]
        return _BREAK.sub("", self.text[start:end])

    def _break(self, number: int) -> str:
        """The line break of a line; if it has none, the first one of the file."""
        start, end = self.spans[number - 1]
        found = _BREAK.search(self.text, start, end) or _BREAK.search(self.text)
        return found[0] if found else "\n"

    def after(self, end: tuple[int, int], written: Sequence[str]) -> str:
        """Insert lines after the line on which something ends."""
        number = min(end[0] - (end[1] == 1), len(self.spans))
        if number < 1:
            first = self._break(1)
            return "".join(f"{line}{first}" for line in written) + self.text
        cut, ends = self.spans[number - 1][1], self._break(number)
        if _BREAK.search(self.text, *self.spans[number - 1]):
            return self.text[:cut] + "".join(f"{line}{ends}" for line in written) + self.text[cut:]
        return self.text[:cut] + "".join(f"{ends}{line}" for line in written) + self.text[cut:]

    def inserted(self, spot: tuple[int, int], written: str) -> str:
        """Insert a text at a position."""
        at = self.spans[spot[0] - 1][0] + spot[1] - 1
        return self.text[:at] + written + self.text[at:]

    def indent_at(self, spot: tuple[int, int]) -> str:
        """A line break and the indentation of the first item on a line; empty if something else is before it."""
        before = self._line(spot[0])[: spot[1] - 1]
        return self._break(spot[0]) + before if before.strip(" ") == "" and spot[0] > 1 else ""

    def dash_before(self, item: Node) -> str | None:
        """The indentation of the dash of a list item; None if it is written in another way."""
        for number in range(item.line, 0, -1):
            line = self._line(number)
            if number == item.line:
                line = line[: item.column - 1]
            if line.strip() and not line.lstrip().startswith("#"):
                found = _DASH.fullmatch(line)
                return found[1] if found else None
        return None
