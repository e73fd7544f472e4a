"""JSON objects on the command line or in a file, for `approve --args` and `run --input-json`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from signoff.channels.editor import BrokenArgs, read_args
from signoff.core.visible_text import visible
from signoff.errors import WrongUse

LARGEST = 16_000_000


def given_args(text: str, flag: str = "--args") -> dict[str, Any]:
    """The object given to an option: literal JSON, or in the file after an `@` (`@-`: standard input)."""
    source = flag
    if text.startswith("@"):
        source = text[1:] if text != "@-" else "standard input"
        text = _content(text[1:])
    try:
        return read_args(text)
    except BrokenArgs as error:
        hint = f'write it all as one object: {flag} \'{{"path": "a.txt"}}\', or {flag} @FILE'
        raise WrongUse(f"{visible(source)} is not valid JSON: {visible(str(error))}\n  {hint}") from error


def _content(name: str) -> str:
    try:
        with sys.stdin.buffer if name == "-" else Path(name).open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise WrongUse(f"{visible(name)} is longer than {LARGEST:,} bytes")
        return content.decode("utf-8")
    except OSError as error:
        raise WrongUse(f"{visible(name)} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise WrongUse(f"{visible(name)} is not UTF-8 text") from error
