"""What discord.py does not document is used in one module, and is still there."""

from __future__ import annotations

import ast
from pathlib import Path

import discord
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient

from signoff.channels.discord import library_internals

UNDOCUMENTED = {"http", "ws", "warn_nacl", "warn_dave"}
"""Attributes without an underscore that the library's documentation does not have."""


def _outside(file: Path) -> list[str]:
    """Attributes of other objects than our own that nobody promised."""
    return [
        f"{file.name}:{node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute)
        and (node.attr in UNDOCUMENTED or (node.attr.startswith("_") and not node.attr.startswith("__")))
        and ast.unparse(node.value) not in ("self", "cls")
    ]


def test_only_one_module_uses_what_is_not_documented() -> None:
    inside = Path(library_internals.__file__)
    assert {one.rpartition(".")[2] for one in _outside(inside)} == {*UNDOCUMENTED, "_command_tree"}
    assert [one for file in inside.parent.glob("*.py") if file != inside for one in _outside(file)] == []
    strings = [file.name for file in inside.parent.glob("*.py") if '"_' in file.read_text()]
    assert strings == [inside.name], "attributes by their names"


def test_discord_py_still_has_it() -> None:
    client = discord.Client(intents=discord.Intents.none())
    assert client._listeners == {} and client._connection._command_tree is None
    tree = app_commands.CommandTree(client)
    assert library_internals.attached_tree(client) is tree
    library_internals.detach_tree(tree)
    assert library_internals.attached_tree(client) is None
    for owner, names in {
        HTTPClient: ("get_bot_gateway", "upsert_guild_command"),
        discord.VoiceClient: ("warn_nacl", "warn_dave"),
        app_commands.Group: ("to_dict",),
        app_commands.AppCommand: ("to_dict",),
    }.items():
        assert all(hasattr(owner, name) for name in names), owner
    assert DiscordWebSocket.__init__.__code__.co_names.count("session_id") == 1
