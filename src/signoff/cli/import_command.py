"""`signoff import`: import projects of other programs. Nothing is written without --write."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import shared_options
from signoff.cli.terminal_text import as_json as json_line
from signoff.config.files import from_here
from signoff.config.llm_do.convert import all_notes, convert
from signoff.config.llm_do.notes import FileState, Note, NoteKind
from signoff.config.llm_do.sources import read_sources
from signoff.config.llm_do.target import ImportedFile, plan, write
from signoff.core.visible_text import visible
from signoff.errors import Place

if TYPE_CHECKING:
    from signoff.config.llm_do.draft import Imported


@click.group(name="import")
def import_() -> None:
    """Import a project of another program. A dry run, unless --write is given.

    \b
    Example:
      signoff import llm-do old-project
    """


@import_.command(name="llm-do")
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--into", metavar="DIR", type=click.Path(file_okay=False), help="Where to write. Default: DIRECTORY.")
@click.option(
    "--write", "is_write", is_flag=True, help="Write the files. Without it, only report what would be written."
)
@click.option("--overwrite", is_flag=True, help="With --write: replace existing files.")
@click.option("--skip", metavar="FILE", multiple=True, type=click.Path(), help="Skip this file. Repeatable.")
@click.option("--diff", "is_diff", is_flag=True, help="Show every line that would be written.")
@shared_options.as_json
@click.pass_context
def llm_do(
    ctx: click.Context,
    directory: str,
    into: str | None,
    is_write: bool,
    overwrite: bool,
    skip: tuple[str, ...],
    is_diff: bool,
    as_json: bool,
) -> None:
    """Convert the llm-do project in DIRECTORY to signoff.yaml and workers/, and report what each line becomes.

    It reads worker files (.worker, .agent) and project.json, and runs no Python code of the project. Nothing is
    loosened: what cannot be expressed exactly becomes a question, and the report says so.

    \b
    Example:
      signoff import llm-do old-project
      signoff import llm-do old-project --diff
      signoff import llm-do old-project --into new-project --write

    Exit codes: 0 done, 1 a file cannot be converted (then nothing is written), 2 usage error.
    """
    if overwrite and not is_write:
        raise click.UsageError("--overwrite needs --write.")
    sources = read_sources(directory, skip)
    result = convert(sources)
    target = from_here(into if into is not None else directory)
    planned = plan(target, result.files)
    written = is_write and not result.refused
    if written:
        sources.check_unchanged()
        write(planned, target, overwrite=overwrite)
    if as_json:
        click.echo(json_line(_as_json(result, planned, written)))
    else:
        for line in _lines(result, planned, target, written, is_diff=is_diff):
            click.echo(line)
        if not result.refused and not written:
            click.echo("\nNothing was written. Run the same command with --write to write it.")
    if result.refused:
        ctx.exit(1)


def _lines(
    result: Imported, planned: list[ImportedFile], target: str, written: bool, *, is_diff: bool
) -> Iterator[str]:
    yield f"{'Wrote' if written else 'Would write'} into {visible(target)}:"
    origin = {f"workers/{draft.name}.md": draft.source.file for draft in result.drafts}
    for one in planned:
        source = f"  from {visible(origin[one.name])}" if one.name in origin else ""
        yield f"  {one.change:9}{visible(one.path)}{source}"
    if is_diff:
        yield from _diff(planned)
    notes = list(all_notes(result))
    for kind, title in (
        (NoteKind.CARRIED, "Carried over"),
        (NoteKind.CHANGED, "Different here"),
        (NoteKind.LEFT, "Not converted"),
    ):
        chosen = [note for note in notes if note.kind is kind]
        if chosen:
            yield ""
            yield click.style(f"{title}:", bold=True)
            for note in chosen:
                yield from _told(note)
    if result.refused:
        yield ""
        yield click.style("Refused, so nothing is written:", bold=True)
        for error in result.refused.values():
            yield f"  {visible(str(error.place or ''))}: {visible(error.what)}"
            if error.fix:
                yield f"      do: {visible(error.fix)}"
    yield ""
    yield _counted(result)
    if result.start is not None and not result.refused:
        yield f"Start it:  {visible(_start(result.start, target))}"


def _told(note: Note) -> Iterator[str]:
    place = Place(note.place.file, note.place.line, note.place.column)
    yield f"  {visible(str(place))}: {visible(note.what)}"
    if note.fix:
        yield f"      do: {visible(note.fix)}"


def _diff(planned: list[ImportedFile]) -> Iterator[str]:
    from difflib import unified_diff

    for one in planned:
        before = (one.before or "").splitlines()
        yield ""
        for line in unified_diff(
            before, one.text.splitlines(), one.path if one.before else "/dev/null", one.path, "", "", lineterm=""
        ):
            yield visible(line)


def _counts(result: Imported) -> dict[str, int]:
    states = [draft.state for draft in result.drafts]
    return {
        "files": len(states) + len(result.refused),
        "whole": states.count(FileState.WHOLE),
        "notes": states.count(FileState.NOTES),
        "python": sum(draft.needs_python for draft in result.drafts),
        "refused": len(result.refused),
    }


def _counted(result: Imported) -> str:
    counts = _counts(result)
    python = f" ({counts['python']} need Python code)" if counts["python"] else ""
    noun = "worker file" if counts["files"] == 1 else "worker files"
    return (
        f"{counts['files']} {noun}: {counts['whole']} converted completely, "
        f"{counts['notes']} with notes{python}, {counts['refused']} refused."
    )


def _start(start: tuple[str, str], target: str) -> str:
    name, prompt = start
    step = "" if target == "." else f"cd {shlex.quote(target)} && "
    return f"{step}signoff run {name} {shlex.quote(' '.join(prompt.split())) if prompt else 'PROMPT'}"


def _as_json(result: Imported, planned: list[ImportedFile], written: bool) -> dict[str, Any]:
    return {
        "written": written,
        "files": [{"path": one.path, "change": str(one.change), "text": one.text} for one in planned],
        "workers": [
            {
                "name": draft.name,
                "source": draft.source.file,
                "state": str(draft.state),
                "needs_python": draft.needs_python,
            }
            for draft in result.drafts
        ],
        "refused": [
            {"file": file, "place": str(error.place or ""), "what": error.what, "do": error.fix}
            for file, error in result.refused.items()
        ],
        "notes": [note.as_json() for note in all_notes(result)],
        "start": {"worker": result.start[0], "prompt": result.start[1]} if result.start else None,
        "counts": _counts(result),
    }
