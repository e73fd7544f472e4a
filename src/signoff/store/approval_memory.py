"""Approval memory: remembered answers, in memory for the session and in a JSON file for always.

The file has format version 1 and is readable by people. It is replaced atomically through a rename, and only under a
file lock, so that two processes do not lose each other's changes and a crash leaves the old file or the new one.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from stat import S_ISREG
from typing import Any, TypeAlias, cast

from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant, call_of, grant_from
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope
from signoff.errors import CannotCanonicalise, GrantsError, Place, WrongUse
from signoff.file_stamp import file_stamp
from signoff.store.place import home_of

VERSION = 1

_Key: TypeAlias = tuple[str, str, str | None, str, str, bool]
"""The key of a grant: call, schema, toolset, for a yes also directory and agent, and whether it is a yes."""


def default_file() -> Path | None:
    """The file for the `always` grants of the project in the working directory. None if there is no home directory."""
    home = home_of(os.getcwd())
    return home.directory / "grants.json" if home is not None else None


PROJECT = object()
"""The default: a file for the project in the working directory."""


class ApprovalMemory:
    """Remembered answers, checked before anyone is asked. It holds only what a person chose to remember.

    `session` grants last as long as this object. `always` grants are stored in `file`, by default a file for the
    current project under your home directory. With `file=None` nothing outlives the process, and `always` is not
    offered.
    """

    def __init__(self, file: str | os.PathLike[str] | None | object = PROJECT) -> None:
        if file is PROJECT:
            file = default_file()
        elif file is not None and not isinstance(file, str | os.PathLike):
            raise WrongUse(f"ApprovalMemory({file!r}): it must be the path of a file, or None for no file")
        self._file = Path(cast("str | os.PathLike[str]", file)) if file is not None else None
        self._session: dict[_Key, Grant] = {}
        self._always: dict[_Key, Grant] = {}
        self._read_at: tuple[object, ...] = ()
        self._lock = threading.Lock()

    @property
    def keeps_always(self) -> bool:
        return self._file is not None

    def lookup(self, call: Call | ApprovalRequest) -> Grant | None:
        """The grant that covers exactly this call, or the call of this request; or None."""
        if isinstance(call, ApprovalRequest):
            call = call_of(call)
        try:
            # First a no, which covers every form of the text, anywhere; then a yes, which covers this exact text, here.
            tool = call.schema_hash, call.toolset
            keys: list[_Key] = [(call.memory_key, *tool, "", "", False)]
            homes = dict.fromkeys(((call.directory, call.agent), ("", "")))  # older grants have no directory and agent
            keys += [(call.fingerprint, *tool, directory, agent, True) for directory, agent in homes]
        except CannotCanonicalise:
            return None
        with self._lock:
            if self._file is not None:
                self._refresh(self._file)
            found = [grants.get(key) for key in keys for grants in (self._session, self._always)]
        return next((grant for grant in found if grant is not None and grant.covers(call)), None)

    def remember(self, grant: Grant) -> None:
        """Store a grant for the session or for always, as its scope says.

        Raises `WrongUse` for a grant that needs a store, or an `always` grant without a file.
        """
        if (
            grant.pattern is not None
            or grant.until is not None
            or grant.max_uses is not None
            or grant.budget is not None
        ):
            raise WrongUse("only a store can remember a pattern or an expiry: Signoff(…, store='sqlite:FILE')")
        key = _key(grant)
        no = (grant.memory_key, grant.schema_hash, grant.toolset, "", "", False)
        with self._lock:
            if grant.scope is Scope.SESSION:
                self._session.pop(no, None)  # a later yes replaces an earlier no
                self._session[key] = grant
            elif grant.scope is Scope.PROJECT:
                if self._file is None:
                    raise WrongUse(
                        "this memory has no file, so it cannot remember an answer for always: ApprovalMemory(file=…)"
                    )
                with _exclusive(self._file):
                    self._read(self._file)
                    self._always.pop(no, None)
                    self._always[key] = grant
                    self._write(self._file)
            else:
                raise WrongUse(f"only a store can remember for one {grant.scope}: Signoff(…, store='sqlite:FILE')")

    def store(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Store the answer to a request, if the answer says that it is to be remembered."""
        if (grant := grant_from(request, decision)) is not None:
            self.remember(grant)

    def grants(self) -> tuple[Grant, ...]:
        """All remembered grants, session grants first."""
        with self._lock:
            if self._file is not None:
                self._refresh(self._file)
            return (*self._session.values(), *self._always.values())

    def _refresh(self, file: Path) -> None:
        if file_stamp(file) != self._read_at:
            self._read(file)

    def _read(self, file: Path) -> None:
        stamp = file_stamp(file)
        self._always = {}
        if file.exists():
            for grant in _parse(file):
                self._always[_key(grant)] = grant
        self._read_at = stamp

    def _write(self, file: Path) -> None:
        content = {"version": VERSION, "grants": [_as_json(grant) for grant in self._always.values()]}
        handle, name = tempfile.mkstemp(dir=file.parent, prefix=".grants-", suffix=".json")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(content, out, indent=1, ensure_ascii=False)
                out.write("\n")
                out.flush()
                os.fsync(out.fileno())
            os.replace(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
        self._read_at = file_stamp(file)


@contextmanager
def _exclusive(file: Path) -> Generator[None]:
    for directory in (file.parent.parent, file.parent):
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle = os.open(file.with_suffix(".lock"), os.O_CREAT | os.O_RDWR, 0o600)
    try:
        try:
            import fcntl
        except ImportError:  # Windows has no flock; the user must run one process at a time
            pass
        else:
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _parse(file: Path) -> Iterator[Grant]:
    fix = "move the file away to start over; signoff then asks again about what it remembered"
    status = file.lstat()
    if not S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        raise GrantsError("another user could have written this file", place=Place(str(file)), fix=fix)
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise GrantsError(f"not valid JSON: {error}", place=Place(str(file)), fix=fix) from error
    entries: dict[str, Any] = cast("dict[str, Any]", content) if isinstance(content, dict) else {}
    version = entries.get("version")
    if version != VERSION:
        raise GrantsError(f"this program does not know version {version!r}", place=Place(str(file)), fix=fix)
    try:
        for entry in entries["grants"]:
            yield _from_json(entry)
    except (KeyError, TypeError, ValueError) as error:
        raise GrantsError(f"a grant is malformed: {error!r}", place=Place(str(file)), fix=fix) from error


def _key(grant: Grant) -> _Key:
    if not grant.approved:
        return grant.memory_key, grant.schema_hash, grant.toolset, "", "", False
    return grant.speaks_of, grant.schema_hash, grant.toolset, grant.directory, grant.agent, True


def _as_json(grant: Grant) -> dict[str, Any]:
    return {
        "tool": grant.tool,
        "key": grant.memory_key,
        **({"exact": grant.exact} if grant.exact else {}),
        "schema": grant.schema_hash,
        "toolset": grant.toolset,
        **({"directory": grant.directory} if grant.directory else {}),
        **({"agent": grant.agent} if grant.agent else {}),
        "approved": grant.approved,
        "by": grant.by,
        "at": grant.at.isoformat() if grant.at else None,
        "note": grant.note,
        "summary": grant.summary,
    }


def _from_json(entry: Mapping[str, Any]) -> Grant:
    if not isinstance(entry["approved"], bool):
        raise TypeError("`approved` is not true or false")
    return Grant(
        tool=entry["tool"],
        memory_key=entry["key"],
        exact=entry.get("exact", ""),
        schema_hash=entry["schema"],
        toolset=entry["toolset"],
        directory=entry.get("directory", entry.get("folder", "")),
        agent=entry.get("agent", ""),
        approved=entry["approved"],
        scope=Scope.PROJECT,
        by=entry["by"],
        at=datetime.fromisoformat(entry["at"]) if entry["at"] else None,
        note=entry["note"],
        summary=entry["summary"],
    )
