"""What other gates say about the everyday lines.

    python -m benchmarks.everyday.peers PYTHON

PYTHON is one that has `nah` and `safecmd` (with `shfmt-py`) from PyPI. Each is asked as it is right after it was
installed, in an empty directory, in which no line is run.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.everyday.lines import everyday_lines
from benchmarks.everyday.measure import report
from benchmarks.report import as_text

ASKED = {
    "nah": """
from nah.bash import classify_command
def allows(line): return classify_command(line).final_decision == "allow"
""",
    "safecmd": """
from safecmd.core import validate
def allows(line): return validate(line) is None
""",
}
READS = """
import json, sys
def judged(line):
    try:
        return bool(allows(line))
    except Exception:
        return False
print(json.dumps([judged(line) for line in json.load(sys.stdin)]))
"""


def allowed_by(peer: str, python: str, lines: Sequence[str]) -> list[bool]:
    """Whether a peer lets each line run unasked. What it cannot read, it does not."""
    with tempfile.TemporaryDirectory(prefix="peers-") as home:
        programs = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            [python, "-c", ASKED[peer] + READS],
            input=json.dumps(list(lines)),
            capture_output=True,
            text=True,
            cwd=home,
            env={"HOME": home, "PATH": programs},
            check=True,
        )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.everyday.peers", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("python", metavar="PYTHON", help="one that has the peers")
    options = parser.parse_args()
    lines = everyday_lines()
    texts = [line.text for line in lines]
    print(as_text(report(lines, {peer: allowed_by(peer, options.python, texts) for peer in ASKED})))


if __name__ == "__main__":
    main()
