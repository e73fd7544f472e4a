"""`signoff audit`: print, verify and export the audit log."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import click

from signoff.broker.audit import export_csv, export_store, verify_store
from signoff.cli import id_completion, shared_options
from signoff.cli.audit_log import SHOWN, EventFilter, follow_events, json_line, moment, readable_line, show_events
from signoff.cli.loops import run
from signoff.cli.open_broker import say_where, store_meant
from signoff.cli.server_choice import is_elsewhere
from signoff.cli.terminal_text import as_json as as_json_text
from signoff.cli.terminal_text import count, escaped_json
from signoff.core.export import verify_export
from signoff.core.record import Trust, Verified, Vouched, vouched
from signoff.errors import RecordBroken, StoreError, WrongFile, WrongUse
from signoff.store.signing_key import Keys, is_signed, read_public_key
from signoff.wiring.project import settings_for
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.ports import Store

T = TypeVar("T")

LONGEST_LINE = 16_000_000
LONG = 20_000
"""Number of events from which progress is shown."""
_BROKEN = 1


@click.group(invoke_without_command=True)
@click.pass_context
def audit(ctx: click.Context) -> None:
    """Read, verify and export the audit log. Without a subcommand: show the last events."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(log)


@audit.command()
@click.option(
    "--request",
    "request_id",
    metavar="ID",
    shell_complete=id_completion.waiting,
    help="Only events of one request.",
)
@click.option("--run", "run_id", metavar="RUN", shell_complete=id_completion.runs, help="Only events of one run.")
@click.option("--since", metavar="WHEN", help="Only events since: 2h, 3d, 2026-01-31, 2026-01-31T12:00.")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Only the last N events. Default: 50, without other filters.",
)
@click.option("--follow", is_flag=True, help="Keep running, and print new events.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object per event, with the fields of an export.")
@shared_options.anywhere
def log(
    request_id: str | None,
    run_id: str | None,
    since: str | None,
    limit: int | None,
    follow: bool,
    as_json: bool,
    store: str | None,
    policy: str | None,
) -> None:
    """Print the audit log.

    One line per event, oldest first: number, time, kind, person, subject, rule, request and run.

    \b
    Examples:
      signoff audit log
      signoff audit log --request pjssg8 --json
      signoff audit log --since 2h --follow
    """
    if limit is None and not (request_id or run_id or since):
        limit = SHOWN
    choice = EventFilter(request=request_id or "", run=run_id or "", since=moment(since), limit=limit)
    line = json_line if as_json else readable_line

    async def work(opened: Store) -> int:
        chosen = await choice.resolved(opened)
        seen = await show_events(opened, chosen, line)
        if follow:
            await follow_events(opened, chosen, line, seen)
        return seen

    try:
        seen = _with_store(store, policy, work, make=follow)
    except KeyboardInterrupt:
        if not follow:
            raise
    else:
        if not seen and not as_json:
            click.echo("The audit log is empty.")
            say_where(store, policy)


@audit.command()
@click.argument("file", required=False)
@click.option(
    "--key", "keys", multiple=True, metavar="HEX|FILE", help="Accept signatures of this key only. Repeatable."
)
@shared_options.as_json
@shared_options.anywhere
@click.pass_context
def verify(
    ctx: click.Context, file: str | None, keys: tuple[str, ...], as_json: bool, store: str | None, policy: str | None
) -> None:
    """Verify the audit log.

    Detects events that were changed, removed, added or reordered. It names the first bad event, and the exit code is 1.
    FILE is an exported log (- for standard input) and needs no store; without FILE, the store is verified.

    \b
    Examples:
      signoff audit verify
      signoff audit verify record.jsonl --key 3f0c…
    """
    if file is not None and store is not None:
        raise WrongUse("FILE and --store name two different logs: give one of them")
    pinned = [read_public_key(key) for key in keys]
    elsewhere = file is None and is_elsewhere(store)
    if elsewhere and pinned:
        raise WrongUse(
            "a server verifies its log with its own key\n"
            "  To use your own key, export the log there and verify the file with --key"
        )
    try:
        if elsewhere:
            checked = _verified_elsewhere(store, policy)
        else:
            checked = _verify_store(store, policy, pinned) if file is None else _verify_file(file, pinned)
    except RecordBroken as broken:
        if not as_json:
            raise
        click.echo(as_json_text({"ok": False, "event": broken.seq or None, "error": str(broken)}))
        ctx.exit(_BROKEN)
    click.echo(as_json_text(checked.as_json()) if as_json else "\n".join(checked.lines()))
    if file is None and not as_json:
        say_where(store, policy)


@audit.command()
@click.option("-o", "--output", metavar="FILE", help="Output file. Default, and with -: standard output.")
@click.option("--format", "form", type=click.Choice(["jsonl", "csv"]), help="Default: csv for FILE.csv, else jsonl.")
@shared_options.where
def export(output: str | None, form: str | None, store: str | None, policy: str | None) -> None:
    """Export the audit log to a file.

    Either as signed JSON Lines, which `signoff audit verify FILE` checks on any machine, or as CSV for a spreadsheet.

    \b
    Examples:
      signoff audit export -o record.jsonl
      signoff audit export --format csv > record.csv
    """
    is_csv = form == "csv" or (form is None and (output or "").lower().endswith(".csv"))

    async def work(opened: Store) -> str:
        if is_csv:
            count = await export_csv(opened, write, progress=progress)
            return f"{_events(count)}; CSV cannot be verified, jsonl can"
        made = await export_store(opened, Keys(), is_signed, datetime.now(UTC), write, progress=progress)
        return f"{_events(made.record.events)}, signed with the key {made.key}"

    with _written(output) as write, _progress() as progress:
        told = _with_store(store, policy, work)
    click.echo(told, err=True)


# --- verify ---


@dataclass(frozen=True, slots=True)
class _Checked:
    """A verified audit log, and whose signature vouches for it."""

    record: Verified
    by: Vouched

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": True,
            "events": self.record.events,
            "head": self.record.head,
            "signed": self.by.upto,
            "by": str(self.by.trust),
            "key": self.by.key,
            "erased": self.record.erased,
        }

    def lines(self) -> Iterator[str]:
        count = self.record.events
        left = count - self.by.upto
        yield _whole(count, left)
        if self.record.erased:
            yield f"{_events(self.record.erased)} with erased parts, which the chain still covers"
        match self.by.trust:
            case "pinned":
                whose = f"the key you gave ({self.by.key})"
            case "own":
                whose = f"this machine (key {self.by.key})"
            case "carried":
                whose = f"the key {self.by.key}"
            case _:
                if count:
                    yield "anyone who can write to the store could have rewritten or removed all of them"
                return
        if left:
            yield f"signed up to event {self.by.upto:,} by {whose}; later events could have been rewritten"
        else:
            yield f"signed to the end by {whose}"
        if self.by.trust == "carried":
            yield "that key came with the log: it proves that nothing changed since it was signed, not who signed it;"
            yield "if you know the right key, verify with --key"


def _whole(count: int, unsigned: int) -> str:
    """The first line: what was found, and how many events are not signed."""
    if not count:
        return "the record is empty"
    if not unsigned:
        return f"{_events(count)}, all signed: nothing is missing, changed or out of order"
    if unsigned == count:
        return f"{_events(count)}, none signed: the hash chain is intact"
    return (
        f"{_events(count)}, the last {unsigned:,} not signed: before them nothing is missing, changed or out of order"
    )


def _verify_store(store: str | None, policy: str | None, pinned: Sequence[str]) -> _Checked:
    keys, place = Keys(), _place(store, policy)

    async def work(opened: Store) -> Verified:
        with _progress() as progress:
            return await verify_store(opened, keys, is_signed, place=place, progress=progress)

    record = _with_store(store, policy, work)
    by = vouched(record.signed, pinned=pinned, own=keys.public_key())
    if pinned and not by.key:
        raise RecordBroken("nothing in this log is signed with the given key")
    return _Checked(record, by)


def _verified_elsewhere(store: str | None, policy: str | None) -> _Checked:
    """Ask a server to verify its own audit log."""
    from signoff.cli.server_client import server_for

    said = server_for(store, policy).get("/audit/verify")
    if not said["ok"]:
        raise RecordBroken(said["error"], seq=said["event"] or 0)
    record = Verified(events=said["events"], head=said["head"], signed={}, erased=said["erased"])
    return _Checked(record, Vouched(trust=Trust(said["by"]), key=said["key"], upto=said["signed"]))


def _verify_file(file: str, pinned: Sequence[str]) -> _Checked:
    with _opened(file) as stream, _progress() as progress:
        checked = verify_export(_lines(stream, file, progress), is_signed, name=file)
    if pinned and checked.key not in pinned:
        raise RecordBroken(f"the file is not signed with the given key but with {checked.key}")
    # The last line signs everything, so only its key counts.
    signed = {checked.key: checked.record.events}
    return _Checked(checked.record, vouched(signed, pinned=pinned, own=_own_key()))


def _own_key() -> str:
    try:
        return Keys().public_key()
    except (StoreError, WrongFile):  # no home directory, or an unsafe key: a file can be verified without it
        return ""


def _opened(file: str) -> AbstractContextManager[IO[bytes]]:
    if file == "-":
        return nullcontext(cast("IO[bytes]", sys.stdin.buffer))
    try:
        return open(file, "rb")
    except OSError as error:
        raise WrongFile(f"{file} cannot be read: {error.strerror}") from error


def _lines(stream: IO[bytes], name: str, progress: Callable[[int], object]) -> Iterator[bytes]:
    number = 0
    try:
        while line := stream.readline(LONGEST_LINE + 1):
            if len(line) > LONGEST_LINE:
                raise WrongFile(f"{name}: line {number + 1} is longer than {LONGEST_LINE:,} bytes: not an audit log")
            yield line
            number += 1
            if number % 1_000 == 0:
                progress(number)
    except OSError as error:
        raise WrongFile(f"{name} cannot be read: {error.strerror}") from error


# --- parts ---


def _with_store(
    store: str | None, policy: str | None, work: Callable[[Store], Coroutine[Any, Any, T]], *, make: bool = False
) -> T:
    async def main() -> T:
        return await work(kept)

    if is_elsewhere(store):
        from signoff.cli.remote_record import RemoteRecord
        from signoff.cli.server_client import server_for

        kept = cast("Store", RemoteRecord(server_for(store, policy)))
        return run(main())
    with closing(store_meant(store, settings_for(policy), make=make)) as kept:
        return run(main())


def _place(store: str | None, policy: str | None) -> str:
    """Where the store should be, whether it exists or not."""
    return chosen_store(store, settings_for(policy)).file


@contextmanager
def _written(output: str | None) -> Generator[Callable[[bytes], object]]:
    """Yield how to write: to a file that is replaced atomically once it is complete, or to standard output.

    A terminal gets hidden characters escaped: it would obey them. What is read there cannot be verified anyway.
    """
    if output in (None, "-"):
        yield _to_terminal if sys.stdout.isatty() else sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    import tempfile

    try:
        handle, name = tempfile.mkstemp(dir=os.path.dirname(output) or ".", prefix=f".{os.path.basename(output)}-")
        try:
            with os.fdopen(handle, "wb") as out:
                yield out.write
                out.flush()
                os.fsync(out.fileno())
            os.replace(name, output)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise WrongUse(f"{output} cannot be written: {error.strerror}") from error


def _to_terminal(line: bytes) -> None:
    text = line.decode("utf-8", "surrogateescape")
    sys.stdout.write("\n".join(map(escaped_json, text.split("\n"))))


@contextmanager
def _progress() -> Generator[Callable[[int], None]]:
    """Print a counter on standard error, if it is a terminal and the log is long."""
    shown = False

    def tell(count: int) -> None:
        nonlocal shown
        if count >= LONG and sys.stderr.isatty():
            shown = True
            click.echo(f"\r{count:,} events", nl=False, err=True)

    try:
        yield tell
    finally:
        if shown:
            click.echo("\r" + " " * 30 + "\r", nl=False, err=True)


def _events(number: int) -> str:
    return count(number, "event")
