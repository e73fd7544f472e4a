"""What a call has in common with others, as grants refer to it: its command prefix, and where its paths lead."""

from __future__ import annotations

import os
from importlib import import_module

from signoff.core.call import Call, is_free
from signoff.core.terms import COMMAND
from signoff.disk_steps import DiskSteps
from signoff.links import followed, named_forms
from signoff.policy.places import is_too_long, normal
from signoff.policy.step_count import Unclear


def read_for_memory(call: Call, root: str) -> Call:
    """Add what remembered patterns refer to: where its strings lead that may be paths, and its command prefix."""
    texts = [value for value in call.args.values() if isinstance(value, str) and "/" in value]
    try:
        leads = followed(call.start or root, texts, DiskSteps())
    except Unclear:  # so no pattern is about it
        return call.changed(sensitive=tuple(call.args))
    if not call.start and (here := os.path.realpath(os.curdir)) != root:
        # Nothing says where its paths start from, and from here they lead elsewhere than the rules assume.
        leads |= {text: os.path.join(here, text) for text in texts if not text.startswith(("/", "~"))}
    return with_likeness(call.changed(resolved={**call.resolved, **leads}), root)


def with_likeness(call: Call, root: str) -> Call:
    """Add the command prefix that the call shares with others, and the names of its sensitive arguments.

    A command has a prefix only if its toolset says in which directory it starts and no name in it leads out of there.
    Where that cannot be looked at completely, every argument is sensitive.
    """
    try:
        return _with_likeness(call, root, DiskSteps())
    except Unclear:
        return call.changed(sensitive=tuple(call.args))


def _with_likeness(call: Call, root: str, count: DiskSteps) -> Call:
    from signoff.named_settings import may_be_named  # imported only when somebody is asked, as is the next
    from signoff.policy.shell.prefixes import prefix_of

    base = call.start or root
    texts = [value for name, value in call.args.items() if isinstance(value, str) and not is_free(name, value)]
    texts = [text for text in texts if may_be_named(text) or may_be_named(call.resolved.get(text, ""))]
    named = named_forms(root, base, texts, count) if base and texts else frozenset[str]()
    if sensitive := tuple(name for name, value in call.args.items() if _is_sensitive(name, value, base, named)):
        call = call.changed(sensitive=sensitive)
    line, start = call.args.get(COMMAND), call.start
    if not start or not isinstance(line, str) or (prefix := prefix_of(line)) is None:
        return call
    paths = [name.partition("::")[0] for name in prefix.names]
    leads = followed(start, paths, count).values()
    is_below = all(where == start or where.startswith(f"{start}/") for where in leads)
    return call.changed(prefix=prefix.text) if is_below else call


def prepare() -> None:
    """Import what reads a call that is asked about. It takes long enough to be done in a thread."""
    for name in ("signoff.named_settings", "signoff.policy.sensitive_files", "signoff.policy.shell.prefixes"):
        import_module(name)


def directory_name(root: str, directory: str) -> str:
    """Return a directory's name, relative to the root if inside it, so that it stays the same if the root is moved."""
    if not directory or not root:
        return directory
    return "." if directory == root else directory.removeprefix(f"{root.rstrip('/')}/")


def _is_sensitive(name: str, value: object, root: str, named: frozenset[str]) -> bool:
    """Return whether no directory may cover an argument: as a path it is sensitive, or it is longer than any path."""
    from signoff.policy.sensitive_files import sensitive_place

    if not isinstance(value, str) or is_free(name, value):
        return False
    if is_too_long(value) or sensitive_place(value, root):
        return True
    return bool(named) and normal(os.path.join(root, value)) in named
