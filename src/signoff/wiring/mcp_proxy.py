"""A proxy in front of MCP servers: every call of a tool is judged, asked about and written down before it is passed on.

The course of a call is the one of all calls of other programs (`signoff.outside.outside_gate`). What is special here is
how a client is told that people are still thinking: the call gives a plain result, and is made again.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from signoff.broker import Broker, new_id
from signoff.core.canonical import digest
from signoff.core.event import CallStep
from signoff.core.request import ApprovalRequest, State
from signoff.core.tool_definition import ToolDefinition, ToolPin
from signoff.core.visible import quoted, visible
from signoff.errors import CannotCanonicalise, SignoffError, WrongUse
from signoff.gate.refusal_words import POLICY
from signoff.outside.hook_event import said
from signoff.outside.outside_call import OutsideCall
from signoff.outside.outside_gate import CallPermission, OutsideGate
from signoff.outside.repeated_call import RepeatedCalls
from signoff.policy.reach import reach
from signoff.processes import steady_seconds
from signoff.toolsets.mcp_claims import labels_claimed
from signoff.wiring.mcp_upstream import McpUpstream, Reports, UpstreamGone, UpstreamRefusal
from signoff.wiring.outside_desk import OutsideDesk

if TYPE_CHECKING:
    import mcp_types

NAMELESS = "mcp"
"""What rules call a client that nobody named."""
BEAT = timedelta(seconds=5)
"""How often a client that wants to know is told that its call still waits."""
_LONGEST_CLAIM = 120
_MOST_TURNS = 50
"""How many equal calls at the same time may each find that another one was faster."""
_OWN_META = "io.modelcontextprotocol/"
"""What one connection says about itself, which is nothing for another one."""
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")
CHANGED = "[signoff: the server changed this tool since it was accepted here. A person is asked before the next call.]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyOptions:
    """How a proxy is set up."""

    project: str
    """The directory whose policy counts."""
    store: str | None = None
    client: str = ""
    """The name of the client, by which its calls are known after a restart; empty: each session stands for itself."""
    patience: timedelta = timedelta(seconds=50)
    """How long a call waits for an answer. Most clients give up after a minute."""


async def _unreported(progress: float, total: float | None, message: str | None) -> None:
    """Whoever does not want to know how far a call is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyCaller:
    """Who makes a call. What a client says about itself is its claim."""

    session: str = ""
    """Which of several sessions it is, where the transport tells."""
    claim: str = ""
    reports: Reports = _unreported


@dataclass(slots=True)
class _Tool:
    """A tool of a server behind the proxy."""

    upstream: McpUpstream
    definition: ToolDefinition
    pin: ToolPin | None = None

    @property
    def server(self) -> str:
        return self.upstream.server.name

    @property
    def has_changed(self) -> bool:
        return self.pin is not None and self.pin.definition.digest != self.definition.digest


@dataclass(slots=True)
class McpProxy:
    """Stands between MCP clients and servers."""

    upstreams: Sequence[McpUpstream]
    options: ProxyOptions
    _desk: OutsideDesk = field(default_factory=OutsideDesk)
    _calls: RepeatedCalls = field(default_factory=RepeatedCalls)
    _id: str = field(default_factory=new_id)
    _open: dict[str, Broker] = field(default_factory=dict[str, Broker])
    """Questions that wait, by their ids."""

    # --- tools ---

    async def tools(self) -> list[mcp_types.Tool]:
        """What a client is offered: not what policy denies whatever its arguments, and each tool as it was accepted.

        A server that is not there has no tools; where none is there, `UpstreamGone` is raised.
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
            gate = self._gate(upstream)
            pins = await gate.broker.pins.of(upstream.server.name, defined)
            for name, definition in defined.items():
                tool = _Tool(upstream, definition, pins.get(name))
                if not self._is_denied(gate, tool):
                    listed.setdefault(self._shown_name(upstream, name), _offer(tool))
        if gone and len(gone) == len(self.upstreams):
            raise gone[0]
        return [tool.model_copy(update={"name": name}) for name, tool in listed.items()]

    async def _defined(self, upstream: McpUpstream) -> dict[str, ToolDefinition]:
        """The tools of a server by name, the first of each. What nobody could look at is left out."""
        found: dict[str, ToolDefinition] = {}
        for tool in await upstream.tools():
            definition = _definition(upstream.server.name, tool)
            if not definition.is_too_long:
                found.setdefault(tool.name, definition)
        return found

    async def _find(self, name: str) -> _Tool | None:
        """The tool that a client calls by this name, as its server defines it now."""
        for upstream in self.upstreams:
            prefix = self._shown_name(upstream, "")
            if not name.startswith(prefix):
                continue
            definition = (await self._defined(upstream)).get(name.removeprefix(prefix))
            if definition is not None:
                return _Tool(upstream, definition)
        return None

    def _shown_name(self, upstream: McpUpstream, name: str) -> str:
        """A tool's name for clients: where there are several servers, that of the server stands before it."""
        return name if len(self.upstreams) == 1 else f"{_NOT_IN_NAMES.sub('-', upstream.server.name)}_{name}"

    def _gate(self, upstream: McpUpstream) -> OutsideGate:
        server, options = upstream.server, self.options
        return self._desk.gate(
            options.project, options.store, caller=None, takes_edits=True, toolset=server.name, secrets=server.secrets
        )

    def _is_denied(self, gate: OutsideGate, tool: _Tool) -> bool:
        call = self._call(tool, {}, ProxyCaller())
        found = reach(
            gate.policy, call.tool, call.toolset, worker=call.agents, labels=call.labels, claimed=call.claimed
        )
        return found.effect == "deny"

    # --- calls ---

    async def call(self, name: str, args: Mapping[str, Any], caller: ProxyCaller) -> mcp_types.CallToolResult:
        """What a client gets for a call. Whatever goes wrong here refuses it."""
        try:
            return await self._answered(name, args, caller)
        except (UpstreamGone, UpstreamRefusal) as error:
            return _result(f"signoff: the call was not made: {error}", is_error=True)
        except SignoffError as error:
            return _result(f"signoff: refused: {error}", is_error=True)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
            return _result(f"signoff: refused, because the call could not be checked: {why}", is_error=True)

    async def _answered(self, name: str, args: Mapping[str, Any], caller: ProxyCaller) -> mcp_types.CallToolResult:
        tool = await self._find(name)
        if tool is None:
            return _result(f"signoff: there is no tool {quoted(visible(name))}", is_error=True)
        gate, since = self._gate(tool.upstream), steady_seconds()
        tool.pin = (await gate.broker.pins.of(tool.server, [tool.definition.tool])).get(tool.definition.tool)
        call, permission = await self._decided(gate, self._call(tool, args, caller), caller)
        if permission.waits:
            return _result(_waiting(await gate.broker.get(permission.request)))
        if not permission.allowed:
            return _result(said(permission), is_error=True)
        if permission.request:
            await self._prepared(gate, call, tool, permission, since)
        elif tool.pin is None:
            await gate.broker.pins.put(tool.definition, by=permission.by)
        return await self._run(gate, call, tool, permission, caller)

    def _call(self, tool: _Tool, args: Mapping[str, Any], caller: ProxyCaller) -> OutsideCall:
        definition, labels = tool.definition, self._desk.labels(self.options.project, tool.server)
        client = self.options.client
        own = (one for names, found in labels.items() if fnmatchcase(definition.tool, names) for one in found)
        return OutsideCall(
            agents=(client or NAMELESS,),
            session=f"mcp:{client or caller.session or self._id}",
            call_id=_fingerprint(definition, args),
            attempt=new_id(),
            tool=definition.tool,
            toolset=tool.server,
            args=args,
            directory=tool.upstream.directory,
            labels=frozenset(own),
            claimed=labels_claimed(definition.tool, definition.annotations, labels),
            definition=definition.digest,
            schema=definition.takes,
            said=_shown(tool, caller),
            doubt=_doubt(tool),
        )

    async def _decided(
        self, gate: OutsideGate, call: OutsideCall, caller: ProxyCaller
    ) -> tuple[OutsideCall, CallPermission]:
        """Whether a call may be made, and which of the like it is."""
        key, broker = call.key, gate.broker
        until, telling = broker.clock.now() + self.options.patience, _Telling(broker, caller)
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
                raise WrongUse("the same call is made too often at the same time")
        except BaseException:  # the client gave up, perhaps in the instant of the claim
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
        self, gate: OutsideGate, call: OutsideCall, tool: _Tool, permission: CallPermission, since: float
    ) -> None:
        """Between claim and call: the definition that was approved is the accepted one. Where that fails, it is as if
        the call had not been made."""
        broker = gate.broker
        try:
            await broker.confirm(await broker.get(permission.request), since)
            if tool.pin is None or tool.has_changed:
                await broker.pins.put(tool.definition, by=permission.by, request=permission.request)
        except BaseException:
            broker.give_back(permission.request, call.attempt)
            raise

    async def _run(
        self, gate: OutsideGate, call: OutsideCall, tool: _Tool, permission: CallPermission, caller: ProxyCaller
    ) -> mcp_types.CallToolResult:
        try:
            result = await tool.upstream.call(call.tool, dict(permission.args), caller.reports)
        except UpstreamRefusal as refusal:
            await self._report(gate, call, permission, error=str(refusal))
            return _result(str(refusal), is_error=True)
        except UpstreamGone as gone:
            if permission.request:
                await gate.broker.lose(permission.request, str(gone))
            else:
                await self._report(gate, call, permission, error=str(gone))
            return _result(f"signoff: {gone}. Nobody knows whether the call happened.", is_error=True)
        except BaseException:  # the client gave up on it
            if permission.request:
                gate.broker.cut_off(permission.request, call.attempt)
            raise
        told = _texts(result)
        await self._report(gate, call, permission, error=told or "it failed" if result.is_error else None, preview=told)
        return _passed_on(result, permission)

    async def _report(
        self, gate: OutsideGate, call: OutsideCall, permission: CallPermission, *, error: str | None, preview: str = ""
    ) -> None:
        """Put on record what came of a call."""
        if permission.request:
            await gate.report(call, error=error, preview=preview)
            return
        step = CallStep.RAN if error is None else CallStep.FAILED
        gate.broker.audit_buffer.add(step, call.read(gate.policy), None, text=error or "", secrets=gate.secrets)
        gate.broker.audit_buffer.flush()

    # --- the end ---

    async def close(self) -> None:
        """Withdraw what nobody could ask for again, and end the servers."""
        if not self.options.client:
            for request, broker in self._open.items():
                broker.withdraw([request], "the MCP client that asked is gone, and it has no name to resume by")
                await broker.store.flush()
        self._open.clear()
        await asyncio.gather(*(upstream.close() for upstream in self.upstreams))
        self._desk.close()


class _Telling:
    """Tells a client, now and then, that its call still waits. To one that does not want to know nothing is sent."""

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
        with suppress(Exception):  # then it is not told; the call waits all the same
            while True:
                times += 1  # far below what the call itself will report: progress never goes back
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
    """A tool as clients are told about it: as it was accepted, where that was otherwise. Its output has no schema.

    What waits for a person gives a plain text, which would not fit one.
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
    """What a card shows besides the call: what is accepted with it, and who the client says it is."""
    told: dict[str, Any] = {}
    if tool.pin is None:
        told["description"] = tool.definition.description or ""
    elif tool.has_changed:
        told["diff"] = tool.definition.diff_from(tool.pin.definition)
    if caller.claim:
        told["client"] = f"{caller.claim[:_LONGEST_CLAIM]}, as it says itself"
    return told


def _doubt(tool: _Tool) -> str:
    if tool.pin is None or not tool.has_changed:
        return ""
    by = "a rule" if tool.pin.by == POLICY else tool.pin.by
    return f"the server changed the definition of {tool.definition.tool} since it was accepted by {by}"


def _fingerprint(definition: ToolDefinition, args: Mapping[str, Any]) -> str:
    """What makes two calls the same. An answer is bound to the definition, too."""
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
        f"signoff: this call has not run yet: it waits for a person. Request {request.id}, to be answered in "
        f"`signoff inbox`, with `signoff approve {request.id}` or `signoff deny {request.id}`, or wherever the people "
        "of this project are asked. Make the same call with the same arguments again to get its result once it is "
        "answered. Do not try to get around it."
    )


def _result(text: str, *, is_error: bool = False) -> mcp_types.CallToolResult:
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


def _texts(result: mcp_types.CallToolResult) -> str:
    """What a call gave, as text. Whoever keeps the beginning masks it first: half a secret is not recognised."""
    texts = (text for block in result.content if isinstance(text := getattr(block, "text", None), str))
    return "\n".join(texts) or (json.dumps(result.structured_content) if result.structured_content else "")


def _passed_on(result: mcp_types.CallToolResult, permission: CallPermission) -> mcp_types.CallToolResult:
    """What a server answered, for the client; where a person changed the arguments, that is said first."""
    from mcp_types import CallToolResult, TextContent

    note: list[Any] = []
    if permission.edited:
        args = json.dumps(dict(permission.args), ensure_ascii=False)
        text = f"signoff: {permission.by} changed the arguments before the call ran. It ran with {args}"
        note = [TextContent(type="text", text=text)]
    meta = {name: value for name, value in (result.meta or {}).items() if not name.startswith(_OWN_META)}
    return CallToolResult(
        content=[*note, *result.content],
        structured_content=result.structured_content,
        is_error=result.is_error,
        _meta=meta or None,
    )
