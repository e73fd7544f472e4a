"""Run an agent at this terminal: show progress, then the result or how to resume."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

import click

from signoff.cli.loops import run
from signoff.cli.progress import ProgressPrinter, spent_json
from signoff.cli.request_report import outcome_step
from signoff.cli.safe_output import apart, for_terminal
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import fold, now
from signoff.core.card import safe_summary
from signoff.core.exit_codes import DENIED, FAILED, WAITING
from signoff.core.inbox_row import needs_of
from signoff.core.loosening import NOT_LOOSENED, Loosened
from signoff.core.moment import ahead
from signoff.core.redact import redact_text
from signoff.core.request import ApprovalRequest, State
from signoff.core.request_status import without_answer
from signoff.core.safe_text import safe_text
from signoff.errors import Halted, SignoffError
from signoff.store.store_urls import masked

if TYPE_CHECKING:
    from signoff.wiring.job import Job
    from signoff.workers.runtime import Finished
    from signoff.workers.stream_events import Listener

T = TypeVar("T")


class Going:
    """The current run and its output."""

    def __init__(self, *, as_json: bool, run: str = "", whole: bool = True) -> None:
        """`whole` says whether the whole run happens in this process."""
        self.as_json = as_json
        self.whole = whole
        self.progress = ProgressPrinter(as_json=as_json)
        self.run = run

    @property
    def listener(self) -> Listener | None:
        """Who is told what the agent says. None with --json: programs get only the answer."""
        return None if self.as_json else self.progress

    def begun(self, job: Job, before: Loosened = NOT_LOOSENED) -> Callable[[str], None]:
        """A callback for the id of each run of `job` that begins. `before` is how it was loosened when it started."""
        self.progress.secrets.update(job.runner.gate.secrets)

        def told(run: str) -> None:
            self.run = run
            self.progress.begun(job.agent, run, (job.runner.gate.gate.loosened | before).texts)

        return told

    async def on(self, work: Awaitable[T]) -> T:
        """Await `work` while progress is shown."""
        try:
            return await work
        finally:
            self.progress.ended()

    @contextmanager
    def alone_on_stdout(self) -> Generator[None]:
        """Keep output of agents, tools and plugins out of our JSON on standard output."""
        if not self.as_json:
            yield
            return
        with apart() as out:
            self.progress.out = out
            try:
                yield
            finally:
                self.progress.out = None

    def say(self, finished: Finished) -> int:
        """Print how a run ended; return the exit code."""
        out = self.progress.out
        if finished.waiting:
            say_waiting(
                finished.run,
                finished.waiting,
                self.as_json,
                store=finished.store,
                resumer=finished.resumer,
                out=out,
            )
            return WAITING
        if finished.paused:
            say_paused(finished, self.as_json, out=out)
            return WAITING
        self.progress.spent(finished.spent)
        if self.as_json:
            click.echo(_answer(finished, tuple(self.progress.secrets)), file=out)
        else:
            self.progress.answer(finished.output if isinstance(finished.output, str) else _text(finished.output))
        # What a run did before it was resumed is unknown here, so nobody can say that all of it was denied.
        return DENIED if self.whole and self.progress.all_denied else 0

    def told(self, error: Exception) -> str:
        """An error of an agent or a tool as printable text."""
        return f"{type(error).__name__}: {safe_text(str(error), secrets=self.progress.secrets, lines=True)}"


def carried_out(work: Coroutine[Any, Any, T], going: Going, *, traceback: bool) -> T:
    """Run the work. An error becomes one message and an exit code."""
    try:
        with going.alone_on_stdout():
            return run(work)
    except KeyboardInterrupt:
        going.progress.ended()
        click.echo(f"\nsignoff: stopped. {_go_on(going.run)}", err=True)
        sys.exit(130)
    except Halted as halted:
        click.echo(f"signoff: {halted}\n  {_go_on(going.run) or 'No run was started.'}", err=True)
        sys.exit(WAITING)
    except SignoffError:
        raise
    except Exception as error:
        if traceback:
            raise
        click.echo(f"signoff: the agent failed: {going.told(error)}", err=True)
        click.echo("  --traceback shows where.", err=True)
        sys.exit(FAILED)


def _go_on(run: str) -> str:
    return f"To resume: signoff resume {run}" if run else ""


def _answer(finished: Finished, secrets: Sequence[str]) -> str:
    output = json.loads(json.dumps(finished.output, default=_plain))
    answer = {
        "output": _masked(output, secrets),
        **({"run": finished.run} if finished.run else {}),
        "usage": spent_json(finished.spent),
    }
    return json_line(answer)


def _masked(value: Any, secrets: Sequence[str]) -> Any:
    """Mask secrets in every text of an output."""
    if isinstance(value, str):
        return redact_text(value, secrets=secrets)
    if isinstance(value, dict):
        whole = cast("dict[str, Any]", value)
        return {_masked(key, secrets): _masked(one, secrets) for key, one in whole.items()}
    return [_masked(one, secrets) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def _text(output: Any) -> str:
    """A non-text output for people: as JSON if it is a dict or a list."""
    return json.dumps(output, ensure_ascii=False, indent=2) if isinstance(output, dict | list) else str(output)


def _plain(value: Any) -> Any:
    """A value without a JSON form: the fields of a Pydantic model, or its text."""
    dumped = getattr(value, "model_dump", None)
    return dumped(mode="json") if callable(dumped) else str(value)


def say_paused(finished: Finished, as_json: bool, *, out: TextIO | None = None) -> None:
    """Print that a run is paused without a pending request: results come from elsewhere, or it was just answered."""
    if as_json:
        elsewhere = {"elsewhere": list(finished.elsewhere)} if finished.elsewhere else {}
        click.echo(json_line({"waiting": [], "run": finished.run, **elsewhere}), file=out)
        return
    if finished.elsewhere:
        tools = ", ".join(dict.fromkeys(map(for_terminal, finished.elsewhere)))
        click.echo(
            f"Waiting for external results: {tools}. Your program supplies them: resume(…, calls=…)",
            err=True,
        )
    else:
        click.echo(f"Answered in the meantime. {_go_on(finished.run)}", err=True)


def _where(store: str) -> str:
    """The option that names a store in another command; empty if the environment names it. Never with its password."""
    from shlex import quote

    return f" --store {quote(masked(store))}" if store and store != os.environ.get("SIGNOFF_STORE") else ""


def say_waiting(
    run: str,
    waiting: Sequence[ApprovalRequest],
    as_json: bool,
    *,
    store: str = "",
    resumer: str = "",
    out: TextIO | None = None,
) -> None:
    """Print what a run waits for, and how to continue. JSON goes to `out`; None means standard output.

    `resumer` is the program that resumes the run by itself, if one does.
    """
    rows = [{"request": one.id, "summary": one.title or safe_summary(one)} for one in waiting]
    if as_json:
        click.echo(json_line({"waiting": rows, **({"run": run} if run else {})}), file=out)
        return
    click.echo("Waiting for a person:", err=True)
    for one, row in zip(waiting, rows, strict=True):
        click.echo(f"  {row['request']}  {row['summary']}", err=True)
        if one.state is State.UNKNOWN:
            click.echo(f"  {' ' * len(one.id)}  {outcome_step(one.id)}", err=True)
            continue
        needs = needs_of(one)
        facts = [f"needs {for_terminal(needs)}"] if needs else []
        if one.deadline is not None:
            facts.append(f"{for_terminal(without_answer(one))} {ahead(one.deadline, now())}")
        if facts:
            indent = " " * (len(one.id) + 4)
            line = f"{indent}{' · '.join(facts)}"
            for part in fold(line, get_terminal_size().columns, indent) if sys.stderr.isatty() else (line,):
                click.echo(part, err=True)
    if run:
        where = _where(store)
        if pending := [one for one in waiting if one.state is State.PENDING]:
            # Do not suggest a command that approves several calls unseen.
            name, each = (pending[0].id, "") if len(pending) == 1 else ("ID", "   (each of them, by its own ID)")
            click.echo(f"Review:  signoff show {name}{where}{each}", err=True)
            others = "somebody else: " if all(one.refused for one in pending) else ""
            click.echo(
                f"Answer:  {others}signoff approve {name}{where}, or signoff deny {name}{where} --note WHY", err=True
            )
        if resumer:
            click.echo(f"Then:    {for_terminal(resumer)} goes on with it", err=True)
            click.echo(f"Result:  signoff runs show {run}{where}", err=True)
        else:
            click.echo(f"Resume:  signoff resume {run}{where}", err=True)
