"""`McpProxy`: a proxy in front of MCP servers that checks, asks about and records each tool call before passing it on.

Calls are decided as all calls of other programs are (`signoff.outside.outside_gate`). Special here is how a client
learns that people have not answered yet: the call returns a plain text result, and the client makes it again.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from signoff.broker import Broker, new_id
from signoff.core.canonical import digest
from signoff.core.event import CallStep
from signoff.core.request import ApprovalRequest, State
from signoff.core.safe_text import safe_beginning
from signoff.core.strict_json import why_too_large
from signoff.core.tool_definition import ToolDefinition, ToolPin
from signoff.core.visible_text import quoted, visible
from signoff.errors import CannotCanonicalise, SignoffError, WrongUse
from signoff.gate.refusal_words import POLICY
from signoff.large_work import done
from signoff.outside.coding_agents import said, said_of_edits
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import CallPermission, OutsideGate
from signoff.outside.repeated_call import RepeatedCalls
from signoff.policy.reach import reach
from signoff.policy.tool_labels import labels_in_doubt, labels_of
from signoff.processes import steady_seconds
from signoff.toolsets.mcp_claims import labels_claimed
from signoff.wiring.mcp_upstream import LONGEST_ERROR, McpUpstream, Reports, UpstreamGone, UpstreamRefusal
from signoff.wiring.outside_desk import OutsideDesk

if TYPE_CHECKING:
    import mcp_types

NAMELESS = "mcp"
"""The name that rules use for a client without a name."""
BEAT = timedelta(seconds=5)
"""How often a client that wants progress is told that its call still waits."""
_LONGEST_CLAIM = 120
_MOST_TURNS = 50
"""Maximum of attempts for one call: how often an equal concurrent call may have been faster."""
_MOST_TOLD = 20
"""Maximum of definitions kept for one tool that clients were told of, while none is accepted."""
_OWN_META = "io.modelcontextprotocol/"
"""Prefix of metadata about one connection. It is not passed on to another connection."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
CHANGED = "[signoff: the server changed this tool since it was accepted here. A person is asked before the next call.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """Options of a proxy."""

    project: str
    """The directory of the project whose policy applies."""
    store: str | None = None
    client: str = ""
    """The client's name. Its calls are recognised by it after a restart. Empty: each session is separate."""
    patience: timedelta = timedelta(seconds=50)
    """How long a call waits for an answer. Most clients have a timeout of a minute."""


async def _unreported(progress: float, total: float | None, message: str | None) -> None:
    """Discard progress, for callers that want none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCaller:
    """Who makes a call. What a client says about itself is an unverified claim."""

    session: str = ""
    """The session id, if the transport has one."""
    claim: str = ""
    reports: Reports = _unreported


@dataclass(slots=True)
class _Tool:
    """A tool of a server behind the proxy."""

    upstream: McpUpstream
    definition: ToolDefinition
    pin: ToolPin | None = None
    told: ToolDefinition | None = None
    """The definition that clients were told, if it differs from the current one and none was accepted."""

    @property
    def server(self) -> str:
        return self.upstream.server.name

    @property
    def before(self) -> ToolDefinition | None:
        """The definition that a model knows: the accepted one, or else the one that clients were told."""
        return self.pin.definition if self.pin is not None else self.told

    @property
    def has_changed(self) -> bool:
        return self.before is not None and self.before.digest != self.definition.digest


@dataclass(slots=True)
class McpProxy:
    """Proxies between MCP clients and servers."""

    upstreams: Sequence[McpUpstream]
    options: ProxyOptions
    _desk: OutsideDesk = field(init=False)
    _calls: RepeatedCalls = field(default_factory=RepeatedCalls)
    _id: str = field(default_factory=new_id)
    _open: dict[str, Broker] = field(default_factory=dict[str, Broker])
    """The broker of each pending request, by request id."""
    _told: dict[tuple[str, str], dict[str, ToolDefinition]] = field(
        default_factory=dict[tuple[str, str], dict[str, ToolDefinition]]
    )
    """Definitions that clients were told while none is accepted: by server and tool, by digest, latest last."""

    def __post_init__(self) -> None:
        self._desk = OutsideDesk(self.options.project)
        seen: dict[str, str] = {}
        for upstream in self.upstreams:
            name, prefix = upstream.server.name, self._shown_name(upstream, "")
            if (other := seen.setdefault(prefix, name)) != name:
                both = f"{quoted(visible(other))} and {quoted(visible(name))}"
                raise WrongUse(f"clients would see the tools of {both} under the same names: rename one of the servers")

    # --- tools ---

    async def tools(self) -> list[mcp_types.Tool]:
        """List the tools for a client, each as it was accepted, without tools that policy denies for all arguments.

        A server that cannot be reached has no tools. If none can be reached, its `UpstreamGone` or `UpstreamRefusal` is
        raised.
        """
        listed: dict[str, mcp_types.Tool] = {}
        gone: list[Exception] = []
        for upstream in self.upstreams:
            try:
                defined = await self._defined(upstream)
            except (UpstreamGone, UpstreamRefusal) as error:
                gone.append(error)
                sys.stderr.write(f"signoff: {error}\n")
                continue
            gate = await self._gate(upstream)
            pins = await gate.broker.pins.of(upstream.server.name, defined)
            for name, definition in defined.items():
                tool, shown = _Tool(upstream, definition, pins.get(name)), self._shown_name(upstream, name)
                if self._owner(shown) is upstream and not self._is_denied(gate, tool):
                    self._note_told(tool)
                    listed[shown] = _offer(tool)
        if gone and len(gone) == len(self.upstreams):
            raise gone[0]
        return [tool.model_copy(update={"name": name}) for name, tool in listed.items()]

    async def _defined(self, upstream: McpUpstream) -> dict[str, ToolDefinition]:
        """Return the tools of a server by name, the first of each name. Definitions too long to review are left out."""
        found: dict[str, ToolDefinition] = {}
        for tool in await upstream.tools():
            definition = _definition(upstream.server.name, tool)
            if not definition.is_too_long:
                found.setdefault(tool.name, definition)
        return found

    async def _find(self, name: str) -> _Tool | None:
        """Return the tool that a client calls by this name, as its server defines it now. None if there is none."""
        upstream = self._owner(name)
        if upstream is None:
            return None
        definition = (await self._defined(upstream)).get(name.removeprefix(self._shown_name(upstream, "")))
        return _Tool(upstream, definition) if definition is not None else None

    def _owner(self, name: str) -> McpUpstream | None:
        """Return the server that a name for clients belongs to, whatever other servers call their tools.

        The longest prefix wins: a name that begins with `git_hub_` belongs to the server `git_hub`, never to `git`.
        """
        fitting = [one for one in self.upstreams if name.startswith(self._shown_name(one, ""))]
        return max(fitting, key=lambda one: len(self._shown_name(one, "")), default=None)

    def _note_told(self, tool: _Tool) -> None:
        """Remember the definition that clients are told. A server could tell approvers something else."""
        key = tool.server, tool.definition.tool
        if tool.pin is not None:
            self._told.pop(key, None)
            return
        told = self._told.setdefault(key, {})
        told.pop(tool.definition.digest, None)
        told[tool.definition.digest] = tool.definition
        while len(told) > _MOST_TOLD:
            del told[next(iter(told))]

    async def _look(self, gate: OutsideGate, tool: _Tool) -> None:
        """Set the accepted definition of a tool. If there is none, set what clients were told that differs from now."""
        name = tool.definition.tool
        tool.pin = (await gate.broker.pins.of(tool.server, [name])).get(name)
        told = self._told.get((tool.server, name), {})
        tool.told = next((one for digest, one in reversed(told.items()) if digest != tool.definition.digest), None)

    def _shown_name(self, upstream: McpUpstream, name: str) -> str:
        """Return a tool's name for clients: prefixed with the server's name if there are several servers."""
        return name if len(self.upstreams) == 1 else f"{_NOT_IN_NAMES.sub('-', upstream.server.name)}_{name}"

    async def _gate(self, upstream: McpUpstream) -> OutsideGate:
        """Return the gate for a server's tools, as the policy is now. A thread reads files, and opens the store."""
        server, options = upstream.server, self.options
        return await asyncio.to_thread(
            lambda: self._desk.gate(
                options.project,
                options.store,
                caller=None,
                takes_edits=True,
                toolset=server.name,
                secrets=server.secrets,
            )
        )

    def _is_denied(self, gate: OutsideGate, tool: _Tool) -> bool:
        call = self._call(tool, {}, ProxyCaller())
        found = reach(
            gate.policy, call.tool, call.toolset, worker=call.agents, labels=call.labels, claimed=call.claimed
        )
        return found.effect == "deny"

    # --- calls ---

    async def call(self, name: str, args: Mapping[str, Any], caller: ProxyCaller) -> mcp_types.CallToolResult:
        """Return the result of a call for a client. Any error here refuses the call."""
        try:
            return await self._answered(name, args, caller)
        except (UpstreamGone, UpstreamRefusal) as error:
            return _result(f"signoff: the call was not made: {error}", is_error=True)
        except SignoffError as error:
            return _result(f"signoff: refused: {error}", is_error=True)
        except Exception as error:
            secrets = [secret for one in self.upstreams for secret in one.server.secrets]
            why = safe_beginning(f"{type(error).__name__}: {error}", longest=LONGEST_ERROR, secrets=secrets)
            return _result(f"signoff: refused, because the call could not be checked: {why}", is_error=True)

    async def _answered(self, name: str, args: Mapping[str, Any], caller: ProxyCaller) -> mcp_types.CallToolResult:
        if why := why_too_large(args):
            return _result(f"signoff: refused: the call has {why}", is_error=True)
        until: datetime | None = None
        for _ in range(_MOST_TURNS):
            tool, since = await self._find(name), steady_seconds()
            if tool is None:
                return _result(f"signoff: there is no tool {quoted(visible(name))}", is_error=True)
            gate = await self._gate(tool.upstream)
            await self._look(gate, tool)
            until = until or gate.broker.clock.now() + self.options.patience
            made = await done("reading a call of an MCP client", args, partial(self._call, tool, args, caller))
            call, permission = await self._decided(gate, made, caller, until)
            if permission.waits:
                return _result(_waiting(await gate.broker.get(permission.request)))
            if not permission.allowed:
                return _result(said(permission), is_error=True)
            if await self._prepared(gate, call, tool, permission, name, since):
                return await self._run(gate, call, tool, permission, caller)
        raise WrongUse(f"the definition of {quoted(visible(name))} keeps changing, so signoff does not call it")

    def _call(self, tool: _Tool, args: Mapping[str, Any], caller: ProxyCaller) -> OutsideCall:
        definition, labels = tool.definition, self._desk.labels(self.options.project, tool.server)
        client = self.options.client
        return OutsideCall(
            agents=(client or NAMELESS,),
            # A session id claimed by a client finds only answers of this very proxy.
            session=f"mcp:{client}" if client else f"mcp-session:{self._id}:{caller.session}",
            call_id=_fingerprint(definition, args),
            attempt=new_id(),
            tool=definition.tool,
            toolset=tool.server,
            args=args,
            directory=tool.upstream.directory,
            labels=labels_of(labels, definition.tool),
            claimed=labels_claimed(definition.tool, definition.annotations, labels)
            | labels_in_doubt(labels, definition.tool),
            definition=definition.digest,
            schema=definition.takes,
            said=_shown(tool, caller),
            doubt=_doubt(tool),
        )

    async def _decided(
        self, gate: OutsideGate, call: OutsideCall, caller: ProxyCaller, until: datetime
    ) -> tuple[OutsideCall, CallPermission]:
        """Decide whether a call may run. Also returns the call with its number among equal calls."""
        key, broker, telling = call.key, gate.broker, _Telling(gate.broker, caller)
        known = list[str]()

        def asked(request: ApprovalRequest) -> None:
            self._open[request.id] = broker
            known.append(request.id)
            telling.begin(request)

        try:
            for _ in range(_MOST_TURNS):
                number = await self._calls.number(broker, key)
                numbered = replace(call, call_id=f"{call.call_id}.{number}")
                permission = await gate.decide(numbered, until=until, parks=True, asked=asked)
                if not permission.spent:
                    break
                self._calls.spent(key, number)
            else:
                raise WrongUse("too many identical calls are made at the same time")
        except BaseException:  # the client gave up, perhaps at the moment of the claim
            for request in known:
                broker.give_back(request, call.attempt)
            raise
        finally:
            telling.end()
        if permission.request and not permission.waits:
            self._open.pop(permission.request, None)
            if not permission.allowed:
                self._calls.told(key, permission.request)
        return numbered, permission

    async def _prepared(
        self, gate: OutsideGate, call: OutsideCall, tool: _Tool, permission: CallPermission, name: str, since: float
    ) -> bool:
        """Check between claim and call that the tool is still what was approved or allowed, and accept its definition.

        The server may have changed the tool while people decided, or somebody the policy. Then, or if the check fails,
        the claim is given back as if the call had not been made.
        """
        broker, request, is_ready = gate.broker, permission.request, False
        try:
            is_ready = (not request or await self._is_still(gate, tool, name)) and await self._accepted(
                gate, tool, permission, since
            )
        finally:
            if request and not is_ready:
                broker.give_back(request, call.attempt)
        if not is_ready:
            await broker.store.flush()
        return is_ready

    async def _is_still(self, gate: OutsideGate, tool: _Tool, name: str) -> bool:
        """Return whether policy and tool are the same as when people were asked. Raises if the policy is unreadable."""
        if (await self._gate(tool.upstream)).policy.revision != gate.policy.revision:
            return False
        now = await self._find(name)
        return now is not None and now.definition.digest == tool.definition.digest

    async def _accepted(self, gate: OutsideGate, tool: _Tool, permission: CallPermission, since: float) -> bool:
        """Accept the definition. Return False if another one was accepted meanwhile."""
        broker, request = gate.broker, permission.request
        if request:
            await broker.confirm(await broker.get(request), since)
        if tool.pin is not None and not tool.has_changed:
            return True
        return await broker.pins.put(tool.definition, by=permission.by, instead_of=tool.pin, request=request)

    async def _run(
        self, gate: OutsideGate, call: OutsideCall, tool: _Tool, permission: CallPermission, caller: ProxyCaller
    ) -> mcp_types.CallToolResult:
        """Make the call. From here on it may have run, so no error may say that it was refused."""
        try:
            result = await tool.upstream.call(call.tool, dict(permission.args), caller.reports)
        except UpstreamRefusal as refusal:
            lost = await self._report(gate, call, permission, error=str(refusal))
            return _after(lost, _result(str(refusal), is_error=True))
        except UpstreamGone as gone:
            lost = await self._report(gate, call, permission, error=str(gone), is_known=False)
            told = f"signoff: {gone}. It is unknown whether the call happened."
            return _after(lost, _result(told, is_error=True))
        except Exception as error:
            why = f"the answer of the MCP server {tool.server} could not be read ({type(error).__name__})"
            lost = await self._report(gate, call, permission, error=why, is_known=False)
            told = f"signoff: {why}. It is unknown whether the call happened."
            return _after(lost, _result(told, is_error=True))
        except BaseException:  # the client gave up on it
            if permission.request:
                gate.broker.cut_off(permission.request, call.attempt)
            else:
                self._end(gate, call, CallStep.CUT_OFF, "the client gave up on it")
            raise
        try:
            told, passed = _texts(result), _passed_on(result, permission)
        except Exception as error:
            told = f"its answer cannot be passed on ({type(error).__name__})"
            passed = _result(f"signoff: the call was made, but {told}.", is_error=True)
        error = (told or "it failed") if passed.is_error else None
        lost = await self._report(gate, call, permission, error=error, preview=told)
        return _after(lost, passed)

    def _end(self, gate: OutsideGate, call: OutsideCall, step: CallStep, error: str, result: str = "") -> None:
        """Record the outcome of a call that nobody was asked about."""
        buffer = gate.broker.audit_buffer
        buffer.add(step, call.read(gate.policy), None, text=error, result=result, secrets=gate.secrets)
        buffer.flush()

    async def _report(
        self,
        gate: OutsideGate,
        call: OutsideCall,
        permission: CallPermission,
        *,
        error: str | None,
        preview: str = "",
        is_known: bool = True,
    ) -> str:
        """Record the outcome of a call. If that fails, return a text to put before the result for the client.

        What could not be written is written once the store works again.
        """
        broker, secrets, request = gate.broker, gate.secrets, permission.request
        try:
            if not request:
                what = f"recording a call of {call.caller}"
                step = CallStep.CUT_OFF if not is_known else CallStep.RAN if error is None else CallStep.FAILED
                result = preview if error is None else ""
                await done(what, call.args, lambda: self._end(gate, call, step, error or "", result))
                return ""
            if is_known:
                broker.finish(request, error=error, preview=preview, token=call.attempt, secrets=secrets)
                await broker.store.flush()
            else:
                await broker.lose(request, error or "")
        except Exception as failure:
            if not is_known:
                with suppress(Exception):
                    broker.cut_off(request, call.attempt)
            why = f"{type(failure).__name__}: {safe_beginning(str(failure), longest=LONGEST_ERROR, secrets=secrets)}"
            return f"signoff: the call was made, but its outcome could not be recorded: {why}"
        return ""

    # --- shutdown ---

    async def close(self) -> None:
        """Withdraw requests that no client could ask for again, and close the servers."""
        if not self.options.client:
            for request, broker in self._open.items():
                broker.withdraw([request], "the MCP client that asked is gone, and it has no name to resume by")
                await broker.store.flush()
        self._open.clear()
        await asyncio.gather(*(upstream.close() for upstream in self.upstreams))
        self._desk.close()


class _Telling:
    """Sends a client progress every `BEAT` while its call waits. A client that asked for no progress gets none."""

    def __init__(self, broker: Broker, caller: ProxyCaller) -> None:
        self._broker = broker
        self._caller = caller
        self._task: asyncio.Task[None] | None = None

    def begin(self, request: ApprovalRequest) -> None:
        if self._task is None:
            self._task = asyncio.ensure_future(self._tell(request.id))

    def end(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _tell(self, request_id: str) -> None:
        clock, times = self._broker.clock, 0
        with suppress(Exception):  # if it fails, the client is not told; the call still waits
            while True:
                times += 1  # far below what the call itself will report: progress must never decrease
                await self._caller.reports(times * 1e-6, None, f"waits for a person (signoff request {request_id})")
                await clock.sleep_until(clock.now() + BEAT)


def _definition(server: str, tool: mcp_types.Tool) -> ToolDefinition:
    return ToolDefinition(
        toolset=server,
        tool=tool.name,
        title=tool.title or "",
        description=tool.description,
        takes=tool.input_schema,
        annotations=tool.annotations.model_dump(by_alias=True) if tool.annotations else None,
    )


def _offer(tool: _Tool) -> mcp_types.Tool:
    """Return a tool as clients see it: as it was accepted. Without output schema.

    A call that waits for a person returns plain text, which would not match an output schema.
    """
    from mcp_types import Tool, ToolAnnotations

    definition = tool.pin.definition if tool.pin is not None else tool.definition
    description = definition.description
    if tool.has_changed:
        description = f"{description}\n\n{CHANGED}" if description else CHANGED
    return Tool(
        name=definition.tool,
        title=definition.title or None,
        description=description,
        input_schema=dict(definition.takes),
        annotations=ToolAnnotations.model_validate(definition.annotations) if definition.annotations else None,
    )


def _shown(tool: _Tool, caller: ProxyCaller) -> dict[str, Any]:
    """Return what the card shows besides the call: the definition to accept, and who the client says it is."""
    told: dict[str, Any] = {}
    if tool.pin is None:
        told["description"] = tool.definition.description or ""
    if tool.before is not None and tool.has_changed:
        told["diff"] = tool.definition.diff_from(tool.before)
    if caller.claim:
        told["client"] = f"{caller.claim[:_LONGEST_CLAIM]}, as it says itself"
    return told


def _doubt(tool: _Tool) -> str:
    if not tool.has_changed:
        return ""
    if tool.pin is None:
        return f"the server changed the definition of {tool.definition.tool} since clients listed it"
    by = "a rule" if tool.pin.by == POLICY else tool.pin.by
    return f"the server changed the definition of {tool.definition.tool} since it was accepted by {by}"


def _fingerprint(definition: ToolDefinition, args: Mapping[str, Any]) -> str:
    """Return a key that is equal for equal calls. It leaves the definition out, to which answers are bound anyway."""
    try:
        return digest([definition.toolset, definition.tool, args])[:32]
    except CannotCanonicalise:
        return new_id()  # it is refused anyway


def _waiting(request: ApprovalRequest) -> str:
    if request.state is State.UNKNOWN:
        return (
            "signoff: a call like this was approved and started before, and its outcome is unknown. This one has not "
            f"run. A person has to check and record the outcome: `signoff outcome {request.id} happened` or `did-not`."
        )
    return (
        f"signoff: this call has not run yet: it waits for a person. People answer request {request.id} in "
        f"`signoff inbox`, with `signoff approve {request.id}` or `signoff deny {request.id}`, or in the channels "
        "of this project. Make the same call with the same arguments again to get its result once it is "
        "answered. Do not try to get around it."
    )


def _result(text: str, *, is_error: bool = False) -> mcp_types.CallToolResult:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


def _texts(result: mcp_types.CallToolResult) -> str:
    """Return the result of a call as text. Mask it before truncating: half a secret is not recognised."""
    texts = (text for block in result.content if isinstance(text := getattr(block, "text", None), str))
    return "\n".join(texts) or (json.dumps(result.structured_content) if result.structured_content else "")


def _after(lost: str, result: mcp_types.CallToolResult) -> mcp_types.CallToolResult:
    """Return a result with what has to be said first, if anything has to."""
    from mcp_types import TextContent

    if lost:
        result.content = [TextContent(type="text", text=lost), *result.content]
    return result


def _passed_on(result: mcp_types.CallToolResult, permission: CallPermission) -> mcp_types.CallToolResult:
    """Return the server's result for the client. If a person edited the arguments, a note about that comes first."""
    from mcp_types import CallToolResult, TextContent

    note: list[Any] = []
    if permission.edited:
        note.append(TextContent(type="text", text=said_of_edits(permission)))
    meta = {name: value for name, value in (result.meta or {}).items() if not name.startswith(_OWN_META)}
    return CallToolResult(
        content=[*note, *result.content],
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta=meta or None,
    )
