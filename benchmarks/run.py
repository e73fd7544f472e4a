"""Runs the benchmarks: ./dev bench [NAME ...] [--rounds N] [--json FILE] [--markdown] [--readme] [--check]"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import (
    allow,
    ask,
    commands,
    corpora,
    delay,
    delegate,
    durable,
    history,
    hook,
    inbox,
    judge,
    lookup,
    serve,
    settle,
    start,
    startup,
)
from benchmarks.bench import Bench
from benchmarks.machine import machine
from benchmarks.measure import Effort, stretches, too_busy
from benchmarks.report import Report, as_markdown, as_text

BENCHMARKS: dict[str, Callable[[Effort, Bench], Report]] = {
    "allow": allow.measure,
    "ask": ask.measure,
    "durable": durable.measure,
    "history": history.measure,
    "delegate": delegate.measure,
    "settle": settle.measure,
    "lookup": lookup.measure,
    "inbox": inbox.measure,
    "serve": serve.measure,
    "delay": delay.measure,
    "judge": judge.measure,
    "commands": commands.measure,
    "corpora": corpora.measure,
    "startup": startup.measure,
    "start": start.measure,
    "hook": hook.measure,
}
README = Path(__file__).with_name("README.md")
BEGIN, END = "<!-- results -->\n", "<!-- end of results -->\n"


def main() -> int:
    options = _options()
    facts = machine()
    effort = replace(Effort(), **({"rounds": options.rounds} if options.rounds else {}))
    reports: list[Report] = []
    with Bench(options.peers) as bench:
        for name in options.names or BENCHMARKS:
            print(f"measuring {name} …", file=sys.stderr, flush=True)
            reports.append(_measured(name, effort, bench))
            if not options.markdown:
                print(as_text(reports[-1]), end="\n\n", flush=True)
        facts |= bench.versions
    markdown = _markdown(facts, reports)
    if options.markdown:
        print(markdown, end="")
    if options.readme:
        _write_readme(markdown)
    if options.json:
        results = {"machine": facts, "reports": [report.as_json() for report in reports]}
        options.json.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    missed = [target for report in reports for target in report.targets if not target.holds]
    return 1 if options.check and missed else 0


def _measured(name: str, effort: Effort, bench: Bench) -> Report:
    """A report that says so where this machine had something else to do."""
    stretches.clear()
    report = BENCHMARKS[name](effort, bench)
    return replace(report, notes=(*report.notes, *too_busy(stretches)))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench", description="Measure what signoff costs, and what others do.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"which ones: {', '.join(BENCHMARKS)}; by default all")
    parser.add_argument("--rounds", type=int, metavar="N", help=f"samples of each variant (default: {Effort().rounds})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--markdown", action="store_true", help="print the results as Markdown")
    parser.add_argument("--readme", action="store_true", help="put the results into benchmarks/README.md")
    parser.add_argument("--check", action="store_true", help="end with exit code 1 if a target is missed")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the Python that has LangGraph")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in BENCHMARKS]:
        parser.error(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    if options.rounds is not None and options.rounds < 1:
        parser.error("--rounds: at least 1")
    if options.readme and options.names:
        parser.error("--readme: only with all benchmarks, so that the results are of one run")
    return options


def _markdown(facts: dict[str, str], reports: list[Report]) -> str:
    lines = [f"- {name}: {value}" for name, value in facts.items()]
    return "\n\n".join(("\n".join(lines), *map(as_markdown, reports))) + "\n"


def _write_readme(markdown: str) -> None:
    text = README.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    README.write_text(f"{before}{BEGIN}\n{markdown}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
