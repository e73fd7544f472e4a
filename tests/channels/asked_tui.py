"""A program that asks on the full screen of its terminal, from threads. Run by `test_tui_terminal.py`.

Its arguments are a directory and what to do; what came of it goes to `came.pickle` there.
"""

from __future__ import annotations

import itertools
import pickle
import sys
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from tests.channels.person import request

from signoff.channels.tui import TuiApprover
from signoff.errors import NobodyHere

DIRECTORY, TASK = Path(sys.argv[1]), sys.argv[2]
LONG = "\n".join(f"line {number}." for number in range(60))
minutes = itertools.count()


def clock() -> datetime:
    """Between any two looks at it a minute passes: no key comes too soon."""
    return datetime(2031, 5, 24, tzinfo=UTC) + timedelta(minutes=next(minutes))


def asked() -> list[Any]:
    """Two threads ask at once; between them something is printed."""
    approver = TuiApprover(clock=clock)
    came: dict[int, Any] = {}

    def ask(place: int, *tools: str) -> None:
        try:
            came[place] = approver.choose_all([request(tool, {"content": LONG}) for tool in tools])
        except NobodyHere as nobody:
            came[place] = str(nobody)
        print(f"thread {place} goes on")

    threads = [threading.Thread(target=ask, args=args) for args in ((0, "read", "write"), (1, "send"))]
    threads[0].start()
    DIRECTORY.joinpath("more").read_text()  # a pipe: opens when the person says so
    print("printed meanwhile")
    threads[1].start()
    for thread in threads:
        thread.join()
    return [came[0], came[1]]


if __name__ == "__main__":
    if TASK == "wait":
        print("not asking yet")
        DIRECTORY.joinpath("go").read_text()
    came = asked()
    DIRECTORY.joinpath("came.pickle").write_bytes(pickle.dumps(came))
    print("the program goes on")
