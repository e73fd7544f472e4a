"""What a reader of a small language finds."""

from __future__ import annotations

from typing import NamedTuple

from signoff.policy.shell.line import Word


class Trouble(NamedTuple):
    """Why a script may not run unasked."""

    word: str
    """The piece of the script that decided."""
    why: str
    """What it does, led by an effect: `writes: …`, `runs: …`, `sends: …`, `discloses: …`, or `unknown: …`."""


class FindResult(NamedTuple):
    """What a harmless find looks at. Only names and metadata are shown, never what is in a file."""

    paths: tuple[Word, ...]
    """The start directories; none means the working directory."""
    files: tuple[Word, ...]
    """Files whose times or identity are compared with: `-newer FILE`, `-samefile FILE`."""
