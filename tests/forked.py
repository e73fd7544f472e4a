"""Test workers are forked from a process that has everything imported, as the programs are that tests start.

Each begins with a fork server of its own, which has everything imported as well. Without this every worker imports
PydanticAI, MCP, discord.py and Textual twice, once for itself and once for its server.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from execnet import gateway_io
from hypothesis import strategies

from tests import start


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """pytest-xdist is about to start its workers; how, it leaves to execnet."""
    forks = start.can_fork([sys.executable, "-c", ""], None)
    server = threading.Thread(target=start.server if forks else lambda: None)
    server.start()  # it imports for seconds
    if not sys.dont_write_bytecode:
        _rewrite_assertions(config)
    strategies.text().validate()  # writes the table of characters, which every worker would make in a fresh clone
    server.join()

    def forked(made: Any, command: Sequence[str], execmodel: Any) -> None:
        made.popen = start.Process(command, serves=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        gateway_io.Popen2IO.__init__(made, made.popen.stdin, made.popen.stdout, execmodel=execmodel)

    gateway_io.Popen2IOMaster.__init__ = forked  # type: ignore[method-assign]


def _rewrite_assertions(config: pytest.Config) -> None:
    """Once, what every worker would do by itself in a fresh clone: it takes ten times as long as to compile the tests.

    pytest keeps what it has rewritten beside the files, and says nowhere how to do so ahead of time. Where it has
    changed its ways, the workers do it.
    """
    try:
        from _pytest.assertion import rewrite

        state = config.stash[rewrite.assertstate_key]
        for file in sorted(start.ROOT.glob("tests/**/test_*.py")):
            kept = rewrite.get_cache_dir(file) / f"{file.stem}{rewrite.PYC_TAIL}"
            if rewrite._read_pyc(file, kept) is None and rewrite.try_makedirs(kept.parent):
                source, code = rewrite._rewrite_test(file, config)
                rewrite._write_pyc(state, code, source, kept)
    except (AttributeError, ImportError, KeyError, SyntaxError, TypeError):
        return
