"""Opens what a command works on: the approvals of a store here, or those of a server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from signoff.cli.command_approvals import CommandApprovals
from signoff.cli.server_choice import is_elsewhere
from signoff.errors import UnknownRequest, UnknownRun

T = TypeVar("T")


def with_approvals(
    store: str | None,
    policy: str | None,
    name: str | None,
    work: Callable[[CommandApprovals], Awaitable[T]],
    *,
    make: bool = False,
) -> T:
    """Do a command's work with what it is about, and let go of it."""
    from signoff.cli.loops import run

    if is_elsewhere(store):
        return run(_remotely(store, policy, name, work))
    from signoff.cli.local_approvals import LocalApprovals
    from signoff.cli.open_broker import opened

    async def main() -> T:
        return await work(LocalApprovals(broker, settings, store, name))

    with opened(store, policy, make=make) as (broker, settings):
        return run(main())


async def _remotely(
    store: str | None, policy: str | None, name: str | None, work: Callable[[CommandApprovals], Awaitable[T]]
) -> T:
    from signoff.cli.remote_approvals import RemoteApprovals
    from signoff.cli.server_client import server_for

    approvals = RemoteApprovals(server_for(store, policy, name))
    try:
        return await work(approvals)
    except (UnknownRequest, UnknownRun) as error:
        raise type(error)(f"{error}; {approvals.place}") from error
