"""What it costs to judge shell commands and SQL, beside what people use: shlex and fnmatch."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import partial

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Sampler, pooled, sync_sampler, take_pairs, take_turns
from benchmarks.report import Report, Row, Table, Target
from benchmarks.sample_commands import DANGEROUS, HARMLESS
from signoff import Call
from signoff.policy.builtin import builtin_policy
from signoff.policy.shell import command_facts as shell_facts
from signoff.policy.sql import read_sql

LIMIT = 5.0
LONG = (10_000, 60_000, 1_000_000)
MOST_MS = 1000.0
"""For a line of any length: judged, or called opaque."""
PATTERNS = tuple(f"{line.split()[0]}*" for line in HARMLESS)
BASE = "shlex + fnmatch"
QUERIES = (
    "SELECT id, name FROM users WHERE created > '2026-01-01' ORDER BY name LIMIT 50",
    "WITH x AS (SELECT a, count(*) AS n FROM t GROUP BY a) SELECT * FROM x JOIN y ON x.a = y.a",
    "DELETE FROM users WHERE id = 7",
)


def measure(effort: Effort, bench: Bench) -> Report:
    lines = HARMLESS + DANGEROUS
    samplers = dict(_judges(lines))
    base_of = {name: BASE for name in samplers if name != BASE}
    pairs = take_pairs(samplers, base_of, effort)
    rows = [Row(BASE, (Figure.of(pooled(pairs, base_of, BASE)).times(1e6 / len(lines)), None))]
    rows += [Row(name, (Figure.of(pair.values).times(1e6 / len(lines)), pair.ratio)) for name, pair in pairs.items()]
    long = {name: Figure.of(taken).times(1e3) for name, taken in take_turns(dict(_long()), effort).items()}
    sql = {name: Figure.of(taken).times(1e6) for name, taken in take_turns(dict(_sql()), effort).items()}
    return Report(
        name="commands",
        title="Commands and SQL, judged",
        about=f"{len(HARMLESS)} harmless and {len(DANGEROUS)} other lines; nothing is remembered from one to the next.",
        tables=(
            Table("one line", ("µs per line", f"ratio to {BASE}"), tuple(rows)),
            Table("one long line", ("ms",), tuple(Row(name, (figure,)) for name, figure in long.items())),
            Table("one query", ("µs",), tuple(Row(name, (figure,)) for name, figure in sql.items())),
        ),
        targets=(
            *(Target(f"{name}, times {BASE}", pair.ratio.median, LIMIT) for name, pair in pairs.items()),
            *(Target(f"{name}, ms", figure.median, MOST_MS) for name, figure in long.items()),
        ),
    )


def _judges(lines: Sequence[str]) -> Iterator[tuple[str, Sampler]]:
    yield BASE, sync_sampler(partial(_all, _shlex, lines))
    yield "shell_readonly, judged", sync_sampler(partial(_all, _policy("shell_readonly"), lines))
    yield "shell_file_ops, judged", sync_sampler(partial(_all, _policy("shell_file_ops"), lines))


def _all(judge: Callable[[str], object], lines: Sequence[str]) -> None:
    for line in lines:
        judge(line)


def _shlex(line: str) -> bool:
    """As home-made gates do it: split, and hold each part against patterns."""
    try:
        text = " ".join(shlex.split(line))
    except ValueError:
        return False
    return any(fnmatchcase(text, pattern) for pattern in PATTERNS)


def _policy(name: str) -> Callable[[str], object]:
    policy = builtin_policy(name)
    assert policy is not None

    def judge(line: str) -> object:
        shell_facts.forget()
        return policy.judge(Call(tool="shell", args={"command": line}))

    return judge


def _long() -> Iterator[tuple[str, Sampler]]:
    judge = _policy("shell_readonly")
    for size in LONG:
        for name, piece in {"words": "grep x file.txt ", "quotes": "'a'\"b\"\\c", "substitutions": "$(ls "}.items():
            yield f"{size:,} characters of {name}", sync_sampler(partial(judge, f"echo {piece * (size // len(piece))}"))


def _sql() -> Iterator[tuple[str, Sampler]]:
    for query in QUERIES:
        yield query[:40], sync_sampler(partial(read_sql, query, "postgres"))
