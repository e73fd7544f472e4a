"""What remembered answers are judged by: a call, and what has to be looked up on the disk for it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING

from signoff.core.call import UNFOLLOWED, Call, is_free
from signoff.disk_steps import DiskSteps
from signoff.links import followed, named_forms
from signoff.policy.call_paths import Facts
from signoff.policy.step_count import Unclear

if TYPE_CHECKING:
    from signoff.policy.offer import Varying


def read_for_memory(call: Call, root: str) -> Facts:
    """Return a call with where its strings lead that may be paths, and which of them settings of the project name.

    Paths start from the call's directory, or from `root`; those in remembered answers start there, too. Where that
    cannot be looked at completely, no text leads into a directory.
    """
    start = call.start or root
    try:
        call = _looked_up(call, root, start, DiskSteps())
    except Unclear:
        texts = (value for value in call.args.values() if isinstance(value, str))
        call = call.changed(resolved={**call.resolved, **dict.fromkeys((*texts, *_named_in(call)), UNFOLLOWED)})
    return Facts(call, start or None)


def _looked_up(call: Call, root: str, start: str, count: DiskSteps) -> Call:
    from signoff.named_settings import may_be_named  # imported only when somebody is asked

    texts = [value for value in call.args.values() if isinstance(value, str) and "/" in value]
    leads = {**call.resolved, **followed(start, texts, count)}
    if call.start:
        leads |= followed(start, _named_in(call), count)
    elif texts and (here := os.path.realpath(os.curdir)) != root:
        # Nothing says where its paths start from, and from here they lead elsewhere than the rules assume.
        leads |= {text: os.path.join(here, text) for text in texts if not text.startswith(("/", "~"))}
    texts = [value for name, value in call.args.items() if isinstance(value, str) and not is_free(name, value)]
    texts = [text for text in texts if may_be_named(text) or may_be_named(leads.get(text, ""))]
    named = named_forms(root, start, texts, count) if start and texts else frozenset[str]()
    return call.changed(resolved=leads, named=call.named | named)


def _named_in(call: Call) -> Iterator[str]:
    from signoff.policy.first_words import paths_in  # as above

    yield from paths_in(call)


def varying(call: Call, root: str) -> tuple[Varying, ...]:
    """Return what of a call that is asked about may vary in calls like it."""
    from signoff.policy.offer import may_vary

    return may_vary(read_for_memory(call, root))


def prepare() -> None:
    """Import what reads a call that is asked about. It takes long enough to be done in a thread."""
    for name in (
        "signoff.named_settings",
        "signoff.policy.below",
        "signoff.policy.first_words",
        "signoff.policy.offer",
    ):
        import_module(name)


def directory_name(root: str, directory: str) -> str:
    """Return a directory's name, relative to the root if inside it, so that it stays the same if the root is moved."""
    if not directory or not root:
        return directory
    return "." if directory == root else directory.removeprefix(f"{root.rstrip('/')}/")
