"""How often a person is asked about everyday lines, and whether one that changes something runs unasked.

    python -m benchmarks.everyday.measure
    python -m benchmarks.everyday.measure --list

Each line is only judged, never run: as a call of `shell_readonly`, and as a coding agent's call by the policy that
`signoff init --for claude-code` writes, also with `--network-reads`. That policy is made in the files of the package
that the line comes from, which are fetched; and in a project with every tool, script and target that init looks for.
`--list` shows what is asked about although it is harmless, by the reason.
"""

from __future__ import annotations

import argparse
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Sequence

from benchmarks.corpora import judged
from benchmarks.everyday.draw import unpacked
from benchmarks.everyday.lines import HARMFUL, HARMLESS, KINDS, SOURCES, Line, everyday_lines
from benchmarks.hook_corpora import hook_allows
from benchmarks.report import Report, Row, Table, as_text
from signoff.policy.shell.command_facts import read_shell

Verdicts = dict[str, Sequence[bool]]
"""Whether each line is allowed unasked, by each policy."""
SHORT = "shell_readonly"
OWN = "hook"
ONLINE = "hook with network-reads"
EVERY, EVERY_ONLINE = "hook, every tool", "hook, every tool, with network-reads"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.everyday.measure", description=str(__doc__).split("\n")[0]
    )
    parser.add_argument("--list", action="store_true", help="also the harmless lines that are asked about, by reason")
    options = parser.parse_args()
    lines = everyday_lines()
    allowed = verdicts(lines)
    print(as_text(report(lines, allowed)))
    print("\n".join(_unasked(lines, allowed)))
    if options.list:
        print("\n".join(_asked(lines, allowed)))


def verdicts(lines: Sequence[Line]) -> Verdicts:
    texts = [line.text for line in lines]
    calls = ({"tool": "shell", "toolset": "shell_readonly", "args": {"command": text}} for text in texts)
    return {
        SHORT: [verdict == "allow" for verdict in judged(calls)],
        OWN: _in_their_projects(lines, network=False),
        ONLINE: _in_their_projects(lines, network=True),
        EVERY: hook_allows(texts),
        EVERY_ONLINE: hook_allows(texts, network=True),
    }


def _in_their_projects(lines: Sequence[Line], *, network: bool) -> list[bool]:
    """Whether each line is allowed in the project that it comes from."""
    found: dict[str, bool] = {}
    for source in tomllib.loads(SOURCES.read_text(encoding="utf-8"))["source"]:
        mine = [line for line in lines if line.project == source["name"]]
        runs = hook_allows([line.text for line in mine], network=network, project=unpacked(source)) if mine else []
        found |= {line.id: each for line, each in zip(mine, runs, strict=True)}
    return [found[line.id] for line in lines]


def report(lines: Sequence[Line], allowed: Verdicts) -> Report:
    wanted = {**{kind: {kind} for kind in KINDS}, "reads, checks and network": HARMLESS}
    rows = (Row(name, tuple(_figures(lines, allowed, kinds))) for name, kinds in wanted.items())
    columns = ("lines", *(column for name in allowed for column in (f"{name}: asked", "%")))
    return Report(
        name="everyday",
        title="How often everyday lines are asked about",
        about="Asked means: it would not run unasked. Kinds are given by hand; see benchmarks/everyday/README.md.",
        tables=(Table("kind", columns, tuple(rows)),),
    )


def _figures(lines: Sequence[Line], allowed: Verdicts, kinds: set[str] | frozenset[str]) -> Iterator[float]:
    total = sum(line.kind in kinds for line in lines)
    yield float(total)
    for one in allowed.values():
        asked = sum(line.kind in kinds and not runs for line, runs in zip(lines, one, strict=True))
        yield from (float(asked), 100 * asked / total)


def _unasked(lines: Sequence[Line], allowed: Verdicts) -> Iterator[str]:
    for name, one in allowed.items():
        wrong = [line for line, runs in zip(lines, one, strict=True) if runs and line.kind in HARMFUL]
        yield f"{name}: {len(wrong)} lines that change something or print a secret run unasked"
        yield from (f"  {line.kind}  {_short(line)}" for line in wrong)


def _asked(lines: Sequence[Line], allowed: Verdicts) -> Iterator[str]:
    for name, one in allowed.items():
        reasons: defaultdict[tuple[str, str], list[Line]] = defaultdict(list)
        for line, runs in zip(lines, one, strict=True):
            if line.kind in HARMLESS and not runs:
                reasons[line.kind, _reason(line)].append(line)
        for (kind, reason), those in sorted(reasons.items(), key=lambda item: (KINDS.index(item[0][0]), -len(item[1]))):
            yield f"\n{name}, {kind}: {len(those)}: {reason}"
            yield from (f"  {line.project}  {_short(line)}" for line in those)


def _reason(line: Line) -> str:
    """Why it is not known to be harmless, without the words of this line."""
    return re.sub(r"`[^`]*`", "…", read_shell(line.text).why) or "it only reads, but not what may be read unasked"


def _short(line: Line) -> str:
    return " ".join(line.text.split())[:150]


if __name__ == "__main__":
    main()
