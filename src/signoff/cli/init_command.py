"""`signoff init`: create a project: signoff.yaml, an example worker, and a script to run it with."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import click

from signoff.cli import shared_options
from signoff.cli.coding_policy import coding_policy
from signoff.config.files import link_on_the_way
from signoff.config.json_schemas import SCHEMA_FILES, schema_of
from signoff.errors import WrongUse
from signoff.outside.coding_agents import AGENTS
from signoff.wiring.project_trust import trust

TEMPLATES = Path(__file__).parent / "templates"
FILES = ("signoff.yaml", "workers/notetaker.yaml", "hello.yaml")
SCHEMAS = ".signoff"
"""Where editors find the JSON schemas that the files name: in the project, so that no network is needed."""


@click.command()
@click.argument("directory", type=click.Path(path_type=Path, file_okay=False), default=".")
@click.option(
    "--for", "agent", type=click.Choice(tuple(AGENTS)), help="Write a policy for this coding agent, and no worker."
)
@click.option(
    "--network-reads", is_flag=True, help="With --for: also allow what only reads over the network (`gh pr view`)."
)
@shared_options.only_here
def init(directory: Path, agent: str | None, network_reads: bool) -> None:
    """Write signoff.yaml, workers/notetaker.yaml and hello.yaml into DIRECTORY (default: here). Overwrites nothing.

    Their schemas, for editors, go into .signoff; `signoff schema --write .signoff` updates them. With --for, it writes
    only a signoff.yaml with a ready-made policy for a coding agent: reading, tests, and edits inside the project run;
    secrets, and the agent's own rules and settings, are denied; everything else asks.

    \b
    Example:
      signoff init
      signoff run notetaker "Note the milk" --model script:hello.yaml
      signoff init --for claude-code
    """
    if network_reads and agent is None:
        raise WrongUse("--network-reads is for the policy of a coding agent; give --for as well")
    if agent is not None:
        texts = {directory / "signoff.yaml": coding_policy(directory, agent, network=network_reads)}
    else:
        texts = {directory / name: (TEMPLATES / name).read_text(encoding="utf-8") for name in FILES}
    schemas = {directory / SCHEMAS / name: text for name, text in _schemas()}
    wanted = {**texts, **{file: text for file, text in schemas.items() if not _holds(file, text)}}
    there = list(dict.fromkeys(str(one) for file in wanted for one in _in_the_way(file, directory)))
    if there:
        raise WrongUse(
            f"{', '.join(there)} already exists; nothing was written.\n"
            "  Move it away, or name another directory: signoff init DIRECTORY"
        )
    for file in wanted:
        if link := link_on_the_way(str(file), str(directory)):
            raise WrongUse(
                f"{link} is a link; nothing was written\n"
                "  Move it away, or name another directory: signoff init DIRECTORY"
            )
    _write_all(wanted, directory)
    for file in wanted:
        click.echo(f"wrote {file}")
    step = "" if directory == Path(".") else f"cd {directory} && "
    if agent is not None:
        with suppress(WrongUse):  # the hook then says what to type
            trust(str(directory / "signoff.yaml"))
        click.echo(f"\nInstall the hook:  {step}signoff hook install {agent} --project")
        click.echo(f"Answer questions:  {step}signoff inbox --watch")
        return
    click.echo(f'\nTry it:  {step}signoff run notetaker "Note the milk" --model script:hello.yaml')
    click.echo(f"Talk:    {step}signoff run notetaker --chat --model script:hello.yaml")
    click.echo("A real model needs its package and a key; `signoff doctor` says what is missing:")
    click.echo("         pip install 'signoff[anthropic]'; export ANTHROPIC_API_KEY=…")
    click.echo("         signoff run notetaker --chat --model anthropic:claude-sonnet-5")


def _schemas() -> Iterator[tuple[str, str]]:
    for name, file in SCHEMA_FILES.items():
        yield file, json.dumps(schema_of(name), ensure_ascii=False, indent=2) + "\n"


def _holds(file: Path, text: str) -> bool:
    """Whether the file exists with exactly this text."""
    try:
        return file.is_file() and file.read_text(encoding="utf-8") == text
    except (OSError, ValueError):
        return False


def _in_the_way(file: Path, directory: Path) -> Iterator[Path]:
    """What exists at the file's path, including a dangling symlink, or in place of one of its directories."""
    if os.path.lexists(file):
        yield file
    for parent in (file.parent, *file.parent.parents):
        if os.path.lexists(parent) and not parent.is_dir():
            yield parent
        if parent == directory:
            return


def _write_all(texts: Mapping[Path, str], directory: Path) -> None:
    """Write every file. If one cannot be written, remove all files and directories made so far."""
    made: list[Path] = []
    try:
        for file, text in texts.items():
            for parent in reversed((file.parent, *file.parent.parents)):
                if not parent.exists():
                    parent.mkdir()
                    made.append(parent)
            with file.open("x", encoding="utf-8") as out:  # never overwrite a file that appeared meanwhile
                made.append(file)
                out.write(text)
    except BaseException as error:
        for one in reversed(made):
            with suppress(OSError):  # a directory that somebody else used meanwhile stays
                one.rmdir() if one.is_dir() else one.unlink()
        if not isinstance(error, OSError):
            raise
        where = error.filename or directory
        raise WrongUse(f"{where} cannot be written: {error.strerror}; no files were created") from error
