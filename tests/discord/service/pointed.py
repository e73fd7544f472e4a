"""Points discord.py at the stand-in instead of Discord.

`python -m tests.discord.service.pointed ARGS…` runs the program's own command line with ARGS, with the library pointed
at the URL in the environment variable SIGNOFF_TEST_DISCORD: the real program, in a process of its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import timedelta
from typing import Any

ENVIRONMENT = "SIGNOFF_TEST_DISCORD"


def point(api_url: str, gateway_url: str, *, hurry: bool = True) -> Callable[[], None]:
    """Every client of this process talks to these addresses from now on. Call the result to take it back.

    `hurry` shortens what the library waits for no reason here: the two seconds for further guilds before it says that
    it is ready, the seconds between attempts to connect, and the five before it identifies again.
    """
    import discord.client
    import yarl
    from discord.asset import Asset
    from discord.backoff import ExponentialBackoff
    from discord.gateway import DiscordWebSocket
    from discord.http import Route
    from discord.state import ConnectionState

    undo: list[tuple[Any, str, Any]] = []

    def put(owner: Any, name: str, value: Any) -> None:
        undo.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)

    put(Route, "BASE", api_url)
    put(DiscordWebSocket, "DEFAULT_GATEWAY", yarl.URL(gateway_url))
    put(Asset, "BASE", api_url.partition("/api")[0])
    if hurry:
        begin = ConnectionState.__init__

        def quick(self: Any, **options: Any) -> None:
            options.setdefault("guild_ready_timeout", 0.05)
            begin(self, **options)

        put(ConnectionState, "__init__", quick)

        class Quick(ExponentialBackoff[Any]):
            def delay(self) -> Any:
                return super().delay() / 50

        put(discord.client, "ExponentialBackoff", Quick)

        async def at_once(*_: Any, **__: Any) -> None:
            """It waits five seconds before it identifies a second time."""

        put(discord.client.Client, "before_identify_hook", at_once)

    def back() -> None:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)

    return back


def point_at(url: str) -> Callable[[], None]:
    """The same, from `service.url`."""
    return point(f"{url}/api/v10", url.replace("http", "ws") + "/gateway/")


def main() -> None:
    point_at(os.environ[ENVIRONMENT])
    from signoff.cli.main import main as signoff
    from signoff.delivery import reconcile

    reconcile.EVERY = timedelta(seconds=1)  # what another process ended is told here within this time, not within five
    sys.argv[0] = "signoff"
    signoff()


if __name__ == "__main__":
    main()
