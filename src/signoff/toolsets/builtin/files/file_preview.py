"""What the approver is shown before a file tool runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from signoff.core.preview import BASIS
from signoff.core.summary import VERBS
from signoff.core.visible_text import visible
from signoff.policy.phrases import shown
from signoff.toolsets.builtin.files.diffs import EditTrouble, change, edited, encoded
from signoff.toolsets.builtin.files.judge import Judged
from signoff.toolsets.builtin.files.root_directory import Root
from signoff.toolsets.builtin.files.shown_state import NO_CHANGE, NOTHING, UNREADABLE, placed, state_of, state_of_edit

_CHANGE = frozenset({"write_file", "edit_file", "delete_file", "move_file"})


def describe(
    root: Root, name: str, args: Mapping[str, Any], paths: Sequence[Judged], most_bytes: int
) -> Mapping[str, Any]:
    """`summary`, `path`, `reason`, `diff` or `preview`, and `basis`, as defined by `ports.DeclaresApproval`."""
    said: dict[str, Any] = {"summary": _summary(name, args, paths), "path": paths[-1].path}
    reasons = [one.reason for one in paths if one.reason]
    refused = next((one.refused for one in paths if one.refused), "")
    if refused:
        return said | {"reason": "; ".join([f"it will be refused: {refused}", *reasons])}
    try:
        said |= _change(root, name, args, paths, most_bytes)
    except EditTrouble as error:
        reasons.append(f"it will fail: {error}")
    except OSError as error:
        reasons.append(f"it may fail: {error.strerror or 'the file cannot be read'}")
    if basis := _basis(root, name, args, paths, most_bytes):
        said[BASIS] = basis
    return said | {"reason": "; ".join(reasons)} if reasons else said


def named(path: str) -> str:
    """The name of a file in the basis of a preview."""
    name = path.rstrip("/") or path
    return shown(name, most=len(name))


def _basis(
    root: Root, name: str, args: Mapping[str, Any], paths: Sequence[Judged], most_bytes: int
) -> Mapping[str, str]:
    """What the preview is made from. A digest of a secret file could be told from those of likely contents."""
    if name not in _CHANGE:
        return {}
    if any(one.secret for one in paths) or (name == "move_file" and not args.get("overwrite")):
        return {named(one.path): placed("", one.where) for one in paths}
    if name == "edit_file":
        return {named(paths[-1].path): placed(_edit_state(root, args, paths[-1].path, most_bytes), paths[-1].where)}
    follow = name == "write_file"
    return {named(one.path): placed(_state(root, one.path, most_bytes, follow=follow), one.where) for one in paths}


def _edit_state(root: Root, args: Mapping[str, Any], path: str, most_bytes: int) -> str:
    try:
        before = _content(root, path, most_bytes, follow=True) or b""
        old, new = str(args.get("old", "")), str(args.get("new", ""))
        return state_of_edit(before, edited(before, old, new, replace_all=bool(args.get("replace_all"))))
    except (EditTrouble, OSError):
        return NO_CHANGE


def _state(root: Root, path: str, most_bytes: int, *, follow: bool) -> str:
    try:
        with root.spot(path.rstrip("/"), follow=follow) as spot:
            return state_of(spot, most_bytes)
    except FileNotFoundError:  # its directory does not exist yet
        return NOTHING
    except OSError:
        return UNREADABLE


def _summary(name: str, args: Mapping[str, Any], paths: Sequence[Judged]) -> str:
    if name == "move_file":
        over = ", replacing what is there" if args.get("overwrite") else ""
        return f"Move {_named(paths[0])} to {_named(paths[1])}{over}"
    words = f"{VERBS.get(name, name)} {_named(paths[0])}"
    return f"{words} for {visible(str(args.get('pattern', '')))}" if name == "search_files" else words


def _named(one: Judged) -> str:
    plain = one.path.removeprefix("./").rstrip("/")
    really = f" (a way to {visible(one.where)})" if one.where and one.where != plain else ""
    return f"{visible(one.path)}{really}"


def _change(
    root: Root, name: str, args: Mapping[str, Any], paths: Sequence[Judged], most_bytes: int
) -> Mapping[str, str]:
    """How the files change, if they do."""
    path = paths[-1]
    if name not in _CHANGE:
        return {}
    if any(one.secret for one in paths):
        return {"preview": "the content of the file is not shown, because it may be secret"}
    if name == "move_file" and not args.get("overwrite"):
        return {}
    before = _before(root, name, path.path, most_bytes)
    if before is not None and len(before) > most_bytes:
        return {"preview": f"the file has more than {most_bytes:,} bytes"}
    match name:
        case "write_file":
            return change(before, encoded(str(args.get("content", ""))), path.path)
        case "edit_file":
            old, new = str(args.get("old", "")), str(args.get("new", ""))
            after = edited(before or b"", old, new, replace_all=bool(args.get("replace_all")))
            return change(before, after, path.path)
        case "delete_file":
            return change(before, None, path.path) if before is not None else {}
        case _:
            after = _content(root, paths[0].path, most_bytes, follow=False)
            return change(before, after, path.path) if before is not None and after is not None else {}


def _before(root: Root, name: str, path: str, most: int) -> bytes | None:
    """The content of a file before it changes; None if there is no file, even if its directory does not exist yet."""
    try:
        return _content(root, path, most, follow=name in ("write_file", "edit_file"))
    except FileNotFoundError:
        if name in ("write_file", "move_file"):
            return None
        raise


def _content(root: Root, path: str, most: int, *, follow: bool) -> bytes | None:
    """At most `most` + 1 bytes of a regular file, so that a larger one is noticed; None if there is no such file."""
    with root.spot(path.rstrip("/"), follow=follow) as spot:
        there = spot.stat()
        opened = spot.open() if there is not None and (there.st_mode & 0o170000) == 0o100000 else None
        if opened is None:
            return None
        with opened:
            return opened.read(most + 1)
