"""`signoff stores`: list the stores of all projects, and the one used here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from signoff.cli import shared_options
from signoff.cli.loops import run
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import count, safe
from signoff.core.halt import halt_in
from signoff.errors import SignoffError, WrongUse
from signoff.store.store_factory import open_store
from signoff.wiring.project import settings_for
from signoff.wiring.stores import KeptStore, chosen_store, kept_stores

if TYPE_CHECKING:
    from signoff.ports import Transaction


MANY = 1_000
"""Requests and runs are counted up to this number."""


@click.command()
@shared_options.as_json
@shared_options.where
def stores(as_json: bool, store: str | None, policy: str | None) -> None:
    """List the store that commands use here, and the default stores of all your projects.

    The store of a deleted project is kept: delete its directory when you no longer need its audit log. Stores that a
    project names in `store:` are not listed.

    \b
    Example:
      signoff stores
    """
    settings = settings_for(policy)
    try:
        chosen, problem = chosen_store(store, settings), ""
    except WrongUse as error:  # for example if several stores could be meant: the list helps to tell them apart
        chosen, problem = None, str(error)
    found = [StoreSummary.into(one) for one in kept_stores()]
    if as_json:
        here: dict[str, Any] = {"project": None, "store": None, "made": False, "problem": problem}
        if chosen is not None:
            here = {"project": chosen.project or None, "store": chosen.shown, "made": not chosen.is_missing}
        click.echo(json_line({"here": here, "stores": [one.as_json() for one in found]}))
        return
    for line in problem.splitlines() if chosen is None else (chosen.in_words(), f"  {chosen.shown}"):
        click.echo(f"{safe(line)}" if line.startswith(" ") else f"Here: {safe(line)}")
    for one in found:
        click.echo("")
        for line in one.lines(is_here=chosen is not None and str(one.kept.file) == chosen.file):
            click.echo(line)


@dataclass(frozen=True, slots=True)
class StoreSummary:
    """A short summary of a store."""

    kept: KeptStore
    waiting: int = 0
    going: int = 0
    halted: bool = False
    problem: str = ""
    """Why it cannot be read."""

    @classmethod
    def into(cls, kept: KeptStore) -> StoreSummary:
        def look(tx: Transaction) -> StoreSummary:
            return cls(
                kept,
                len(tx.queue.page(limit=MANY)),
                len(tx.runs.all(going=True, limit=MANY)),
                bool(halt_in(tx.settings.get)),
            )

        try:
            with closing(open_store(f"sqlite:{kept.file}")) as opened:
                return run(opened.read(look))
        except SignoffError as error:
            return cls(kept, problem=str(error).splitlines()[0])

    def lines(self, *, is_here: bool) -> Iterator[str]:
        project = safe(self.kept.project) or "of a program"
        gone = "" if self.kept.is_there or not self.kept.project else "  (no longer there)"
        yield click.style(f"{project}{gone}{'  (here)' if is_here else ''}", bold=True)
        yield f"  sqlite:{safe(str(self.kept.file))}"
        if self.problem:
            yield click.style(f"  {safe(self.problem)}", fg="red")
            return
        halted = ", halted" if self.halted else ""
        yield f"  {count(self.waiting, 'request waits', 'requests wait')}, {count(self.going, 'active run')}{halted}"

    def as_json(self) -> dict[str, Any]:
        return {
            "project": self.kept.project or None,
            "there": self.kept.is_there,
            "store": f"sqlite:{self.kept.file}",
            "waiting": self.waiting,
            "runs": self.going,
            "halted": self.halted,
            "problem": self.problem or None,
        }
