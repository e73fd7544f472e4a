"""A directory in which scripts really run, and what they did to it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

ENVIRONMENT = "hush-environment"
CONTENT = "hush-content"
FILES = {"in.txt": "a/b 3\nc 4\nx y\n", "in.json": '{"a": [1, 2], "env": {"K": "v"}}\n', "secret": f"{CONTENT}\n"}


class Scratch:
    """Files that no script may change, add to or, for the secret ones, show."""

    def __init__(self, directory: Path, program: str, extra: Sequence[str] = ()) -> None:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not on this machine")
        self.directory = directory
        self.files = FILES | dict.fromkeys(extra, "")
        self.reset()

    def reset(self) -> None:
        for path in self.directory.iterdir():
            path.unlink()
        for name, text in self.files.items():
            (self.directory / name).write_text(text)

    def effect(self, argv: Sequence[str]) -> str:
        """What running the words did, in a word or two; nothing where it only printed what it may."""
        out = b""
        with suppress(subprocess.TimeoutExpired):
            out = subprocess.run(
                argv,
                cwd=self.directory,
                env={"PATH": "/usr/bin:/bin", "K": ENVIRONMENT},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=2,
                check=False,
            ).stdout
        now = {path.name: path.read_text() for path in self.directory.iterdir()}
        if now != self.files:
            self.reset()
            return f"changed {sorted(now.items() ^ self.files.items())}"
        return next((f"showed {secret}" for secret in (ENVIRONMENT, CONTENT) if secret.encode() in out), "")
