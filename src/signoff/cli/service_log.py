"""The log of `signoff serve`: a line for people, or one JSON object, for each event."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from signoff.cli.channels_run import ChannelReport, told_of
from signoff.cli.terminal_text import as_json as json_line
from signoff.cli.terminal_text import safe
from signoff.core.redact import redact_text
from signoff.core.request import State

if TYPE_CHECKING:
    from signoff.ports import Channel


class LinePrinter:
    """Prints events. It implements `wiring.service.ServiceLog`.

    Text from others is masked and escaped; arguments of calls, bodies of requests and keys are never logged.
    """

    def __init__(self, *, as_json: bool, out: TextIO | None = None) -> None:
        self._as_json = as_json
        self._out = out or sys.stdout
        self._report = ChannelReport(tell=self._channel)

    def say(self, event: str, line: str, **data: object) -> None:
        now = datetime.now(UTC)
        if self._as_json:
            told = {name: safe(redact_text(one)) if isinstance(one, str) else one for name, one in data.items()}
            text = json_line({"at": now.isoformat(timespec="milliseconds"), "event": event, **told})
        else:
            text = f"{now:%Y-%m-%dT%H:%M:%SZ}  {safe(redact_text(line))}"
        with suppress(OSError, ValueError):  # the reader is gone or the disk is full: the server continues
            print(text, file=self._out, flush=True)

    def watched(self, channel: Channel) -> Channel:
        return told_of(channel, self._report)

    def _channel(self, channel: str, event: str, line: str, data: dict[str, object]) -> None:
        if event == "shown" and data["state"] == State.EXPIRED:
            return  # the service tells it, once, whichever channels show it
        self.say(event, f"{channel}: {line}" if channel else line, channel=channel or None, **data)


class _FromLibraries(logging.Handler):
    """Prints log records of libraries as our lines. Of an error, only its type and place: its text may be anything."""

    def __init__(self, printer: LinePrinter) -> None:
        super().__init__(logging.WARNING)
        self._printer = printer

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        text = redact_text(record.getMessage().splitlines()[0] if record.getMessage() else "")
        data: dict[str, object] = {"logger": record.name, "level": record.levelname.lower(), "text": text}
        if error is not None:
            data["error"] = type(error).__name__
            data["where"] = _place_of(error)
            text = f"{text}: {data['error']} at {data['where']}"
        self._printer.say("log", f"{record.name}: {text}", **data)


def _place_of(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace is not None else ""


@contextmanager
def libraries_told(printer: LinePrinter) -> Generator[None]:
    """Print logs and warnings of libraries with this printer, and nowhere else."""
    root, handler, seen = logging.getLogger(), _FromLibraries(printer), set[str]()

    def warned(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        text = str(message)
        if text not in seen:
            seen.add(text)
            printer.say("warning", text, text=text)

    root.addHandler(handler)
    with warnings.catch_warnings():
        warnings.simplefilter("always", RuntimeWarning)
        warnings.showwarning = warned
        try:
            yield
        finally:
            root.removeHandler(handler)
