"""The only place that assembles parts: from what a command was given to an agent that runs under a policy."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from signoff.config import Settings, load_policy, load_settings
from signoff.core.event import CallEvent
from signoff.core.mode import ApprovalMode
from signoff.core.people import Answerer, person_key
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.wording import did_you_mean
from signoff.ports import ApprovalUI, Store
from signoff.store.place import state_folder

if TYPE_CHECKING:
    from signoff.broker import Broker
    from signoff.core.run import KeptRun
    from signoff.workers.runtime import Finished, Runner

POLICY_FILE = "signoff.yaml"


def settings_for(file: str | os.PathLike[str] | None) -> Settings:
    """The given file, else `signoff.yaml` here, else no rules: everything is asked about."""
    if file is None and not Path(POLICY_FILE).exists():
        return Settings(policy=Policy(rules=()), people={})
    return load_settings(file if file is not None else POLICY_FILE)


def store_url(option: str | None, settings: Settings) -> tuple[str, Path]:
    """Which store is meant, and the folder its address starts from: the option, the environment, the file, the default.

    The default is outside of the project, where its agents have no business: an agent that may write files here must
    not be able to write approvals.
    """
    folder = Path(os.path.realpath(Path(settings.file).parent if settings.file else "."))
    if chosen := option or os.environ.get("SIGNOFF_STORE"):
        return chosen, Path.cwd()
    if settings.store is not None:
        return settings.store, folder
    state = state_folder(folder)
    if state is None:
        raise WrongUse("there is no home folder to keep approvals in: name a store with --store sqlite:FILE")
    return f"sqlite:{state / 'signoff.db'}", folder


def absolute_store(option: str | None, policy: str | os.PathLike[str] | None = None) -> str:
    """The address of the store that a command means, good in any folder."""
    from signoff.store.open import sqlite_path

    url, root = store_url(option, settings_for(policy))
    return f"sqlite:{sqlite_path(url, root)}" if url.startswith("sqlite:") else url


def open_broker(option: str | None = None, policy: str | os.PathLike[str] | None = None) -> tuple[Broker, Settings]:
    """The broker over the store that a command means, with the people of the policy file."""
    from signoff.broker import Broker
    from signoff.store.keys import Keys

    settings = settings_for(policy)
    return Broker(store_for(option, settings), people=roles_of(settings), signer=Keys()), settings


def store_for(option: str | None, settings: Settings | None = None) -> Store:
    """The store that a command means, opened."""
    from signoff.store.open import open_store

    url, root = store_url(option, settings or settings_for(None))
    return open_store(url, root=root)


def roles_of(settings: Settings) -> dict[str, frozenset[str]]:
    return {name: person.roles for name, person in settings.people.items()}


def whoami(name: str | None, settings: Settings, *, via: str) -> Answerer:
    """Who answers: the name given, `SIGNOFF_AS`, or whoever is logged in. Where people are on file, one of them."""
    who = name or _user()
    people = {person_key(one): person for one, person in settings.people.items()}
    if not people:
        return Answerer(name=who, via=via)
    person = people.get(person_key(who))
    if person is None:
        hint = did_you_mean(who, settings.people) or f"there are: {', '.join(settings.people)}"
        raise WrongUse(f"{settings.file} knows nobody called {who!r}\n  Say who you are with --as NAME; {hint}")
    return Answerer(name=person.name, roles=person.roles, via=via)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """How `signoff run` and `signoff resume` run an agent."""

    policy: str | None = None
    model: str | None = None
    mode: ApprovalMode = ApprovalMode.INTERACTIVE
    unattended: Literal["deny", "park"] = "deny"
    store: str | None = None
    wait: timedelta | None = None
    """How long to wait for answers before the run suspends: None = until they come, zero = not at all."""
    requester: str | None = None
    observe: Callable[[CallEvent], None] | None = None

    @property
    def may_pause(self) -> bool:
        return self.unattended == "park" or self.wait is not None


async def run_agent(
    path: str, prompt: str, options: RunOptions, *, begun: Callable[[str], None] | None = None
) -> Finished:
    """Run the agent at `package.module:agent` under a policy, asking at the terminal; `begun` is told the run's id."""
    from signoff.broker import new_id
    from signoff.core.run import KeptRun

    settings, runner = _runner(path, options, may_pause=options.may_pause)
    requester = whoami(options.requester, settings, via="terminal").name if options.requester else _login(settings)
    broker = runner.gate.broker
    if not broker.store.is_durable:
        return await runner.run(prompt)
    kept = KeptRun(
        id=new_id(),
        agent=path,
        prompt=prompt,
        requester=requester,
        options={
            "folder": os.getcwd(),
            "policy": options.policy or "",
            "model": options.model or "",
            "mode": str(options.mode),
        },
    )
    kept = await broker.runs.begin(kept)
    if begun is not None:
        begun(kept.id)
    finished = await runner.run(prompt, kept)
    await broker.sweeper.sign_if_due()
    return finished


async def resume_agent(run: KeptRun, options: RunOptions) -> Finished:
    """Take up a run that `signoff run` began, in the folder and with the policy and model it began with."""
    if not run.agent:
        raise WrongUse(
            f"run {run.id} was begun by a program of yours, and only that knows its agent.\n"
            "  Resume it from there: await signoff.resume_run(agent, run_id)"
        )
    began = run.options
    try:
        os.chdir(began["folder"])
    except OSError as error:
        raise WrongUse(
            f"run {run.id} was begun in {began['folder']}, which cannot be entered: {error.strerror}"
        ) from error
    options = replace(
        options,
        policy=options.policy or began["policy"] or None,
        model=options.model or began["model"] or None,
        mode=ApprovalMode(began["mode"]),
    )
    _, runner = _runner(run.agent, options, may_pause=True, resumes=True)
    finished = await runner.resume(run.id)
    await runner.gate.broker.sweeper.sign_if_due()
    return finished


def _runner(path: str, options: RunOptions, *, may_pause: bool, resumes: bool = False) -> tuple[Settings, Runner]:
    from signoff.channels.terminal import TerminalApprover
    from signoff.gate.capability import Signoff
    from signoff.gate.suspended import signoff_of
    from signoff.workers.load import load_agent
    from signoff.workers.models import model_named
    from signoff.workers.runtime import Runner

    agent = load_agent(path)
    model = options.model
    settings = Settings(policy=Policy(rules=()), people={})
    gate = signoff_of(agent)
    if gate is not None and (options.policy is not None or options.mode is not ApprovalMode.INTERACTIVE):
        raise WrongUse(
            f"{path} brings its own Signoff capability, which has its policy and mode.\n"
            "  Leave --policy and --mode out, or take the capability off the agent."
        )
    if gate is not None and not resumes and (options.wait is not None or options.store is not None):
        raise WrongUse(
            f"{path} brings its own Signoff capability, which has its own store and way of waiting.\n"
            "  Leave --store, --suspend and --wait out, and write Signoff(…, store=…, wait=…) there."
        )
    if gate is None:
        settings = settings_for(options.policy)
        gate = Signoff(
            settings.policy,
            people=roles_of(settings),
            mode=options.mode,
            observe=options.observe,
            store=store_for(options.store, settings),
            wait="inline" if options.wait is None else options.wait,
        )
        model = model or (settings.model if agent.model is None else None)
    if model is None and agent.model is None:
        raise WrongUse(f"{path} has no model: name one with --model, or `model:` in {POLICY_FILE}")
    runner = Runner(
        agent=agent,
        gate=gate,
        approver=TerminalApprover(headless=options.unattended, keeps_always=gate.keeps_always),
        model=model_named(model) if model is not None else None,
        may_pause=may_pause,
    )
    return settings, runner


def _user() -> str:
    """Who works here: `SIGNOFF_AS`, or whoever is logged in."""
    if named := os.environ.get("SIGNOFF_AS"):
        return named
    try:
        return getpass.getuser()
    except (OSError, KeyError) as error:  # a container may run as a number that nobody has a name for
        raise WrongUse("the system does not know your name: say who you are with --as NAME or SIGNOFF_AS") from error


def _login(settings: Settings) -> str:
    """Who the run is for, where nobody says: whoever is logged in, by the name on file."""
    who = _user()
    on_file = {person_key(name): name for name in settings.people}
    return on_file.get(person_key(who), who)


async def run_demo(
    root: Path,
    *,
    approver: ApprovalUI,
    grants: Path,
    observe: Callable[[CallEvent], None],
) -> Finished:
    """Run the demo's agent on its files in `root`."""
    from signoff.gate.capability import Signoff
    from signoff.store.grants import ApprovalMemory
    from signoff.workers.demo.agent import POLICY, demo_agent, lay_out
    from signoff.workers.runtime import Runner

    lay_out(root)
    gate = Signoff(load_policy(POLICY, root=root), memory=ApprovalMemory(grants), observe=observe)
    runner = Runner(agent=demo_agent(root), gate=gate, approver=approver)
    return await runner.run("Get the release notes ready.")
