"""`signoff policy`: check a policy file, add rules, explain one decision, judge a stream of calls."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import IO, TYPE_CHECKING, Any, cast

import click

from signoff.cli import shared_options
from signoff.cli.policy_add import add
from signoff.cli.policy_show import show
from signoff.cli.policy_tools import Held, held_against_catalog
from signoff.cli.safe_output import apart
from signoff.cli.server_choice import is_elsewhere, server_options
from signoff.cli.terminal_text import as_json as json_line
from signoff.config import Settings, find_project, load_settings
from signoff.config.files import from_here
from signoff.core.call import LABELS, Call
from signoff.core.safe_text import printable
from signoff.core.strict_json import read_json
from signoff.core.verdict import Effect, Verdict
from signoff.errors import Place, PolicyError, SignoffError, WrongFile, WrongUse
from signoff.links import looked_up
from signoff.policy.call_json import BadRecord, read_call
from signoff.policy.layers import Layers, compose
from signoff.policy.phrases import did_you_mean, listed, shown
from signoff.store.store_factory import why_no_store
from signoff.views.explanation_view import ExplanationView

if TYPE_CHECKING:
    from io import BufferedReader

    from signoff.cli.server_client import ApprovalServer
    from signoff.policy.engine import Policy
    from signoff.policy.explain import Explanation
    from signoff.policy.lint import Problem

LONGEST_LINE = 16_000_000

_CHUNK = 1 << 16
_WRONG = 2
_MOST_TOOLSETS = 1024


@click.group()
def policy() -> None:
    """Check, explain and apply policy files."""


policy.add_command(show)
policy.add_command(add)


@policy.command()
@click.argument("file", required=False)
@click.option("--tools", metavar="A,B", help="All known tools: a rule that names another tool is an error.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.pass_context
def check(ctx: click.Context, file: str | None, tools: str | None, as_json: bool) -> None:
    """Check a policy file and report what is wrong.

    FILE defaults to the nearest signoff.yaml. Tool names in rules are checked against the project's toolsets, or
    against --tools if given.

    \b
    Example:
      signoff policy check
      signoff policy check signoff.yaml --tools read_file,write_file
    """
    file, held = _nearest(file), Held()
    try:
        settings = load_settings(file)
        if settings.store is not None and (why := why_no_store(settings.store)):
            raise WrongFile(f"this {why}", place=Place(file, key="store"))
        if tools is not None:
            _refuse(settings.policy.unknown_tools(filter(None, map(str.strip, tools.split(",")))))
        else:
            with apart() if as_json else nullcontext():  # output of the project's own code must not mix with our JSON
                held = held_against_catalog(settings)
    except SignoffError as error:
        if not as_json:
            raise
        click.echo(json_line({"file": file, "ok": False, "error": str(error)}))
        ctx.exit(_WRONG)
    rules, warnings = settings.policy.rules, (*settings.warnings, *held.problems)
    if as_json:
        told = {
            "file": file,
            "ok": True,
            "rules": len(rules),
            "revision": settings.policy.revision,
            "warnings": [_as_json(problem) for problem in warnings],
            "unlisted": list(held.unlisted),
        }
        click.echo(json_line(told))
        return
    click.echo(f"{file}: {len(rules)} {'rule' if len(rules) == 1 else 'rules'}, ok")
    for problem in warnings:
        click.echo(f"warning: {problem}")
    if held.rules:
        may = f"{listed(held.unlisted)} may have them: its tools are known only when it runs"
        click.echo(f"note: tools named in {listed(held.rules)} were not found; {may}")


def _nearest(file: str | None) -> str:
    """The file that was given, else the nearest signoff.yaml in this directory or above."""
    found = file if file is not None else find_project()
    if found is None:
        raise WrongUse("there is no signoff.yaml here or above\n  name the file, or create one with `signoff init`")
    return found if file is not None else from_here(found)


@policy.command()
@click.argument("file", required=False)
@click.option("--tool", required=True, metavar="NAME", help="The tool's name.")
@click.option("--args", "arguments", default="{}", metavar="JSON", help="Its arguments, as a JSON object.")
@click.option("--toolset", metavar="NAME", help="The toolset the tool belongs to.")
@click.option("--worker", metavar="NAME", help="The worker that calls; a chain is written 'outer > inner'.")
@click.option("--label", "labels", multiple=True, metavar="LABEL", help="A capability label. Repeatable.")
@click.option("--json", "as_json", is_flag=True, help="Print the explanation as JSON.")
@shared_options.elsewhere
def explain(
    file: str | None,
    tool: str,
    arguments: str,
    toolset: str | None,
    worker: str | None,
    labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Print the verdict for one call, and why.

    FILE defaults to the nearest signoff.yaml. With --toolset, the rules of that toolset apply too.

    \b
    Example:
      signoff policy explain --tool pay --args '{"amount": 200}'
    """
    _check_labels(labels)
    call = Call(
        tool=tool,
        args=_arguments(arguments),
        toolset=toolset,
        worker=tuple(worker.split(" > ")) if worker else (),
        labels=frozenset(labels),
    )
    server = _server_for(file)
    if server is not None:
        found = server.read(ExplanationView, server.post("/policy/explain", _call_body(call)))
    else:
        found = ExplanationView.of(_explained(_nearest(file), call))
    click.echo(json_line(found) if as_json else "\n".join(map(printable, found.lines())))


def _server_for(file: str | None) -> ApprovalServer | None:
    """The server whose policy is used; None for a local file."""
    if file is not None and server_options().url:
        raise click.UsageError("FILE is a local policy, but a server uses its own: leave out one of them")
    if file is not None or not is_elsewhere(None):
        return None
    from signoff.cli.server_client import server_for

    return server_for()


def _call_body(call: Call) -> dict[str, Any]:
    """A call as a request body for a server."""
    return {
        "tool": call.tool,
        "args": dict(call.args),
        "toolset": call.toolset,
        "worker": list(call.worker),
        "labels": sorted(call.labels),
    }


def _explained(file: str, call: Call) -> Explanation:
    settings = load_settings(file)
    policy, own = settings.policy, settings.toolset_layers(call.toolset)
    layers = Layers((policy, *own))
    # Symlinks are resolved as in a run, so that the explanation says what would happen there.
    found = looked_up(call, layers, policy.root) if policy.root is not None else call
    return layers.explain(found) if own else policy.explain(found)


@policy.command()
@click.argument("files", nargs=-1, metavar="[FILE] CALLS.jsonl")
@shared_options.elsewhere
def judge(files: tuple[str, ...]) -> None:
    """Judge a stream of calls: one JSON object per line in, one per line out, in the same order.

    FILE defaults to the nearest signoff.yaml. CALLS.jsonl may be - for standard input. Empty lines are skipped. A line
    that is not a call stops the stream.

    \b
    In:   {"tool": "pay", "args": {"amount": 200}}    toolset, worker, label and labels if you have them
    Out:  {"verdict": "ask", "rules": ["rule-3"], "reason": "…"}
    """
    if len(files) not in (1, 2) or (len(files) == 1 and files[0].endswith((".yaml", ".yml"))):
        what = "this command takes an optional policy file and a file of calls"
        raise WrongUse(f"{what}\n  write it as in signoff policy judge calls.jsonl")
    calls = files[-1]
    file = files[0] if len(files) > 1 else None
    server = _server_for(file)
    judge_call = _with_toolsets(load_settings(_nearest(file))) if server is None else _judged_by(server)
    name = "standard input" if calls == "-" else calls
    try:
        with _opened(calls) as stream:
            _answer(_batches(stream, name), judge_call, name, sys.stdout.buffer)
    except BrokenPipeError:
        # The reader closed the pipe. Python flushes standard output once more at exit; /dev/null takes that.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _judged_by(server: ApprovalServer) -> Callable[[Call], Verdict]:
    """A function that judges calls by a server's policy."""

    def judged(call: Call) -> Verdict:
        said = server.post("/policy/judge", _call_body(call))
        return Verdict(effect=Effect(said["verdict"]), rules=tuple(said["rules"]), reason=said["reason"])

    return judged


def _with_toolsets(settings: Settings) -> Callable[[Call], Verdict]:
    """A function that judges calls by the project's policy and by that of the toolset that a call names."""
    policy = settings.policy
    layers: dict[str, tuple[Policy, ...]] = {}

    def judged(call: Call) -> Verdict:
        name = call.toolset
        if name is None:
            return policy.judge(call)
        if name not in layers and len(layers) < _MOST_TOOLSETS:
            layers[name] = settings.toolset_layers(name)
        own = layers[name] if name in layers else settings.toolset_layers(name)
        return compose((policy, *own), call) if own else policy.judge(call)

    return judged


def _opened(calls: str) -> AbstractContextManager[BufferedReader]:
    if calls == "-":
        return nullcontext(cast("BufferedReader", sys.stdin.buffer))
    try:
        return open(calls, "rb")
    except OSError as error:
        raise WrongFile(f"{calls} cannot be read: {error.strerror}") from error


def _batches(stream: BufferedReader, name: str) -> Iterator[list[tuple[int, bytes]]]:
    """Lines with their numbers, as many as are available without waiting for more input."""
    number, rest = 0, b""
    while chunk := stream.read1(_CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        if lines:
            yield [(number + at, line) for at, line in enumerate(lines, start=1)]
        number += len(lines)
        if len(rest) > LONGEST_LINE:
            raise WrongFile(f"the line is longer than {LONGEST_LINE:,} bytes", place=Place(name, number + 1))
    if rest:
        yield [(number + 1, rest)]


def _answer(
    batches: Iterable[list[tuple[int, bytes]]], judge_call: Callable[[Call], Verdict], name: str, out: IO[bytes]
) -> None:
    """Write a verdict for every call, immediately if input is slow, and also for the calls before a bad line."""
    encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode
    for batch in batches:
        answers: list[str] = []
        try:
            for number, line in batch:
                if not line or line.isspace():
                    continue
                try:
                    call = read_call(line)
                except BadRecord as error:
                    raise WrongFile(error.what, place=Place(name, number), fix=error.fix) from error
                verdict = judge_call(call)
                answers.append(
                    encode({"verdict": verdict.effect.value, "rules": verdict.rules, "reason": verdict.reason})
                )
        finally:
            if answers:
                out.write(("\n".join(answers) + "\n").encode("utf-8", "backslashreplace"))
                out.flush()


def _refuse(problems: tuple[Problem, ...]) -> None:
    if len(problems) == 1:
        raise problems[0].as_error()
    if problems:
        raise PolicyError(f"{len(problems)} problems:\n" + "\n".join(f"  {problem}" for problem in problems))


def _check_labels(labels: Iterable[str]) -> None:
    for label in labels:
        if label not in LABELS:
            raise WrongUse(f"--label: unknown label {shown(label)}\n  {did_you_mean(label, LABELS)}")


def _arguments(text: str) -> dict[str, Any]:
    try:
        value: Any = read_json(text)
    except (ValueError, RecursionError) as error:
        raise WrongUse(f'--args is not JSON: {error}\n  write it as in --args \'{{"path": "a.txt"}}\'') from error
    if not isinstance(value, dict):
        raise WrongUse('--args should be a JSON object\n  write it as in --args \'{"path": "a.txt"}\'')
    return cast("dict[str, Any]", value)


def _as_json(problem: Problem) -> dict[str, Any]:
    place = problem.place
    return {
        "rule": problem.rule,
        "what": problem.what,
        "fix": problem.fix,
        "line": place.line,
        "column": place.column,
        "key": place.key,
    }
