"""Live progress of `run`, `resume` and `demo`: what the worker says, each call with its verdict, and the usage.

At a terminal, the model's text is streamed, and a status line at the bottom says what is going on.
Elsewhere each step is one plain line, or one JSON object with `--json`.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TextIO

import click

from signoff.channels.keyboard import Keyboard
from signoff.cli.markdown import Markdown
from signoff.cli.masked_stream import MaskedStream
from signoff.cli.safe_output import for_terminal
from signoff.cli.terminal_text import agent_name, as_json, cells, clip, iso, now
from signoff.core.card import rule_text, safe_summary
from signoff.core.event import CallEvent, CallStep, RunMessage
from signoff.core.moment import ago
from signoff.core.redact import redact, redact_text
from signoff.core.request import ApprovalRequest
from signoff.core.result_text import exit_text, without_exit, without_notice
from signoff.core.safe_text import redacted_text, safe_text
from signoff.core.summary import own_words
from signoff.core.visible_text import visible

if TYPE_CHECKING:
    from signoff.core.grant import Grant
    from signoff.workers.runtime import WorkerUsage

BAR, PLAIN_BAR = "┃ ", ": "
"""What every row of a model's text begins with: normally, and on a terminal that cannot show the first."""
LONGEST = 62
"""Cells of a line, so that it fits 80 columns with its mark."""
ROOM = 32
"""Cells of that line reserved for the call, however long the chain of workers is."""
INDENT = " " * 16
PATIENCE = 0.3
"""Seconds before the status line is drawn. Drawing it for shorter steps would only flicker."""

_MARKS = {
    CallStep.ALLOWED: ("allowed", "green"),
    CallStep.REMEMBERED: ("remembered", "green"),
    CallStep.APPROVED: ("approved", "green"),
    CallStep.REVIEWED: ("reviewed", "green"),
    CallStep.AUTO_APPROVED: ("auto-approved", "yellow"),
    CallStep.DENIED: ("denied", "red"),
    CallStep.FAILED: ("failed", "red"),
}
_STARTS = frozenset(
    {CallStep.ALLOWED, CallStep.REMEMBERED, CallStep.APPROVED, CallStep.REVIEWED, CallStep.AUTO_APPROVED}
)


class ProgressPrinter:
    """Prints what a run does. Thread-safe."""

    def __init__(self, *, as_json: bool = False, patience: float = PATIENCE) -> None:
        self.out: TextIO | None = None
        """Where JSON goes; None means standard output."""
        self.secrets: set[str] = set()
        """Values that no message about the run may show."""
        self._denied: set[str] = set()
        self._ran: set[str] = set()
        self._told_loosened = False
        self._as_json = as_json
        self._is_live = not as_json and is_live_terminal()
        self.is_live = self._is_live and _is_screen(sys.stdout)
        """Whether the model's text is streamed to standard output, where the answer goes."""
        self._words: Markdown | None = None
        """Renderer of the text that is being streamed."""
        self._masked = MaskedStream(self.secrets)
        """Holds back streamed text that may be the beginning of a secret."""
        self._heard = False
        """Whether part of the current answer was streamed."""
        self._shown = ""
        """The last answer that was streamed."""
        self._patience = patience
        self._lock = threading.Lock()
        self._name = ""
        self._going: dict[str, CallEvent] = {}
        self._asked: set[str] = set()
        self._since = time.monotonic()
        self._line = ""
        """The status line that is drawn now."""
        self._over = threading.Event()
        self._over.set()

    def begun(self, agent: str, run: str, loosened: Sequence[str] = ()) -> None:
        """Report that a run begins or is resumed. `agent` as in `SavedRun.agent`; `run` is empty if it is not saved.

        `loosened` says how the run was loosened. It is printed at once, because the run may ask nobody.
        """
        loosened = [safe_text(one, secrets=self.secrets) for one in loosened]
        with self._lock:
            self._denied.clear()
            self._ran.clear()
        if self._as_json:
            told = {**({"run": run} if run else {}), **({"loosened": loosened} if loosened else {})}
            click.echo(as_json({"event": "started", "agent": agent, **told}), file=self.out)
            return
        if loosened and not self._told_loosened:
            self._told_loosened = True  # once, however many turns follow
            click.secho(f"LOOSENED: {'; '.join(loosened)}", fg="yellow", bold=True, err=True)
        with self._lock:
            self._name = agent_name(agent)
            self._going.clear()
            self._asked.clear()
            self._heard, self._shown = False, ""
            self._since = time.monotonic()
        if self._is_live and self._over.is_set():
            self._over = threading.Event()
            threading.Thread(target=self._tick, args=(self._over,), daemon=True).start()

    def waits(self, requests: Iterable[ApprovalRequest]) -> None:
        """Report the requests that a resumed run waits for. They were asked before, so no event reports them again."""
        with self._lock:
            self._asked.update(one.call.path for one in requests if one.call is not None)
            self._erase()

    def observe(self, event: CallEvent) -> None:
        """Report a step of a call."""
        with self._lock:
            self._count(event)
        if self._as_json:
            click.echo(event_json(event), file=self.out)
            return
        with self._lock:
            self._erase()
            self._end_words()
            if self._is_live:
                if not self._was_answered_here(event):
                    print_event(event)
            else:
                print_plainly(event)
            self._note(event)
            self._draw()

    def message(self, message: RunMessage) -> None:
        """Print a message from a tool to the user."""
        if self._as_json:
            click.echo(message_json(message), file=self.out)
            return
        with self._lock:
            self._erase()
            print_message(message)
            self._draw()

    def saying(self, text: str) -> None:
        """Print the next piece of streamed text; empty text ends the block."""
        with self._lock:
            if not text:
                self._end_words()
                self._since = time.monotonic()
                return
            self._erase()
            if self._words is None:
                self._words = _on(sys.stdout)
                self._masked = MaskedStream(self.secrets)
            self._heard = True
            _write(self._words.feed(self._masked.feed(text)))
            self._draw()

    def said(self, text: str, *, calls: bool) -> None:
        """Print the model's whole text of one response. If it is not streamed, the final answer is left to `answer`."""
        with self._lock:
            self._erase()
            if self.is_live:
                self._words = self._words or (None if self._heard else _on(sys.stdout))
                if self._words is not None and not self._heard:
                    self._masked = MaskedStream(self.secrets)
                    _write(self._words.feed(self._masked.feed(text)))
                self._end_words()
                self._shown = text
            elif calls and text.strip():
                words = _on(sys.stderr)
                shown = safe_text(text, secrets=self.secrets, lines=True)
                click.echo(words.feed(shown) + words.end(), err=True, nl=False)
            self._heard = False
            self._since = time.monotonic()

    def returned(self, tool: str, result: str) -> None:
        """Print the result of a call on one line."""
        with self._lock:
            self._erase()
            click.echo(f"  {'result':<13} {result_line(tool, result, self.secrets)}", err=True)
            self._draw()

    def sent_back(self, tool: str, why: str) -> None:
        """Print that a call did not begin, and why."""
        with self._lock:
            self._erase()
            word = click.style(f"{'not called':<13}", fg="red")
            click.echo(f"  {word} {visible(tool)}: {safe_text(why, secrets=self.secrets)}", err=True)
            self._draw()

    def answer(self, text: str) -> None:
        """Print the final answer of the run, unless it was streamed.

        At a terminal it is rendered, and secrets are masked; elsewhere it is raw.
        """
        with self._lock:
            if self.is_live and self._shown and text.strip() == self._shown.strip():
                return
            if sys.stdout.isatty():
                words = _on(sys.stdout)
                _write(words.feed(redact_text(text, secrets=self.secrets)) + words.end())
            else:
                click.echo(text)

    def recall(self, text: str) -> None:
        """Print an earlier answer for people who continue a chat; not for programs that read standard output."""
        if self.is_live:
            self.answer(text)

    def ended(self) -> None:
        """Report that the run is over or waits: the status line is erased and no longer drawn."""
        self._over.set()
        with self._lock:
            self._erase()
            self._end_words()

    def _end_words(self) -> None:
        """End the streamed text, because something else is to be printed."""
        if self._words is not None:
            self._erase()
            _write(self._words.feed(self._masked.end()) + self._words.end())
            self._words = None

    def spent(self, spent: WorkerUsage) -> None:
        """Print the usage, for people only."""
        if not self._as_json and spent.requests:
            click.secho(f"  {spent_line(spent)}", dim=True, err=True)

    @property
    def all_denied(self) -> bool:
        """Whether calls were denied and none ran. A call that only contained denied calls does not count as run."""
        with self._lock:
            did = any(not any(one.startswith(f"{ran}/") for one in self._denied) for ran in self._ran)
            return bool(self._denied) and not did

    def _count(self, event: CallEvent) -> None:
        self.secrets.update(event.secrets)
        if event.what is CallStep.DENIED:
            self._denied.add(event.call.path)
        elif event.what in (CallStep.RAN, CallStep.FAILED, CallStep.CUT_OFF):
            self._ran.add(event.call.path)

    def _note(self, event: CallEvent) -> None:
        path = event.call.path
        self._asked.discard(path)
        self._going.pop(path, None)
        if event.what is CallStep.ASKED:
            self._asked.add(path)
        elif event.what in _STARTS:
            self._going[path] = event
        self._since = time.monotonic()

    def _was_answered_here(self, event: CallEvent) -> bool:
        """Whether the terminal has just printed this answer below the card."""
        if event.call.path not in self._asked:
            return False
        if event.what is CallStep.DENIED and event.by == "timeout":  # the terminal withdrew the question and said why
            return _somebody_types()
        decision = event.request.decision if event.request is not None else None
        by = decision.by if decision is not None else None
        return by is not None and by.via == "terminal"

    def _tick(self, over: threading.Event) -> None:
        while not over.wait(PATIENCE):
            with self._lock:
                self._draw()

    def _draw(self) -> None:
        """Draw the status line; not while a question is on the screen."""
        taken, room = time.monotonic() - self._since, shutil.get_terminal_size().columns - 1
        if not self._is_live or self._over.is_set():
            return
        if self._words is not None:
            line = _tail(_bar(sys.stdout), self._words.pending, room)
        elif taken < self._patience or (self._asked and _somebody_types()):
            return
        else:
            line = clip(self._doing() + (f", {int(taken)} s" if taken >= 1 else ""), room)
        if line != self._line:
            self._line = line
            sys.stderr.write(f"\r\x1b[K{line}" if os.environ.get("NO_COLOR") else f"\r\x1b[K\x1b[2m{line}\x1b[0m")
            sys.stderr.flush()

    def _erase(self) -> None:
        if self._line:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._line = ""

    def _doing(self) -> str:
        if self._asked:
            return f"{self._name} waits for a person: signoff inbox"
        calls = [one for one in self._going.values() if not _is_around(one, self._going.values())]
        if not calls:
            return f"{self._name} is thinking"
        more = f" and {len(calls) - 1} more" if len(calls) > 1 else ""
        return f"calling {one_line(calls[-1])}{more}"


def _is_around(event: CallEvent, others: Any) -> bool:
    """Whether another running call was made inside this one, which only waits for it."""
    return any(other.call.path.startswith(f"{event.call.path}/") for other in others)


def _somebody_types() -> bool:
    return Keyboard().is_here


def is_live_terminal() -> bool:
    """Whether standard error is a terminal on which a line can be redrawn."""
    return _is_screen(sys.stderr)


def _is_screen(stream: TextIO) -> bool:
    return stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _on(stream: TextIO) -> Markdown:
    """A renderer for model text on this stream: rendered and wrapped on a terminal, unchanged elsewhere."""
    styled = _is_screen(stream) and not os.environ.get("NO_COLOR")
    width = shutil.get_terminal_size().columns if stream.isatty() else 0
    return Markdown(width, styled=styled, bar=_bar(stream))


def _bar(stream: TextIO) -> str:
    return BAR if (stream.encoding or "").lower().startswith("utf") else PLAIN_BAR


def _tail(bar: str, text: str, room: int) -> str:
    """The end of what a model is writing, on one row that begins as all of its text does."""
    text = for_terminal(text)
    if cells(bar + text) > room:
        text = f"…{text[-room:]}"
    while cells(bar + text) > room:
        text = f"…{text[2:]}"
    return bar + text


def _write(text: str) -> None:
    if text:
        sys.stdout.write(text)
        sys.stdout.flush()


def result_line(tool: str, result: str, secrets: Iterable[str] = ()) -> str:
    """The result of a call on one short line that is safe to print."""
    result = without_notice(result)  # the line above says that it was edited
    ended, lines = exit_text(result), without_exit(result).strip().splitlines()
    filled = [line for line in lines if line.strip()]
    first = filled[-1 if ended else 0] if filled else ""  # of what failed, the last line says most
    more = f"  (and {len(lines) - 1:,} more line{'s' if len(lines) != 2 else ''})" if len(lines) > 1 else ""
    name = visible(tool)
    said = ": ".join(filter(None, (ended, first[:1_000])))
    text = safe_text(said, secrets=secrets) or "nothing"
    return f"{name}: {clip(text, max(LONGEST - cells(name) - cells(more) - 2, ROOM // 2))}{more}"


def print_event(event: CallEvent) -> None:
    """Print a step for people, on standard error. Asking and running are left to the card and the next line."""
    if event.what not in _MARKS:
        return
    word, colour = _MARKS[event.what]
    because = _because(event)
    dim = event.what not in (CallStep.DENIED, CallStep.FAILED)
    below = f"\n{click.style(INDENT + because, dim=dim)}" if because else ""
    click.echo(f"  {click.style(f'{word:<13}', fg=colour)} {one_line(event)}{below}", err=True)


def print_plainly(event: CallEvent) -> None:
    """Like `print_event`, on one line, for logs. A question is printed too, because there is no card."""
    if event.what is CallStep.ASKED:
        request = event.request.id if event.request is not None else ""
        click.echo(f"  {'asked':<13} {one_line(event)}  request {request}", err=True)
    elif event.what in _MARKS:
        because = _because(event)
        told = f"  {because}" if because else ""
        click.echo(f"  {_MARKS[event.what][0]:<13} {one_line(event)}{told}", err=True)


def print_message(message: RunMessage) -> None:
    """Print a tool's message for people, on standard error."""
    who = " > ".join(map(visible, message.worker))
    click.echo(f"  {'message':<13} {who}: {redacted_text(message.text)}", err=True)


def message_json(message: RunMessage) -> str:
    """A tool's message as JSON."""
    row = {"event": "message", "worker": list(message.worker), "call": message.call, "text": message.text}
    return as_json(row)


def event_json(event: CallEvent) -> str:
    """A step as JSON, secrets masked."""
    row: dict[str, Any] = {
        "event": str(event.what),
        "tool": redact_text(event.call.tool, secrets=event.secrets),
        "call": event.call.path,
        "worker": list(event.call.worker),
        "args": redact(event.call.args, secrets=event.secrets).args,
        "rules": list(event.verdict.rules) if event.verdict else [],
        "reason": redact_text(event.text or (event.verdict.reason if event.verdict else ""), secrets=event.secrets),
    }
    if event.request is not None:
        row["request"] = event.request.id
    if event.by:
        row["by"] = event.by
    if event.grant is not None:
        row |= {"grant": event.grant.id or None, "by": redact_text(event.grant.by, secrets=event.secrets) or None}
        row["answered_at"] = iso(event.grant.at)
    return as_json(row)


def one_line(event: CallEvent) -> str:
    """The call on one short line, safe to print, after the chain of workers that led to it."""
    call = event.call
    words = own_words(call.tool, call.labels, call.args) if event.has_words else ""
    said = {"summary": words} if words else {}
    request = ApprovalRequest(tool_call_id=call.call_id, tool_name=call.tool, args=call.args, call=call, metadata=said)
    line = safe_summary(request, secrets=event.secrets)
    chain = _chain(call.worker, LONGEST - min(cells(line), ROOM)) if len(call.worker) > 1 else ""
    return clip(chain + line, LONGEST)


def _chain(workers: Sequence[str], width: int) -> str:
    """The chain of workers that led to a call, as a prefix; a long chain is cut to its last workers."""
    for start in range(len(workers)):
        told = ("…", *workers[start:]) if start else workers
        chain = "".join(f"{visible(worker)} > " for worker in told)
        if cells(chain) <= width:
            return chain
    return f"{clip(visible(workers[-1]), width - 3)} > "


def spent_line(spent: WorkerUsage) -> str:
    """The usage of a run in words: model requests, tokens, cost."""
    parts = [f"{spent.requests} model request{'s' if spent.requests != 1 else ''}"]
    if spent.input_tokens or spent.output_tokens:
        parts.append(f"{spent.input_tokens:,} tokens in, {spent.output_tokens:,} out")
    if spent.cost is not None:
        parts.append(f"${spent.cost:.4f}")
    return " · ".join(parts)


def spent_json(spent: WorkerUsage) -> dict[str, Any]:
    """The usage of a run as JSON."""
    return {
        "requests": spent.requests,
        "input_tokens": spent.input_tokens,
        "output_tokens": spent.output_tokens,
        "cost_usd": float(spent.cost) if spent.cost is not None else None,
    }


def _grant_text(grant: Grant, secrets: Iterable[str]) -> str:
    """Whose earlier answer lets a call run, when it was given, and the id of its grant."""
    by = f"answer of {safe_text(grant.by, secrets=secrets)}" if grant.by else "an earlier answer"
    when = f", {ago(grant.at, now())}" if grant.at is not None else ""
    return f"{by}{when}{f' (grant {visible(grant.id)})' if grant.id else ''}"


def _because(event: CallEvent) -> str:
    match event.what:
        case CallStep.DENIED:
            return f"by {visible(event.by)}: {safe_text(event.text, secrets=event.secrets)}"
        case CallStep.FAILED:
            return safe_text(event.text, secrets=event.secrets)
        case CallStep.ALLOWED if event.verdict is not None and event.verdict.rules:
            return f"by {rule_text(', '.join(event.verdict.rules))}"
        case CallStep.REMEMBERED if event.grant is not None:
            return _grant_text(event.grant, event.secrets)
        case CallStep.APPROVED if event.request is not None and event.request.decision is not None:
            by = event.request.decision.by
            edited = ", arguments edited" if event.request.decision.edited_args is not None else ""
            return f"by {visible(str(by))}{edited}"
        case _:
            return ""
