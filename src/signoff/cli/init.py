"""`signoff init`: a first project: its file, a worker to try it on, and a script to run it with."""

from __future__ import annotations

from pathlib import Path

import click

from signoff.errors import WrongUse

TEMPLATES = Path(__file__).parent / "templates"
FILES = ("signoff.yaml", "workers/notetaker.yaml", "hello.yaml")
SCHEMAS = ".signoff"
"""Where an editor finds the schemas that the files name: in the project, so that no network is needed."""


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def init(folder: Path) -> None:
    """Write signoff.yaml, workers/notetaker.yaml and hello.yaml into FOLDER (default: here). Nothing is overwritten.

    The schemas they name, for editors, go into .signoff; `signoff schema --write .signoff` brings them up to date.

    \b
    Example:
      signoff init
      signoff run notetaker "Note the milk" --model script:hello.yaml
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise WrongUse(
            f"{', '.join(str(folder / name) for name in there)} already there; nothing was written.\n"
            "  Move it away, or name another folder: signoff init FOLDER"
        )
    try:
        for name in FILES:
            _write(folder / name, (TEMPLATES / name).read_text(encoding="utf-8"), mode="x")
        _write_schemas(folder / SCHEMAS)
    except OSError as error:
        raise WrongUse(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    step = "" if folder == Path(".") else f"cd {folder} && "
    click.echo(f'\nTry it:  {step}signoff run notetaker "Note the milk" --model script:hello.yaml')


def _write(file: Path, text: str, *, mode: str) -> None:
    """Mode `x`: a file that appeared in between is not overwritten either."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode, encoding="utf-8") as out:
        out.write(text)
    click.echo(f"wrote {file}")


def _write_schemas(folder: Path) -> None:
    import json

    from signoff.config.schema import SCHEMA_FILES, schema_of

    for name, file in SCHEMA_FILES.items():
        _write(folder / file, json.dumps(schema_of(name), ensure_ascii=False, indent=2) + "\n", mode="w")
