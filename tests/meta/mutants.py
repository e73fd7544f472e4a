"""Faults that the tests have to find: puts each of `mutants.toml` into a copy of the tree and runs its tests there.

```sh
python -m tests.meta.mutants --list
python -m tests.meta.mutants --only gate-binding store-unchained
python -m tests.meta.mutants --jobs 2 --json mutants.json
```
A mutant is *killed* where one of its tests fails, and *survives* where all pass: then a test is missing. Whatever else
comes of it (the code cannot be imported, no test ran, time is up) is *broken*: the mutant proves nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.util import cache_from_source
from pathlib import Path
from queue import SimpleQueue
from time import monotonic

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("mutants.toml")
LIMIT = 180.0
"""Seconds for the tests of one mutant."""
LIMIT_OF_ALL = 1_200.0
"""Seconds for all tests that are named, without a fault."""
_DEFINED = re.compile(r"^ *(?:(?:async )?def|class) (\w+)", re.MULTILINE)
_FAILED = re.compile(r"^(?:FAILED|ERROR) (?P<test>.+?)(?: - .*)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One fault. `hangs` says that its tests do not come to an end with it, which then counts as found."""

    id: str
    fault: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    hangs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant: `killed`, `survived` or `broken`, and by which test, or why."""

    id: str
    outcome: str
    by: str
    seconds: float


def mutants() -> tuple[Mutant, ...]:
    """The table."""
    with TABLE.open("rb") as stream:
        rows = tomllib.load(stream)["mutant"]
    return tuple(Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows)


def why_not(mutant: Mutant, root: Path = ROOT) -> str:
    """Why a mutant cannot be used, and what to do about it; empty where it can."""
    repair = (
        f"{TABLE.relative_to(ROOT)}: {mutant.id} ({mutant.fault}): {{}}.\n"
        "  Write the same fault for the code as it is now. Delete the row only if nobody can make that mistake any "
        f"longer.\n  Then: python -m tests.meta.mutants --only {mutant.id}"
    )
    file = root / mutant.file
    if not file.is_file():
        return repair.format(f"there is no {mutant.file} any longer")
    if (count := file.read_text("utf-8").count(mutant.old)) != 1:
        return repair.format(f"`old` occurs {count} times in {mutant.file}, not once")
    if mutant.new == mutant.old:
        return repair.format("`new` is `old`")
    if file.suffix == ".py":
        try:
            compile(mutated(mutant, root), mutant.file, "exec")
        except SyntaxError as error:
            return repair.format(f"with `new`, {mutant.file} is not Python: {error}")
    if lost := [test for test in mutant.tests if not is_test(test, root)]:
        return repair.format(f"`tests` names what is not there: {', '.join(lost)}")
    return "" if mutant.tests else repair.format("`tests` names nothing")


def mutated(mutant: Mutant, root: Path = ROOT) -> str:
    """The file with the fault in it."""
    return (root / mutant.file).read_text("utf-8").replace(mutant.old, mutant.new)


def is_test(test: str, root: Path = ROOT) -> bool:
    """Whether a file, a directory or a test of this name is there."""
    path, *names = test.partition("[")[0].split("::")
    if not names:
        return (root / path).exists()
    if not (root / path).is_file():
        return False
    return _defined(root / path).issuperset(names)


@cache
def _defined(file: Path) -> frozenset[str]:
    return frozenset(_DEFINED.findall(file.read_text("utf-8")))


# --- a copy to break things in ---


def tracked() -> list[str]:
    """What is in the repository, or would be with the next `git add`."""
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listed.split("\0") if name and (ROOT / name).is_file()]


class Copy:
    """A copy of the tree, whose package is the one that its tests import."""

    def __init__(self, directory: Path) -> None:
        self.root = directory / "tree"
        self._directory = directory
        for name in tracked():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.root / name)
        self._check()

    def _check(self) -> None:
        """Raise unless it is this copy's package that is imported here."""
        asked = [sys.executable, "-c", "import signoff; print(signoff.__file__)"]
        told = subprocess.run(asked, cwd=self.root, env=self._environment(), capture_output=True, text=True, check=True)
        imported = Path(told.stdout.strip())
        if not imported.is_relative_to(self.root.resolve()) and not imported.is_relative_to(self.root):
            raise RuntimeError(f"{imported} is imported, and not what is in {self.root}: nothing would be proven")

    def _environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "PYTHON"))}
        own["PYTHONPATH"] = str(self.root / "src")
        own["HYPOTHESIS_STORAGE_DIRECTORY"] = str(self._directory / "hypothesis")
        return own

    @contextmanager
    def broken_by(self, mutant: Mutant) -> Iterator[None]:
        """Holds the fault inside."""
        file = self.root / mutant.file
        before = file.read_text("utf-8")
        try:
            self._write(file, mutated(mutant, self.root))
            yield
        finally:
            self._write(file, before)

    def _write(self, file: Path, text: str) -> None:
        file.write_text(text, encoding="utf-8")
        # Compiled code is recognised by the second it was made in, which both texts may share.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)
        for left in ("hypothesis", "cache"):
            shutil.rmtree(self._directory / left, ignore_errors=True)

    def tested(self, tests: Iterable[str], *options: str, limit: float) -> tuple[int | None, str]:
        """What pytest says, and with which code it ends; None where time was up."""
        # What one run leaves for the next stays outside; one test that hangs is not a test that fails.
        own = ["-o", f"cache_dir={self._directory / 'cache'}", "-o", "timeout=0"]
        command = [sys.executable, "-m", "pytest", "-q", *own, *options, *tests]
        pytest = subprocess.Popen(
            command,
            cwd=self.root,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            said, _ = pytest.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(pytest.pid, signal.SIGKILL)
            said, _ = pytest.communicate()
            return None, said
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(pytest.pid, signal.SIGKILL)
            raise
        return pytest.returncode, said


def outcome_of(mutant: Mutant, copy: Copy) -> Outcome:
    """Run the tests of one mutant with its fault in place."""
    began = monotonic()
    with copy.broken_by(mutant):
        code, said = copy.tested(mutant.tests, "-x", limit=LIMIT)
    failed = _FAILED.search(said)
    if code is None:
        told = ("killed", "hung") if mutant.hangs else ("broken", f"not done after {LIMIT:.0f} seconds")
    elif code == 0:
        told = ("survived", "")
    elif code == 1 and failed is not None and "::" in failed["test"]:
        told = ("killed", failed["test"])
    else:  # an error while tests are collected is of this kind: such a fault is found by whoever imports the module
        told = ("broken", f"pytest ended with {code}: {said.strip()[-300:]}")
    return Outcome(id=mutant.id, outcome=told[0], by=told[1], seconds=round(monotonic() - began, 1))


def run(chosen: Sequence[Mutant], *, jobs: int = 1, tell: Callable[[Outcome], None] = lambda _: None) -> list[Outcome]:
    """What becomes of each mutant, in their order. Raises `RuntimeError` where the tests fail without any fault."""
    if wrong := [why for one in chosen if (why := why_not(one))]:
        raise RuntimeError("\n".join(wrong))
    with tempfile.TemporaryDirectory(prefix="signoff-mutants-") as directory, ThreadPoolExecutor(jobs) as pool:
        os.chmod(directory, 0o755)  # some tests are somebody else, who has to reach the code as well
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(min(jobs, len(chosen))):
            copies.put(Copy(Path(directory) / str(number)))
        _check_tests(chosen, copies)

        def one(mutant: Mutant) -> Outcome:
            copy = copies.get()
            try:
                outcome = outcome_of(mutant, copy)
            finally:
                copies.put(copy)
            tell(outcome)
            return outcome

        return list(pool.map(one, chosen))


def _check_tests(chosen: Sequence[Mutant], copies: SimpleQueue[Copy]) -> None:
    """All tests that are named pass as long as nothing is broken."""
    copy = copies.get()
    try:
        tests = sorted({test for mutant in chosen for test in mutant.tests})
        code, said = copy.tested(tests, limit=LIMIT_OF_ALL)
    finally:
        copies.put(copy)
    if code != 0:
        raise RuntimeError(f"the tests fail without any fault, so that they would prove nothing:\n{said[-4_000:]}")


# --- for the command line ---


def _commit() -> str:
    told = subprocess.run(
        ["git", "-c", "safe.directory=*", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return told.stdout.strip()


def _tell(known: dict[str, Mutant], outcome: Outcome) -> None:
    fault = known[outcome.id].fault
    print(f"{outcome.outcome:8} {outcome.seconds:5.1f} s  {outcome.id}: {fault}", flush=True)
    if outcome.by:
        print(f"{'':18}{outcome.by}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.meta.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="ID", help="these alone")
    parser.add_argument("--list", action="store_true", help="say what there is, and run nothing")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="how many at once")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what became of each")
    given = parser.parse_args()
    known = {mutant.id: mutant for mutant in mutants()}
    if unknown := [one for one in given.only or () if one not in known]:
        parser.error(f"there is no mutant {', '.join(unknown)}")
    chosen = [known[one] for one in dict.fromkeys(given.only or known)]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.id}: {mutant.fault}")
        return 0
    began = monotonic()
    try:
        outcomes = run(chosen, jobs=max(1, given.jobs), tell=partial(_tell, known))
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    if given.json is not None:
        rows = [
            {**asdict(one), "fault": known[one.id].fault, "file": known[one.id].file, "tests": known[one.id].tests}
            for one in outcomes
        ]
        about = {"commit": _commit(), "python": platform.python_version(), "seconds": round(monotonic() - began, 1)}
        given.json.write_text(json.dumps({**about, "mutants": rows}, indent=1, ensure_ascii=False) + "\n", "utf-8")
    counts = {kind: sum(one.outcome == kind for one in outcomes) for kind in ("killed", "survived", "broken")}
    told = ", ".join(f"{count} {kind}" for kind, count in counts.items())
    print(f"{len(outcomes)} mutants: {told}; {monotonic() - began:.0f} s")
    return 0 if counts["killed"] == len(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
