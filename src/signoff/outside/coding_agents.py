"""Coding agents whose hooks signoff answers: where a hook goes, what it is told, and the reply that is understood.

Another agent is one more row in `AGENTS`. Agents let a call run if their hook fails in any way but exit code 2 or a
clear `deny`, so everything but a clear yes is reported as a denial.

The command line reads this table, so what judges calls is imported where it is needed.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, TypeAlias, cast

from signoff.broker import new_id
from signoff.core.canonical import digest
from signoff.core.result_text import output_text
from signoff.core.summary import own_words
from signoff.disk_steps import DiskSteps
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import TIMEOUT, CallPermission
from signoff.outside.transcripts import background
from signoff.policy.places import folded
from signoff.policy.secret import is_plain, secret_place
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.filters import MOST_FILTERS, names_secret
from signoff.policy.step_count import COSTS, Unclear

Args: TypeAlias = "Mapping[str, Any]"


class HookMoment(StrEnum):
    """When the agent runs the hook."""

    BEFORE = "before"
    """A tool is about to run."""
    PROMPT = "prompt"
    """The agent would ask its own user about a call. The hook may answer instead."""
    AFTER = "after"
    """A tool has run."""
    OTHER = "other"
    """Any other event. It is ignored here."""


class HookedOn(StrEnum):
    """Which calls the installed hook decides."""

    EVERY_CALL = "every-call"
    PERMISSION_REQUEST = "permission-request"
    """Only those that the agent would ask its own user about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """One run of a hook."""

    moment: HookMoment
    name: str
    """The event's name, as the agent calls it."""
    call: OutsideCall | None = None
    error: str | None = None
    """The error of the tool, after it ran."""
    preview: str = ""
    """The beginning of the tool's result, after it ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HookReply:
    """What a hook prints, and its exit code."""

    out: str = ""
    err: str = ""
    code: int = 0


class ToolReading:
    """What is derived from the arguments of a tool. This one derives nothing: the arguments are complete."""

    def paths(self, args: Args, where: str) -> Args:
        """Return more arguments to judge and show: the files that the call uses, if `where` is its directory."""
        return {}

    def doubt(self, args: Args, where: str, count: DiskSteps) -> str:
        """Return why people are asked about a call in `where` even if a rule allows it; "" if nothing says so."""
        return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodingAgent:
    """A coding agent that runs hooks."""

    name: str
    """Its name in commands."""
    title: str
    """Its name in texts."""
    # Where its hook goes
    user_file: str
    """The settings file for all of a user's work, below the home directory."""
    project_file: str
    """The settings file for one project. If there is one that is not committed, it is that one: the hook names programs
    of this machine."""
    events: Mapping[HookedOn, tuple[str, ...]]
    """The events that a hook is installed for."""
    unit: float = 1.0
    """Its units of a timeout per second."""
    needs: str = ""
    """What the user has to do besides."""
    program: str = ""
    """The name of its program."""
    least: tuple[int, ...] = ()
    """The least version that runs exactly what its hook judged; empty if all that are known do."""
    flaw: str = ""
    """What older ones do."""
    update: str = ""
    """What installs the newest one."""
    variable: str = ""
    """The environment variable that names the project. It precedes the call's directory, which the agent can change."""
    # What it has
    labels: Mapping[str, frozenset[str]]
    """The capability labels of its own tools."""
    inside: Mapping[str, str]
    """Its own tools that have no effect outside it, by the version that was last seen to have them. Calls of agents
    that they start run the hook, too."""
    readings: Mapping[str, ToolReading]
    """What is derived from the arguments of its own tools."""
    moves: tuple[str, ...] = ()
    """The arguments by which a command names the directory that it runs in."""
    types: bool = False
    """Whether its model can type into a program that runs, without any hook."""
    # What it understands
    moments: Mapping[str, HookMoment]
    answer: Callable[[HookEvent, CallPermission], Args]
    """The JSON that tells it whether a call may run; empty: it asks its own user."""
    takes_edits: bool = True
    """Whether it can run a call with other arguments than its model chose."""
    ids: bool = True
    """Whether its events name each call. Otherwise each run of its hook before a call is about a call of its own, and
    the outcome belongs to a call with the same arguments."""

    @property
    def tells_outcomes(self) -> bool:
        """Whether it runs the hook after a call, too. Otherwise an approved call counts as handed over."""
        return HookMoment.AFTER in self.moments.values()

    @property
    def bookkeeping(self) -> tuple[str, ...]:
        """Return the names in `inside`."""
        return tuple(sorted({name for names in self.inside.values() for name in names.split()}))

    def read(self, event: Args) -> HookEvent:
        """Read an event. Raises `ValueError` for anything that the agent never sends."""
        name = _text(event, "hook_event_name")
        moment = self.moments.get(name, HookMoment.OTHER)
        if moment is HookMoment.OTHER:
            return HookEvent(moment=moment, name=name)
        call = self.call(
            _text(event, "tool_name"),
            _object(event, "tool_input"),
            session=f"{self.name}:{_text(event, 'session_id')}",
            call_id=_call_id(event, moment) if self.ids else "",
            where=_text(event, "cwd"),
            inner=_text(event, "agent_type", "") or _text(event, "agent_id", ""),
            server=_server(event),
        )
        if moment is not HookMoment.AFTER:
            call = replace(
                call, shown_session=_text(event, "session_id"), background=partial(background, self.name, event)
            )
        error = beginning(event.get("error", "it failed")) if name.endswith("Failure") else None
        preview = beginning(event.get("tool_response", ""))
        return HookEvent(moment=moment, name=name, call=call, error=error, preview=preview)

    def call(
        self, tool: str, args: Args, *, session: str, call_id: str, where: str, inner: str = "", server: str = ""
    ) -> OutsideCall:
        """Return a call of this agent's model, made in the directory `where`.

        A tool of an MCP server is none of the agent's own, whatever its name: `server` is its toolset.
        """
        where = os.path.realpath(where) if os.path.isabs(where) else where
        labels = frozenset[str]() if server else self.labels.get(tool, frozenset())
        reading = _NOTHING if server else self.readings.get(tool, _NOTHING)
        moves = [args[name] for name in self.moves if args.get(name)] if "proc.exec" in labels else []
        lost = "" if all(isinstance(one, str) for one in moves) and len(set(map(str, moves))) < 2 else _LOST
        if moves and not lost:
            where = os.path.realpath(os.path.join(where, moves[0]))
        count = DiskSteps()
        lost = lost or reading.doubt(args, where, count)
        return OutsideCall(
            agents=(self.name, inner) if inner else (self.name,),
            session=session,
            call_id=call_id,
            tool=_qualified(tool, server) if server else tool,
            toolset=server or None,
            args=args,
            directory=where,
            labels=labels,
            said={"summary": summary} if (summary := own_words(tool, labels, args)) else {},
            reads=lambda given: reading.paths(given, where),
            steps=count.left,
            doubt=lost or (_typed(args) if self.types and "proc.exec" in labels else ""),
        )

    def reply(self, event: HookEvent, permission: CallPermission) -> HookReply:
        """Return the reply that tells the agent whether a call may run."""
        answer = self.answer(event, permission)
        return HookReply(out=json.dumps(answer)) if answer else HookReply()


_LOST = "in which of several directories it runs is not clear"


# --- what agents send ---


def _text(event: Args, name: str, default: str | None = None) -> str:
    if not isinstance(value := event.get(name, default), str):
        raise ValueError(f"the event should have a text {json.dumps(name)}, not {_kind(value)}")
    return value


def _object(event: Args, name: str) -> dict[str, Any]:
    if not isinstance(value := event.get(name), dict):
        raise ValueError(f"the event should have an object {json.dumps(name)}, not {_kind(value)}")
    return dict(cast("dict[str, Any]", value))


def _kind(value: object) -> str:
    return "nothing" if value is None else type(value).__name__


def _call_id(event: Args, moment: HookMoment) -> str:
    """Return the id of the call. Some agents give none: then each call gets a new one, so that no approval fits twice.

    After such a call there is none, and it is found by its content.
    """
    if "tool_use_id" in event:
        return _text(event, "tool_use_id")
    if moment is HookMoment.AFTER:
        return ""
    if moment is HookMoment.PROMPT:
        return new_id()
    if "timestamp" not in event:
        return _text(event, "tool_use_id")  # raises
    return f"{_text(event, 'timestamp')}.{digest(event.get('tool_input'))[:16]}"


def _server(event: Args) -> str:
    """Return the MCP server of the tool; "" if it is the agent's own."""
    return _text(_object(event, "mcp_context"), "server_name") if event.get("mcp_context") is not None else ""


def _qualified(tool: str, server: str) -> str:
    """Return the name of an MCP server's tool with its server, as agents name most of them.

    A name that only looks as if it held a server is one that the server has given.
    """
    return tool if tool.startswith((f"mcp_{server}_", f"mcp__{server}__")) else f"mcp_{server}_{tool}"


def _typed(args: Args) -> str:
    """Return why a command runs what its agent can type, unasked."""
    from signoff.policy.shell.typed_commands import typed_into

    why = typed_into(read_shell(command)) if isinstance(command := args.get("command"), str) else ""
    return f"{why}, and nobody is asked about what this agent types" if why else ""


# --- what they are told ---


def said(permission: CallPermission) -> str:
    """Return one sentence for the model: who decided, and why."""
    if permission.allowed:
        return f"signoff: {permission.reason}" if permission.reason else "signoff: allowed"
    about = f" (request {permission.request})" if permission.request else ""
    by = f" by {permission.by}" if permission.by != TIMEOUT else ""
    return f"signoff: refused{by}: {permission.reason}{about}. Do not try to get around it."


def said_of_edits(permission: CallPermission) -> str:
    """Return one sentence for the model: what a person changed in the call that runs."""
    args = json.dumps(dict(permission.args), ensure_ascii=False)
    return f"signoff: {permission.by} changed the arguments before the call ran. It ran with {args}"


def beginning(value: object, longest: int = 20_000) -> str:
    """Return the beginning of a tool's result, long enough for the record to find and mask secrets in what it keeps."""
    text = value if isinstance(value, str) else _output(value)
    if text is None:
        text = json.dumps(value, ensure_ascii=False, default=str)
    return text[:longest]


def _output(value: object) -> str | None:
    """What a command printed, as the agent's shell tool returns it; None if it is no such result."""
    if not isinstance(value, Mapping):
        return None
    result = cast("Args", value)
    out, err = result.get("stdout"), result.get("stderr", "")
    if not isinstance(out, str) or not isinstance(err, str):
        return None
    return output_text(out, err, stopped="interrupted" if result.get("interrupted") is True else "")


def _specific(event: HookEvent, told: Args) -> Args:
    return {"hookSpecificOutput": {"hookEventName": event.name, **told}}


def _denied(event: HookEvent, permission: CallPermission) -> Args:
    return _specific(event, {"permissionDecision": "deny", "permissionDecisionReason": said(permission)})


# --- what tools do with their arguments ---

_NOTHING = ToolReading()
_WILD_PART = re.compile(r"[*?\[{]")
_ENDING = re.compile(r"(?s).*[*?\]}]\.(\w+|\{[\w,]+\})")
"""A pattern that gives the ending of the names that it matches."""
_PLAIN_PATTERN = re.compile(r"[^\\\[\]{}!]+")
_LITERAL = re.compile(r"[\w.-]+", re.ASCII)
_PIECES = re.compile(r"[{},()|]")
_MOST_STARTS = 64
_SECRET, _SELECTION, _FOLDED = 6, 2, 3
"""The steps that it takes to compare a file with the known secret places, one of its names with a pattern, and a name
with another in any spelling."""
_MOST_STEPS = 200
"""Most slashes of a path or pattern: each may have to be followed for each file below."""
_BLANKS = re.compile(r"[\s\ufeff]+")
"""White space, in Python or in JavaScript."""
_LONGEST_EXPRESSION = 1_000
_CHARACTER = r"(?:[^\x00-\x1f\\\[\](){}*+?|^$.]|\\[]bBdDsSwW.()\[{}*+?|^$/-]|\.|\[\^?(?:a-z|A-Z|0-9|[\w.,/ ])+\])[*+?]?"
_RUN = rf"\^?(?:{_CHARACTER})+\$?"
_GROUP = rf"(?:{_CHARACTER}|\({_RUN}(?:\|{_RUN})*\)[*+?]?)"
_EXPRESSION = re.compile(rf"(?!-)\^?{_GROUP}+\$?(?:\|\^?{_GROUP}+\$?)*", re.ASCII)
"""A regular expression that JavaScript, git and grep read alike, and no option."""
_LeftOut: TypeAlias = "Callable[[str, str], bool]"


def _nothing_left_out(path: str, start: str) -> bool:
    return False


class Search(ToolReading):
    """A tool that finds files, by default in the working directory. `patterns` are its arguments that are patterns."""

    def __init__(self, *patterns: str, prints: bool = True, names: bool = False, by_git: bool = False) -> None:
        self._patterns = patterns
        self._prints = prints
        """Whether it prints what is in the files, and not only their names."""
        self._names = names
        """Whether its patterns also name files, and there is no directory to start from."""
        self._by_git = by_git
        """Whether it may be `git grep`, and if that fails, a search that reads no ignore files."""

    def paths(self, args: Args, where: str) -> Args:
        """Return where it starts or the files it names, and where patterns lead out of there."""
        patterns = self._given(args)
        beyond = list(dict.fromkeys(start for one in patterns for start in _beyond(one)))
        told: dict[str, Any] = {"pattern_paths": beyond} if beyond else {}
        if self._names:
            return {"include_paths": [*patterns, *_otherwise_spelt(patterns, where)], **told}
        return told if args.get("path") or args.get("dir_path") else {"path": where, **told}

    def doubt(self, args: Args, where: str, count: DiskSteps) -> str:
        """Return why a pattern may find a secret place. One that only leaves files out finds none."""
        tree = _Tree(where, count)
        selected: list[str] = []
        if why := self._unread(args, where):
            return why
        for pattern in self._given(args) if self._prints else ():
            if "(" in pattern:
                return f"the pattern {pattern[:80]} is not understood"
            for one in _separate(pattern):
                if one.startswith("!"):
                    continue
                if why := names_secret(one):
                    return f"the pattern {one[:80]} selects files whose name {why}"
                if self._names and (why := tree.reaches_secret(one)):
                    return f"the pattern {one[:80]} selects {why}"
                selected.append(one)
        if len(selected) > MOST_FILTERS:
            return "it has more patterns than are looked at"
        if self._prints and (why := tree.prints_secret(_start(args, where), selected, self._left_out(args, count))):
            return f"it may print {why}"
        return ""

    def _unread(self, args: Args, where: str) -> str:
        """Return why a pattern or a path is not looked at; "" if all are."""
        for name in self._patterns:
            if not isinstance(args.get(name), str | list | None):
                return f"`{name}` is no pattern"
        for text in (_start(args, where), *self._given(args)):
            if "\0" in text or text.count("/") > _MOST_STEPS:
                return "a path in it has more steps than one can have, or a NUL"
        return ""

    def _left_out(self, args: Args, count: DiskSteps) -> _LeftOut:
        """Return what tells whether ignore files certainly leave out a file, below where the search starts."""
        from signoff.ignore_files import IgnoreFiles

        if not self._by_git:
            return IgnoreFiles(count).leaves_out
        pattern = args.get("pattern")
        plain = isinstance(pattern, str) and len(pattern) <= _LONGEST_EXPRESSION and _EXPRESSION.fullmatch(pattern)
        if args.get("no_ignore") or args.get("max_matches_per_file") or not plain:
            return _nothing_left_out
        return partial(IgnoreFiles(count).leaves_out, to_git=True)

    def _given(self, args: Args) -> list[str]:
        values = [args.get(name) for name in self._patterns]
        texts = [one for value in values for one in (cast("list[Any]", value) if isinstance(value, list) else [value])]
        return [one.strip() for one in texts if isinstance(one, str)]


def _may_select(pattern: str, path: str) -> bool:
    """Return whether a pattern may be about a file: by its name, or a directory on the way."""
    first, slash, _ = pattern.partition("/")
    if slash and first not in ("", ".", "..") and _LITERAL.fullmatch(first) and first.lower() not in path.lower():
        return False
    last = pattern.rstrip("/").rpartition("/")[2]
    if not _PLAIN_PATTERN.fullmatch(last):
        ending = _ENDING.fullmatch(last)
        return ending is None or path.lower().endswith(tuple(f".{one.lower()}" for one in re.split("[{,}]", ending[1])))
    return any(fnmatchcase(step.lower(), last.lower()) for step in path.split("/"))


def _start(args: Args, where: str) -> str:
    """Return the directory that a search starts in."""
    path = args.get("path") or args.get("dir_path")
    return os.path.join(where, path) if isinstance(path, str) else where


def _separate(pattern: str) -> list[str]:
    """Return the patterns in a text: agents split it at white space, and at commas outside of braces."""
    pieces = _BLANKS.split(pattern)
    found = (one for piece in pieces for one in ([piece] if "{" in piece else piece.split(",")) if one)
    return list(dict.fromkeys(found))


class _Tree:
    """What a search may find on the disk. Each directory is looked through once, however many patterns begin there."""

    def __init__(self, where: str, count: DiskSteps) -> None:
        self._where = where
        self.count = count
        self._secrets: dict[str, list[tuple[str, str, bool]]] = {}
        self._tracked: frozenset[str] | None = None

    def reaches_secret(self, pattern: str, start: str = "") -> str:
        """Return the secret file that a pattern or a directory stands for, seen from `start`, or from where the agent
        works; "" if there is none. It matches hidden names.
        """
        where = start or self._where
        ends = tuple(f".{end.lower()}" for end in re.split("[{,}]", _ENDING.sub(r"\1", pattern)) if end)
        ends = ends if _ENDING.fullmatch(pattern) else ()
        try:
            for top in _starts(pattern, where, self.count):
                for path, why, _ in self._secrets_below(top):
                    if not ends or path.lower().endswith(ends):
                        return f"{os.path.relpath(os.path.join(top, path), where)[:80]}, which {why}"
        except Unclear as unclear:
            return f"what {unclear}"
        return ""

    def prints_secret(self, start: str, selected: Sequence[str], left_out: _LeftOut) -> str:
        """Return the secret file that a search below `start` reads; "" if there is none.

        It reads hidden files but for those that ignore files leave out, and these too if patterns have `selected` them.
        What git tracks is shared with everybody who has the project: a search that selects nothing may print it.
        """
        try:
            for path, why, is_linked in self._secrets_below(start):
                if is_linked and path:
                    continue  # it follows no symlink below where it starts
                whole = os.path.join(start, path)
                self.count.take(_SELECTION * len(selected) * (1 + whole.count("/")))
                is_selected = any(_may_select(one, whole) for one in selected)
                if is_selected or not (selected or left_out(whole, start) or self._is_tracked(whole, start)):
                    return f"{os.path.relpath(whole, self._where)[:80]}, which {why}"
        except Unclear as unclear:
            return f"what {unclear}"
        return ""

    def _is_tracked(self, path: str, start: str) -> bool:
        from signoff.found_files import tracked_below

        if self._tracked is None:
            try:
                self._tracked = frozenset(real for _, real in tracked_below(start, self.count))
            except (OSError, Unclear, ValueError):
                self._tracked = frozenset()
        return self.count.real(path) in self._tracked

    def _secrets_below(self, top: str) -> list[tuple[str, str, bool]]:
        """Return the secret files below a directory, or the file itself, each with the reason, and whether it is a
        symlink or reached by one.
        """
        from signoff.found_files import files_below

        found = self._secrets.get(top)
        if found is None:
            found = list[tuple[str, str, bool]]()
            below = files_below(top, published=False, count=self.count)
            for path, leads in below if os.path.isdir(top) else [("", self.count.real(top))]:
                self.count.take(_SECRET)
                whole = os.path.join(top, path) if path else top
                if not leads and is_plain(whole):
                    continue
                if why := secret_place(whole) or (leads and secret_place(leads)):
                    found.append((path, why, bool(leads)))
            self._secrets[top] = found
        return found


def _otherwise_spelt(patterns: Iterable[str], where: str) -> list[str]:
    """Return where patterns begin on the disk, if they do not say so themselves: in other letters."""
    count = DiskSteps()
    found: list[str] = []
    for pattern in (one for text in patterns for one in _separate(text)):
        try:
            found += [top for top in _starts(pattern, where, count) if not os.path.join(where, pattern).startswith(top)]
        except Unclear:  # then the call is in doubt
            continue
    return list(dict.fromkeys(found))


def _starts(pattern: str, where: str, count: DiskSteps) -> Iterator[str]:
    """Yield what the beginning of a pattern without wildcards names on the disk, to a program that minds no case.

    A backslash separates directories to some programs and quotes to others. Raises `Unclear` if there is too much.
    """
    for text in dict.fromkeys((pattern, pattern.replace("\\", "/"), pattern.replace("\\", ""))):
        plain = _WILD_PART.split(text, maxsplit=1)[0]
        found = ["/" if plain.startswith("/") else where]
        for step in (plain if plain == text else os.path.dirname(plain)).split("/"):
            if step not in ("", "."):
                found = [path for top in found for path in _named(top, step, count)]
            if len(found) > _MOST_STARTS:
                raise Unclear("it stands for begins in too many directories")
        yield from found


def _named(directory: str, name: str, count: DiskSteps) -> Iterator[str]:
    """Yield the entries of a directory that have a name, in any spelling of its letters."""
    count.take(COSTS["directory"])
    try:
        names = os.listdir(directory)
    except (OSError, ValueError):
        names = list[str]()
    count.take(COSTS["name"] * _FOLDED * len(names))
    plain = folded(name)
    alike = {one for one in names if one == name or folded(one) == plain}
    exact = {name} if os.path.lexists(os.path.join(directory, name)) else set[str]()
    yield from (os.path.join(directory, one) for one in sorted(alike | exact))


def _beyond(pattern: str) -> list[str]:
    """Return the literal beginnings of a pattern that lead out of the start directory (`..`, `/`, `~`)."""
    found = [".."] if ".." in pattern else []
    for piece in _PIECES.split(pattern):
        if piece.startswith(("/", "~")):
            plain = re.split(r"[*?\[\]@+!]", piece, maxsplit=1)[0]
            found.append(plain if plain == piece else os.path.dirname(plain) or plain)
    return found


class Patch(ToolReading):
    """Codex's `apply_patch`."""

    FILE = re.compile(r"\*\*\* (?:Add File|Update File|Delete File|Move to):(.+)")

    def paths(self, args: Args, where: str) -> Args:
        """Return the files that the patch adds, changes, removes or moves to. Without any, the call is asked about."""
        given = [cast("list[Any]", one) if isinstance(one, list) else [one] for one in args.values()]
        texts = [one for values in given for one in values if isinstance(one, str) and "*** Begin Patch" in one]
        found = (self.FILE.fullmatch(line.strip()) for text in texts for line in text.split("\n"))
        return {"paths": list(dict.fromkeys(one[1].strip() for one in found if one is not None))}


def _labels(**tools: str) -> Mapping[str, frozenset[str]]:
    return {tool: frozenset({label.replace("_", ".")}) for label, names in tools.items() for tool in names.split()}


# --- Claude Code ---

DIALOGS = frozenset({"AskUserQuestion", "ExitPlanMode"})
"""Tools by which it talks to its user. Allowing one would answer for the user, so allowed ones are left to the user."""


def _claude(event: HookEvent, permission: CallPermission) -> Args:
    if permission.allowed and event.call is not None and event.call.tool in DIALOGS:
        return {}
    edited = {"updatedInput": dict(permission.args)} if permission.allowed and permission.edited else {}
    if event.moment is HookMoment.PROMPT:
        told = (
            {"behavior": "allow", **edited} if permission.allowed else {"behavior": "deny", "message": said(permission)}
        )
        return _specific(event, {"decision": told})
    if not permission.allowed:
        return _denied(event, permission)
    context = {"additionalContext": said_of_edits(permission)} if edited else {}
    reason = {"permissionDecision": "allow", "permissionDecisionReason": said(permission)}
    return _specific(event, {**reason, **edited, **context})


CLAUDE_CODE = CodingAgent(
    name="claude-code",
    title="Claude Code",
    user_file=".claude/settings.json",
    project_file=".claude/settings.local.json",
    events={
        HookedOn.EVERY_CALL: ("PreToolUse", "PostToolUse", "PostToolUseFailure"),
        HookedOn.PERMISSION_REQUEST: ("PermissionRequest", "PostToolUse", "PostToolUseFailure"),
    },
    needs="running sessions keep their old hooks: restart them",
    program="claude",
    # Tried with releases from 2.0.77 to 2.1.97: it settles paths before its hook since 2.1.88, lines since 2.1.89.
    least=(2, 1, 89),
    flaw="it changes command lines with pipes, and paths, after the hook has judged them",
    update="`claude update`, or npm install -g @anthropic-ai/claude-code@latest,",
    variable="CLAUDE_PROJECT_DIR",
    labels=_labels(
        proc_exec="Bash",
        fs_write="Edit MultiEdit Write NotebookEdit",
        fs_read="Read NotebookRead Glob Grep LS",
        net_egress="WebFetch WebSearch",
    ),
    inside={
        "2.1.327": """Agent AskUserQuestion EnterPlanMode ExitPlanMode ListAgents ListMcpResourcesTool ReportFindings
            Skill TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate ToolSearch""",
        "2.1.197": "CronList",
        "2.0": "BashOutput KillShell Task TodoWrite",
    },
    readings={"Glob": Search("pattern", prints=False), "Grep": Search("glob"), "LS": Search()},
    moments={
        "PreToolUse": HookMoment.BEFORE,
        "PermissionRequest": HookMoment.PROMPT,
        "PostToolUse": HookMoment.AFTER,
        "PostToolUseFailure": HookMoment.AFTER,
    },
    answer=_claude,
)


# --- Codex ---


def _codex(event: HookEvent, permission: CallPermission) -> Args:
    """A bare allow is an error to it, and the call continues by its own rules. So an allow always names the input."""
    if not permission.allowed:
        return _denied(event, permission)
    context = {"additionalContext": said_of_edits(permission)} if permission.edited else {}
    return _specific(event, {"permissionDecision": "allow", "updatedInput": dict(permission.args), **context})


# Where its model writes JavaScript that calls tools (`exec`), each of those calls runs the hook. `write_stdin` never
# runs it. Tools of its namespaces are reported as `NAMESPACEname`.
CODEX = CodingAgent(
    name="codex",
    title="Codex",
    user_file=".codex/hooks.json",
    project_file=".codex/hooks.json",
    events={HookedOn.EVERY_CALL: ("PreToolUse", "PostToolUse")},
    needs="Codex trusts a hook by its hash: start Codex and confirm this hook, or it is skipped silently",
    labels=_labels(proc_exec="Bash", fs_write="apply_patch", fs_read="view_image"),
    inside={
        "0.169": """clockcurr_time clocksleep collaborationfollowup_task collaborationinterrupt_agent
            collaborationlist_agents collaborationsend_message collaborationspawn_agent collaborationwait_agent
            create_goal get_goal list_mcp_resource_templates list_mcp_resources multi_agent_v1close_agent
            multi_agent_v1resume_agent multi_agent_v1send_input multi_agent_v1wait_agent request_user_input
            request_user_input_async spawn_agent tool_search update_goal""",
        "0.150": "update_plan",
    },
    readings={"apply_patch": Patch()},
    types=True,
    moments={"PreToolUse": HookMoment.BEFORE, "PostToolUse": HookMoment.AFTER},
    answer=_codex,
)


# --- Gemini CLI ---


def _gemini(event: HookEvent, permission: CallPermission) -> Args:
    return {"decision": "allow" if permission.allowed else "deny", "reason": said(permission)}


GEMINI = CodingAgent(
    name="gemini",
    title="Gemini CLI",
    user_file=".gemini/settings.json",
    project_file=".gemini/settings.json",
    events={HookedOn.EVERY_CALL: ("BeforeTool", "AfterTool")},
    unit=1000.0,
    needs="Gemini CLI runs the hooks of a project only if its directory is trusted",
    variable="GEMINI_PROJECT_DIR",
    labels=_labels(
        proc_exec="run_shell_command",
        fs_write="write_file replace",
        fs_read="read_file read_many_files list_directory glob search_file_content grep_search",
        net_egress="web_fetch google_web_search",
    ),
    inside={
        "0.61": """activate_skill ask_user complete_task enter_plan_mode exit_plan_mode get_internal_docs invoke_agent
            list_background_processes list_mcp_resources read_background_output tracker_add_dependency
            tracker_create_task tracker_get_task tracker_list_tasks tracker_update_task tracker_visualize update_topic
            write_todos""",
    },
    readings={
        "glob": Search("pattern", prints=False),
        "grep_search": Search("include_pattern", "include", "glob", by_git=True),
        "search_file_content": Search("include", "glob", by_git=True),
        "list_directory": Search(),
        "read_many_files": Search("include", "paths", names=True),
    },
    moves=("dir_path", "directory"),
    moments={"BeforeTool": HookMoment.BEFORE, "AfterTool": HookMoment.AFTER},
    answer=_gemini,
    takes_edits=False,
)

AGENTS: Mapping[str, CodingAgent] = {one.name: one for one in (CLAUDE_CODE, CODEX, GEMINI)}
"""By their names in commands."""
