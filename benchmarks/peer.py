"""LangChain, measured in a process of its own, which may run on another Python. Where it is missing, notes say so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType

PROGRAM = Path(__file__).with_name("langchain_peer.py")


class LangChain:
    """Plays the script in LangChain, one sample at a time, so that it takes turns with everything else."""

    def __init__(self, python: str = sys.executable) -> None:
        self._process = subprocess.Popen(
            [python, PROGRAM],
            env=os.environ | {"LANGSMITH_TRACING": "false"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.version = self._read()

    @property
    def there(self) -> bool:
        return bool(self.version)

    @property
    def notes(self) -> tuple[str, ...]:
        return () if self.there else ("LangChain is left out: it is not installed (requirements/bench.txt has it)",)

    def sample(self, variant: str, calls: int) -> float:
        """Seconds for one run or cycle with that many calls."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"variant": variant, "calls": calls}) + "\n")
        self._process.stdin.flush()
        answer = self._read()
        if not answer:
            raise RuntimeError("the LangChain process ended; what it said is above")
        return float(answer)

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def __enter__(self) -> LangChain:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
