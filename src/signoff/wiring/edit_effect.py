"""What an edited call would change, told where its agent does not run: by the stored request and the files here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from signoff.core.preview import BASIS
from signoff.core.request import ApprovalRequest
from signoff.toolsets.builtin.files.file_preview import describe
from signoff.toolsets.builtin.files.judge import Judge
from signoff.toolsets.builtin.files.root_directory import Root

_TEXTS = {"write_file": "content", "edit_file": "new"}
"""The arguments of the file tools that say nothing about which file, and which part of it, is changed."""
_MOST_BYTES = 10_000_000
_SHOWN = ("summary", "path", "diff", "preview", BASIS)


def with_edit_here(request: ApprovalRequest, args: Mapping[str, Any]) -> ApprovalRequest | None:
    """Return a request as it would be asked with edited arguments; None if that is not known here. Reads files.

    It is known if only the text is edited that a file tool writes, and if the tool's description of the call as it was
    asked comes out here as it is stored, with the digest of the file: then this is the tool, and this is the file, and
    it has not changed since. Nobody is shown a file that was not on the card.
    """
    text = _TEXTS.get(request.tool_name)
    asked = request.args
    if text is None or request.root == "" or not request.metadata.get(BASIS):
        return None
    if {**asked, text: ""} != {**args, text: ""}:
        return None
    try:
        root = Root(request.root)
        paths = [Judge(root).of(str(asked.get("path", ".")), writes=True)]
        before = describe(root, request.tool_name, asked, paths, _MOST_BYTES)
        if any(before.get(name) != request.metadata.get(name) for name in _SHOWN):
            return None
        return request.changed_to(args=args, metadata=describe(root, request.tool_name, args, paths, _MOST_BYTES))
    except (OSError, ValueError):
        return None
