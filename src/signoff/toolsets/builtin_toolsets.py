"""Functions that create the built-in toolsets. Each imports what it needs when it is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pydantic_ai.toolsets import AbstractToolset

    from signoff.toolsets.builtin.files.file_toolset import FilesToolset
    from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset
    from signoff.toolsets.builtin.sql.sql_toolset import SqlToolset

Directory = str | os.PathLike[str]
Sandbox = Literal["auto", "on", "off"]


def filesystem_rw(
    root: Directory = ".",
    *,
    id: str = "filesystem_rw",
    max_bytes: int = 10_000_000,
    max_chars: int = 50_000,
    max_results: int = 500,
) -> FilesToolset:
    """File tools below `root`: reading is allowed; changes and files that may hold secrets are asked about.

    Files over `max_bytes` are neither read nor written, an answer has at most `max_chars` characters, and a list or a
    search at most `max_results` lines.
    """
    from signoff.toolsets.builtin.files.file_toolset import filesystem

    return filesystem(root, id=id, max_bytes=max_bytes, max_chars=max_chars, max_results=max_results)


def filesystem_ro(
    root: Directory = ".",
    *,
    id: str = "filesystem_ro",
    max_bytes: int = 10_000_000,
    max_chars: int = 50_000,
    max_results: int = 500,
) -> FilesToolset:
    """`filesystem_rw` without the tools that change anything."""
    from signoff.toolsets.builtin.files.file_toolset import filesystem

    return filesystem(root, read_only=True, id=id, max_bytes=max_bytes, max_chars=max_chars, max_results=max_results)


def shell_readonly(
    root: Directory = ".",
    *,
    id: str = "shell_readonly",
    timeout: float = 60.0,
    max_output: int = 100_000,
    sandbox: Sandbox = "auto",
    network: bool = False,
    keep: Iterable[str] = (),
    programs: Iterable[Directory] = (),
) -> ShellToolset:
    """A shell that starts in `root`: commands known to only read are allowed, commands known to write are denied.

    `timeout` in seconds and `max_output` in bytes limit each call. `sandbox` is `auto` (bubblewrap where it works),
    `on` (an error where it does not) or `off`. In the sandbox, approved commands have network access only with
    `network`. `keep` names environment variables that approved commands get although their names look like secrets.
    `programs` names directories, such as `.venv/bin`, whose programs can be run by name although they are below `root`.
    """
    from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset

    return ShellToolset(
        root,
        id=id,
        timeout=timeout,
        max_output=max_output,
        sandbox=sandbox,
        network=network,
        keep=keep,
        programs=programs,
    )


def shell_file_ops(
    root: Directory = ".",
    *,
    id: str = "shell_file_ops",
    timeout: float = 60.0,
    max_output: int = 100_000,
    sandbox: Sandbox = "auto",
    network: bool = False,
    keep: Iterable[str] = (),
    programs: Iterable[Directory] = (),
) -> ShellToolset:
    """As `shell_readonly`, but commands that write are asked about, like all others that are not known to only read."""
    from signoff.toolsets.builtin.shell.shell_toolset import ShellToolset

    kind = "shell_file_ops"
    return ShellToolset(
        root,
        kind=kind,
        id=id,
        timeout=timeout,
        max_output=max_output,
        sandbox=sandbox,
        network=network,
        keep=keep,
        programs=programs,
    )


def sql(
    url: str,
    *,
    id: str = "sql",
    readonly: bool = False,
    max_rows: int = 200,
    max_chars: int = 50_000,
    timeout: float = 30.0,
) -> SqlToolset:
    """Tools for a database, `sqlite:FILE` or `postgresql://…`: reads are allowed, changes are asked about.

    `readonly` leaves out the tool that changes data. Answers have at most `max_rows` rows and `max_chars` characters.
    """
    from signoff.toolsets.builtin.sql.sql_toolset import sql_toolset

    return sql_toolset(url, id=id, readonly=readonly, max_rows=max_rows, max_chars=max_chars, timeout=timeout)


BUILTINS: Mapping[str, Callable[..., AbstractToolset[Any]]] = {
    "filesystem_rw": filesystem_rw,
    "filesystem_ro": filesystem_ro,
    "shell_readonly": shell_readonly,
    "shell_file_ops": shell_file_ops,
    "sql": sql,
}
"""The names that every project has."""
NEED_ENTRY = frozenset({"filesystem", "mcp", "native"})
"""What only an entry of the project's file can use."""
