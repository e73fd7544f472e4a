"""The only place that assembles parts: from what a command was given to an agent that runs under a policy."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from signoff.broker import Broker
from signoff.config import Settings, load_policy, load_settings
from signoff.core.event import CallEvent
from signoff.core.mode import ApprovalMode
from signoff.core.people import Answerer, person_key
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.wording import did_you_mean
from signoff.ports import ApprovalUI, Store
from signoff.store.grants import state_folder

if TYPE_CHECKING:
    from signoff.workers.runtime import Finished

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


def open_broker(option: str | None = None, policy: str | os.PathLike[str] | None = None) -> tuple[Broker, Settings]:
    """The broker over the store that a command means, with the people of the policy file."""
    settings = settings_for(policy)
    return Broker(store_for(option, settings), people=roles_of(settings)), settings


def store_for(option: str | None, settings: Settings | None = None) -> Store:
    """The store that a command means, opened."""
    from signoff.store.open import open_store

    url, root = store_url(option, settings or settings_for(None))
    return open_store(url, root=root)


def roles_of(settings: Settings) -> dict[str, frozenset[str]]:
    return {name: person.roles for name, person in settings.people.items()}


def whoami(name: str | None, settings: Settings, *, via: str) -> Answerer:
    """Who answers: the name given, `SIGNOFF_USER`, or whoever is logged in. Where people are on file, one of them."""
    who = name or os.environ.get("SIGNOFF_USER") or getpass.getuser()
    people = {person_key(one): person for one, person in settings.people.items()}
    if not people:
        return Answerer(name=who, via=via)
    person = people.get(person_key(who))
    if person is None:
        hint = did_you_mean(who, settings.people) or f"there are: {', '.join(settings.people)}"
        raise WrongUse(f"{settings.file} knows nobody called {who!r}\n  Say who you are with --as NAME; {hint}")
    return Answerer(name=person.name, roles=person.roles, via=via)


async def run_agent(
    path: str,
    prompt: str,
    *,
    policy: str | os.PathLike[str] | None = None,
    model: str | None = None,
    mode: ApprovalMode = ApprovalMode.INTERACTIVE,
    unattended: Literal["deny", "park"] = "deny",
    observe: Callable[[CallEvent], None] | None = None,
) -> Finished:
    """Run the agent at `package.module:agent` under a policy, asking at the terminal."""
    from signoff.channels.terminal import TerminalApprover
    from signoff.gate.capability import Signoff
    from signoff.gate.suspended import signoff_of
    from signoff.workers.load import load_agent
    from signoff.workers.models import model_named
    from signoff.workers.runtime import run_once

    agent = load_agent(path)
    own = signoff_of(agent)
    if own is not None and (policy is not None or mode is not ApprovalMode.INTERACTIVE):
        raise WrongUse(
            f"{path} brings its own Signoff capability, which has its policy and mode.\n"
            "  Leave --policy and --mode out, or take the capability off the agent."
        )
    if own is None:
        settings = settings_for(policy)
        people = {name: person.roles for name, person in settings.people.items()}
        gate = Signoff(settings.policy, people=people, mode=mode, observe=observe)
        model = model or (settings.model if agent.model is None else None)
    else:
        gate = own
    if model is None and agent.model is None:
        raise WrongUse(f"{path} has no model: name one with --model, or `model:` in {POLICY_FILE}")
    return await run_once(
        agent,
        prompt,
        gate=gate,
        approver=TerminalApprover(headless=unattended),
        model=model_named(model) if model is not None else None,
        may_pause=unattended == "park",
    )


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
    from signoff.workers.runtime import run_once

    lay_out(root)
    gate = Signoff(load_policy(POLICY, root=root), memory=ApprovalMemory(grants), observe=observe)
    return await run_once(demo_agent(root), "Get the release notes ready.", gate=gate, approver=approver)
