"""Apply an edit to a file's bytes, and show the change to the approver."""

from __future__ import annotations

from collections.abc import Mapping

from signoff.core.counted import counted
from signoff.core.preview import unified_diff

MOST_BYTES = 1_000_000
"""Above this size, a diff takes too long to compute and to read."""


class EditTrouble(ValueError):
    """An edit that does not fit the file; the message says why."""


def is_binary(data: bytes) -> bool:
    """Whether the bytes are not text."""
    return b"\0" in data


def edited(data: bytes, old: str, new: str, *, replace_all: bool = False) -> bytes:
    """Replace a text in the bytes of a file. All other bytes stay unchanged, even if they are not valid UTF-8.

    Raises `EditTrouble` if the old text does not occur, or occurs more than once without `replace_all`.
    """
    if not old:
        raise EditTrouble("the text to replace is empty")
    if old == new:
        raise EditTrouble("the new text is the same as the old one")
    if is_binary(data):
        raise EditTrouble("the file is not a text")
    before, after = encoded(old), encoded(new)
    count = data.count(before)
    if count == 0:
        hint = "; its lines end in CR LF" if b"\r\n" in data and "\n" in old and "\r" not in old else ""
        raise EditTrouble(f"the text to replace is not in the file{hint}")
    if count > 1 and not replace_all:
        raise EditTrouble(
            f"the text to replace is in the file {count} times; add what is around it, or use replace_all"
        )
    return data.replace(before, after)


def encoded(text: str) -> bytes:
    """Encode a text as UTF-8. Raises `EditTrouble` if that is impossible."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        raise EditTrouble("the text contains unpaired surrogates, which cannot be written to a file") from None


def change(before: bytes | None, after: bytes | None, path: str) -> Mapping[str, str]:
    """How a file changes, for `describe_approval`: a `diff`, or a `preview` in words. None means no file."""
    old, new = before or b"", after or b""
    if is_binary(old) or is_binary(new):
        return {"preview": f"{_size(before)} -> {_size(after)}; not a text, so no difference is shown"}
    if len(old) + len(new) > MOST_BYTES:
        return {"preview": f"{_size(before)} -> {_size(after)}; too large to show the difference"}
    diff = unified_diff(_text(old), _text(new), path).text
    if not diff:
        same = "nothing changes" if before is not None and after is not None else "an empty file"
        return {"preview": same if old == new else "only bytes that are not text change"}
    return {"diff": diff}


def _text(data: bytes) -> str:
    return data.decode("utf-8", "backslashreplace")


def _size(data: bytes | None) -> str:
    return "nothing" if data is None else counted(len(data), "byte")
