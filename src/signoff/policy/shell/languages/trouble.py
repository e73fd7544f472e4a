"""Results of checking a script."""

from __future__ import annotations

from typing import NamedTuple

from signoff.policy.shell.line import Word


class Trouble(NamedTuple):
    """Why a script may not run unasked."""

    word: str
    """The piece of the script that decided."""
    why: str
    """What it does, starting with an effect: `writes: …`, `runs: …`, `sends: …`, `discloses: …`, or `unknown: …`."""


class FindResult(NamedTuple):
    """What a harmless find looks at. It shows only names and metadata, never the content of a file."""

    paths: tuple[Word, ...]
    """The start directories; none means the working directory."""
    files: tuple[Word, ...]
    """Files to compare times or identity with: `-newer FILE`, `-samefile FILE`."""
