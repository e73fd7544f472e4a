"""Open the `ApprovalDesk` of a command: a local store, or a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from signoff.cli.local_desk import LocalDesk
from signoff.cli.loops import run
from signoff.cli.open_broker import opened
from signoff.cli.server_choice import is_elsewhere
from signoff.errors import UnknownRequest, UnknownRun

if TYPE_CHECKING:
    from signoff.cli.approval_desk import ApprovalDesk

T = TypeVar("T")


def with_desk(
    store: str | None,
    policy: str | None,
    name: str | None,
    work: Callable[[ApprovalDesk], Awaitable[T]],
    *,
    make: bool = False,
) -> T:
    """Run a command's work with its desk, and close it."""
    if is_elsewhere(store):
        return run(_remotely(store, policy, name, work))

    async def main() -> T:
        return await work(LocalDesk(broker, settings, store, name))

    with opened(store, policy, make=make) as (broker, settings):
        return run(main())


async def _remotely(
    store: str | None, policy: str | None, name: str | None, work: Callable[[ApprovalDesk], Awaitable[T]]
) -> T:
    from signoff.cli.remote_desk import RemoteDesk
    from signoff.cli.server_client import server_for

    desk = RemoteDesk(server_for(store, policy, name))
    try:
        return await work(desk)
    except (UnknownRequest, UnknownRun) as error:
        raise type(error)(f"{error}; {desk.place}") from error
