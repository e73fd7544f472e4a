"""Commands as coroutines: what asks a desk, or the broker of this machine, says what to print, and not how."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import partial, update_wrapper
from inspect import isasyncgenfunction
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from signoff.cli import shared_options
from signoff.cli.open_broker import say_where, with_broker
from signoff.cli.open_desk import with_desk
from signoff.cli.terminal_text import as_json as json_line
from signoff.core.exit_codes import FAILED

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.cli.approval_desk import ApprovalDesk
    from signoff.config import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """What a command prints."""

    lines: Iterable[str] = ()
    notes: Iterable[str] = ()
    """Lines for standard error, after the others; --json leaves them out."""
    data: Any = None
    """What --json prints instead; None prints nothing."""
    where: bool | None = None
    """Whether to say at the end which store was used: True always, False only at a terminal."""
    ok: bool = True
    """False ends the command with exit code 1, once everything is printed."""


Work: TypeAlias = "Callable[..., Awaitable[Printed | str] | AsyncIterator[Printed]]"
"""A command: returns what to print, or yields it as it comes. A text is a line, for a command without --json."""


def on_desk() -> Callable[[Work], Callable[..., None]]:
    """Make a command of a coroutine whose first argument is the `ApprovalDesk`. Adds `--store`, `--server` and so on.

    `--as` chooses the person of the desk, and `--json` what is printed; all other options are arguments of the
    coroutine.
    """
    return lambda work: shared_options.anywhere(update_wrapper(partial(run_on_desk, work), work))


def on_broker(*, make: bool = False) -> Callable[[Work], Callable[..., None]]:
    """Make a command of a coroutine whose first arguments are the broker and the settings, for work that only this
    machine can do. With `make`, a missing store is created.
    """
    return lambda work: shared_options.where(update_wrapper(partial(run_on_broker, work, make=make), work))


def run_on_desk(
    work: Work,
    *,
    store: str | None,
    policy: str | None,
    name: str | None = None,
    as_json: bool = False,
    make: bool = False,
    **given: Any,
) -> None:
    """Run a command on its desk, and print what it returns or yields."""
    printing = Printing(store, policy, as_json)

    async def printed(desk: ApprovalDesk) -> None:
        await printing.all_of(work, desk, **given)

    with_desk(store, policy, name, printed, make=make)
    printing.end()


def run_on_broker(
    work: Work, *, store: str | None, policy: str | None, as_json: bool = False, make: bool = False, **given: Any
) -> None:
    """Run a command on the broker of this machine, and print what it returns or yields."""
    printing = Printing(store, policy, as_json)

    async def printed(broker: Broker, settings: Settings) -> None:
        await printing.all_of(work, broker, settings, **given)

    with_broker(store, policy, printed, make=make)
    printing.end()


class Printing:
    """Prints what a command returns or yields, for people or as JSON."""

    def __init__(self, store: str | None, policy: str | None, as_json: bool) -> None:
        self._place = store, policy
        self._as_json = as_json
        self._where: bool | None = None
        self._ok = True

    async def all_of(self, work: Work, *arguments: Any, **given: Any) -> None:
        """Print each part as soon as it is known: if a later one fails, people know what was done."""
        done: Any = work(*arguments, **given)
        if isasyncgenfunction(work):
            async for one in done:
                self._print(one)
        else:
            one = await done
            self._print(Printed(lines=[one]) if isinstance(one, str) else one)

    def _print(self, one: Printed) -> None:
        self._ok = self._ok and one.ok
        self._where = one.where
        if self._as_json:
            if one.data is not None:
                click.echo(json_line(one.data))
            return
        for line in one.lines:
            click.echo(line)
        for line in one.notes:
            click.echo(line, err=True)

    def end(self) -> None:
        """Say which store was used, and exit if something failed. The store is closed by now."""
        if self._where is not None and not self._as_json:
            say_where(*self._place, always=self._where)
        if not self._ok:
            sys.exit(FAILED)
