"""`signoff toolsets`: the names of the catalog, where they come from, their tools and what happens to calls of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import options

if TYPE_CHECKING:
    from signoff.config import Settings, WorkerFile
    from signoff.policy.engine import Policy
    from signoff.policy.reach import Reach
    from signoff.policy.rule import Rule
    from signoff.toolsets.catalog import BuiltToolset, Catalog
    from signoff.toolsets.tool_list import ToolWords
    from signoff.workers.inspect import AgentParts, FoundTool

POLICY = click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The project's file. Default: the nearest signoff.yaml.",
)
CONNECT = click.option("--connect", is_flag=True, help="Start MCP servers, and end them, to ask for their tools.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsetRow:
    """One name, and what was found behind it."""

    name: str
    origin: str
    used_by: tuple[str, ...]
    tools: tuple[tuple[FoundTool, Reach], ...] = ()
    unknown: str = ""
    """Why its tools are not known."""
    error: str = ""
    """Why it cannot be built."""


@click.group(invoke_without_command=True)
@click.option("--worker", metavar="NAME", help="Only what this worker uses, under its own rules too.")
@CONNECT
@POLICY
@options.as_json
@click.pass_context
def toolsets(ctx: click.Context, worker: str | None, connect: bool, policy: str | None, as_json: bool) -> None:
    """The toolsets that workers can use, their tools, and what happens to calls of each.

    allow: every call runs. ask: a person is asked about each. deny: none runs. conditional: the call decides.
    A toolset that cannot be built is listed with its error; the exit code is 1 where a worker uses it.

    \b
    Example:
      signoff toolsets
      signoff toolsets --worker triage --connect
      signoff toolsets show project_files
    """
    if ctx.invoked_subcommand is not None:
        return
    from signoff.cli.words import as_json as json_line
    from signoff.wiring import settings_for

    with _quiet(as_json):
        rows = _rows(settings_for(policy), worker, connect)
    if as_json:
        click.echo(json_line({"toolsets": [_as_json(row) for row in rows]}))
    else:
        for row in rows:
            click.echo("\n".join(_lines(row)))
    if any(row.error and row.used_by for row in rows):
        ctx.exit(1)


def _quiet(as_json: bool) -> AbstractContextManager[object]:
    """For while the project's own code and plugins run: what they print must not come between our JSON."""
    from signoff.cli.safe_output import apart

    return apart() if as_json else nullcontext()


def _rows(settings: Settings, worker: str | None, connect: bool) -> list[ToolsetRow]:
    import asyncio

    from signoff.config import load_worker
    from signoff.toolsets.catalog import Catalog

    catalog = Catalog(settings)
    chosen = load_worker(settings, worker) if worker is not None else None
    workers = [chosen] if chosen is not None else _workers(settings)
    used = {name for one in workers for name in one.toolsets}
    names = sorted(used) if chosen is not None else sorted({*catalog.names(), *used})

    async def main() -> list[ToolsetRow]:
        users = {name: tuple(one.name for one in workers if name in one.toolsets) for name in names}
        return [await _row(catalog, name, users[name], chosen, connect) for name in names]

    return asyncio.run(main())


def _workers(settings: Settings) -> list[WorkerFile]:
    """The workers that can be read; `signoff workers` says what is wrong with the others."""
    from signoff.config import load_worker, worker_names
    from signoff.errors import SignoffError

    found: list[WorkerFile] = []
    for name in worker_names(settings):
        try:
            found.append(load_worker(settings, name))
        except SignoffError:
            continue
    return found


async def _row(
    catalog: Catalog, name: str, used_by: tuple[str, ...], worker: WorkerFile | None, connect: bool
) -> ToolsetRow:
    from signoff.errors import SignoffError
    from signoff.toolsets.context import Context

    try:
        origin = catalog.origin(name)
    except SignoffError as error:
        return ToolsetRow(name=name, origin="", used_by=used_by, error=str(error))
    try:
        built = catalog.build(name, Context(worker=worker.name if worker is not None else None))
    except SignoffError as error:
        needs = _needs(catalog, name) if not used_by else ""
        return ToolsetRow(name=name, origin=origin, used_by=used_by, unknown=needs, error="" if needs else str(error))
    found = await _found(built, worker, connect)
    layers = _layers(catalog.settings, worker)
    return ToolsetRow(
        name=name,
        origin=origin,
        used_by=used_by,
        tools=tuple((tool, tool.reach(layers, (worker.name,) if worker is not None else ())) for tool in found.tools),
        unknown=_unknown(found, connect),
    )


def _needs(catalog: Catalog, name: str) -> str:
    """For a built-in that cannot do without config, and has no entry: what to write. Empty for any other."""
    from signoff.toolsets.catalog import BUILTINS

    plain = name in BUILTINS and name not in catalog.settings.toolsets
    keys = _schema(catalog, name).get("required") if plain else None
    config = ", ".join(f"{key}: …" for key in keys or ())
    return f"needs an entry: toolsets: {{{name}: {{use: {name}, config: {{{config}}}}}}}" if config else ""


def _unknown(found: AgentParts, connect: bool) -> str:
    """Why tools are not known, and how they would be."""
    why = "; ".join(reason for _, reason in found.unknown)
    return f"{why} (--connect starts it for a moment)" if why and not connect else why


async def _found(built: BuiltToolset, worker: WorkerFile | None, connect: bool) -> AgentParts:
    from signoff.toolsets.tool_list import agent_with
    from signoff.workers.inspect import InspectedAgent, tools_of

    native = {tool.kind: built.policy for tool in built.native if built.policy is not None}
    agent = agent_with(built, worker.name if worker is not None else None)
    return await tools_of(InspectedAgent(agent=agent, native=native, secrets=built.secrets), connect=connect)


def _layers(settings: Settings, worker: WorkerFile | None) -> tuple[Policy, ...]:
    own = (worker.policy,) if worker is not None and worker.policy is not None else ()
    return (*settings.layers, *own)


def _as_json(row: ToolsetRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "origin": row.origin,
        "used_by": list(row.used_by),
        "tools": [_tool_as_json(tool, reach) for tool, reach in row.tools],
        "unknown": row.unknown or None,
        "error": row.error or None,
    }


def _tool_as_json(tool: FoundTool, reach: Reach) -> dict[str, Any]:
    return {
        "name": tool.name,
        "kind": tool.kind,
        "effect": reach.effect,
        "unasked": list(reach.unasked),
        "labels": list(tool.all_labels),
        "claimed": sorted(tool.claimed),
    }


def _lines(row: ToolsetRow) -> Iterator[str]:
    from signoff.cli.words import pad
    from signoff.core.safe import redacted_text
    from signoff.core.visible import visible

    users = f"  (used by {', '.join(map(visible, row.used_by))})" if row.used_by else ""
    yield f"{click.style(visible(row.name), bold=True)}  {click.style(visible(row.origin) + users, dim=True)}"
    width = max((len(visible(tool.name)) for tool, _ in row.tools), default=0)
    for tool, reach in row.tools:
        yield f"  {pad(visible(tool.name), width)}  {_outlook(tool, reach)}"
    if row.unknown:
        yield f"  {redacted_text(row.unknown)}"
    if row.error:
        colour = "red" if row.used_by else "yellow"
        for line in row.error.splitlines():
            yield click.style(f"  {visible(line.strip())}", fg=colour)


_COLOURS: Mapping[str, str] = {"allow": "green", "ask": "yellow", "deny": "red", "conditional": "cyan"}


def _outlook(tool: FoundTool, reach: Reach) -> str:
    """What happens to calls of a tool, and its labels."""
    effect = click.style(reach.effect, fg=_COLOURS[reach.effect])
    labels = _labels(tool)
    return f"{effect}{' ' * (11 - len(reach.effect))}  {labels}" if labels else effect


def _labels(tool: FoundTool) -> str:
    claimed = ", ".join(sorted(tool.claimed))
    sets = tool.labels if isinstance(tool.labels, tuple) else ()
    trusted = ", ".join(sorted(frozenset[str]().union(*sets)))
    return "  ".join(filter(None, (trusted, f"({claimed}, says its server)" if claimed else "")))


# --- one of them ---


@toolsets.command(no_args_is_help=True)
@click.argument("name")
@CONNECT
@POLICY
@options.as_json
def show(name: str, connect: bool, policy: str | None, as_json: bool) -> None:
    """One toolset, whole: its tools with what they take, its rules, and the config it understands.

    \b
    Example:
      signoff toolsets show project_files
      signoff toolsets show tickets --connect
    """
    import asyncio

    from signoff.cli.words import as_json as json_line
    from signoff.errors import SignoffError
    from signoff.toolsets.catalog import Catalog
    from signoff.wiring import settings_for

    catalog = Catalog(settings_for(policy))
    with _quiet(as_json):
        whole = Whole(catalog, name, _schema(catalog, name), connect)
        try:
            built = catalog.build(name)
        except SignoffError as wrong:  # what it takes is what one needs to know then
            whole.error = str(wrong)
        else:
            whole.found, whole.words = asyncio.run(_looked(built, connect))
    click.echo(json_line(_whole_as_json(whole)) if as_json else "\n".join(_whole_lines(whole)))
    if whole.error:
        raise click.exceptions.Exit(1)


@dataclass(slots=True)
class Whole:
    """One toolset, and all that is known of it."""

    catalog: Catalog
    name: str
    schema: Mapping[str, Any]
    """Of its config."""
    connect: bool
    """Whether servers were asked for their tools."""
    found: AgentParts | None = None
    words: Mapping[str, ToolWords] = field(default_factory=dict[str, "ToolWords"])
    error: str = ""
    """Why it could not be made."""

    @property
    def programs(self) -> list[str]:
        """The directories of the project that a shell runs programs from by name."""
        import os

        from signoff.toolsets.builtin.shell.toolset import ShellToolset

        homes = [tool.home for tool in (self.found.tools if self.found is not None else ())]
        directories = [directory for home in homes if isinstance(home, ShellToolset) for directory in home.programs]
        return [os.path.relpath(directory, self.catalog.settings.directory) for directory in directories]

    @property
    def rules(self) -> list[Rule]:
        """Those of its entry, and those that the toolset brings along."""
        policies: list[Policy] = []
        if (own := self.catalog.entry(self.name).policy) is not None:
            policies.append(own)
        for tool in self.found.tools if self.found is not None else ():
            policies += [policy for policy, _ in tool.own if policy not in policies]
        return [rule for policy in policies for rule in policy.rules]


def _schema(catalog: Catalog, name: str) -> dict[str, Any]:
    from signoff.toolsets.config_schema import config_schema
    from signoff.toolsets.native import native_schema

    if catalog.entry(name).use == "native":
        return native_schema(catalog.entry(name).config.get("kind"))
    return config_schema(catalog.target(name))


async def _looked(built: BuiltToolset, connect: bool) -> tuple[AgentParts, Mapping[str, ToolWords]]:
    from signoff.toolsets.tool_list import connected, words_of

    async with connected(built, connect):
        found = await _found(built, None, connect)
        return found, await words_of(built) if not found.unknown else dict[str, "ToolWords"]()


def _whole_as_json(whole: Whole) -> dict[str, Any]:
    layers, found, words = whole.catalog.settings.layers, whole.found, whole.words
    tools = [
        _tool_as_json(tool, tool.reach(layers, ()))
        | {"description": words[tool.name].description, "arguments": list(words[tool.name].arguments)}
        for tool in (found.tools if found is not None else ())
    ]
    return {
        "name": whole.name,
        "origin": whole.catalog.origin(whole.name),
        "tools": tools,
        "unknown": (_unknown(found, whole.connect) if found is not None else "") or None,
        "rules": [{"id": rule.id, "rule": rule.text, "place": str(rule.place)} for rule in whole.rules],
        "config_schema": whole.schema,
        "error": whole.error or None,
    }


def _whole_lines(whole: Whole) -> Iterator[str]:
    from signoff.cli.config_words import config_lines
    from signoff.core.visible import visible

    origin = visible(whole.catalog.origin(whole.name))
    yield f"{click.style(visible(whole.name), bold=True)}  {click.style(origin, dim=True)}"
    for line in whole.error.splitlines():
        yield click.style(f"  {visible(line.strip())}", fg="red")
    if whole.found is not None:
        yield from _tool_lines(whole.found, whole.words, whole.catalog.settings.layers, whole.connect)
    if directories := whole.programs:
        yield f"\nruns programs by name from {visible(', '.join(directories))}; writes there are asked about"
    if whole.rules:
        yield "\nits rules, below those of the project:"
        yield from (f"  {rule.id}: {visible(rule.text)}" for rule in whole.rules)
    elif not whole.error:
        yield "\nno rules of its own: every call is asked about, unless a rule of the project's answers"
    yield from config_lines(whole.schema)


def _tool_lines(
    found: AgentParts, words: Mapping[str, ToolWords], layers: Sequence[Policy], connect: bool
) -> Iterator[str]:
    from signoff.core.visible import visible

    for tool in found.tools:
        about = words[tool.name]
        takes = ", ".join(one if one in about.required else f"[{one}]" for one in about.arguments)
        yield f"\n{click.style(visible(tool.name), bold=True)}({visible(takes)})"
        yield f"  {_outlook(tool, tool.reach(layers, ()))}"
        first = next(iter(about.description.strip().splitlines()), "")
        if first:
            yield f"  {visible(first)}"
    if why := _unknown(found, connect):
        yield f"  {visible(why)}"
