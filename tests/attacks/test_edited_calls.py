"""A call that a person edited: wherever it is named afterwards, it is the call that ran, not the one that was asked.

What the model asked for is named only where it says so: in the event `asked`, beside what it was changed to, and in the
model's own words.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import click
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings
from tests.attacks.kept import ANA, Place
from tests.channels.tui import reading
from tests.cli.program import signoff as program
from tests.gate.agents import calls
from tests.server.api_desk import ApiDesk

from signoff import ApprovalDecision, Signoff, resume
from signoff.channels.discord import lists
from signoff.channels.discord.notice_message import sheet_for
from signoff.channels.discord.request_file import whole
from signoff.channels.terminal import said_about
from signoff.cli.main import program as command_line
from signoff.cli.progress import event_json, print_event, print_plainly
from signoff.core.card import card_for
from signoff.core.decision import Remember
from signoff.core.event import CallEvent, CallStep
from signoff.core.notice import Asked, Together
from signoff.core.request import ApprovalRequest
from signoff.server.app import ENDPOINTS
from signoff.server.pages import PAGES
from signoff.store.approval_memory import ApprovalMemory
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets.builtin.files.file_toolset import filesystem

OLD, NEW = "zebra", "quokka"
RULES = "people:\n  ana: {}\npolicy:\n  - ask: [note, write_file]\n"
ASKED = {"note": {"text": f"a {OLD} came"}, "write_file": {"path": f"{OLD}.txt", "content": f"one {OLD}\n"}}
RAN = {tool: {name: text.replace(OLD, NEW) for name, text in args.items()} for tool, args in ASKED.items()}
NEXT = "what follows"

COMMANDS = {
    "inbox": ["", "--json"],
    "show": ["{one}", "{other}", "{next}", "{one} --json", "{other} --json", "{next} --json"],
    "runs": ["", "--all --json"],
    "runs show": ["{run}", "{run} --json"],
    "audit": [""],
    "audit log": ["", "--json", "--request {one}"],
    "audit export": ["--format jsonl", "--format csv"],
    "grants": [""],
    "grants list": ["", "--json"],
    "grants explain": ["{grant}"],
}
"""The commands that name calls of the past, with their arguments."""
OTHERS = """
    approve deny ask-back reply comment outcome take release assign people delegate tokens channels demo run resume hook
    mcp aap serve cancel halt unhalt init policy workers toolsets schema import doctor db stores completion
    grants_revoke audit_verify
""".split()
"""All other commands, or groups of them: what they name is the call that they are given."""

EXPLICIT = (
    re.compile(rf"{NEW}.*, not .*{OLD}"),  # what an answer changed
    re.compile(r"^\s*(\d+  )?[-0-9]+ [:0-9]+ \w+  asked  "),  # a line of the audit log
    re.compile(r'^<li class="kind-asked">'),
    re.compile(rf'<span class="hint">asked</span> .*<del>.*{OLD}.*</del>'),
    re.compile(r'^-(  "|.*\{)'),  # in a diff of arguments
)
"""The lines of a text that say of a call that it is the one that was asked."""


@dataclass
class Past:
    """A run that waits after two calls of it ran with other arguments, one of them remembered."""

    run: str
    ran: list[ApprovalRequest]
    next: ApprovalRequest
    events: list[CallEvent]
    said: str
    """The agent's messages, as JSON."""


def note(text: str) -> str:
    return "noted"


async def edited(place: Place, tmp_path: Path) -> Past:
    events: list[CallEvent] = []
    directory = tmp_path / "files"
    directory.mkdir()
    turns = [calls(*ASKED.items()), calls(("note", {"text": NEXT})), {"say": "done"}]

    def process() -> tuple[Signoff, Agent[Any, Any]]:
        gate = place.gate(str(tmp_path / "signoff.yaml"), observe=events.append)
        output: Any = [str, DeferredToolRequests]
        toolsets = [filesystem(directory)]
        return gate, Agent(
            ScriptedModel(turns), output_type=output, tools=[note], toolsets=toolsets, capabilities=[gate]
        )

    gate, agent = process()
    await agent.run("go")
    asked = await gate.pending()
    for one in asked:
        remember = Remember.ALWAYS if one.tool_name == "note" else Remember.NONE
        await gate.answer(
            one.id, ApprovalDecision(approved=True, edited_args=RAN[one.tool_name], remember=remember), by=ANA
        )
    gate, agent = process()
    result = await resume(agent, asked[0].run)
    assert (directory / f"{NEW}.txt").read_text() == f"one {NEW}\n"
    assert [one.name for one in directory.iterdir()] == [f"{NEW}.txt"]
    [following] = await gate.pending()
    await gate.broker.store.flush()
    ran = [await gate.broker.get(one.id) for one in asked]
    return Past(asked[0].run, ran, following, events, result.all_messages_json().decode())


async def test_every_face_names_the_call_that_ran(tmp_path: Path) -> None:
    desk, place = ApiDesk(tmp_path, rules=RULES), Place(tmp_path)
    try:
        seq = (await desk.get("/events/poll", wait=0, who="ana"))["next"]
        past = await edited(place, tmp_path)
        [grant] = (await desk.get("/grants", who="ana"))["grants"]
        one, other = (one.id for one in past.ran)
        names = {"one": one, "other": other, "next": past.next.id, "run": past.run, "grant": grant["id"]}
        texts = dict(_drawn(past))
        texts |= await asyncio.to_thread(lambda: dict(_commands(place.url, tmp_path, names)))
        ids = [
            {**names, "request_id": id, "run_id": past.run, "grant_id": grant["id"]}
            for id in (one, other, past.next.id)
        ]
        for endpoint in ENDPOINTS:
            if endpoint.method != "GET" or endpoint.name in ("stream_events", "openapi"):
                continue
            for path in dict.fromkeys(endpoint.path.format_map(each) for each in ids):
                query: dict[str, Any] = {"after": seq, "wait": 0} if endpoint.name == "poll_events" else {}
                reply = await desk.call("GET", path, who="ana", **query)
                assert reply.status_code == 200, (path, reply.text)
                texts[f"API {path}"] = reply.text
        for pattern, _, _ in PAGES:
            for path in dict.fromkeys(pattern.format_map(each) for each in ids):
                ticked = {"id": [one, other]} if path in ("/fragments/rows", "/fragments/selection") else {}
                reply = await desk.client.get(f"http://inbox.test{path}", headers={"x-who": "ana"}, params=ticked)
                assert reply.status_code == 200, (path, reply.text)
                texts[f"page {path}"] = reply.text
        async with reading(past.next, size=(120, 60)) as (reader, _):
            texts["full screen"] = reader.screen
    finally:
        await desk.close()
        place.close()
    wrong = {name: lines for name, text in texts.items() if (lines := [*_unsaid(text)])}
    assert wrong == {}
    silent = [name for name in NAMING if NEW not in texts[name]]
    assert silent == [], "these name the call"
    ran = [line for line in texts["signoff audit log "].splitlines() if "  ran  " in line]
    assert len(ran) == 2 and all(NEW in line for line in ran)


NAMING = (
    *("agent", "full screen", "terminal card of the next call", "Discord: history", "Discord: together"),
    *("page /", "page /history", "API /audit", "API /grants", "signoff grants list ", "terminal: answered"),
)


def _unsaid(text: str) -> Iterator[str]:
    """The places in a text that name the call that was asked without saying that it is that one."""
    if OLD not in text:
        return
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if data is not None:
        yield from _unsaid_in(data)
        return
    if text.startswith('"seq",'):
        yield from (str(row) for row in csv.DictReader(io.StringIO(text)) if OLD in str(row) and row["kind"] != "asked")
        return
    for line in text.splitlines():
        if line.startswith("{"):
            yield from _unsaid_in(json.loads(line))
        elif OLD in line and not any(one.search(line.strip("│ ")) for one in EXPLICIT):
            yield line


def _unsaid_in(data: Any) -> Iterator[str]:
    if isinstance(data, str):
        if OLD in data and not EXPLICIT[0].search(data):
            yield data
    elif isinstance(data, list):
        for one in cast("list[Any]", data):
            yield from _unsaid_in(one)
    elif isinstance(data, dict):
        held = cast("dict[str, Any]", data)
        kind = held.get("kind") or held.get("event") or held.get("part_kind")
        if kind in ("asked", "tool-call"):  # what the audit log says was asked, and what the model did say
            return
        for one in held.values():
            yield from _unsaid_in(one)


def _commands(url: str, directory: Path, names: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    known = {*COMMANDS, *(one.replace("_", " ") for one in OTHERS)}
    for name in _leaves(command_line):
        assert name in known or name.partition(" ")[0] in OTHERS, (
            f"is `signoff {name}` a command that names past calls?"
        )
    for name, ways in COMMANDS.items():
        for arguments in ways:
            words = [*name.split(), *arguments.format_map(names).split()]
            done = program(*words, cwd=directory, COLUMNS="250", SIGNOFF_STORE=url)
            assert done.returncode == 0, (words, done.stderr)
            yield f"signoff {name} {arguments}", done.stdout + done.stderr


def _leaves(command: click.Command, *above: str) -> Iterator[str]:
    if isinstance(command, click.Group):
        within = click.Context(command)
        for name in command.list_commands(within):
            found = command.get_command(within, name)
            assert found is not None
            yield from _leaves(found, *above, name)
        if not command.invoke_without_command or not above:
            return
    yield " ".join(above)


def _drawn(past: Past) -> Iterator[tuple[str, str]]:
    """What is drawn from requests and events alone."""
    from signoff.channels.render import TerminalLook, draw_card

    yield "agent", past.said
    look = TerminalLook(width=200)
    for name, request in (("next", past.next), *(("edited", one) for one in past.ran)):
        drawing = draw_card(card_for(request), look, whole=True)
        yield f"terminal card of the {name} call", "\n".join(line.plain for line in drawing.lines)
        message = sheet_for(Asked(request=request, number=1, of=1))
        yield f"Discord: {request.id}", f"{message.title}\n{message.text}"
        yield f"Discord: show {request.id}", lists.show_sheet(request).text
        yield f"Discord: file {request.id}", whole(request).text
    yield "Discord: history", lists.history_sheet(past.ran).text
    yield "Discord: together", sheet_for(Together(requests=(*past.ran, past.next))).text
    for request in past.ran:
        assert request.decision is not None
        yield "terminal: answered", said_about(request, card_for(request), request.decision)
    for event in past.events:
        assert event.what is CallStep.ASKED or OLD not in str(event.call)
        with redirect_stdout(io.StringIO()) as out, redirect_stderr(out):
            print_event(event)
            print_plainly(event)
        if event.what is not CallStep.ASKED:
            yield f"progress: {event.what}", out.getvalue()
        yield f"progress: {event.what} as JSON", event_json(event)


async def test_traces_name_the_call_that_ran() -> None:
    heard, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(heard))
    given = Instrumentation(settings=InstrumentationSettings(tracer_provider=provider))
    gate = Signoff([], approver=ScriptedApprover([f"edit:{json.dumps(RAN['note'])}"]))
    turns = [calls(("note", ASKED["note"])), {"say": "done"}]
    await Agent(ScriptedModel(turns), tools=[note], capabilities=[given, gate]).run("go")
    provider.shutdown()
    spans = [span for span in heard.get_finished_spans() if span.name.startswith("signoff.")]
    events = [
        event for span in heard.get_finished_spans() for event in span.events if event.name.startswith("signoff.")
    ]
    told = str([dict(one.attributes or {}) for one in (*spans, *events)])
    assert NEW in told and OLD not in told


def test_an_answer_that_a_memory_keeps_is_described_by_the_call_that_ran() -> None:
    memory, request = ApprovalMemory(), ApprovalRequest(tool_call_id="1", tool_name="note", args=ASKED["note"])
    answer = ApprovalDecision(approved=True, edited_args=RAN["note"], remember=Remember.SESSION)
    memory.store(request.changed_to(summary=f"Note that a {OLD} came"), answer)
    [grant] = memory.grants()
    assert grant.summary == f'note(text="a {NEW} came")'
