"""A program that asks at its terminal, as the gate does: in a thread. Run by `person.py`.

Its argument is a directory with `asked.pickle` in it; the decisions go to `decided.pickle` there.
"""

from __future__ import annotations

import pickle
import sys
import threading
from pathlib import Path

from signoff.channels.terminal import TerminalApprover
from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest
from signoff.errors import NobodyHere

DIRECTORY = Path(sys.argv[1])


def main() -> None:
    asked = pickle.loads(DIRECTORY.joinpath("asked.pickle").read_bytes())
    approver = TerminalApprover(**asked["options"])
    decided: dict[int, list[ApprovalDecision] | NobodyHere] = {}

    def ask(place: int, requests: list[ApprovalRequest]) -> None:
        try:
            decided[place] = approver.choose_all(requests, mode=ApprovalMode.INTERACTIVE)
        except NobodyHere as left:
            decided[place] = left

    if asked["waits"]:
        print("not asking yet")
        DIRECTORY.joinpath("go").read_text()  # a pipe: opens when the person says so
    if asked["in_main_thread"]:
        ask(0, asked["batches"][0])
    else:
        threads = [threading.Thread(target=ask, args=each) for each in enumerate(asked["batches"])]
        for thread in threads:
            thread.start()
        if asked["withdraws"]:
            why = DIRECTORY.joinpath("withdraw").read_text()
            for request_id in asked["withdraws"]:
                approver.withdraw(request_id, why)
        for thread in threads:
            thread.join()
    DIRECTORY.joinpath("decided.pickle").write_bytes(pickle.dumps([decided[place] for place in sorted(decided)]))
    print("the program goes on")


if __name__ == "__main__":
    main()
