"""Look at the disk for a policy, which never does: where paths lead, and which files a command's patterns stand for."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from stat import S_ISLNK

from signoff.core.call import UNFOLLOWED, Call
from signoff.disk_steps import DiskSteps
from signoff.policy.engine import FileWatch, Policy
from signoff.policy.layers import Layers
from signoff.policy.places import is_too_long, normal
from signoff.policy.secret import holds_secrets, secret_place
from signoff.policy.shell.common_files import BELOW_SHOWN, BELOW_TRACKED, FileSet, split_below
from signoff.policy.shell.file_patterns import escaped, is_wild, unescaped
from signoff.policy.shell.filters import keeps_out
from signoff.policy.step_count import COSTS, Unclear

_PLAIN = re.compile(r"(?!\.\.?(?:/|\Z))[^/\0]+(?:/(?!\.\.?(?:/|\Z))[^/\0]+)*")
"""A relative path in its plainest form: no empty, `.` or `..` steps."""
_SECRET = 8
"""What it takes to compare a path with the known secret places."""


def looked_up(call: Call, policy: Policy | Layers, root: str, count: DiskSteps | None = None) -> Call:
    """Return the call with what policy wants to know of the disk: where its paths lead, from `call.start` or `root`.

    Of the files that its patterns stand for, those that matter to a rule are added, and which of its paths settings of
    the project name. This can only make the verdict stricter. If the count of steps ends before all is looked at, the
    call is `unseen`; without one, there is a new one for this call.
    """
    if not policy.wants_paths:
        return call
    count = count or DiskSteps()
    start = call.start or root
    found, named = dict[str, str](), frozenset[str]()
    try:
        texts = policy.paths_of(call)
        found |= followed(start, texts, count)
        patterns = policy.patterns_of(call)
        if patterns:
            found |= _found(patterns, start, policy.watch(call), count)
        if texts and policy.minds_settings(call):
            named = named_forms(policy.root or start, start, texts, count)
    except Unclear as unclear:
        return call.changed(resolved=found, unseen=count.why or f"a path in it {unclear}")
    return call.changed(resolved=found, named=named) if found or named else call


def named_forms(root: str, start: str, texts: Iterable[str], count: DiskSteps) -> frozenset[str]:
    """Return the texts that are paths of files which settings of the project name, as absolute paths: as written, and
    with links resolved. `start` is the directory that they start from. Raises `Unclear` if the count ends.
    """
    from signoff.named_settings import named_by_settings  # few calls need it

    written = {text: normal(os.path.join(start, text)) for text in texts if "\0" not in text and not is_too_long(text)}
    leads = {path: count.real(os.path.join(start, text)) for text, path in written.items()}
    named = named_by_settings(count.real(root), {*leads.values()}, count)
    return frozenset(form for path, real in leads.items() if real in named for form in (path, real))


def _found(patterns: Iterable[FileSet], start: str, watch: FileWatch | None, count: DiskSteps) -> dict[str, str]:
    """Return the files that matter to a rule among those that patterns stand for, and where they lead.

    Raises `Unclear` if the count ends.
    """
    found: dict[str, str] = {}
    for files in patterns:
        try:
            found.update(
                (path, where)
                for path, where, is_link in _standing(files, start, count, watch)
                if (is_link and (secret_place(where) or where != normal(os.path.join(start, path))))
                or (watch is not None and watch.about(path, where))
            )
        except (Unclear, OSError, ValueError):
            if count.why:
                raise
            found[files.pattern] = UNFOLLOWED
    return found


def _standing(files: FileSet, root: str, count: DiskSteps, watch: FileWatch | None) -> Iterator[tuple[str, str, bool]]:
    """Yield the files that a set stands for, written as its pattern is, where they lead, and whether by a link.

    Raises `Unclear` if that is not clear.
    """
    from signoff.found_files import files_below, tracked_below

    pattern, end = split_below(files.pattern)
    published = watch is not None and watch.thorough
    each = 1 + len(files.filters) + (watch.cost if watch is not None else 0)
    for path in _expanded(pattern, root, count):
        count.take(each)
        top = os.path.join(root, _home(root, path))
        if end == BELOW_TRACKED:
            for below, where in tracked_below(top, count):
                count.take(each)
                yield os.path.join(path, below), where, False
            continue
        if not end:
            if "/-" in f"/{path}":  # whatever is before it: the line may have changed into that directory
                raise Unclear("stands for a name that a program takes for an option")
            yield path, count.real(top), True
            continue
        real = count.real(top)
        if watch is not None and holds_secrets(real):
            raise Unclear("stands for files of which some hold secrets")
        for below, leads in (
            files_below(top, hidden=end != BELOW_SHOWN, published=published, count=count) if os.path.isdir(top) else ()
        ):
            count.take(each)
            if keeps_out(files.filters, below) and not (leads and os.path.isdir(leads)):
                continue  # filters for files do not apply to symlinks to directories
            yield os.path.join(path, below), leads or os.path.join(real, below), bool(leads)


def _expanded(pattern: str, root: str, count: DiskSteps) -> Iterable[str]:
    from signoff.found_files import expand

    if not is_wild(pattern):
        return (unescaped(pattern),)
    if not _is_home(root, pattern):
        return expand(pattern, root, count=count, deep=True)
    home = os.path.expanduser("~")
    return (f"~{path[len(home) :]}" for path in expand(escaped(home) + pattern[1:], root, count=count, deep=True))


def _home(root: str, path: str) -> str:
    return os.path.expanduser(path) if _is_home(root, path) else path


def _is_home(root: str, path: str) -> bool:
    """Whether a path begins in the home directory: not if there is a directory that is really called `~`."""
    return path.split("/", 1)[0] == "~" and not os.path.lexists(os.path.join(root, "~"))


def followed(root: str, texts: Iterable[str], count: DiskSteps) -> dict[str, str]:
    """Return the real path of each text that may be a path, with symlinks and `..` resolved.

    Left out are plain relative paths without a symlink to places that hold no secrets, and texts that cannot be
    resolved or that no system takes as a path. `root` is the directory that relative paths start from, itself a real
    path; `~/` stands for the user's home directory. Raises `Unclear` if the count ends.
    """
    return {text: where for text in texts if (where := _leads_to(root, text, count)) is not None}


def _leads_to(root: str, text: str, count: DiskSteps) -> str | None:
    count.take(2 + len(text) // 64)
    if is_too_long(text):
        return None
    try:
        if _is_home(root, text):
            return count.real(os.path.expanduser(text))
        if _PLAIN.fullmatch(text) and not _has_link(root, text, count):
            plain = os.path.join(root, text)  # the usual case: one `lstat` for each step
            count.take(2 * _SECRET)
            return plain if secret_place(plain) or holds_secrets(plain) else None
        return count.real(os.path.join(root, text))
    except (OSError, ValueError):
        return None


def _has_link(root: str, text: str, count: DiskSteps) -> bool:
    """Return whether a step below the root is a symlink. A missing file is none, nor is anything below it."""
    path, end = f"{root}/{text}", len(root)
    while end >= 0:
        count.take(COSTS["status"])
        end = path.find("/", end + 1)
        try:
            mode = os.lstat(path if end < 0 else path[:end]).st_mode
        except FileNotFoundError:
            return False
        if S_ISLNK(mode):
            return True
    return False
