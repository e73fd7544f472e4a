"""Rules from values: strict, so that nothing in a file is ever ignored."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple, cast

from signoff.core.canonical import digest
from signoff.core.verdict import ANYONE, Effect
from signoff.errors import CannotCanonicalise
from signoff.policy.composer import read_document
from signoff.policy.document import Document, document_of
from signoff.policy.examples import check_examples
from signoff.policy.parse_match import read_matches
from signoff.policy.parse_requirement import REQUIREMENT_KEYS, read_requirement
from signoff.policy.rule import Rule
from signoff.policy.spot import Spot
from signoff.policy.wording import did_you_mean, shown

EXAMPLE = "a policy looks like this:\n    policy:\n      - {allow: read_file}"

_EFFECTS = tuple(str(effect) for effect in Effect)
_OWN_KEYS = ("id", "reason", "examples")
_RULE_KEYS = (*_EFFECTS, *_OWN_KEYS, *REQUIREMENT_KEYS)
_ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:/-]*")


class ParsedRules(NamedTuple):
    """What a policy is made of."""

    rules: tuple[Rule, ...]
    file: str
    revision: str
    written: object


def parse_rules(value: object, *, file: str = "<rules>", name: str = "", root: str | None = None) -> ParsedRules:
    """Rules from a list of them, from a mapping or a `Document` with `policy`, or from YAML text.

    `root` is the absolute folder that relative paths start from. Raises `PolicyError` with the place and the fix.
    """
    if isinstance(value, Document):
        document = value
    elif isinstance(value, str):
        document = read_document(value, file=file)
    else:
        whole = cast("object", value) if isinstance(value, Mapping) else {"policy": value}
        document = document_of(whole, file=file)
    top = Spot.top(document)
    entries = top.entries(("policy",), what="a mapping with `policy`") if top.value is not None else {}
    return read_rules(policy_in(top, entries), name=name, root=root)


def policy_in(top: Spot, entries: Mapping[str, Spot]) -> Spot:
    """The rules of a file; an error that shows what they look like, where there are none."""
    if "policy" not in entries:
        raise top.wrong("there is no `policy` here", EXAMPLE)
    return entries["policy"]


def read_rules(spot: Spot, *, name: str = "", root: str | None = None) -> ParsedRules:
    """The rules in a list that stands anywhere in a file."""
    rules: list[Rule] = []
    ids: dict[str, int] = {}
    items = spot.items("a list of rules") if spot.value != [] else []  # no rules: everything is asked about
    for number, item in enumerate(items, start=1):
        rule = _rule(item, number, name, root)
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


def _rule(spot: Spot, number: int, name: str, root: str | None) -> Rule:
    entries = spot.entries(what="a rule: a mapping such as {allow: read_file}")
    effect = _effect(spot, entries)
    for key, child in entries.items():
        if key not in _RULE_KEYS:
            raise child.wrong_key(f"unknown key {shown(key)}", did_you_mean(key, _RULE_KEYS))
        if key in REQUIREMENT_KEYS and effect is not Effect.ASK:
            fix = "use `reason`" if key == "message" else "remove it, or make the rule an `ask` rule"
            raise child.wrong_key(f"{shown(key)} only makes sense on an `ask` rule", fix)
    rule = Rule(
        id=_id(entries["id"]) if "id" in entries else f"{name}/rule-{number}" if name else f"rule-{number}",
        effect=effect,
        matches=read_matches(entries[effect], wary=effect is Effect.ALLOW),
        reason=entries["reason"].line() if "reason" in entries else "",
        requirement=read_requirement(entries) if effect is Effect.ASK else ANYONE,
        place=spot.place,
    )
    if "examples" in entries:
        check_examples(entries["examples"], rule, root)
    return rule


def _effect(spot: Spot, entries: dict[str, Spot]) -> Effect:
    named = [key for key in entries if key in _EFFECTS]
    if len(named) == 1:
        return Effect(named[0])
    if named:
        raise entries[named[1]].wrong_key(f"a rule says one thing, not {' and '.join(named)}", "write two rules")
    for key, child in entries.items():
        if key not in _RULE_KEYS:
            raise child.wrong_key(f"unknown effect {shown(key)}", did_you_mean(key, _EFFECTS))
    raise spot.wrong("the rule says neither allow, ask nor deny", "start it as in {ask: TOOL}")


def _id(spot: Spot) -> str:
    text = spot.text("a name for the rule")
    if not _ID.fullmatch(text):
        raise spot.wrong(f"bad id {shown(text)}", "use letters, digits and `_ . : / -`")
    return text
