"""Whether a command is to work through a server: what was typed, and what the environment says. Loads nothing else."""

from __future__ import annotations

import os
from dataclasses import dataclass

import click

OPTION, VARIABLE = "--server", "SIGNOFF_SERVER"
_META = "signoff.server"
"""Under which the options stand in the context of a command."""


@dataclass(slots=True)
class ServerOptions:
    """What was typed."""

    url: str = ""
    token_file: str = ""


def server_options() -> ServerOptions:
    """Where the options of the command at hand are noted."""
    return click.get_current_context().meta.setdefault(_META, ServerOptions())


def server_meant(store: str | None) -> str:
    """The address of the server that is meant; empty where the command works here. A store that is typed is here."""
    return server_options().url or ("" if store is not None else os.environ.get(VARIABLE, ""))


def is_elsewhere(store: str | None) -> bool:
    """Whether anything says that a server is meant, be it rightly or not: then it is worth to load what reaches it."""
    return bool(server_meant(store) or server_options().token_file)
