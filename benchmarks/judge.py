"""What policy costs by itself: a judged call, a file of calls through the command, a remembered decision."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, Sampler, sync_sampler, take_turns
from benchmarks.policies import Rules, by_glob, by_name, call_of
from benchmarks.report import Report, Row, Table, Target
from benchmarks.script import TOOL, arguments
from signoff import ApprovalMemory, Call, Policy
from signoff.core.grant import Grant
from signoff.core.terms import Scope

LIMIT = 15.0
SIZES = (10, 100, 1000)
CALLS = 1000
"""Calls in one sample."""
TOOLS = 25
"""Tools called for the first time in one sample."""
KINDS: Mapping[str, Callable[[int], Rules]] = {"exact names": by_name, "globs": by_glob}
PROGRAM = Path(sys.executable).with_name("signoff")


def measure(effort: Effort, bench: Bench) -> Report:
    warm = take_turns(dict(_warm()), effort)
    cold = take_turns(dict(_cold()), effort)
    memory = take_turns(dict(_memory(effort.grants)), effort)
    with tempfile.TemporaryDirectory() as directory:
        commands = dict(_commands(Path(directory), effort.lines))
        command = take_turns(commands, replace(effort, rounds=min(effort.rounds, 10)))
    judged = {name: Figure.of(taken).times(1e6 / CALLS) for name, taken in warm.items()}
    return Report(
        name="judge",
        title="Policy alone",
        about="Four rules to a tool, three of them with a condition on arguments; the second or third decides. "
        "The command's time includes its start.",
        tables=(
            Table("Policy.judge", ("µs per call",), tuple(Row(name, (cell,)) for name, cell in judged.items())),
            _table("Policy.judge, first call of a tool", "µs per call", cold, 1e6 / TOOLS),
            Table(
                f"`signoff policy judge`, {effort.lines:,} lines",
                ("seconds", "calls per second"),
                tuple(_command_row(name, taken, effort.lines) for name, taken in command.items()),
            ),
            _table(f"one of {effort.grants:,} remembered decisions", "µs per look", memory, 1e6 / CALLS),
        ),
        targets=tuple(
            Target(f"1,000 rules by {kind}, µs per judged call", judged[_title(1000, kind)].median, LIMIT)
            for kind in KINDS
        ),
    )


def _title(size: int, kind: str) -> str:
    return f"{size:,} rules by {kind}"


def _table(title: str, column: str, samples: Mapping[str, list[float]], factor: float) -> Table:
    rows = [Row(name, (Figure.of(taken).times(factor),)) for name, taken in samples.items()]
    return Table(title, (column,), tuple(rows))


# --- a judged call ---


def _warm() -> Iterator[tuple[str, Sampler]]:
    for kind, rules in KINDS.items():
        for size in SIZES:
            policy = Policy.from_rules(rules(size))
            calls = [_call(number, size, kind) for number in range(CALLS)]
            assert all(policy.judge(call).effect == "allow" for call in calls if call.args["amount"] <= 1000)
            yield _title(size, kind), sync_sampler(partial(_judge_all, policy, calls))


def _cold() -> Iterator[tuple[str, Sampler]]:
    """A policy finds out once per tool which rules are about it. Here every call is the first of its tool."""
    for kind, rules in KINDS.items():
        for size in SIZES[1:]:
            fresh = partial(Policy, rules=Policy.from_rules(rules(size)).rules)
            calls = [_call(number, 4 * TOOLS, kind) for number in range(TOOLS)]
            yield _title(size, kind), partial(_judge_first, fresh, calls)


def _judge_first(fresh: Callable[[], Policy], calls: list[Call]) -> float:
    return sync_sampler(partial(_judge_all, fresh(), calls))()


def _judge_all(policy: Policy, calls: list[Call]) -> None:
    judge = policy.judge
    for call in calls:
        judge(call)


def _call(number: int, rules: int, kind: str) -> Call:
    return Call(**call_of(number, tools=max(1, rules // 4), pattern=KINDS[kind] is by_glob))


# --- the command ---


def _commands(directory: Path, lines: int) -> Iterator[tuple[str, Sampler]]:
    for size in SIZES:
        policy, calls = directory / f"policy-{size}.yaml", directory / f"calls-{size}.jsonl"
        policy.write_text(json.dumps({"policy": by_name(size)}), encoding="utf-8")
        with calls.open("w", encoding="utf-8") as file:
            for number in range(lines):
                record = call_of(number, tools=max(1, size // 4), pattern=False)
                file.write(json.dumps(record) + "\n")
        yield f"{size:,} rules", sync_sampler(partial(_run_command, policy, calls, lines))


def _run_command(policy: Path, calls: Path, lines: int) -> None:
    done = subprocess.run([PROGRAM, "policy", "judge", policy, calls], stdout=subprocess.PIPE, check=True)
    assert done.stdout.count(b"\n") == lines


def _command_row(name: str, taken: list[float], lines: int) -> Row:
    return Row(name, (Figure.of(taken), Figure.of([lines / seconds for seconds in taken])))


# --- remembered decisions ---


def _memory(grants: int) -> Iterator[tuple[str, Sampler]]:
    memory = ApprovalMemory(None)
    plain: dict[str, bool] = {}
    for number in range(grants):
        call = Call(tool=TOOL, args=arguments(number))
        memory.remember(
            Grant(tool=TOOL, memory_key=call.memory_key, approved=True, scope=Scope.SESSION, summary="a file")
        )
        plain[_plain_key(call)] = True
    yield "ApprovalMemory.lookup", partial(_look_up, lambda call: memory.lookup(call) is not None, grants)
    yield "a dict, with json.dumps for a key", partial(_look_up, lambda call: plain[_plain_key(call)], grants)


def _plain_key(call: Call) -> str:
    return json.dumps({"tool": call.tool, "args": call.args}, sort_keys=True)


def _look_up(look: Callable[[Call], bool], grants: int) -> float:
    """Fresh calls, as a call keeps its own key once made."""
    calls = [Call(tool=TOOL, args=arguments(number * 97 % grants)) for number in range(CALLS)]

    def work() -> None:
        for call in calls:
            assert look(call)

    return sync_sampler(work)()
