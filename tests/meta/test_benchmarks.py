"""The benchmarks run, and say something. How fast anything is, no test asks."""

from __future__ import annotations

import gc
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from benchmarks import bench as benches
from benchmarks import measure, syncs
from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Pairs, stretches, take_pairs, take_turns, too_busy
from benchmarks.report import Report, Target, as_markdown, as_text
from benchmarks.run import BEGIN, BENCHMARKS, END, README
from tests import start

TINY = Effort(
    rounds=1,
    warm_up=0,
    calls=2,
    lines=20,
    grants=20,
    trips=1,
    at_once=2,
    histories=(2, 4),
    runs=2,
    settled=(2, 60),
    pending=60,
    answers=5,
    kept_grants=20,
    delay_size=4_000,
    serve_waiting=2,
    serve_watchers=2,
    serve_arriving=4,
    serve_votes=1,
    serve_decided=20,
)


@pytest.fixture(autouse=True)
def tests_out_of_sight() -> Iterator[None]:
    """To measure, everything is let back into the garbage collector's sight, also the tests that are still to come."""
    yield
    gc.freeze()


@pytest.fixture
def no_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """It looks at all that the tests have imported, before every sample."""
    idle = SimpleNamespace(collect=lambda: 0, freeze=lambda: None, unfreeze=lambda: None)
    monkeypatch.setattr(measure, "gc", idle)


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


@pytest.fixture
def absent() -> Iterator[Bench]:
    """On a Python that has no peers."""
    silent = shutil.which("true")
    assert silent is not None
    with Bench(silent) as made:
        yield made


def figures(report: Report) -> list[float]:
    cells = [cell for table in report.tables for row in table.rows for cell in row.cells if cell is not None]
    return [n for cell in cells for n in ((cell.median, cell.low, cell.high) if isinstance(cell, Figure) else (cell,))]


LONG = set(
    "allow ask durable history delegate settle judge serve startup start lookup corpora commands hook delay".split()
)
"""With several database servers, whole programs, much to read, or many trips; `allow` runs by day without its peers."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.nightly if name in LONG else ()) for name in BENCHMARKS]
)
def test_a_benchmark_yields_numbers(name: str, bench: Bench) -> None:
    yields_numbers(BENCHMARKS[name](TINY, bench), name)


def yields_numbers(report: Report, name: str) -> None:
    assert report.name == name
    assert report.targets
    assert all(map(math.isfinite, [*figures(report), *(target.value for target in report.targets)]))
    assert [row for table in report.tables for row in table.rows if len(row.cells) != len(table.columns)] == []
    assert report.title in as_text(report)
    assert report.title in as_markdown(report)
    assert json.loads(json.dumps(report.as_json()))["name"] == name


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("name", "who"), [("allow", "LangChain"), pytest.param("history", "LangGraph", marks=pytest.mark.nightly)]
)
def test_a_missing_peer_is_told_and_not_measured(name: str, who: str, absent: Bench) -> None:
    report = BENCHMARKS[name](TINY, absent)
    yields_numbers(report, name)
    assert f"{who} is left out" in as_text(report)
    assert not [row for table in report.tables for row in table.rows if who in row.name]


@pytest.mark.nightly
def test_without_a_compiler_syncs_are_not_counted_and_the_report_says_so(
    absent: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(syncs.shutil, "which", lambda _: None)
    monkeypatch.setattr(benches, "Server", _no_server)
    report = BENCHMARKS["durable"](TINY, absent)
    yields_numbers(report, "durable")
    told = as_text(report)
    assert "no C compiler" in told
    assert "no server today" in told
    *measured, disk = report.tables
    assert [table.title for table in measured] == ["SQLite on the disk, one at a time", "SQLite on the disk, 2 at once"]
    assert all(row.cells[-1] is None for table in measured for row in table.rows)
    assert disk.title == "the disk"
    assert report.targets


def _no_server(*_: object) -> None:
    raise benches.NoServer("no server today")


def test_syncs_are_counted_and_slowed(tmp_path: Path) -> None:
    try:
        library = syncs.build(tmp_path)
    except syncs.CannotBuild as why:
        pytest.skip(str(why))
    counted = syncs.Syncs(library, tmp_path / "page")
    assert counted.reach()
    counted.take(microseconds=20_000)
    before = counted.count
    program = (
        "import os, tempfile, time; file = tempfile.TemporaryFile(); start = time.perf_counter(); "
        "os.fsync(file.fileno()); os.fdatasync(file.fileno()); print(time.perf_counter() - start)"
    )
    environment = os.environ | counted.environment
    took = subprocess.run([sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True)
    assert counted.count == before + 2
    assert float(took.stdout) > 0.04


@pytest.mark.usefixtures("no_collector")
def test_every_variant_takes_its_turn_in_every_round() -> None:
    turns: list[str] = []
    samplers = {name: lambda name=name: float(turns.append(name) is None) for name in ("a", "b", "c")}
    samples = take_turns(samplers, Effort(rounds=4, warm_up=1))
    assert {name: len(taken) for name, taken in samples.items()} == {"a": 4, "b": 4, "c": 4}
    rounds = ["".join(turns[at : at + 3]) for at in range(3, len(turns), 3)]
    assert [sorted(one) for one in rounds] == [["a", "b", "c"]] * 4
    assert len(set(rounds)) > 2


@pytest.mark.usefixtures("no_collector")
def test_a_variant_and_its_base_are_sampled_back_to_back() -> None:
    turns: list[str] = []
    samplers = {name: lambda name=name: float(turns.append(name) is None) for name in ("a", "b", "base")}
    pairs = take_pairs(samplers, {"a": "base", "b": "base"}, Effort(rounds=2, warm_up=0))
    assert {name: (len(pair.values), len(pair.bases)) for name, pair in pairs.items()} == {"a": (2, 2), "b": (2, 2)}
    assert ["".join(sorted(turns[at : at + 2])) for at in range(0, 8, 2)] == ["abase", "bbase", "abase", "bbase"]
    assert {turns[at] for at in range(0, 8, 2)} > {"base"}


@pytest.mark.nightly
@pytest.mark.skipif(sys.platform != "linux", reason="what a process holds is read from /proc")
def test_a_process_holds_no_more_after_more_trips(tmp_path: Path) -> None:
    program = "import sys; from benchmarks.endurance import main; sys.exit(main(20))"
    environment = os.environ | {"XDG_STATE_HOME": str(tmp_path)}
    done = start.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    held = [line.split() for line in done.stdout.splitlines()]
    for way in (held[1:11], held[12:22]):
        assert [int(row[0]) for row in way] == list(range(2, 22, 2))
        assert int(way[-1][2]) <= max(int(row[2]) for row in way[:5]), "files that stay open"
        assert int(way[-1][3]) <= max(int(row[3]) for row in way[:5]), "threads that do not end"


@pytest.mark.usefixtures("no_collector")
def test_before_every_sample_it_is_looked_whether_the_machine_is_busy() -> None:
    stretches.clear()
    pairs = take_pairs({"a": sum_up, "base": sum_up}, {"a": "base"}, Effort(rounds=3, warm_up=0))
    assert len(stretches) == 6
    assert min(stretches) > 0.9
    assert all(work > 0 for work in (*pairs["a"].work, *pairs["a"].base_work))


def sum_up() -> float:
    return float(sum(range(100_000)) > 0)


@pytest.mark.nightly
def test_a_report_says_when_times_by_the_clock_are_worth_nothing() -> None:
    assert too_busy([]) == too_busy([1.0] * 19 + [3.0]) == ()
    [told] = too_busy([1.0] * 15 + [1.9] * 5)
    assert "worth nothing" in told
    assert "1.90 times" in told


def test_figures_compare_a_sample_with_its_own_base() -> None:
    pairs = Pairs(values=[4.0, 40.0, 400.0], bases=[2.0, 20.0, 200.0])
    assert pairs.ratio == Figure(2.0, 2.0, 2.0)
    assert pairs.difference.median == 20.0


def test_a_target_says_whether_it_holds() -> None:
    assert str(Target("times", 2.0, 2.0, least=True)) == "holds: times: 2.00, at least 2.00"
    assert str(Target("times", 1.9, 2.0, least=True)).startswith("MISSED")
    assert str(Target("µs", 60.0, 60.0)).startswith("holds")
    assert str(Target("µs", 60.1, 60.0)).startswith("MISSED")


def test_the_readme_holds_measured_results() -> None:
    _, _, rest = README.read_text("utf-8").partition(BEGIN)
    results, end, _ = rest.partition(END)
    assert end
    assert results.count("\n### ") == len(BENCHMARKS)
    assert "- Machine: " in results
