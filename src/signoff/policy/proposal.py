"""Propose rules from a call that was asked about, narrowest first, each with a one-sentence summary.

An allow rule goes no further than a remembered answer may (`policy.offer`), except that an amount needs no expiry; a
command must match word for word. It names every argument and permits no others. A secret is never written to a rule.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from signoff.core.call import Call, Veiled
from signoff.core.canonical import canonical
from signoff.core.quorum import who
from signoff.core.redact import redact, redact_text
from signoff.core.remembering import LEADS_TO, may_be_remembered
from signoff.core.request import ApprovalRequest
from signoff.core.terms import amount_of, named
from signoff.core.verdict import Effect
from signoff.errors import CannotCanonicalise, PolicyError
from signoff.policy.call_paths import Facts
from signoff.policy.composer import read_document
from signoff.policy.glob import BadGlob, Glob
from signoff.policy.grant_text import ArgumentTerm, terms_in
from signoff.policy.match_result import Truth
from signoff.policy.offer import key_of, offers, written_value
from signoff.policy.parse import parse_rules
from signoff.policy.parse_value import BELOW, OTHERS
from signoff.policy.places import normal
from signoff.policy.rule import Rule
from signoff.policy.rule_text import flow_text, rule_lines
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.patterns import BadCommand, CommandPattern
from signoff.policy.shell.table import program

COMMAND = "command"
LONGEST = 2_000
"""The longest that a rule's part from the arguments may be, as written. Nobody reads more of a line."""
ANY_TEXT = "any text"
"""Placeholder in a rule's examples for an argument that the rule leaves open: the real text is not written."""

_VERB = {Effect.ALLOW: "runs unasked", Effect.ASK: "is asked about", Effect.DENY: "is refused"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One rule that can be added."""

    name: str
    """What it is about: `exact`, `command`, `words`, `tool`, or the argument for which it permits other values."""
    effect: Effect
    text: str
    """What the rule says, in one sentence: exactly that, nothing wider."""
    value: Mapping[str, Any] = field(repr=False)
    """The rule as JSON values."""
    lines: tuple[str, ...]
    """The rule as written, starting with its dash. `rule` was parsed from these lines."""
    rule: Rule = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """The rules that can be made from a call, and why others cannot."""

    offered: tuple[Proposal, ...] = ()
    refused: tuple[str, ...] = ()
    """One sentence each."""


def proposals(request: ApprovalRequest, effect: Effect, *, root: str | None, reason: str = "") -> Proposals:
    """Return the rules that can be made from a request's call. Relative paths in rules start from `root`."""
    call = request.call
    if call is None:
        return Proposals(refused=("the call is not on record, so no rule can be made of it",))
    if effect is Effect.ALLOW and (why := _not_allowed(request)):
        return Proposals(refused=(why,))
    if why := _unwritable(call):
        return Proposals(refused=(why,))
    call = call.changed(args=request.effective_args)
    try:
        canonical(call.args)
    except CannotCanonicalise as error:
        return Proposals(refused=(f"the arguments cannot be written in a rule: {error}",))
    offered: list[Proposal] = []
    refused: list[str] = []
    for wish in _wishes(request, call, effect, root):
        try:
            made = _proposal(wish, call, effect, request.secrets, root, reason)
        except _Refused as error:
            refused.append(str(error))
        else:
            if all(canonical(made.value) != canonical(one.value) for one in offered):
                offered.append(made)
    return Proposals(offered=tuple(offered), refused=tuple(dict.fromkeys(refused)))


# --- calls that cannot become a rule at all ---


def _not_allowed(request: ApprovalRequest) -> str:
    """Return why no rule may allow this call, or "" if one may."""
    needed, call = request.requirement, request.call
    if not needed.is_strict and may_be_remembered(request):
        return ""
    if needed.is_strict:
        return f"this call needs {who(needed)}: write a rule that lets it run without them by hand"
    if LEADS_TO in request.metadata:
        return "a tool below changes this call into another one, and a rule cannot cover both"
    if call is not None and call.unreadable:
        return f"an argument cannot be read: {call.unreadable[0]}"
    return "something about this call could not be checked, so no rule can cover it safely"


def _unwritable(call: Call) -> str:
    for what, name in (("tool", call.tool), ("toolset", call.toolset)):
        if name is None:
            continue
        if not _is_literal(name, over_names=True) or not name.strip() or not name.isprintable():
            return f"the {what}'s name cannot be written in a rule: it would be read as a pattern"
    return ""


def _is_literal(text: str, *, over_names: bool = False) -> bool:
    """Whether a pattern matches nothing but itself."""
    try:
        return Glob(text, over_names=over_names).literal == text
    except BadGlob:
        return False


class _Refused(Exception):
    """Why a rule is not proposed."""


# --- candidates for rules ---


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """A rule before it is written: conditions besides the tool, a sentence about them, and examples."""

    name: str
    conditions: Mapping[str, Any] = field(default_factory=dict[str, Any])
    text: str
    match: Mapping[str, Any] | None
    """The arguments of this call, for the examples. None: the tool alone."""
    miss: Mapping[str, Any] | None = None


def _wishes(request: ApprovalRequest, call: Call, effect: Effect, root: str | None) -> Iterator[_Wish]:
    # Who must agree does not matter here: whether a rule may allow was checked before, and ask and deny only tighten.
    plain = request.changed_to(verdict=None, metadata={})
    matches = [terms for one in offers(plain) if one.match is not None and (terms := terms_in(one.match)) is not None]
    exact = tuple(ArgumentTerm(name, "is", value) for name, value in call.args.items())
    yield _by_arguments("exact", exact, call, effect, root)
    if effect is Effect.ALLOW:
        yield from _allowed_commands(call)
        for terms in matches:
            room = [one for one in terms if one.kind != "is"]
            wide = next((one for one in room if one.kind != "any"), room[0])
            if wide.kind != "first words":  # a rule outlives the day, so it names the whole command
                yield _by_arguments(wide.arg, terms, call, effect, root)
        return
    yield from _tightened_commands(call)
    for terms in matches:
        yield from _tightened(terms, call, root)
    yield _Wish(name="tool", text="whatever it is given", match=None)


def _by_arguments(name: str, terms: Sequence[ArgumentTerm], call: Call, effect: Effect, root: str | None) -> _Wish:
    """Return a rule that names every argument and permits no others."""
    args: dict[str, Any] = {}
    said: list[str] = []
    match = dict(call.args)
    miss: dict[str, Any] | None = None
    for one in terms:
        key = key_of(one.arg)
        told = one
        match one.kind:
            case "any":
                args[key] = {"exists": True}
                match[one.arg] = ANY_TEXT
            case "up to":
                args[key] = {">=": 0, "<=": one.value}
                miss = {**match, one.arg: -1}
            case "below":
                directory, path = _places(one, call, root)
                args[key] = {BELOW: directory}
                told = replace(one, value=directory)
                match[one.arg] = path
                miss = {**match, one.arg: f"{directory}-{path.rpartition('/')[2]}"}
            case _:
                args[key] = written_value(one.value)
        said.append(told.text())
    if miss is not None:
        miss = {**miss, **{one.arg: ANY_TEXT for one in terms if one.kind == "any"}}
    text = f"with {', '.join(said)} and no other argument" if said else "without arguments"
    return _Wish(name=name, conditions={"args": {**args, OTHERS: {"exists": False}}}, text=text, match=match, miss=miss)


def _places(wide: ArgumentTerm, call: Call, root: str | None) -> tuple[str, str]:
    """Return the directory and the call's path as written in a policy: relative to its root, or absolute."""
    start = call.start or root
    if start is None or root is None:
        return str(wide.value), str(call.args[wide.arg])
    return _from(root, start, str(wide.value)), _from(root, start, str(call.args[wide.arg]))


def _from(root: str, start: str, text: str) -> str:
    whole = normal(text if text.startswith("/") else f"{start}/{text}")
    inside = whole.removeprefix("/" if root == "/" else f"{root}/")
    return "." if whole == root else inside


# --- commands ---


def _simple(call: Call) -> tuple[str, ...]:
    """Return the words of the one plain command that the call runs. () if there is none or its program is unknown."""
    command = call.args.get(COMMAND)
    if not isinstance(command, str) or isinstance(command, Veiled):
        return ()
    line = read_shell(command).line
    if line is None or not line.plain or len(line.commands) != 1 or line.commands[0].redirects:
        return ()
    words = line.commands[0].words
    plain = not any(word.glob or word.tilde for word in words)
    return line.commands[0].argv if plain and program(words[0].text) is not None else ()


def _pattern(argv: Sequence[str], *, more: bool = False) -> str:
    """Return the words as a pattern of a rule, or "" if they cannot be written as one or it would match more."""
    text = shlex.join(argv)
    try:
        pattern = CommandPattern(f"{text} *" if more else text)
    except (BadCommand, BadGlob):
        return ""
    is_same = [glob.literal for glob in pattern.words] == list(argv) and pattern.open is more
    return pattern.text if is_same and not pattern.breadth else ""


def _allowed_commands(call: Call) -> Iterator[_Wish]:
    argv = _simple(call)
    others = [ArgumentTerm(name, "is", value) for name, value in call.args.items() if name != COMMAND]
    said = "".join(f", {one.text()}" for one in others)
    args: dict[str, Any] = {
        COMMAND: {"exists": True},
        **{key_of(one.arg): written_value(one.value) for one in others},
        OTHERS: {"exists": False},
    }
    if text := _pattern(argv):
        words = f"with a command line of nothing but `{text}`, word for word"
        conditions = {COMMAND: text, "args": args}
        yield _Wish(name="command", conditions=conditions, text=f"{words}{said} and no other argument", match=call.args)


def _tightened_commands(call: Call) -> Iterator[_Wish]:
    argv = _simple(call)
    known = program(argv[0]) if argv else None
    has_verb = len(argv) > 2 and known is not None and (known.verbs or argv[1] in known.commands)
    for name, words in (("command", argv), ("words", argv[:2] if has_verb else ())):
        if words and (text := _pattern(words)):
            said = (
                f"with `{text}` anywhere in its command line, also behind `sudo` and the like, whatever else is given"
            )
            yield _Wish(name=name, conditions={COMMAND: text}, text=said, match={COMMAND: shlex.join(words)})


# --- rules that ask or deny, beyond exactly this call ---


def _tightened(terms: Sequence[ArgumentTerm], call: Call, root: str | None) -> Iterator[_Wish]:
    for one in terms:
        if one.kind == "up to" and amount_of(one.value):
            conditions = {"args": {key_of(one.arg): {">=": one.value}}}
            text = f"with {named(one.arg)} {canonical(one.value)} or more, whatever else is given"
            yield _Wish(name=one.arg, conditions=conditions, text=text, match={one.arg: one.value})
        elif one.kind == "below":
            directory, path = _places(one, call, root)
            conditions = {"path": {"inside": directory}}
            text = f"where anything it is given is a path inside {canonical(directory)}, or leads there"
            yield _Wish(name=one.arg, conditions=conditions, text=text, match={one.arg: path})


# --- writing rules and parsing them back ---


def _proposal(
    wish: _Wish, call: Call, effect: Effect, secrets: Sequence[str], root: str | None, reason: str
) -> Proposal:
    value = _value(wish, call, effect, reason)
    _check_arguments(wish, call, secrets)
    try:
        lines = rule_lines(value)
        read = read_document("\n".join(("policy:", *lines, "")), file="<rule>")
        [rule] = parse_rules(read, root=root).rules
        if canonical(read.value) != canonical({"policy": [value]}):
            raise _Refused(f"{_called(wish)}: the rule would be read back as something else")
    except (PolicyError, CannotCanonicalise, ValueError) as error:
        what = error.what if isinstance(error, PolicyError) else str(error)
        raise _Refused(f"{_called(wish)}: this call cannot be written as a rule: {what}") from error
    if redact_text("\n".join(lines), secrets=secrets) != "\n".join(lines):
        raise _Refused(f"{_called(wish)}: it would hold something that looks like a secret, which is never written")
    found = rule.find(Facts(call, root))
    if found.truth is not Truth.YES:
        raise _Refused(f"{_called(wish)}: the rule would not match this call: {found.why}")
    of = f" of toolset `{call.toolset}`" if call.toolset is not None else " of any toolset"
    text = f"`{call.tool}`{of} {_VERB[effect]}, whoever calls it, {wish.text}"
    return Proposal(name=wish.name, effect=effect, text=text, value=value, lines=lines, rule=rule)


def _value(wish: _Wish, call: Call, effect: Effect, reason: str) -> dict[str, Any]:
    scope: dict[str, Any] = {"tool": call.tool}
    if call.toolset is not None:
        scope["toolset"] = call.toolset
    about = {"toolset": call.toolset} if call.toolset is not None else {}

    def example(args: Mapping[str, Any] | None) -> dict[str, Any]:
        return {**about, "args": dict(args)} if args is not None else {"tool": call.tool, **about}

    examples = {"match": [example(wish.match)]}
    if wish.miss is not None:
        examples["miss"] = [example(wish.miss)]
    said = {"reason": reason} if reason else {}
    return {str(effect): {**scope, **wish.conditions}, **said, "examples": examples}


def _check_arguments(wish: _Wish, call: Call, secrets: Sequence[str]) -> None:
    """Refuse arguments that must not be written to a file: secrets, and arguments too long to be read in full."""
    for name, value in (wish.match or {}).items():
        if _is_secret(name, value, call.args.get(name), secrets):
            what = f"the argument {named(name)} holds a secret, and signoff never writes secrets into a file"
            raise _Refused(f"{_called(wish)}: {what}")
    if len(flow_text(wish.match or {})) > LONGEST:
        raise _Refused(f"{_called(wish)}: the arguments are longer than {LONGEST:,} characters")


def _is_secret(name: str, value: Any, original: Any, secrets: Sequence[str]) -> bool:
    if value != ANY_TEXT and any(isinstance(one, Veiled) for one in _texts(original)):
        return True
    if redact({name: value}, secrets=secrets).masked:
        return True
    # On screen, a person sees a path or a host unmasked even if it is a token. A file must not hold it.
    return any(redact_text(text, secrets=secrets) != text for text in _texts(value))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, item in cast("Mapping[str, Any]", value).items():
            yield name
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[Any]", value):
            yield from _texts(item)


def _called(wish: _Wish) -> str:
    """Return how a refused wish is named in the message."""
    return {"exact": "exactly these arguments", COMMAND: "this command", "words": "this sub-command"}.get(
        wish.name, f"room for {named(wish.name)}"
    )
