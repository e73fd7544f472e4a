"""`Job`: an agent or a worker that is ready to run under its policy, and to start, save and resume runs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from signoff.broker import new_id
from signoff.broker.conversations import was_said
from signoff.channels.approvers import headless_approver, terminal_approver, tui_approver
from signoff.config import Settings, load_worker, load_workers, parse_worker, worker_text
from signoff.config.files import from_here
from signoff.config.llm_do_words import SUFFIXES as FOREIGN
from signoff.config.llm_do_words import import_hint
from signoff.core.address import spoken_name
from signoff.core.event import CallEvent, RunMessage
from signoff.core.mode import ApprovalMode
from signoff.core.run import RunSetup, SavedRun
from signoff.engine.care import SERVED
from signoff.errors import SignoffError, StoreError, WrongUse
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.wiring.caller import Caller
from signoff.wiring.make_rule import rule_drafts
from signoff.wiring.project import (
    POLICY_FILE,
    kept_settings,
    lock_of,
    other_policy,
    reader_of,
    requester_of,
    roles_of,
    settings_for,
)
from signoff.wiring.resumers import who_resumes
from signoff.wiring.run_location import in_project, setup_now
from signoff.wiring.stores import store_elsewhere, store_for

if TYPE_CHECKING:
    from signoff.channels.rule_drafts import DraftRules, RuleDrafts
    from signoff.core.request import ApprovalRequest
    from signoff.gate.capability import Signoff
    from signoff.ports import ApproverLike, Store
    from signoff.workers.runtime import Conversation, Finished, Prompt, Runner
    from signoff.workers.stream_events import Listener

WORKER = "worker:"
"""Prefix of a worker's name in the `agent` of a saved run."""
RECENT = 500
"""How many recent runs are searched for the last one that can be continued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of `signoff run` and `signoff resume`."""

    directory: str = ""
    """Base directory for relative names; empty: the working directory."""
    policy: str | None = None
    own: str | None = None
    """The file of the project that a long-running process serves, empty if it has none. None: the nearest one."""
    model: str | None = None
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    unattended: Literal["deny", "park"] = "deny"
    ui: Literal["terminal", "tui"] = "terminal"
    """Whether the person at the terminal is asked line by line, or on the full screen."""
    store: str | None = None
    lent: Callable[[], Store] | None = None
    """Returns the store if this process has it open already. None: each job opens it."""
    wait: timedelta | None = None
    """How long to wait for answers before the run suspends: None = without limit, zero = not at all."""
    requester: str | None = None
    caller: Caller = field(default_factory=Caller)
    chat: bool = False
    """Whether the run is one turn of a conversation."""
    observe: Callable[[CallEvent], None] | None = None
    message: Callable[[RunMessage], None] | None = None
    """Called from any thread with what the toolsets of workers tell people who watch."""
    listener: Listener | None = None
    """Receives what the agent says, for people who watch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What an agent is asked to do."""

    text: str
    input: Mapping[str, Any] | None = None
    """Input for a worker with an `input` schema."""
    files: tuple[str, ...] = ()
    """Absolute paths of attachments."""

    @classmethod
    def of(cls, run: SavedRun) -> Task:
        """Return the task of a saved run."""
        return cls(text=run.prompt, input=run.setup.input, files=run.setup.files)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """An agent or a worker with everything it needs to run."""

    agent: str
    """Its import path `package.module:agent`, or `worker:NAME`."""
    runner: Runner
    prompt: Callable[[Task], Prompt]
    """Returns the prompt for the model; raises if the task does not fit."""
    run_options: Callable[[Task], Mapping[str, Any]]
    """Returns the other arguments of `agent.run`."""
    requester: str
    setup: RunSetup
    """Saved with its runs, to build the job again."""
    store: str = ""
    """The store's address, if commands typed here would use another store; else empty."""
    opened: Store | None = None
    """The store that was opened for the job. None if the agent brought its own."""

    @property
    def name(self) -> str:
        """The name that people use for it."""
        return spoken_name(self.agent)

    async def run(
        self, task: Task, *, begun: Callable[[str], None] | None = None, after: Finished | str | None = None
    ) -> Finished:
        """Do the task. `begun` is called with the run's id, or with "" if the run is not saved.

        `after` is the turn before: its `Finished`, or the id of its run whose conversation is in the store.
        """
        prompt, options = self.prompt(task), self.run_options(task)
        broker = self.runner.gate.broker
        before, history = (after, await self._said(after)) if isinstance(after, str) else ("", None)
        if after is not None and not isinstance(after, str):
            before, history = after.run, after.conversation
        if not broker.store.is_durable:
            if begun is not None:
                begun("")
            return await self.runner.run(prompt, after=history, options=options)
        conversation = history.conversation_id if history is not None else str(uuid4()) if self.setup.chat else ""
        kept = SavedRun(
            id=new_id(),
            conversation_id=conversation,
            agent=self.agent,
            prompt=task.text,
            requester=self.requester,
            setup=replace(self.setup, input=task.input, files=task.files, after=before),
        )
        kept = await broker.runs.begin(kept)
        if begun is not None:
            begun(kept.id)
        finished = await self.runner.run(prompt, kept, after=history, options={**options, **_in(conversation)})
        await self._sign()
        return await self._with_resumer(replace(finished, store=finished.store or self.store))

    async def resume(self, run: SavedRun) -> Finished:
        """Resume a run of this job."""
        task = Task.of(run)

        async def begin(taken: SavedRun) -> tuple[Prompt, Conversation | None]:
            # A run without saved progress starts again, after the turn that it followed.
            before = taken.setup.after
            return self.prompt(task), await self._said(before, taken.id) if before else None

        finished = await self.runner.resume(run.id, begin, options=self.run_options(task))
        await self._sign()
        return await self._with_resumer(finished)

    async def last(self) -> SavedRun | None:
        """Return the newest run of this agent and person that is done, can be continued and was begun by a command."""

        def ours(run: SavedRun) -> bool:
            is_typed = not run.places.keys() - {SERVED}
            return run.agent == self.agent and run.requester == self.requester and is_typed and was_said(run)

        store = self.runner.gate.broker.store
        return await store.read(lambda tx: next((run for run in tx.runs.all(limit=RECENT) if ours(run)), None))

    async def _sign(self) -> None:
        """Sign the record if that is due. If the store fails it stays due, and the answer is not lost."""
        with suppress(StoreError):
            await self.runner.gate.broker.signing.sign_if_due()

    async def _with_resumer(self, finished: Finished) -> Finished:
        """Add what resumes it by itself, if it waits and is saved."""
        if not finished.waiting or not finished.run:
            return finished
        broker = self.runner.gate.broker
        with suppress(SignoffError, OSError):
            status = await broker.runs.status(finished.run)
            return replace(finished, resumer=await who_resumes(broker.ledger, status.run))
        return finished

    async def _said(self, turn: str, follower: str = "") -> Conversation:
        """Return the conversation up to the end of a turn. `follower` is the id of a saved run that continues it.

        Raises `WrongUse` if the conversation was not saved.
        """
        said = await self.runner.said_in(turn)
        if said is None and follower:
            raise WrongUse(
                f"run {follower} ended before its model was called, and the conversation before it was not saved.\n"
                f"  Nothing was done. Cancel it (signoff cancel {follower}) and send the prompt again."
            )
        if said is None:
            raise WrongUse(f"run {turn} is not done, or its conversation was not saved: it cannot be continued")
        return said

    @property
    def secrets(self) -> Iterable[str]:
        """Texts that are masked in what people are told."""
        return self.runner.gate.secrets

    async def flush(self) -> None:
        """Wait until everything that its runs left to be written is in the store."""
        await self.runner.gate.broker.store.flush()

    def close(self) -> None:
        """Write what is pending, and close the store that was opened for the job."""
        if self.opened is not None:
            self.opened.close()


def _in(conversation: str) -> dict[str, str]:
    """Return the conversation id as an argument for `agent.run`, if it is known before the run starts."""
    return {"conversation_id": conversation} if conversation else {}


def job_for(what: str, options: RunOptions) -> Job:
    """Build the job for the agent at `package.module:agent`, or for the worker with that name or file."""
    return _job(what if ":" in what else _worker_named(what), options)


def job_of(run: SavedRun, options: RunOptions) -> Job:
    """Rebuild the job of a saved run: its directory, policy and model. What made it stricter then still applies."""
    if not run.agent:
        return _program_job(run, options)
    setup = setup_now(run.setup)
    directory_of(run)
    options = replace(
        options,
        directory=setup.directory,
        policy=options.policy or setup.policy or None,
        model=options.model or setup.model or None,
        mode=setup.mode,
        caller=Caller.of(setup).and_also(options.caller),
        chat=setup.chat,
    )
    what = f"{WORKER}{setup.worker_file}" if setup.worker_file else run.agent
    return _job(what, options, run)


def directory_of(run: SavedRun) -> str:
    """Return the directory where a run was started, by its current path. Raises `WrongUse` if it cannot be entered."""
    directory = setup_now(run.setup).directory
    try:
        os.stat(os.path.join(directory, os.curdir))
    except OSError as error:
        raise WrongUse(
            f"run {run.id} was started in {directory}, which cannot be entered: {error.strerror}\n"
            "  If the project moved, resume it from where it is now"
        ) from error
    return directory


def _worker_named(what: str) -> str:
    if what.endswith(FOREIGN):
        raise WrongUse(f"{what}: {import_hint(what)}")
    is_file = os.sep in what or what.endswith((".yaml", ".yml", ".md"))
    return f"{WORKER}{os.path.abspath(what) if is_file else what}"


def _job(what: str, options: RunOptions, run: SavedRun | None = None) -> Job:
    if what.startswith(WORKER):
        return _worker_job(what.removeprefix(WORKER), options, run)
    return _agent_job(what, options, run)


def _found(options: RunOptions, worker: str | None = None) -> Settings:
    if options.policy is None and options.own is not None and worker is None:
        return kept_settings(options.own, options.directory or ".")
    return settings_for(options.policy, worker=worker, directory=options.directory or None)


def _settings(options: RunOptions, worker: str | None = None) -> Settings:
    """Return the project's settings, if the flags are compatible with them. `worker`: the path of its file, if any.

    Raises `WrongUse` for `auto_approve` if the project's policy is locked.
    """
    settings = _found(options, worker)
    if options.mode is ApprovalMode.AUTO_APPROVE and settings.file and (place := lock_of(settings.file)) is not None:
        raise WrongUse(
            f"the policy of this project is locked ({place}), so its questions cannot be skipped: "
            "--mode auto_approve is refused.\n"
            "  Add rules that allow what needs no question. Stricter options work: --mode auto_deny, --deny TOOL"
        )
    return settings


def setup_of(options: RunOptions, settings: Settings, worker: str | None = None) -> RunSetup:
    """Return what is saved with a run to rebuild its job. `worker`: the path of its file, if it was named by path."""
    caller = options.caller
    other = other_policy(options.policy, worker=worker, directory=options.directory or None)
    setup = RunSetup(
        directory=options.directory or os.getcwd(),
        policy=os.path.abspath(settings.file) if settings.file else options.policy or "",
        other_policies=(other,) if other else (),
        model=options.model or "",
        mode=options.mode,
        ask=caller.ask,
        deny=caller.deny,
        rules=caller.files,
        chat=options.chat,
        keeps=True,
    )
    return in_project(setup, settings)


def _worker_job(what: str, options: RunOptions, run: SavedRun | None) -> Job:
    from signoff.workers.models import script_in
    from signoff.workers.project_workers import Workers
    from signoff.workers.runtime import Runner

    by_path = os.path.isabs(what)
    settings = _settings(options, what if by_path else None)
    is_elsewhere = by_path or options.policy is not None or options.store is not None
    workers = None
    name = what
    if by_path:
        path = from_here(what)
        file = parse_worker(worker_text(path, missing="`signoff workers` lists all workers"), path, settings)
        name, workers = file.name, {**load_workers(settings), file.name: file}
    else:
        check_name(settings, name, options.directory)
    store = _opened(options, settings)
    shop = Workers(
        settings,
        workers=workers,
        store=store,
        model=script_in(options.model, options.directory),
        mode=options.mode,
        wait="inline" if options.wait is None else options.wait,
        observe=options.observe,
        message=options.message,
        caller=options.caller.layers(settings.directory),
    )
    try:
        worker = shop.worker(name)
    except BaseException:
        store.close()
        raise
    runner = Runner(
        agent=worker.agent,
        gate=worker.gate,
        approver=_approver(options, worker.gate, settings, can_stop=True),
        listener=options.listener,
        reader=reader_of(options.requester, settings),
    )
    setup = setup_of(options, settings, what if by_path else None)
    worker.gate.gate.loosened = setup.loosened
    return Job(
        agent=f"{WORKER}{name}",
        runner=runner,
        prompt=lambda task: worker.prompt(task.text, task.input, task.files),
        run_options=lambda task: worker.run_options(task.input, attachments=task.files),
        requester=run.requester if run is not None else requester_of(options.requester, settings),
        setup=replace(setup, worker_file=what) if workers is not None else setup,
        store=store_elsewhere(options.store, settings) if run is None and is_elsewhere else "",
        opened=store,
    )


def _opened(options: RunOptions, settings: Settings) -> Store:
    return options.lent() if options.lent is not None else store_for(options.store, settings)


def check_name(settings: Settings, name: str, directory: str = "") -> None:
    """Raise for a worker that is missing or invalid. Called before a store is created, so nothing is left behind."""
    try:
        load_worker(settings, name)
    except WrongUse as error:
        if "." not in name and not os.path.exists(os.path.join(directory, f"{name}.py")):
            raise
        raise WrongUse(f"{error}\n  For an agent in Python, add its variable: {name}:agent") from error


def _approver(options: RunOptions, gate: Signoff, settings: Settings, *, can_stop: bool) -> ApproverLike:
    """Return the approver at this terminal. `can_stop`: whether the agent can pause, so a question may be left open."""
    draft_rules = drafts_in(options.store, settings) if gate.broker.store.is_durable else None
    if options.ui == "tui":
        return tui_approver(headless=options.unattended, draft_rules=draft_rules)
    can_stop = can_stop and gate.broker.store.is_durable
    return terminal_approver(headless=options.unattended, can_stop=can_stop, draft_rules=draft_rules)


def drafts_in(store: str | None, settings: Settings) -> DraftRules | None:
    """Return a function that drafts rules from calls that are asked about; None if no rules may be written."""

    def drafts(request: ApprovalRequest) -> RuleDrafts:
        return rule_drafts(store, settings.file, request)

    return drafts if settings.file and lock_of(settings.file) is None else None


def _agent_job(path: str, options: RunOptions, run: SavedRun | None) -> Job:
    from signoff.gate.capability import Signoff
    from signoff.gate.gated_agents import signoff_of
    from signoff.workers.load import load_agent
    from signoff.workers.models import model_named
    from signoff.workers.runtime import Runner, can_pause

    agent = load_agent(path, options.directory)
    model = options.model
    settings = Settings(policy=Policy(rules=()), people={})
    gate, opened = signoff_of(agent), None
    if gate is not None:
        _refuse_second_policy(path, options, resumes=run is not None)
    else:
        settings = _settings(options)
        layers = (*settings.layers, *options.caller.layers(settings.directory))
        opened = _opened(options, settings)
        gate = Signoff(
            layers[0] if len(layers) == 1 else Layers(layers),
            people=roles_of(settings),
            mode=options.mode,
            on_denied=settings.on_denied,
            observe=options.observe,
            store=opened,
            wait="inline" if options.wait is None else options.wait,
        )
        model = model or (settings.model if agent.model is None else None)
    if model is None and agent.model is None:
        model = os.environ.get("SIGNOFF_MODEL") or None
    if model is None and agent.model is None:
        raise WrongUse(f"{path} has no model: name one with --model, or `model:` in {POLICY_FILE}, or SIGNOFF_MODEL")
    runner = Runner(
        agent=agent,
        gate=gate,
        approver=_approver(options, gate, settings, can_stop=opened is not None or can_pause(agent)),
        model=model_named(model, options.directory or None) if model is not None else None,
        may_pause=True,
        listener=options.listener,
        reader=reader_of(options.requester, settings),
    )
    setup = setup_of(options, settings)
    if opened is not None:  # an agent's own gate has a policy and a mode that no flag changes
        gate.gate.loosened = setup.loosened
    return Job(
        agent=path,
        runner=runner,
        prompt=lambda task: _agent_prompt(path, task),
        run_options=lambda task: {},
        requester=run.requester if run is not None else requester_of(options.requester, settings),
        setup=setup,
        opened=opened,
    )


def _program_job(run: SavedRun, options: RunOptions) -> Job:
    """Build the job of a run that a program started, if the project's file names its agent. Else raise `WrongUse`."""
    from signoff.workers.library_agents import library_agent
    from signoff.workers.runtime import Runner

    settings = _found(options)
    entry = settings.agents.get(run.name) if run.name else None
    if entry is None:
        where = f"{POLICY_FILE}, under agents: {{{run.name}: package.module:agent}}" if run.name else ""
        raise WrongUse(
            f"run {run.id} was started by a program of yours, and only that program knows its agent.\n"
            "  Resume it from there: await signoff.resume(agent, run_id)"
            + (f"; or say where its agent is in {where}" if where else "")
        )
    found = library_agent(entry, settings.directory)
    _refuse_second_policy(entry.agent, replace(options, policy=None), resumes=True)
    # Without an approver here it suspends at its next question, whatever else its gate would wait for.
    here = _approver(options, found.gate, settings, can_stop=True)
    return Job(
        agent=entry.agent,
        runner=Runner(
            agent=found.agent,
            gate=found.gate,
            adds_pause=True,
            approver=headless_approver("park") if options.wait == timedelta(0) else here,
            listener=options.listener,
            reader=reader_of(options.requester, settings),
        ),
        prompt=lambda task: task.text,
        run_options=lambda task: found.dependencies(run.requester),
        requester=run.requester,
        setup=run.setup,
    )


def _agent_prompt(path: str, task: Task) -> Prompt:
    from signoff.workers.runtime import with_files

    if task.input is not None:
        raise WrongUse(f"{path} is an agent, which takes a prompt: --input-json is for workers")
    return with_files(task.text, task.files)


def _refuse_second_policy(path: str, options: RunOptions, *, resumes: bool) -> None:
    """Refuse options that would have no effect: an agent's own gate sets policy, mode and store."""
    own = f"{path} has its own Signoff capability, which sets"
    if options.policy is not None or options.mode is not ApprovalMode.INTERACTIVE:
        raise WrongUse(
            f"{own} its policy and mode.\n  Leave --policy and --mode out, or remove the capability from the agent."
        )
    if options.caller:
        raise WrongUse(
            f"{own} its policy.\n  Leave --ask and --deny out (and SIGNOFF_ASK, SIGNOFF_DENY, SIGNOFF_POLICY), "
            "or remove the capability from the agent."
        )
    if not resumes and (options.wait is not None or options.store is not None):
        raise WrongUse(
            f"{own} its own store and way of waiting.\n"
            "  Leave --store, --suspend and --wait out, and write Signoff(…, store=…, wait=…) there."
        )
