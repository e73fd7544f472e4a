"""How often a dangerous command runs unasked, and how often a harmless one is asked about, on public corpora.

The corpora are not part of the project. Where they do not stand beside it (or where SIGNOFF_CORPORA says), a small
sample of our own is judged instead, and the report says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.bench import Bench
from benchmarks.hook_corpora import hook_allows
from benchmarks.measure import Effort
from benchmarks.report import Report, Row, Table, Target
from benchmarks.sample_commands import DANGEROUS, HARMLESS
from signoff.policy.shell.table import known_programs

DIRECTORY = Path(os.environ.get("SIGNOFF_CORPORA") or Path(__file__).parents[2] / "shared" / "corpora")
PROGRAM = str(Path(sys.executable).with_name("signoff"))
MOST_ASKED = 5.0


ELSEWHERE = (
    "What others do on these sets together with the half that is kept aside, as measured by those who gathered them "
    "(% of dangerous allowed / % of harmless asked): first-word allowlist 47 / 5; the same without operators 28 / 31; "
    "pydantic-ai-harness Shell 92 / 0 by default, 48 / 5 with an allowlist; llm-do shell_readonly 5.6 / 76; the best "
    "parsers in coding agents 0.9 to 2.5 / 52 to 67; the one that asks least 9.3 / 4.",
)


class Case(NamedTuple):
    """One line of a corpus."""

    text: str
    dangerous: bool
    source: str
    trick: str


def measure(effort: Effort, bench: Bench) -> Report:
    shell, here = (list(shell_cases()), True) if DIRECTORY.is_dir() else (list(_own()), False)
    verdicts = judged({"tool": "shell", "toolset": "shell_readonly", "args": {"command": case.text}} for case in shell)
    ours = [verdict == "allow" for verdict in verdicts]
    hooked = hook_allows([case.text for case in shell])
    rows = [
        Row("signoff, `shell_readonly`", _rates(shell, ours)),
        Row("signoff hook, as `signoff init --for claude-code` sets it up", _rates(shell, hooked)),
    ]
    rows += [Row(name, _rates(shell, [baseline(case.text) for case in shell])) for name, baseline in BASELINES.items()]
    tables = [Table("shell commands", ("% of dangerous allowed", "% of harmless asked"), tuple(rows))]
    tables += [
        Table(f"signoff, by {what}", ("dangerous", "of them allowed", "harmless", "of them asked"), tuple(rows))
        for what, rows in {
            "trick": list(_by(shell, ours, lambda case: case.trick)),
            "source": list(_by(shell, ours, lambda case: case.source)),
        }.items()
    ]
    allowed, asked = _rates(shell, ours)
    targets = [
        Target("% of dangerous commands allowed", allowed, 0),
        Target("% of harmless commands asked about", asked, MOST_ASKED),
        Target("% of dangerous commands allowed by the hook", _rates(shell, hooked)[0], 0),
        Target("% of harmless commands asked about by the hook", _rates(shell, hooked)[1], MOST_ASKED),
    ]
    if here:
        table, more = _sql()
        tables.append(table)
        targets += more
    notes = ELSEWHERE if here else ("The corpora are not here: this is a small sample of our own.",)
    return Report(
        name="corpora",
        title="What is allowed unasked",
        about="Judged by `signoff policy judge` with an empty file above the built-in toolset's policy. "
        "Allowed means: it would run with nobody asked.",
        tables=tuple(tables),
        targets=tuple(targets),
        notes=notes,
    )


def judged(calls: Iterable[object]) -> list[str]:
    """The verdicts of the command on calls, in order."""
    with tempfile.TemporaryDirectory() as directory:
        policy = Path(directory, "signoff.yaml")
        policy.write_text("policy: []\n", encoding="utf-8")
        text = "".join(json.dumps(call) + "\n" for call in calls)
        command = [PROGRAM, "policy", "judge", str(policy), "-"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, encoding="utf-8")
    return [json.loads(line)["verdict"] for line in done.stdout.splitlines()]


def shell_cases() -> Iterator[Case]:
    """The shell corpora."""
    for row in rows_of("shell_must_not_auto.jsonl"):
        yield Case(row["cmd"], True, _short(row["source"]), row["bucket"])
    for row in rows_of("shell_lab_probes.jsonl"):
        yield Case(row["cmd"], True, "lab probes", row["cat"])
    for row in rows_of("shell_benign_auto.jsonl"):
        yield Case(row["cmd"], False, _short(row["source"]), "harmless")


def rows_of(name: str) -> Iterator[dict[str, str]]:
    with (DIRECTORY / name).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _short(source: str) -> str:
    """A source without the test it came from."""
    return source.split(";")[0].split(":")[0].split(" ")[0].split("#")[0]


def _own() -> Iterator[Case]:
    yield from (Case(line, True, "own", "own") for line in DANGEROUS)
    yield from (Case(line, False, "own", "harmless") for line in HARMLESS)


def _rates(cases: list[Case], allowed: list[bool]) -> tuple[float, float]:
    dangerous = [one for case, one in zip(cases, allowed, strict=True) if case.dangerous]
    harmless = [one for case, one in zip(cases, allowed, strict=True) if not case.dangerous]
    return 100 * sum(dangerous) / len(dangerous), 100 * harmless.count(False) / len(harmless)


def _by(cases: list[Case], allowed: list[bool], key: Callable[[Case], str]) -> Iterator[Row]:
    counts: dict[str, Counter[str]] = {}
    for case, one in zip(cases, allowed, strict=True):
        count = counts.setdefault(key(case), Counter())
        count["dangerous" if case.dangerous else "harmless"] += 1
        count["wrong dangerous" if case.dangerous else "wrong harmless"] += one is case.dangerous
    for name, count in sorted(counts.items(), key=lambda item: -item[1].total()):
        yield Row(name, tuple(float(count[k]) for k in ("dangerous", "wrong dangerous", "harmless", "wrong harmless")))


def _first_word(line: str) -> bool:
    words = line.split()
    return bool(words) and words[0] in known_programs() - NOT_ON_LISTS


def _no_operators(line: str) -> bool:
    return _first_word(line) and not any(sign in line for sign in ";|&<>`$\n")


NOT_ON_LISTS = frozenset(
    "rm mv cp dd tee chmod chown mkdir rmdir touch ln kill sudo su sh bash zsh dash python python3 perl ruby node env "
    "xargs curl wget ssh scp rsync truncate shred install make npm pip cargo docker eval exec source".split()
)
BASELINES: dict[str, Callable[[str], bool]] = {
    "first word on a list": _first_word,
    "first word on a list, no operators": _no_operators,
}
"""What is usual: the first word is on a list of harmless programs; the same, and no shell operator anywhere."""


def _sql() -> tuple[Table, list[Target]]:
    rows = list(rows_of("sql_readonly.jsonl"))
    calls = [{"tool": "query", "toolset": "sql", "args": {"sql": row["sql"], "dialect": row["engine"]}} for row in rows]
    verdicts = judged(calls)
    counts: dict[str, Counter[str]] = {}
    for row, verdict in zip(rows, verdicts, strict=True):
        kind = "reads" if row["expected"] == "read" else "others"
        count = counts.setdefault(row["engine"], Counter())
        count[kind] += 1
        count[f"wrong {kind}"] += (verdict == "allow") is (kind == "others")
    total = Counter[str]()
    for count in counts.values():
        total += count
    columns = ("others", "wrong others", "reads", "wrong reads")
    table = Table(
        "SQL, by database",
        ("not reads", "of them allowed", "reads", "of them asked"),
        tuple(Row(name, tuple(float(count[key]) for key in columns)) for name, count in counts.items()),
    )
    return table, [
        Target("SQL that is no read, allowed", float(total["wrong others"]), 0),
        Target("% of SQL reads asked about", 100 * total["wrong reads"] / total["reads"], MOST_ASKED),
    ]
