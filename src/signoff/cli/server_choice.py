"""Whether a command uses a server, by its options and the environment. Imports nothing else of signoff."""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

OPTION, VARIABLE = "--server", "SIGNOFF_SERVER"
_META = "signoff.server"
"""The key of the options in click's context."""


@dataclass(slots=True)
class ServerOptions:
    """The options as they were typed."""

    url: str = ""
    token_file: str = ""


def server_options() -> ServerOptions:
    """The server options of the current command."""
    return click.get_current_context().meta.setdefault(_META, ServerOptions())


def server_meant(store: str | None) -> str:
    """The address of the server to use; empty if the command works locally. A `--store` option means locally."""
    return server_options().url or ("" if store is not None else os.environ.get(VARIABLE, ""))


def is_elsewhere(store: str | None) -> bool:
    """Whether any option or variable asks for a server, rightly or not; the client, imported then, checks that."""
    return bool(server_meant(store) or server_options().token_file)
