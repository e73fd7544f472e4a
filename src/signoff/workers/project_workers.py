"""Build agents from worker files: each behind its own gate, all with one store, able to call each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any, Literal

from pydantic_ai.capabilities import NativeTool
from pydantic_ai.models import Model
from pydantic_ai.toolsets import AbstractToolset

from signoff.broker.wall_clock import SystemClock
from signoff.config import EVERY_WORKER, Settings, WorkerFile, load_worker, worker_names
from signoff.core.event import CallEvent, RunMessage
from signoff.core.mode import ApprovalMode
from signoff.core.redact import redact_text
from signoff.errors import WrongFile, WrongUse
from signoff.gate.capability import Signoff
from signoff.gate.gated_calls import running_call
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.phrases import did_you_mean, shown
from signoff.ports import ApproverLike, Clock, Store
from signoff.store.memory_store import MemoryStore
from signoff.store.store_factory import open_store
from signoff.toolsets.catalog import BuiltToolset, Catalog
from signoff.toolsets.context import Context
from signoff.workers.approvals import ToolsetApprovals
from signoff.workers.attachments import RunAttachments
from signoff.workers.bounds import bounds_of
from signoff.workers.build import build_agent, check_tool_names, plan_of
from signoff.workers.delegation_toolset import DelegationToolset
from signoff.workers.limits import Meter, check_price
from signoff.workers.models import NO_MODEL, model_named
from signoff.workers.origin import creator_of
from signoff.workers.tool_timeout import TimedToolset
from signoff.workers.worker import Worker


@dataclass(kw_only=True)
class _Options:
    """How the gates of all workers are made."""

    mode: ApprovalMode | str = ApprovalMode.INTERACTIVE
    wait: Literal["inline", "suspend"] | float | timedelta = "inline"
    approver: ApproverLike | None = None
    observe: Callable[[CallEvent], None] | None = None
    requester: str = ""
    owner: str = ""
    secrets: Iterable[str] = ()
    message: Callable[[RunMessage], None] | None = None
    """Callback for messages from toolsets to observers, called from any thread."""


@dataclass
class Workers(_Options):
    """Builds the workers of a project, each once."""

    settings: Settings
    workers: Mapping[str, WorkerFile] | None = None
    """The workers there are; None for those in the project's directory."""
    store: Store | str | None = None
    """One store for all: requests of a worker and of those it calls belong together."""
    model: str | Model | None = None
    """The model for the worker that is run, and for workers it calls that name none."""
    caller: tuple[Policy, ...] = ()
    """Rules of the caller that runs the workers: they can only make things stricter."""
    clock: Clock | None = None
    models: bool = True
    """Whether workers get their models; without, they can be inspected but not run."""

    def __post_init__(self) -> None:
        if not isinstance(self.settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise WrongUse(f"Workers({self.settings!r}): it must be what load_settings(FILE) returns")
        self._time = self.clock or SystemClock()
        self._files: dict[str, WorkerFile] = dict(self.workers or {})
        self._built: dict[tuple[str, bool], Worker] = {}
        self._created: set[str] = set()
        self._secrets = set(self.secrets)
        """Values to mask in every message of a toolset, of all workers that were built."""

    def worker(self, name: str) -> Worker:
        """Return a worker to run. Raises with the place of what is wrong with it, or with a worker that it names."""
        built = self._worker(name, called=False)
        for below in self._named_below(name):
            self.delegate(below)
        return built

    def delegate(self, name: str) -> Worker:
        """Return a worker as others call it."""
        return self._worker(name, called=True)

    def file(self, name: str) -> WorkerFile:
        """Return a worker's file."""
        if name not in self._files:
            if self.workers is not None and name not in self._created:
                raise WrongUse(f"there is no worker {shown(name)}\n  {did_you_mean(name, self.workers)}")
            self._files[name] = load_worker(self.settings, name)
        return self._files[name]

    def names(self) -> list[str]:
        """Return the names of all workers."""
        if self.workers is None:
            return worker_names(self.settings)
        return sorted({*self.workers, *self._created})

    def callable_by(self, file: WorkerFile) -> dict[str, str]:
        """Return the workers that a worker may call, with their descriptions: those it names and those it wrote."""
        every = EVERY_WORKER in file.delegates
        names = [name for name in (self.names() if every else file.delegates) if name != file.name]
        if file.creates and not every:
            names += [name for name in self.names() if name not in names and self._wrote(file.name, name)]
        return {name: self._description(name) for name in names}

    def created(self, name: str) -> None:
        """Add a worker that was just written."""
        self._created.add(name)

    @cached_property
    def catalog(self) -> Catalog:
        return Catalog(self.settings)

    @cached_property
    def shared_store(self) -> Store:
        """The one store of all workers."""
        if self.store is None:
            return MemoryStore()
        return open_store(self.store) if isinstance(self.store, str) else self.store

    # --- building ---

    def _worker(self, name: str, *, called: bool) -> Worker:
        key = (name, called)
        if key not in self._built:
            self._built[key] = self._build(self.file(name), called=called)
        return self._built[key]

    def _build(self, file: WorkerFile, *, called: bool) -> Worker:
        plan = plan_of(file)
        model = self._model(file, called=called) if self.models else None
        check_price(file, model)
        others = DelegationToolset(self, file) if file.delegates or file.creates else None
        approvals = ToolsetApprovals()
        context = Context(
            catalog=self.catalog,
            worker=file.name,
            approvals=approvals,
            workspace=self.settings.directory,
            attachments=RunAttachments(),
            delegation=others.delegation if others is not None else None,
            create=others.creation if others is not None and file.creates else None,
            model=model,
            message=partial(self._tell, file.name) if self.message is not None else None,
        )
        built = self._toolsets(file, context)
        self._secrets.update(secret for one in built for secret in one.secrets)
        bounds = bounds_of(self.settings, file, caller=self.caller, built=built)
        approvals.rules_of(bounds)
        toolsets = [_timed(one.toolset, plan.spec.tool_timeout) for one in built if one.toolset is not None]
        if others is not None:
            others.bounds = bounds
            toolsets.append(others)
        natives = [NativeTool(tool) for one in built for tool in one.native]
        gate = self._gate(file, built)
        agent = build_agent(
            plan, model=model, toolsets=toolsets, capabilities=[*natives, Meter(file, self._time), gate]
        )
        return Worker(name=file.name, file=file, agent=agent, gate=gate, plan=plan, model=model)

    def _tell(self, worker: str, text: str) -> None:
        """Pass a message of a toolset to the observer, with secrets masked."""
        assert self.message is not None, "only then toolsets have a way to say something"
        call, masked = running_call(), redact_text(str(text), secrets=tuple(self._secrets))
        self.message(RunMessage(worker=call.workers or (worker,), call=call.path, text=masked))

    def _gate(self, file: WorkerFile, built: Sequence[BuiltToolset]) -> Signoff:
        own = (file.policy,) if file.policy is not None else ()
        return Signoff(
            Layers((*self.settings.layers, *own, *self.caller)),
            approver=self.approver,
            wait=self.wait,
            mode=self.mode,
            on_denied=file.on_denied or self.settings.on_denied,
            observe=self.observe,
            store=self.shared_store,
            people={name: person.roles for name, person in self.settings.people.items()},
            by=_role(file),
            native={
                tool.unique_id: (one.policy,) if one.policy is not None else () for one in built for tool in one.native
            },
            secrets=(*self.secrets, *(secret for one in built for secret in one.secrets)),
            requester=self.requester,
            owner=self.owner,
            clock=self.clock,
        )

    def _toolsets(self, file: WorkerFile, context: Context) -> list[BuiltToolset]:
        built = [
            self.catalog.build(name, context, spot=file.spots.get(f"toolsets[{number}]", file.spot))
            for number, name in enumerate(file.toolsets)
        ]
        check_tool_names(file, built)
        return built

    def check_model(self, name: str) -> None:
        """Make the model that a worker would be run with, without a request to it. Raises if it cannot be used.

        `WrongFile` says which worker file names it.
        """
        self._model(self.file(name), called=False)

    def _model(self, file: WorkerFile, *, called: bool) -> Model:
        """Return the given model for the worker that is run; else its own, the project's, or the environment's."""
        own: Any = file.spec.get("model")
        if self.model is not None and (own is None or not called):
            return model_named(self.model) if isinstance(self.model, str) else self.model
        if own is not None:
            try:
                return model_named(own, os.path.dirname(file.file))
            except WrongUse as error:
                raise file.spots.get("model", file.spot).wrong(str(error)) from error
        if self.settings.model is not None:
            return model_named(self.settings.model, self.settings.directory)
        if named := os.environ.get("SIGNOFF_MODEL"):
            return model_named(named)
        raise WrongUse(NO_MODEL.format(who=file.name))

    # --- who calls whom ---

    def _named_below(self, name: str) -> list[str]:
        """Return the workers that a worker names, and those that they name."""
        found: dict[str, None] = {}
        waiting = [name]
        while waiting:
            for below in self.file(waiting.pop()).delegates:
                if below != EVERY_WORKER and below not in found and below != name:
                    found[below] = None
                    waiting.append(below)
        return list(found)

    def _wrote(self, creator: str, name: str) -> bool:
        try:
            return creator_of(self.file(name)) == creator
        except (WrongFile, WrongUse):  # a file that cannot be read is never called
            return False

    def _description(self, name: str) -> str:
        try:
            return self.file(name).description
        except (WrongFile, WrongUse):
            return "its file is wrong, so it cannot be called"


def _timed(toolset: AbstractToolset[Any], seconds: float | None) -> AbstractToolset[Any]:
    return TimedToolset(toolset, seconds) if seconds is not None else toolset


def _role(file: WorkerFile) -> str | None:
    """Return the role that answers for a worker."""
    if len(file.approvers) > 1:
        fix = "give all people who may answer one common role, and name that role"
        raise file.spots.get("approvers[1]", file.spot).wrong("only one role can answer for a worker", fix)
    return file.approvers[0] if file.approvers else None
