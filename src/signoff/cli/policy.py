"""`signoff policy`: check a policy file, explain one decision, judge a stream of calls."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import IO, TYPE_CHECKING, Any, cast

import click

from signoff.errors import Place, PolicyError, SignoffError, WrongFile, WrongUse

if TYPE_CHECKING:
    from signoff.core.call import Call
    from signoff.core.verdict import Verdict
    from signoff.policy.explain import Explanation
    from signoff.policy.lint import Problem

LONGEST_LINE = 16_000_000
_CHUNK = 1 << 16
_CALL_KEYS = frozenset({"tool", "toolset", "worker", "args", "label", "labels"})


@click.group()
def policy() -> None:
    """Check, explain and apply policy files."""


@policy.command()
@click.argument("file")
@click.option("--tools", metavar="A,B", help="The tools there are: a rule that names another is an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def check(ctx: click.Context, file: str, tools: str | None, as_json: bool) -> None:
    """Read a policy file and say what is wrong with it.

    \b
    Example:
      signoff policy check signoff.yaml --tools read_file,write_file
    """
    from signoff.config import load_settings

    try:
        settings = load_settings(file)
        if tools is not None:
            _refuse(settings.policy.unknown_tools(name.strip() for name in tools.split(",") if name.strip()))
    except SignoffError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"file": file, "ok": False, "error": str(error)}, ensure_ascii=False))
        ctx.exit(2)
    count = len(settings.policy.rules)
    if as_json:
        found = [_problem(problem) for problem in settings.warnings]
        answer = {"file": file, "ok": True, "rules": count, "revision": settings.policy.revision, "warnings": found}
        click.echo(json.dumps(answer, ensure_ascii=False))
        return
    click.echo(f"{file}: {count} {'rule' if count == 1 else 'rules'}, ok")
    for problem in settings.warnings:
        click.echo(f"warning: {problem}")


@policy.command()
@click.argument("file")
@click.option("--tool", required=True, metavar="NAME", help="The tool that is called.")
@click.option("--args", "arguments", default="{}", metavar="JSON", help="Its arguments, as a JSON object.")
@click.option("--toolset", metavar="NAME", help="The toolset the tool belongs to.")
@click.option("--worker", metavar="NAME", help="Who calls; a chain is written 'outer > inner'.")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="A capability label; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
def explain(
    file: str,
    tool: str,
    arguments: str,
    toolset: str | None,
    worker: str | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Say what the policy decides about one call, and why.

    \b
    Example:
      signoff policy explain signoff.yaml --tool pay --args '{"amount": 200}'
    """
    from signoff.config import load_policy
    from signoff.core.call import Call

    _check_labels(labels)
    call = Call(
        tool=tool,
        args=_arguments(arguments),
        toolset=toolset,
        worker=tuple(worker.split(" > ")) if worker else (),
        labels=frozenset(labels),
    )
    explanation = load_policy(file).explain(call)
    if as_json:
        click.echo(json.dumps(explanation.as_json(), ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(explanation)))


@policy.command()
@click.argument("file")
@click.argument("calls", metavar="CALLS.jsonl")
def judge(file: str, calls: str) -> None:
    """Judge a stream of calls: one JSON object per line in, one per line out, in the same order.

    CALLS.jsonl may be - for standard input. Empty lines are skipped.

    \b
    In:   {"tool": "pay", "args": {"amount": 200}}    and, if you like: toolset, worker, label or labels
    Out:  {"verdict": "ask", "rules": ["rule-3"], "reason": "…"}
    """
    from signoff.config import load_policy

    judge_call = load_policy(file).judge
    name = "standard input" if calls == "-" else calls
    out = click.get_binary_stream("stdout")
    try:
        with _opened(calls) as stream:
            _answer(_batches(stream, name), judge_call, name, out)
    except BrokenPipeError:
        _close_quietly()


def _answer(
    batches: Iterable[list[tuple[int, bytes]]], judge_call: Callable[[Call], Verdict], name: str, out: IO[bytes]
) -> None:
    """Write a line for every line, as soon as no more input is waiting; also what came before a bad line."""
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for batch in batches:
        answers: list[str] = []
        try:
            for number, line in batch:
                if line.isspace():
                    continue
                verdict = judge_call(_call(line, number, name))
                answers.append(
                    encode({"verdict": verdict.effect.value, "rules": verdict.rules, "reason": verdict.reason})
                )
        finally:
            if answers:
                out.write(("\n".join(answers) + "\n").encode("utf-8", "backslashreplace"))
                out.flush()


def _batches(stream: IO[bytes], name: str) -> Iterator[list[tuple[int, bytes]]]:
    """Whole lines with their numbers, as many as are there without waiting for more."""
    read: Callable[[int], bytes] = getattr(stream, "read1", stream.read)
    number, rest = 0, b""
    while chunk := read(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if len(rest) > LONGEST_LINE:
            raise _bad_line(name, number + len(lines) + 1, f"the line is longer than {LONGEST_LINE // 1_000_000} MB")
        if lines:
            yield [(number + at, line) for at, line in enumerate(lines, start=1)]
        number += len(lines)
    if rest:
        yield [(number + 1, rest)]


def _call(line: bytes, number: int, name: str) -> Call:
    from signoff.core.call import Call

    try:
        record: Any = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _bad_line(name, number, f"this is not JSON: {error}") from error
    if type(record) is not dict:
        raise _bad_line(name, number, "this is not a JSON object")
    fields = cast("dict[str, Any]", record)
    if not fields.keys() <= _CALL_KEYS:
        from signoff.policy.wording import did_you_mean, shown

        key = next(key for key in fields if key not in _CALL_KEYS)
        raise _bad_line(name, number, f"unknown key {shown(key)}", did_you_mean(key, _CALL_KEYS))
    tool, args, toolset = fields.get("tool"), fields.get("args", {}), fields.get("toolset")
    if type(tool) is not str or not tool:
        raise _bad_line(name, number, "`tool` should be the name of a tool")
    if type(args) is not dict:
        raise _bad_line(name, number, "`args` should be an object")
    if toolset is not None and type(toolset) is not str:
        raise _bad_line(name, number, "`toolset` should be a text")
    if len(fields) <= 2:
        return Call(tool=tool, args=args)
    ...
    return Call(tool=tool, args=args)
