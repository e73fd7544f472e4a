"""What a trip does, in counts: a change that makes it do more is seen when it is made, on any machine."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from tests import start

KNOWN = {
    "signoff, suspended": {
        "statements": 69,
        "transactions": 5,
        "reads": 3,
        "hand-overs": 7,
        "canonicalisations": 11,
        "texts written": 8,
        "requests read": 4,
        "copies of a request": 14,
        "hooks": 21,
    },
    "signoff, in place": {
        "statements": 66,
        "transactions": 4,
        "reads": 5,
        "hand-overs": 6,
        "canonicalisations": 10,
        "texts written": 7,
        "requests read": 4,
        "copies of a request": 14,
        "hooks": 17,
    },
    "100 asked, signoff suspended": {"canonicalisations": 500, "copies of a request": 1000, "hooks": 219},
}
"""A trip: asked, answered, claimed, run and ended, on SQLite, with eight events of the record, which are canonicalised
too; the last one in memory, with 100 calls in one turn. What is asked is like what was answered before: it is found by
two more digests, and what was found makes one more copy; no statement more."""
SLACK = {"statements": 10.0, "reads": 2.0, "transactions": 2.0}
"""On a busy machine more of what can wait is written by itself, and whoever waits looks once more: four statements."""
LITTLE = 1.5
FEW = """
import json, sys
from benchmarks import counts

counts.BEFORE, counts.TRIPS, counts.TRIPS_OF_MANY = 1, 4, 1
print(json.dumps(counts.counted(sys.argv[1])))
"""
"""As `python -m benchmarks.counts VARIANT`, with fewer trips: the second does what the tenth does."""


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the figures are those of Python 3.11")
@pytest.mark.parametrize("variant", KNOWN)
def test_a_trip_does_what_it_did(variant: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FEW, variant]
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
    done = start.run(command, env=env, capture_output=True, text=True, timeout=start.PATIENCE)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    other = {
        name: (found[name], known)
        for name, known in KNOWN[variant].items()
        if abs(found[name] - known) > SLACK.get(name, LITTLE)
    }
    assert other == {}, "found, and as it was. More: find out why. Less: hold it here, so that it stays so"
