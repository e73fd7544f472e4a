"""Remembered answers in words: every condition that is stored is in the text, and no other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, cast

from signoff.core.canonical import canonical
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant, exact_moment, grant_for
from signoff.core.moment import Zone, in_utc
from signoff.core.redact import Redactor, redact, visible_around
from signoff.core.request import ApprovalRequest
from signoff.core.safe_text import printable, safe_text
from signoff.core.terms import Scope, named, scope_text
from signoff.policy.keypath import BadKey, KeyPath
from signoff.policy.offer import Offer
from signoff.policy.parse_value import OTHERS
from signoff.policy.remembered import UNREADABLE, is_unreadable

_SHORT = 12
"""Digits of a digest that are shown."""
_ORDINARY = "(no files known to hold secrets or settings, or to be run by tools)"
_NAMES = "names and paths below the directory it runs in, of the kind it is for, no options"

Kind: TypeAlias = Literal["is", "below", "up to", "first words", "any"]


@dataclass(frozen=True, slots=True)
class ArgumentTerm:
    """What a match says of one argument."""

    arg: str
    kind: Kind
    value: Any = None

    def text(self, *, approved: bool = True) -> str:
        """In words. Two terms with the same text are the same term."""
        name = named(self.arg)
        match self.kind:
            case "is":
                return f"{name} {canonical(self.value)}"
            case "below":
                return f"{name} any path inside {canonical(self.value)}{f' {_ORDINARY}' if approved else ''}"
            case "up to":
                return f"{name} from 0 to {canonical(self.value)}"
            case "first words":
                return f"{name} {canonical(f'{self.value} *')} where * is {_NAMES}"
            case "any":
                return f"any {name}"


def terms_in(match: Mapping[str, Any], *, approved: bool = True) -> Sequence[ArgumentTerm] | None:
    """Return what a match says, argument by argument; None if it is not written as signoff writes it."""
    args = match.get("args")
    if list(match) != ["args"] or not isinstance(args, Mapping):
        return None
    conditions = dict(cast("Mapping[str, Any]", args))
    if conditions.pop(OTHERS, None) != {"exists": False}:
        return None
    found = [_term(key, condition, approved) for key, condition in conditions.items()]
    return None if None in found else [one for one in found if one is not None]


def describe(match: Mapping[str, Any], *, secrets: Iterable[str] = (), approved: bool = True) -> tuple[str, list[str]]:
    """Say in words which calls of a tool a match covers; return the masks in it, too. Secrets are masked."""
    terms = terms_in(match, approved=approved)
    if terms is None:
        redactor = Redactor(secrets, avoid=match)
        text = f"with arguments as in the rule {canonical(redactor.mapping(match))}"
        return text, [one.placeholder for one in redactor.masked]
    shown = redact({one.arg: one.value for one in terms}, secrets=secrets)
    # Names may be masked too, so terms are matched by position.
    pairs = zip(terms, shown.args.items(), strict=True)
    texts = [replace(one, arg=name, value=value).text(approved=approved) for one, (name, value) in pairs]
    return "with " + ", ".join(texts) if texts else "without arguments", [one.placeholder for one in shown.masked]


def grant_text(grant: Grant, *, secrets: Iterable[str] = (), zone: Zone = in_utc) -> str:
    """Describe a grant in full. Its summary was made safe when it was stored; tool and match are made safe here."""
    redactor = Redactor(secrets, avoid=grant.tool)
    tool, masks = redactor.text(grant.tool), [one.placeholder for one in redactor.masked]
    if grant.match is None:
        return _text(grant, tool, _exactly(grant), zone)
    what, more = describe(grant.match, secrets=secrets, approved=grant.approved)
    if is_unreadable(grant):
        what = f"{what}; {UNREADABLE}, so it covers none"
    return visible_around((*masks, *more), _text(grant, tool, what, zone))


def _text(grant: Grant, tool: str, what: str, zone: Zone) -> str:
    # A grant that ends with a session, a run, a day or a number of calls is not `always`.
    ends = grant.until is not None or grant.max_uses is not None or grant.scope in (Scope.RUN, Scope.SESSION)
    word = "never" if not grant.approved else "allow" if ends else "always"
    parts = [f"{word} {named(tool)}, {what}", scope_text(grant.scope, grant.where)]
    if not grant.approved:
        parts.append("unless a rule allows it")
    if grant.until is not None:
        parts.append(f"until {exact_moment(grant.until, zone)}")
    if grant.max_uses is not None:
        parts.append("once" if grant.max_uses == 1 else f"at most {grant.max_uses} times")
    if grant.budget is not None:
        when = " each day (UTC)" if grant.budget.daily else " in all"
        parts.append(f"{named(grant.budget.arg)} at most {grant.budget.limit}{when}")
    if grant.toolset is not None:
        parts.append(f"in the toolset {named(grant.toolset)}")
    if grant.agent:
        parts.append(f"for the agent {named(grant.agent)}")
    if grant.directory:
        start = "the project's directory" if grant.directory == "." else canonical(grant.directory)
        parts.append(f"paths starting from {start}")
    if grant.asked_by:
        parts.append(f"asked about by the same rules ({', '.join(grant.asked_by)})")
    if grant.role:
        parts.append(f"by the role {named(grant.role)}")
    if grant.loosened:
        parts.append("given in a run that was loosened")
    if grant.schema_hash:
        parts.append(f"until the tool's definition changes ({grant.schema_hash[:_SHORT]})")
    return "; ".join(parts)


def _exactly(grant: Grant) -> str:
    # The summary may be incomplete, or written by somebody else; the digest covers all arguments.
    summary = canonical(grant.summary) if ";" in grant.summary else grant.summary
    return f"exactly as in: {summary} (arguments {grant.memory_key[:_SHORT]})"


def _term(key: str, condition: object, approved: bool) -> ArgumentTerm | None:
    """Return what is said of one argument, as in `match_of`; None if it is written in another way."""
    try:
        [arg] = KeyPath.read(key).steps
    except (BadKey, ValueError):
        return None
    if not isinstance(condition, Mapping):
        return ArgumentTerm(arg, "is", condition)
    match dict(cast("Mapping[str, Any]", condition)):
        case {"equals": value, **rest} if not rest:
            return ArgumentTerm(arg, "is", value)
        case {"exists": True, **rest} if not rest:
            return ArgumentTerm(arg, "any")
        case {">=": 0, "<=": most, **rest} if not rest:
            return ArgumentTerm(arg, "up to", most)
        case {"first_words": str() as words, **rest} if not rest:
            return ArgumentTerm(arg, "first words", words)
        case {"below": str() as directory, **rest} if rest == ({"matches": f"{directory}/**"} if approved else {}):
            return ArgumentTerm(arg, "below", directory)
        case _:
            return None


def offer_text(request: ApprovalRequest, offer: Offer) -> str:
    """Say which calls an answer would cover, safe to show."""
    tool = safe_text(request.tool_name, secrets=request.secrets)
    if offer.match is None:
        return f"{tool} with exactly these arguments"
    what, masks = describe(offer.match, secrets=request.secrets)
    return f"{tool} {visible_around(masks, what)}"


def grant_line(grant: Grant, *, secrets: Iterable[str] = (), zone: Zone = in_utc) -> str:
    """Describe a grant on one line that can be printed anywhere."""
    return printable(grant_text(grant, secrets=secrets, zone=zone))


def spelled_out(request: ApprovalRequest, decision: ApprovalDecision, zone: Zone = in_utc) -> str:
    """Say exactly what an answer will be remembered as in a store, as `signoff grants` shows it.

    The session is an exception: `signoff grants` shows its id, but the person who answers is in it.
    """
    call = request.call
    assert call is not None, "offers are made for calls only"
    grant = grant_for(request, call, decision, request.title)
    here = replace(grant, where="") if grant.scope is Scope.SESSION else grant
    return grant_line(here, secrets=request.secrets, zone=zone)
