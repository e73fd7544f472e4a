"""Approval memory: remembered answers, in memory for the session and in the grants table of a file for always."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from stat import S_ISREG
from typing import TypeVar, cast

from signoff.core.call import Call
from signoff.core.canonical import digest
from signoff.core.decision import ApprovalDecision
from signoff.core.grant import Grant, call_of, grant_from, has_identity
from signoff.core.request import ApprovalRequest
from signoff.core.terms import Scope
from signoff.errors import GrantsError, Place, WrongUse
from signoff.store.dialect import SQLITE
from signoff.store.grant_table import Grants
from signoff.store.place import home_of
from signoff.store.sqlite_file import WritingWire, closing, connect, prepare, told
from signoff.store.tables import Sql

T = TypeVar("T")


def default_file() -> Path | None:
    """The file for the `always` grants of the project in the working directory. None if there is no home directory."""
    home = home_of(os.getcwd())
    return home.directory / "grants.db" if home is not None else None


PROJECT = object()
"""The default: a file for the project in the working directory."""


class ApprovalMemory:
    """Remembered answers, checked before anyone is asked. It holds only what a person chose to remember.

    `session` grants last as long as this object. `always` grants are stored in `file`, an SQLite file, by default one
    for the current project under your home directory. With `file=None` nothing outlives the process, and `always` is
    not offered.
    """

    def __init__(self, file: str | os.PathLike[str] | None | object = PROJECT) -> None:
        if file is PROJECT:
            file = default_file()
        elif file is not None and not isinstance(file, str | os.PathLike):
            raise WrongUse(f"ApprovalMemory({file!r}): it must be the path of a file, or None for no file")
        self._file = Path(cast("str | os.PathLike[str]", file)) if file is not None else None
        self._session: dict[str, dict[str, Grant]] = {}
        """Session grants by the key of their call, and by their own."""
        self._lock = threading.Lock()

    @property
    def keeps_always(self) -> bool:
        return self._file is not None

    def lookup(self, call: Call | ApprovalRequest) -> Grant | None:
        """The grant that covers exactly this call, or the call of this request; or None. A no wins over a yes."""
        if isinstance(call, ApprovalRequest):
            call = call_of(call)
        if not has_identity(call):
            return None
        with self._lock:
            found = [*self._session.get(call.memory_key, {}).values()]
        found += self._kept(lambda grants: grants.about(call.tool, call.memory_key))
        return min((one for one in found if one.covers_exactly(call)), key=lambda one: one.approved, default=None)

    def remember(self, grant: Grant) -> None:
        """Store a grant for the session or for always, as its scope says. A later yes replaces an earlier no.

        Raises `WrongUse` for a grant that needs a store, or an `always` grant without a file.
        """
        if any(one is not None for one in (grant.match, grant.until, grant.max_uses, grant.budget)):
            raise WrongUse("only a store can remember a match or an expiry: Signoff(…, store='sqlite:FILE')")
        if grant.scope is Scope.SESSION:
            with self._lock:
                same = self._session.setdefault(grant.memory_key, {})
                for no in _replaced(grant, same.values()):
                    del same[_key(no)]
                same[_key(grant)] = grant
        elif grant.scope is not Scope.PROJECT:
            raise WrongUse(f"only a store can remember for one {grant.scope}: Signoff(…, store='sqlite:FILE')")
        elif self._file is None:
            raise WrongUse(
                "this memory has no file, so it cannot remember an answer for always: ApprovalMemory(file=…)"
            )
        else:
            _in_file(self._file, lambda grants: _put(grants, grant), begin="begin immediate")

    def store(self, request: ApprovalRequest, decision: ApprovalDecision) -> None:
        """Store the answer to a request, if the answer says that it is to be remembered."""
        if (grant := grant_from(request, decision)) is not None:
            self.remember(grant)

    def grants(self) -> tuple[Grant, ...]:
        """All remembered grants, session grants first."""
        with self._lock:
            found = [grant for same in self._session.values() for grant in same.values()]
        return (*found, *self._kept(lambda grants: grants.all()))

    def _kept(self, read: Callable[[Grants], Sequence[Grant]]) -> list[Grant]:
        """Return grants of the file. Their ids are its own."""
        if self._file is None or not os.path.lexists(self._file):
            return []
        return [replace(grant, id="") for grant in _in_file(self._file, read)]


def _key(grant: Grant) -> str:
    """The id of a grant: another with the same takes its place."""
    home = [grant.speaks_of, grant.directory, grant.agent] if grant.approved else [grant.memory_key]
    return digest([grant.tool, grant.schema_hash, grant.toolset, grant.approved, *home])


def _replaced(grant: Grant, others: Iterable[Grant]) -> list[Grant]:
    """Return the denials that an approval replaces."""
    about = grant.tool, grant.schema_hash, grant.toolset
    return [
        one
        for one in others
        if grant.approved and not one.approved and (one.tool, one.schema_hash, one.toolset) == about
    ]


def _put(grants: Grants, grant: Grant) -> None:
    for no in _replaced(grant, grants.about(grant.tool, grant.memory_key)):
        grants.put(replace(no, revoked_at=grant.at or datetime.now(UTC), revoked_by=grant.by))
    grant = replace(grant, id=_key(grant))
    (grants.put if grants.get(grant.id) is not None else grants.add)(grant)


# --- the file ---


def _in_file(file: Path, work: Callable[[Grants], T], *, begin: str = "begin") -> T:
    """Do work on the grants of a file in one transaction. It is opened for this alone."""
    _refuse_others(file)
    with told(file):
        prepare(file).close()
        with closing(connect(file)) as connection:
            connection.execute(begin)
            result = work(Grants(Sql(WritingWire(connection), SQLITE)))
            connection.execute("commit")
            return result


def _refuse_others(file: Path) -> None:
    """Raise `GrantsError` if somebody else could have written what is remembered."""
    if not os.path.lexists(file):
        return
    status = file.lstat()
    if not S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
        fix = "move the file away to start over; signoff then asks again about what it remembered"
        raise GrantsError("another user could have written this file", place=Place(str(file)), fix=fix)
