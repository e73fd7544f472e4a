"""Check edited arguments where the agent does not run: against the stored schema of the tool, and against policy."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from signoff.core.call import Call, Veiled
from signoff.core.canonical import canonical
from signoff.core.quorum import who
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import safe_text
from signoff.core.verdict import ANYONE, Effect
from signoff.core.visible_text import visible
from signoff.errors import CannotCanonicalise, EditRefused
from signoff.links import looked_up
from signoff.policy.argument_schema import Unchecked, errors_in
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers

_MOST_PROBLEMS = 12


def checked_edit(request: ApprovalRequest, args: Mapping[str, Any], policy: Policy | Layers) -> Mapping[str, Any]:
    """Return edited arguments as they will run; raises `EditRefused` with every problem found."""
    refuse_veiled(request)
    whole = fitting(request, args)
    judge_edit(request, whole, policy)
    return whole


def refuse_veiled(request: ApprovalRequest) -> None:
    """Raise `EditRefused` for a call with a secret that only its agent knows."""
    veiled = [name for name, value in request.args.items() if isinstance(value, Veiled)]
    if veiled:
        problem = "is a secret: approve the call unchanged, or deny it"
        raise EditRefused(tuple(f"{visible(name)} {problem}" for name in veiled))


def fitting(request: ApprovalRequest, args: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the arguments with defaults filled in; raises `EditRefused` unless they fit the schema as of the call."""
    if request.schema is None:
        raise EditRefused(
            (f"the parameters of {safe_text(request.tool_name)} are not stored, so other arguments cannot be checked",)
        )
    args = {**args, **dict(_defaults(request, args))}
    problems = [*_misfits(request.tool_name, request.schema, args), *_invalid(request, args)]
    if problems:
        more = [f"and {len(problems) - _MOST_PROBLEMS} more"] if len(problems) > _MOST_PROBLEMS else []
        raise EditRefused((*problems[:_MOST_PROBLEMS], *more))
    try:
        canonical(args)
    except CannotCanonicalise as error:
        raise EditRefused((visible(str(error)),)) from error
    return args


def judge_edit(request: ApprovalRequest, args: Mapping[str, Any], policy: Policy | Layers) -> None:
    """Raise `EditRefused` if policy denies the edited call, or requires other people to approve it."""
    call = looked_up(_call(request).changed(args=args, resolved={}), policy, os.path.realpath(policy.root or os.curdir))
    verdict = policy.judge(call)
    needed = verdict.requirement
    if verdict.effect is Effect.DENY:
        raise EditRefused((f"policy denies the edited call: {visible(verdict.reason)}",))
    asked = (request.requirement, request.verdict.requirement if request.verdict else ANYONE)
    if verdict.effect is Effect.ASK and needed.is_strict and needed not in asked:
        raise EditRefused((f"the edited call needs {visible(who(needed))}: {visible(verdict.reason)}",))


def _call(request: ApprovalRequest) -> Call:
    return request.call or Call(tool=request.tool_name, args=request.args)


def _defaults(request: ApprovalRequest, args: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the defaults of arguments that are left out, so that the audit log shows everything that runs."""
    for name, about in _properties(request.schema or {}).items():
        # Only if the original call had the argument too: some tools fill in defaults themselves.
        if name not in args and name in request.args and isinstance(about, Mapping) and "default" in about:
            yield name, about["default"]


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownVariableType]


def _misfits(tool: str, schema: Mapping[str, Any], args: Mapping[str, Any]) -> Iterator[str]:
    """Yield unknown and missing argument names, as the gate does when it checks an edit itself."""
    if not schema.get("additionalProperties", False):
        for name in sorted(set(args) - set(_properties(schema))):
            yield f"{visible(name)}: {visible(tool)} takes no such argument"
    for name in sorted(set(schema.get("required", ())) - set(args)):
        yield f"{visible(name)}: {visible(tool)} needs this argument"


def _invalid(request: ApprovalRequest, args: Mapping[str, Any]) -> Iterator[str]:
    jsonschema: Any = import_module("jsonschema")
    schema, errors = _errors(request, request.schema or {}, args)
    for error in errors:
        # `_misfits` has told these of the schema itself, and only of that: one inside it has names of its own.
        if error.schema is not schema or error.validator not in ("required", "additionalProperties"):
            inner = jsonschema.exceptions.best_match([error]) or error
            yield _problem(inner.absolute_path, str(inner.validator), inner.validator_value)


def _errors(
    request: ApprovalRequest, schema: Mapping[str, Any], args: Mapping[str, Any]
) -> tuple[Mapping[str, Any], list[Any]]:
    """Return why arguments do not fit a schema, with the schema that they were checked by.

    What the model chose itself is left out of that if it cannot be checked.
    """
    try:
        return schema, errors_in(schema, args, most=_MOST_PROBLEMS + 1)
    except Unchecked as doubt:
        kept = {
            name: True
            for name, wanted in _properties(schema).items()
            if wanted is not True and name in args and args[name] == request.args.get(name)
        }
        if not kept or '"#/properties' in json.dumps(schema):  # what one argument may be is said of another, too
            raise EditRefused((f"the arguments cannot be checked: {visible(str(doubt))}",)) from doubt
        return _errors(request, {**schema, "properties": {**_properties(schema), **kept}}, args)


def _problem(path: Sequence[Any], rule: str, wanted: Any) -> str:
    """Describe a problem without the value, which may be a secret."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).lstrip(".")
    text = json.dumps(wanted, ensure_ascii=False, default=str)
    shown = text if len(text) <= 120 else f"{text[:120]}…"
    what = {
        "type": f"should be of type {_kinds(wanted)}",
        "enum": f"should be one of {shown}",
        "const": f"should be {shown}",
        "minimum": f"should be at least {shown}",
        "maximum": f"should be at most {shown}",
        "exclusiveMinimum": f"should be more than {shown}",
        "exclusiveMaximum": f"should be less than {shown}",
        "minLength": f"should be at least {_many(shown, 'character')} long",
        "maxLength": f"should be at most {_many(shown, 'character')} long",
        "minItems": f"should have at least {_many(shown, 'item')}",
        "maxItems": f"should have at most {_many(shown, 'item')}",
        "pattern": f"should match the pattern {shown}",
        "required": f"lacks one of {shown}",
        "additionalProperties": "has a property that the schema does not allow",
    }.get(rule, f"does not fit `{rule}: {shown}`")
    return visible(f"{where or 'the arguments'}: {what}")


def _kinds(wanted: Any) -> str:
    return " or ".join(map(str, wanted)) if isinstance(wanted, list) else str(wanted)  # pyright: ignore[reportUnknownArgumentType]


def _many(number: str, one: str) -> str:
    return f"{number} {one}{'' if number == '1' else 's'}"
