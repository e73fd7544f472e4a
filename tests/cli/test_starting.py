"""The start of a program that runs agents."""

from __future__ import annotations

import gc
import json
import sys

import pytest
from tests import start

PROGRAM = """
import gc, json
from signoff.cli.startup import uncollected
said = []
for _ in range(2):
    with uncollected():
        said.append(gc.isenabled())
    said.append(gc.isenabled())
    ring = []
    ring.append(ring)
    del ring
frozen = gc.get_freeze_count()
print(json.dumps([said, frozen > 1000, gc.collect() > 0]))
"""


def test_nothing_is_collected_at_the_start_and_everything_later() -> None:
    done = start.run(
        [sys.executable, "-c", PROGRAM], fresh=True, capture_output=True, text=True, timeout=start.PATIENCE
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [[False, True, True, True], True, True]


def test_who_collects_by_themselves_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from signoff.cli import startup

    monkeypatch.setattr(startup, "_frozen", False)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    gc.disable()
    try:
        with startup.uncollected():
            assert not gc.isenabled()
        assert not gc.isenabled()
    finally:
        gc.enable()
