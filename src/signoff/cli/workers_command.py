"""`signoff workers`: list the workers (agents described by files) of a project."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from signoff.cli import shared_options
from signoff.cli.main import told
from signoff.cli.terminal_text import as_json, pad
from signoff.cli.terminal_text import as_json as json_line
from signoff.config import EVERY_WORKER, Settings, WorkerFile, load_worker, worker_names, workers_directory
from signoff.config.files import from_here
from signoff.config.llm_do_words import foreign_files
from signoff.core.moment import span
from signoff.core.visible_text import visible
from signoff.errors import SignoffError
from signoff.toolsets.builtin_toolsets import BUILTINS, NEED_ENTRY
from signoff.wiring.project import settings_for


@click.command()
@click.argument("name", required=False)
@click.option(
    "--policy",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="The project's file. Default: the nearest signoff.yaml.",
)
@shared_options.as_json
@click.pass_context
def workers(ctx: click.Context, name: str | None, policy: str | None, as_json: bool) -> None:
    """List the workers of this project; with NAME, show one worker in detail.

    A file with an error is listed with the error, and the exit code is 1. A toolset that is not in signoff.yaml and not
    built in is looked up in toolsets.py, which is run.

    \b
    Example:
      signoff workers
      signoff workers triage
    """
    settings = settings_for(policy)
    if name is not None:
        worker = load_worker(settings, name)
        _check_toolsets(worker, settings)
        click.echo(json_line(_as_json(worker, settings)) if as_json else "\n".join(_whole(worker, settings)))
        return
    found, broken = _all(settings)
    if as_json:
        told = [_as_json(worker, settings) for worker in found.values()]
        click.echo(json_line({"workers": told, "broken": [_broken(*one) for one in broken.items()]}))
    else:
        for line in _lines(settings, found, broken):
            click.echo(line)
    if broken:
        ctx.exit(1)


def _all(settings: Settings) -> tuple[dict[str, WorkerFile], dict[str, SignoffError]]:
    """The workers that can be read, and the errors of the others."""
    found: dict[str, WorkerFile] = {}
    broken: dict[str, SignoffError] = {}
    for name in worker_names(settings):
        try:
            worker = load_worker(settings, name)
            _check_toolsets(worker, settings)
            found[name] = worker
        except SignoffError as error:
            broken[name] = error
    return found, broken


def _check_toolsets(worker: WorkerFile, settings: Settings) -> None:
    """Raise if a worker names a toolset that does not exist."""
    uses = {name: entry.use for name, entry in settings.toolsets.items()}
    for number, name in enumerate(worker.toolsets):
        use = uses.get(name, name)
        if use in BUILTINS or (name in uses and (":" in use or use in NEED_ENTRY)):
            continue
        from signoff.toolsets.catalog import Catalog  # imports PydanticAI, which is slow

        Catalog(settings).check(name, worker.spots.get(f"toolsets[{number}]", worker.spot))


def _lines(settings: Settings, found: Mapping[str, WorkerFile], broken: Mapping[str, SignoffError]) -> Iterator[str]:
    yield from _foreign(settings, {*found, *broken})
    if not found and not broken:
        yield f"No workers in {visible(workers_directory(settings))}: create NAME.yaml or NAME.md there."
        return
    width = max(len(visible(name)) for name in (*found, *broken))
    for name in sorted((*found, *broken)):
        start = click.style(pad(visible(name), width), bold=True)
        if name in broken:
            yield f"{start}  {click.style('wrong', fg='red')}: {told(broken[name])}"
            continue
        worker = found[name]
        yield f"{start}  {visible(worker.description) or click.style('no description', dim=True)}"
        for what, said in _facts(worker, settings):
            yield f"{' ' * width}  {what} {said}"


def _foreign(settings: Settings, known: set[str]) -> Iterator[str]:
    """Worker files of llm-do that were not imported yet."""
    files = [*foreign_files(settings.directory, known), *foreign_files(workers_directory(settings), known)]
    if files:
        listed = ", ".join(visible(from_here(file)) for file in files)
        yield f"Skipped worker files of llm-do: {listed}"
        yield f"  `signoff import llm-do {visible(from_here(settings.directory))}` shows how to convert them"


def _facts(worker: WorkerFile, settings: Settings) -> Iterator[tuple[str, str]]:
    """The facts about a worker that the list shows."""
    yield "model", _model(worker, settings)
    if worker.toolsets:
        yield "toolsets", _listed(worker.toolsets)
    if worker.delegates:
        yield "delegates to", _delegates(worker)
    if worker.creates:
        yield "may write", "new workers; a person approves each"
    yield "file", _visible(worker.file)


def _whole(worker: WorkerFile, settings: Settings) -> Iterator[str]:
    yield click.style(worker.name, bold=True) + (f": {visible(worker.description)}" if worker.description else "")
    for what, said in (*_facts(worker, settings), *_more(worker)):
        yield f"  {what} {said}"
    if worker.policy is not None:
        yield "  its own rules, which can only tighten:"
        for rule in worker.policy.rules:
            yield f"    {_visible(rule.id)}  {_visible(rule.text)}  ({_visible(str(rule.place))})"
    instructions = worker.spec.get("instructions")
    if instructions:
        yield "  instructions:"
        texts = [instructions] if isinstance(instructions, str) else instructions
        for line in (line for text in texts for line in str(text).splitlines()):
            yield f"    {_visible(line)}" if line.strip() else ""


def _more(worker: WorkerFile) -> Iterator[tuple[str, str]]:
    if worker.approvers:
        yield "asks", f"somebody with the role {_listed(worker.approvers, ' or ')}"
    if worker.on_denied:
        yield "on a denial", "ends with an error" if worker.on_denied == "raise" else "goes on"
    limits = {**_limits(worker), "time": span(worker.limits.time.total_seconds()) if worker.limits.time else None}
    if any(value is not None for value in limits.values()):
        yield "limits", ", ".join(f"{key} {value}" for key, value in limits.items() if value is not None)
    for what, value in (("input", worker.input), ("output", worker.output)):
        if value is not None:
            yield what, as_json(value)
    if worker.attachments:
        yield "attachments", _listed(worker.attachments)
    told = ("model", "name", "description", "instructions")
    for key, value in worker.spec.items():
        if key not in told:
            yield key, as_json(value)


def _model(worker: WorkerFile, settings: Settings) -> str:
    own = worker.spec.get("model")
    if own is not None:
        return _visible(str(own))
    return f"{_visible(settings.model)} (the project's)" if settings.model else "none: set one with --model"


def _delegates(worker: WorkerFile) -> str:
    return "every worker" if EVERY_WORKER in worker.delegates else _listed(worker.delegates)


def _listed(words: tuple[str, ...], between: str = ", ") -> str:
    return between.join(map(_visible, words))


def _visible(text: str) -> str:
    return visible(text)


def _limits(worker: WorkerFile) -> dict[str, Any]:
    limits = worker.limits
    return {
        "requests": limits.requests,
        "tokens": limits.tokens,
        "cost": limits.cost,
        "time": limits.time.total_seconds() if limits.time is not None else None,
        "depth": limits.depth,
    }


def _as_json(worker: WorkerFile, settings: Settings) -> dict[str, Any]:
    return {
        "name": worker.name,
        "description": worker.description,
        "file": worker.file,
        "model": worker.spec.get("model") or settings.model,
        "toolsets": list(worker.toolsets),
        "delegates": list(worker.delegates),
        "creates": worker.creates,
        "approvers": list(worker.approvers),
        "on_denied": worker.on_denied or settings.on_denied,
        "limits": _limits(worker),
        "input": worker.input,
        "output": worker.output,
        "attachments": list(worker.attachments),
        "policy": [
            {"id": rule.id, "effect": str(rule.effect), "says": rule.text, "place": str(rule.place)}
            for rule in (worker.policy.rules if worker.policy is not None else ())
        ],
        "spec": dict(worker.spec),
    }


def _broken(name: str, error: SignoffError) -> dict[str, Any]:
    return {"name": name, "error": str(error)}
