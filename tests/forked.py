"""Test workers are forked from a process that has everything imported, as the programs are that tests start.

Each begins with a fork server of its own, which has everything imported as well. Without this every worker imports
PydanticAI, MCP, discord.py and Textual twice, once for itself and once for its server, and the modules of all tests.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from execnet import gateway_io
from hypothesis import strategies

from tests import start


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """pytest-xdist is about to start its workers; how, it leaves to execnet."""
    strategies.text().validate()  # writes the table of characters, which every worker would make in a fresh clone
    if start.can_fork([sys.executable, "-c", ""], None):
        directory = config.invocation_params.dir
        start.adopt(start.Server.begun([str(directory / path) for path in config.args]))

    def forked(made: Any, command: Sequence[str], execmodel: Any) -> None:
        made.popen = start.Process(command, serves=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        gateway_io.Popen2IO.__init__(made, made.popen.stdin, made.popen.stdout, execmodel=execmodel)

    gateway_io.Popen2IOMaster.__init__ = forked  # type: ignore[method-assign]
