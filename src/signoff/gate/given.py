"""What a `Signoff` is given, in whatever form, as the gate needs it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from signoff.config.settings import load_settings
from signoff.errors import WrongUse
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.ports import Store
from signoff.store.keys import Keys
from signoff.store.memory import MemoryStore

Rules = Policy | Layers | str | os.PathLike[str] | Sequence[Mapping[str, Any]]


def open_given(store: Store | str | None) -> Store:
    if store is None:
        return MemoryStore()
    if isinstance(store, str):
        from signoff.store.open import open_store

        return open_store(store)
    return store


def signer(store: Store) -> Keys | None:
    return Keys() if store.is_durable else None


def read_rules(rules: Rules) -> tuple[Policy | Layers, dict[str, frozenset[str]]]:
    if isinstance(rules, Policy | Layers):
        return rules, {}
    if isinstance(rules, str | os.PathLike):
        settings = load_settings(rules)
        return settings.policy, {name: person.roles for name, person in settings.people.items()}
    return Policy.from_rules(rules), {}


def rooted(policy: Policy | Layers) -> Policy | Layers:
    """The policy with a real folder to start from: links in arguments are followed, and held against it."""
    root = os.path.realpath(policy.root or os.getcwd())
    if isinstance(policy, Policy):
        return replace(policy, root=root)
    return Layers(tuple(replace(one, root=os.path.realpath(one.root or root)) for one in policy.policies))


def as_wait(wait: str | float | timedelta) -> timedelta | None:
    if isinstance(wait, timedelta):
        return wait
    if isinstance(wait, str):
        if wait not in ("inline", "suspend"):
            raise WrongUse(f"wait={wait!r}: say 'inline', 'suspend', or a number of seconds")
        return None if wait == "inline" else timedelta(0)
    if wait < 0:
        raise WrongUse(f"wait={wait!r}: a number of seconds cannot be negative")
    return timedelta(seconds=wait)
