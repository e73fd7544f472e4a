"""`signoff init`: a first policy, an agent to try it on, and a script to run it with."""

from __future__ import annotations

from pathlib import Path

import click

from signoff.errors import WrongUse

TEMPLATES = Path(__file__).parent / "templates"
FILES = ("signoff.yaml", "agent.py", "hello.yaml")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def init(folder: Path) -> None:
    """Write signoff.yaml, agent.py and hello.yaml into FOLDER (default: here). Nothing is overwritten.

    \b
    Example:
      signoff init
      signoff run agent:agent "Note the milk" --model script:hello.yaml
    """
    there = [name for name in FILES if (folder / name).exists()]
    if there:
        raise WrongUse(
            f"{', '.join(str(folder / name) for name in there)} already there; nothing was written.\n"
            "  Move it away, or name another folder: signoff init FOLDER"
        )
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        # Exclusive: a file that appeared in between is not overwritten either.
        with (folder / name).open("x", encoding="utf-8") as out:
            out.write((TEMPLATES / name).read_text(encoding="utf-8"))
        click.echo(f"wrote {folder / name}")
    step = "" if folder == Path(".") else f"cd {folder} && "
    click.echo(f'\nTry it:  {step}signoff run agent:agent "Note the milk" --model script:hello.yaml')
