"""Examples on a rule: calls it must match and calls it must miss, checked when the file is read."""

from __future__ import annotations

from collections.abc import Sequence

from signoff.core.call import Call
from signoff.policy.call_paths import Facts
from signoff.policy.format import ANY_MAPPING, Format, MappingFormat, text, texts
from signoff.policy.glob import Glob
from signoff.policy.match import LabelCondition, Match, ToolsetCondition, WorkerCondition
from signoff.policy.match_result import Truth
from signoff.policy.operators import kind_of
from signoff.policy.parse_match import SOME_LABELS
from signoff.policy.phrases import shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.rule import Rule

_CALL = MappingFormat(
    {
        "tool": text("a tool"),
        "toolset": text("a toolset"),
        "worker": texts(text("a worker"), "a list of workers"),
        "label": SOME_LABELS,
        "labels": SOME_LABELS,
        "args": ANY_MAPPING,
        "deps": ANY_MAPPING,
    }
)
_CALLS = Format(
    lambda spot: spot.items("a list of calls"),
    {
        "type": "array",
        "minItems": 1,
        "items": {"anyOf": [text().about("A path, a command, SQL or a URL."), _CALL]},
    },
    "calls",
)
EXAMPLES = MappingFormat(
    {"match": _CALLS, "miss": _CALLS},
    what="a mapping with `match` and `miss`",
    description="Calls that the rule must match or must not match, checked whenever the file is read.",
    name="examples",
)
_ANY_TOOL = "any_tool"
_SOME_ROOT = "/any/root"


def check_examples(spot: ConfigValue, rule: Rule, root: str | None, above: Sequence[Rule] = ()) -> None:
    """Raise `PolicyError` at the first example that fails. `above`: the rules above, for an `otherwise`."""
    found = EXAMPLES.read(spot)
    for key, wanted in (("match", Truth.YES), ("miss", Truth.NO)):
        for example in found.get(key, ()):
            call = _call(example, rule, above)
            finding = rule.find_after(above, Facts(call, root or _SOME_ROOT))
            if finding.truth is wanted:
                continue
            if finding.truth is Truth.YES:
                raise example.wrong(f"this example should miss, but {rule.id} matches it: it {rule.text}")
            so = "does not match it" if finding.truth is Truth.NO else "cannot be evaluated for it"
            raise example.wrong(f"this example should {key}, but {rule.id} {so}: {finding.why}")


def _call(spot: ConfigValue, rule: Rule, above: Sequence[Rule]) -> Call:
    if isinstance(spot.value, str):
        return _text_call(spot, rule, above)
    if not isinstance(spot.value, dict):
        raise spot.wrong(f"this should be a call, not {kind_of(spot.value)}", "write {tool: NAME, args: {…}}")
    found = _CALL.read(spot)
    return Call(
        tool=found["tool"] if "tool" in found else _only_tool(spot, rule),
        toolset=found.get("toolset"),
        worker=found.get("worker", ()),
        labels=frozenset((*found.get("label", ()), *found.get("labels", ()))),
        args=found.get("args", {}),
        deps=found.get("deps", {}),
    )


def _text_call(spot: ConfigValue, rule: Rule, above: Sequence[Rule]) -> Call:
    """Make a call from a plain text: a path, a command, SQL or a URL. The rule's other conditions are taken as met.

    For an `otherwise`, the nearest rule above with such a condition says what the text is.
    """
    matches = [match for one in (rule, *reversed(above)) for match in one.matches]
    match, argument = next(((one, name) for one in matches if (name := _argument(one))), (None, ""))
    if match is None:
        raise spot.wrong(
            "a plain text is an example of a path, a command, SQL or a URL, and this rule is about none of them",
            "write {args: {…}}",
        )
    toolset, worker, labels = None, (), frozenset[str]()
    for condition in (*match.conditions, *rule.matches[0].conditions):
        match condition:
            case ToolsetCondition():
                toolset = _literal(condition.names)
            case WorkerCondition():
                name = _literal(condition.names)
                worker = tuple(name.split(" > ")) if name else ()
            case LabelCondition():
                labels = condition.labels
            case _:
                pass
    tool = _literal(match.tools) if rule.otherwise and not rule.matches[0].tools else None
    return Call(
        tool=tool or _only_tool(spot, rule),
        toolset=toolset,
        worker=worker,
        labels=labels,
        args={argument: spot.text("a text")},
    )


def _argument(match: Match) -> str:
    """Return the argument that a plain text is the value of, or ""."""
    return next((name for one in match.conditions if (name := getattr(one, "stands_for", ""))), "")


def _literal(globs: tuple[Glob, ...]) -> str | None:
    return next((glob.literal for glob in globs if glob.literal is not None), None)


def _only_tool(spot: ConfigValue, rule: Rule) -> str:
    globs = {glob for match in rule.matches for glob in match.tools}
    if not globs:
        return _ANY_TOOL
    names = sorted({glob.literal for glob in globs if glob.literal is not None})
    if len(names) != 1:
        known = f"one of {', '.join(map(shown, names))}" if names else "a name that fits the rule"
        raise spot.wrong("the example does not say which tool is called", f"add `tool`: {known}")
    return names[0]
