"""Parse rules from values. Strict: nothing in a file is ever ignored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from signoff.core.canonical import digest
from signoff.core.verdict import ANYONE, Effect
from signoff.errors import CannotCanonicalise
from signoff.policy.composer import read_document
from signoff.policy.document import Document, document_of
from signoff.policy.examples import EXAMPLES, check_examples
from signoff.policy.format import Format, MappingFormat, line, matching
from signoff.policy.parse_match import MATCHES, SCOPE, read_naming, read_scope
from signoff.policy.parse_requirement import REQUIREMENT, read_requirement
from signoff.policy.phrases import did_you_mean, nearest, shown
from signoff.policy.placed_value import ConfigValue
from signoff.policy.rule import Rule

EXAMPLE = "a policy looks like this:\n    policy:\n      - {allow: read_file}"

OTHERWISE = "otherwise"

_EFFECTS = tuple(str(effect) for effect in Effect)
_SAYS = (*_EFFECTS, OTHERWISE)


def _read_otherwise(spot: ConfigValue) -> None:
    if spot.value in ("ask", "allow"):
        so = "what no rule names is asked about anyway" if spot.value == "ask" else "that names every call"
        raise spot.wrong(f"`otherwise` denies: {so}", f'as the last rule, {{{spot.value}: "*"}} says the same')
    if spot.value != "deny":
        fix = "write `otherwise: deny`, and beside it `tool: NAME` or `toolset: NAME` where it is not about every call"
        raise spot.wrong("`otherwise` says `deny` and nothing else", fix)


_OWN: Mapping[str, Format[Any]] = {
    "id": matching(
        "[A-Za-z0-9_][A-Za-z0-9_.:/-]*",
        "a name for the rule",
        "bad id {}",
        "use letters, digits and `_ . : / -`",
    ).about("The id of the rule, in messages and in the audit log."),
    "reason": line().about("The reason that people and the model are shown."),
    "examples": EXAMPLES,
}
RULE_KEYS: Mapping[str, Format[Any]] = {
    "allow": MATCHES.about("Calls that run without a question."),
    "ask": MATCHES.about("Calls that wait for a person."),
    "deny": MATCHES.about("Calls that are refused, whatever other rules say."),
    **_OWN,
    **REQUIREMENT.keys,
}
OTHERWISE_KEYS: Mapping[str, Format[Any]] = {
    OTHERWISE: Format(_read_otherwise, {"const": "deny"}).about(
        "Refuses every call that no rule above names, whatever other layers allow. With tool or toolset, only calls of "
        "these."
    ),
    **SCOPE.keys,
    **_OWN,
}
RULE = MappingFormat(
    {**RULE_KEYS, **OTHERWISE_KEYS},
    description="One rule: allow, ask or deny, what it matches, why, and who must agree; or otherwise: deny for "
    "calls that no rule above names.",
    name="rule",
    schema={
        "oneOf": [{"required": [key]} for key in _SAYS],
        "dependentRequired": {
            **{key: [OTHERWISE] for key in SCOPE.keys},
            **{key: ["ask"] for key in REQUIREMENT.keys},
            "escalate_to": ["ask", "on_timeout"],
            "remind": ["ask", "timeout"],
        },
        "if": {"properties": {"on_timeout": {"const": "escalate"}}, "required": ["on_timeout"]},
        "then": {"required": ["escalate_to"]},
        "else": {"properties": {"escalate_to": False}},
    },
)


class ParsedRules(NamedTuple):
    """The fields of a policy that parsing produces."""

    rules: tuple[Rule, ...]
    file: str
    revision: str
    written: object


def parse_rules(value: object, *, file: str = "<rules>", name: str = "", root: str | None = None) -> ParsedRules:
    """Parse rules from a list, from a mapping or a `Document` with `policy`, or from YAML text.

    `root` is the absolute directory that relative paths start from. Raises `PolicyError` with the place and the fix.
    """
    if isinstance(value, Document):
        document = value
    elif isinstance(value, str):
        document = read_document(value, file=file)
    else:
        whole = cast("object", value) if isinstance(value, Mapping) else {"policy": value}
        document = document_of(whole, file=file)
    top = ConfigValue.top(document)
    entries = top.entries(("policy",), what="a mapping with `policy`") if top.value is not None else {}
    return read_rules(policy_in(top, entries), name=name, root=root)


def policy_in(top: ConfigValue, entries: Mapping[str, ConfigValue]) -> ConfigValue:
    """Return the rules of a file. Raises `PolicyError` with an example if there are none."""
    if "policy" not in entries:
        raise top.wrong("there is no `policy` here", f"`policy: []` is enough: then every call asks. {EXAMPLE}")
    return entries["policy"]


def read_rules(spot: ConfigValue, *, name: str = "", root: str | None = None) -> ParsedRules:
    """Parse a list of rules anywhere in a file."""
    rules: list[Rule] = []
    ids: dict[str, int] = {}
    items = spot.items("a list of rules") if spot.value != [] else []  # without rules, every call asks
    for number, item in enumerate(items, start=1):
        if _is_otherwise(item):
            rules = [with_naming(one, items[at]) for at, one in enumerate(rules)]
        rule = _rule(item, number, name, root, rules)
        if rule.id in ids:
            where = item.child("id") if "id" in item.value else item
            raise where.wrong(f"the id {shown(rule.id)} is taken by rule {ids[rule.id]}", "give each rule its own id")
        ids[rule.id] = number
        rules.append(rule)
    try:
        revision = digest(spot.value)
    except CannotCanonicalise as error:
        raise spot.wrong(f"this has no JSON form: {error}") from error
    return ParsedRules(tuple(rules), spot.document.file, revision, spot.value)


def _rule(spot: ConfigValue, number: int, name: str, root: str | None, above: Sequence[Rule]) -> Rule:
    entries = spot.entries(what="a rule: a mapping such as {allow: read_file}")
    effect = _effect(spot, entries)
    own_id = (
        _OWN["id"].read(entries["id"]) if "id" in entries else f"{name}/rule-{number}" if name else f"rule-{number}"
    )
    if effect is None:
        return _otherwise(spot, entries, own_id, root, above)
    for key, child in entries.items():
        if key not in RULE_KEYS:
            raise child.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, RULE_KEYS))
        if key in REQUIREMENT.keys and effect is not Effect.ASK:
            fix = "use `reason`" if key == "message" else "remove it, or make the rule an `ask` rule"
            raise child.wrong_key(f"{shown(key)} only makes sense on an `ask` rule", fix)
    rule = Rule(
        id=own_id,
        effect=effect,
        matches=MATCHES.read(entries[effect], wary=effect is Effect.ALLOW),
        reason=entries["reason"].line() if "reason" in entries else "",
        requirement=read_requirement(entries) if effect is Effect.ASK else ANYONE,
        place=spot.place,
    )
    if "examples" in entries:
        check_examples(entries["examples"], rule, root)
    return rule


def _otherwise(
    spot: ConfigValue, entries: dict[str, ConfigValue], own_id: str, root: str | None, above: Sequence[Rule]
) -> Rule:
    """Parse `otherwise: deny`, for every call or for those of a tool or a toolset."""
    for key, child in entries.items():
        if key not in OTHERWISE_KEYS:
            fix = "write `tool` or `toolset` beside it, or nothing; the rules above it say what else may be called"
            close = nearest(key, OTHERWISE_KEYS)
            raise child.wrong_key(
                f"{shown(key)} does not go with `otherwise`", f"did you mean `{close}`?" if close else fix
            )
    OTHERWISE_KEYS[OTHERWISE].read(entries[OTHERWISE])
    rule = Rule(
        id=own_id,
        effect=Effect.DENY,
        matches=(read_scope(entries),),
        reason=entries["reason"].line() if "reason" in entries else "",
        place=spot.place,
        otherwise=True,
    )
    if "examples" in entries:
        check_examples(entries["examples"], rule, root, above)
    return rule


def _is_otherwise(spot: ConfigValue) -> bool:
    value: object = spot.value
    return isinstance(value, dict) and OTHERWISE in cast("dict[str, object]", value)


def with_naming(rule: Rule, spot: ConfigValue) -> Rule:
    """Add to an ask rule above an `otherwise` what it names; return other rules unchanged. `spot`: its place."""
    if rule.effect is not Effect.ASK or rule.naming:
        return rule
    return replace(rule, naming=read_naming(spot.child(str(Effect.ASK)), rule.matches))


def _effect(spot: ConfigValue, entries: dict[str, ConfigValue]) -> Effect | None:
    """Return the effect of a rule; None for `otherwise`."""
    named = [key for key in entries if key in _SAYS]
    if len(named) == 1:
        return Effect(named[0]) if named[0] != OTHERWISE else None
    if named:
        raise entries[named[1]].wrong_key(f"a rule says one thing, not {' and '.join(named)}", "write two rules")
    for key, child in entries.items():
        if key not in RULE_KEYS:
            raise child.wrong_key(f"unknown effect {shown(key)}", did_you_mean(key, _SAYS))
    raise spot.wrong("the rule says neither allow, ask nor deny", "start it as in {ask: TOOL}")


RULES = Format(
    read_rules,
    {
        "description": "Rules. Any deny rule that matches wins; otherwise the first matching rule decides. A call that "
        "no rule names asks, or is refused if the last entry is {otherwise: deny}.",
        "type": "array",
        "items": RULE,
    },
    "policy",
)
