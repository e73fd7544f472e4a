"""Open arguments as a JSON file in the person's own editor (`$VISUAL`, `$EDITOR`)."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from signoff.core.strict_json import read_json
from signoff.core.visible_text import visible

_MARKER = re.compile(r"⟦(?:U\+([0-9A-F]{4,6})|(space)|(DEL))(?:×(\d+))?⟧")


class EditorFailed(Exception):
    """The editor could not be started, or exited with an error."""


class BrokenArgs(Exception):
    """The edited file does not hold arguments; the message says where and why."""


def find_editor(given: str | None = None) -> list[str]:
    """Return the editor's command: `given`, `$VISUAL`, `$EDITOR`, nano or vi. Empty if there is none.

    Raises `EditorFailed` if the command cannot be parsed.
    """
    for command in (given, os.environ.get("VISUAL"), os.environ.get("EDITOR")):
        if command and command.strip():
            try:
                return shlex.split(command)
            except ValueError as error:
                raise EditorFailed(f"the editor's command {visible(command)} cannot be read: {error}") from error
    return [found for name in ("nano", "vi") if (found := shutil.which(name))][:1]


def edit_text(command: Sequence[str], text: str, *, stdin: int | None = None, stdout: int | None = None) -> str:
    """Let a person edit a text in a temporary file that only they can read, and delete the file afterwards.

    `stdin` and `stdout` are the terminal's, in case the program's own are redirected. Raises `EditorFailed`.
    """
    handle, name = tempfile.mkstemp(prefix="signoff-", suffix=".jsonc")
    path = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        try:
            status = subprocess.run([*command, name], stdin=stdin, stdout=stdout, check=False).returncode
        except OSError as error:
            raise EditorFailed(f"{visible(command[0])} cannot be started: {error.strerror}") from error
        if status != 0:
            raise EditorFailed(f"{visible(command[0])} ended with exit code {status}")
        try:
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise EditorFailed("the edited file cannot be read") from error
    finally:
        path.unlink(missing_ok=True)


def pretty(args: Mapping[str, Any]) -> str:
    """Return arguments as JSON to read and edit; invisible characters are written as JSON escapes."""
    shown = visible(json.dumps(args, ensure_ascii=False, indent=2), lines=True)
    return _MARKER.sub(_as_json_escape, shown)


def write_args(args: Mapping[str, Any], heading: Sequence[str]) -> str:
    """Return the text of the file: a heading of comment lines, then the arguments."""
    return "".join(f"// {line}\n" for line in heading) + pretty(args) + "\n"


def read_args(text: str) -> dict[str, Any]:
    """Parse the arguments of an edited file. Raises `BrokenArgs`; JSON syntax errors name line and column."""
    lines = text.removeprefix("\ufeff").split("\n")
    for index, line in enumerate(lines):
        if line.lstrip().startswith("//"):
            lines[index] = ""
        elif line.strip():
            break
    try:
        value: object = read_json("\n".join(lines))
    except json.JSONDecodeError as error:
        raise BrokenArgs(f"line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BrokenArgs(str(error)) from error
    if not isinstance(value, dict):
        raise BrokenArgs("the arguments have to be one object: { … }")
    return cast("dict[str, Any]", value)


def _as_json_escape(marker: re.Match[str]) -> str:
    code, space, _delete, count = marker.groups()
    char = " " if space else chr(int(code, 16)) if code else "\x7f"
    if char in " ⟦⟧":
        escape = char
    else:
        escape = "\\u007f" if char == "\x7f" else json.dumps(char)[1:-1]
    return escape * int(count or 1)
