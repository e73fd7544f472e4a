"""`OutsideDesk`: makes gates for calls of other programs, with the policy, store and people of a project."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING

from signoff.broker import Broker
from signoff.config.files import find_project, user_file
from signoff.config.settings import no_settings
from signoff.errors import WrongUse
from signoff.file_stamp import Followed, file_stamp
from signoff.outside.agent_process import agent_process
from signoff.outside.outside_gate import OutsideGate
from signoff.policy.layers import Layers
from signoff.processes import other_process
from signoff.store.signing_key import Keys
from signoff.wiring.followed_settings import FollowedSettings
from signoff.wiring.project import requester_of, roles_of, settings_for
from signoff.wiring.project_trust import is_trusted
from signoff.wiring.stores import chosen_store

if TYPE_CHECKING:
    from signoff.config import Settings
    from signoff.config.entries import ToolsetEntry
    from signoff.policy.engine import Policy

NOT_THERE = (
    "there is no signoff.yaml in {directory}, and {file} was written for other projects: "
    "put it back, or install the hook for the other project"
)
UNTRUSTED = "{file} is not trusted yet; the user has to review it and run: signoff hook trust {directory}"


class OutsideDesk:
    """Makes gates, and caches settings and open stores. Files that changed are read again."""

    def __init__(self, project: str = "") -> None:
        """`project`: the directory of the only project that a long-running process serves, which keeps to its file.

        Without it, each question looks for the file anew, as a process of its own would.
        """
        self._followed = FollowedSettings(settings_for(None, directory=project)) if project else None
        self._projects: dict[tuple[str, bool], Followed[tuple[Settings, str]]] = {}
        """By directory, and whether somebody chose it: the settings, and the project's file if it is not trusted."""
        self._lock = Lock()
        self._brokers: dict[tuple[str, int], Broker] = {}
        """By store address and settings: a request that waits keeps the broker and settings it began with."""
        self._kept: list[Settings] = []
        """Settings that a broker was made for, kept alive so that their `id` is not reused."""

    def gate(
        self,
        directory: str,
        store: str | None,
        *,
        caller: int | None,
        takes_edits: bool,
        tells_outcomes: bool = True,
        toolset: str = "",
        secrets: tuple[str, ...] = (),
        chosen: bool = True,
    ) -> OutsideGate:
        """Return the gate of the project in a directory.

        `caller` is the process that the agent started; None: the agent runs in this process. With `toolset`, the rules
        of the project's own MCP server with that name apply too. `chosen`: somebody chose this project's file.
        Otherwise the file applies only if it is trusted.
        """
        with self._lock, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning about stores would be mistaken for the answer
            settings, untrusted = self._settings_of(directory, chosen=chosen)
            broker = self._broker(store, settings)
        return OutsideGate(
            broker=broker,
            policy=Layers((*settings.layers, *_own_rules(settings, toolset))),
            holder=agent_process(caller, broker.clock.now()) if caller is not None else None,
            waiter=other_process(caller, broker.clock.now()) if caller is not None else None,
            requester=requester_of(None, settings),
            secrets=secrets,
            takes_edits=takes_edits,
            tells_outcomes=tells_outcomes,
            unmatched=_refusal(untrusted) if untrusted else "",
        )

    def labels(self, directory: str, toolset: str) -> Mapping[str, tuple[str, ...]]:
        """Return the labels for the tools of the project's own MCP server with that name, by tool name or glob."""
        entry = _entry(self._settings_of(directory, chosen=True)[0], toolset)
        return entry.labels if entry is not None else {}

    def close(self) -> None:
        """Write what is pending, and close the stores."""
        for broker in self._brokers.values():
            broker.watch.close()
            broker.store.close()
        self._brokers.clear()

    def _settings_of(self, directory: str, *, chosen: bool) -> tuple[Settings, str]:
        """Return the settings, and the project's file if it is not trusted. Raises if it changes while it is read."""
        if self._followed is not None:
            return self._followed.read(), ""
        if (known := self._projects.get((directory, chosen))) is None:
            known = self._projects[directory, chosen] = Followed(
                lambda: _stamps(directory, chosen=chosen), lambda: _read(directory, chosen=chosen)
            )
        return known.now()

    def _broker(self, store: str | None, settings: Settings) -> Broker:
        chosen = chosen_store(store, settings)
        key = (chosen.address, id(settings))
        broker = self._brokers.get(key)
        if broker is None:
            self._kept.append(settings)
            broker = self._brokers[key] = Broker(chosen.open(), people=roles_of(settings), signer=Keys())
        return broker


def _stamps(directory: str, *, chosen: bool) -> tuple[object, ...]:
    file = find_project(directory)
    return (*map(file_stamp, (file, user_file())), chosen or file is None or is_trusted(file))


def _read(directory: str, *, chosen: bool) -> tuple[Settings, str]:
    """Return the settings, and the project's file if it is not trusted. Raises if it changes while it is read."""
    stamps, file = _stamps(directory, chosen=chosen), find_project(directory)
    if chosen and file is not None and os.path.dirname(os.path.abspath(file)) != os.path.abspath(directory):
        # It was written for other projects; the own file may be missing because somebody is writing it anew.
        raise WrongUse(NOT_THERE.format(directory=directory, file=file))
    settings = settings_for(None, directory=directory) if stamps[-1] else no_settings(os.path.dirname(file or ""))
    if not chosen and stamps != _stamps(directory, chosen=chosen):
        raise WrongUse(f"{file} was changed while it was read: it no longer matches what was trusted")
    return settings, "" if stamps[-1] else str(file)


def _refusal(file: str) -> str:
    return UNTRUSTED.format(file=file, directory=shlex.quote(os.path.dirname(file)))


def _entry(settings: Settings, toolset: str) -> ToolsetEntry | None:
    """Return the entry of the project's own MCP server with that name."""
    entry = settings.toolsets.get(toolset)
    return entry if entry is not None and entry.use == "mcp" else None


def _own_rules(settings: Settings, toolset: str) -> tuple[Policy, ...]:
    entry = _entry(settings, toolset)
    return (entry.policy,) if entry is not None and entry.policy is not None else ()
