"""Shell completion of ids, each with its title. On any error it completes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from signoff.cli.terminal_text import clip, safe
from signoff.core.safe_text import safe_text
from signoff.wiring.project import settings_for

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from signoff.ports import Store, Transaction

MOST = 200
"""Most completions that are offered."""

Found = Iterable[tuple[str, str]]


def pending(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete requests that wait for an answer."""
    return _complete(ctx, param, incomplete, lambda tx: _waiting(tx, ("pending",)))


def unknown(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete requests whose outcome is unknown."""
    return _complete(ctx, param, incomplete, lambda tx: _waiting(tx, ("unknown",)))


def waiting(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete requests that wait for a person: pending, or with an unknown outcome."""
    return _complete(ctx, param, incomplete, lambda tx: _waiting(tx, ("pending", "unknown")))


def runs(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete runs that are not over."""
    return _complete(ctx, param, incomplete, _runs)


def channels(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete channels of the project file."""
    from click.shell_completion import CompletionItem

    with suppress(Exception):
        typed = ctx.params.get(param.name or "") or ()
        found = settings_for(ctx.params.get("policy")).channels.values()
        wanted = [one for one in found if one.name.startswith(incomplete) and one.name not in typed]
        return [CompletionItem(one.name, help=one.use) for one in wanted[:MOST]]
    return []


def grants(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete grants that are not revoked."""
    return _complete(ctx, param, incomplete, _grants)


def _waiting(tx: Transaction, states: tuple[str, ...]) -> Found:
    return [(item.id, item.title) for item in tx.queue.page(limit=5 * MOST) if item.state in states]


def _runs(tx: Transaction) -> Found:
    return [(run.id, safe_text(f"{run.agent} {run.prompt}")) for run in tx.runs.all(going=True, limit=MOST)]


def _grants(tx: Transaction) -> Found:
    from signoff.policy.grant_text import grant_line

    return [(grant.id, grant_line(grant)) for grant in tx.grants.all()]


def _complete(
    ctx: click.Context, param: click.Parameter, incomplete: str, look: Callable[[Transaction], Found]
) -> list[CompletionItem]:
    with suppress(Exception):
        return _items(ctx, param, incomplete, look)
    return []


async def _read(store: Store, look: Callable[[Transaction], Found]) -> Found:
    return await store.read(look)


def _items(
    ctx: click.Context, param: click.Parameter, incomplete: str, look: Callable[[Transaction], Found]
) -> list[CompletionItem]:
    import asyncio

    from click.shell_completion import CompletionItem

    from signoff.cli.open_broker import store_meant

    given = ctx.params
    store = store_meant(given.get("store"), settings_for(given.get("policy")), make=False)
    try:
        found = asyncio.run(_read(store, look))
    finally:
        store.close()
    typed = given.get(param.name or "") or ()
    wanted = [(one, text) for one, text in found if one.startswith(incomplete) and one not in typed]
    return [CompletionItem(one, help=clip(safe(text), 80)) for one, text in wanted[:MOST]]
