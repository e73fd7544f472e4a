"""`signoff schema`: JSON Schemas of the files people write, for editors."""

from __future__ import annotations

import json
from pathlib import Path

import click

from signoff.config.json_schemas import SCHEMA_FILES, schema_of
from signoff.errors import WrongUse

_SCHEMAS = ("project", "worker", "script")


@click.command()
@click.argument("name", type=click.Choice(_SCHEMAS), required=False)
@click.option(
    "--write",
    "directory",
    metavar="DIRECTORY",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write them into DIRECTORY instead: signoff.schema.json, worker.schema.json, script.schema.json.",
)
def schema(name: str | None, directory: Path | None) -> None:
    """Print the JSON Schema of signoff.yaml (project), of worker files or of scripts.

    An editor with a YAML language server completes and checks a file that starts with the comment
    # yaml-language-server: $schema=signoff.schema.json

    \b
    Example:
      signoff schema worker
      signoff schema --write .
    """
    if directory is None:
        click.echo(_text(schema_of(name or "project")), nl=False)
        return
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for one in (name,) if name is not None else _SCHEMAS:
            file = directory / SCHEMA_FILES[one]
            file.write_text(_text(schema_of(one)), encoding="utf-8")
            click.echo(f"wrote {file}")
    except OSError as error:
        raise WrongUse(f"{directory} cannot be written: {error.strerror}") from error


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"
