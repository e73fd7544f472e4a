"""What a call returned, in words: the exit code of a command, and the line that says most."""

from __future__ import annotations

import re

EXIT_LINE = "[exit code {}]"
"""How the shell toolset ends a result whose command failed."""
EDITED = "A person changed the arguments of this call before approving it. It ran with "
"""How the notice for the model begins that is put before the result of an edited call."""
STOPPED_LINE = "[stopped: {}]"
_EXIT = re.compile(r"(?:\A|\n)\[(exit code (-?\d+)|stopped: [^\n\]]*)\]\s*\Z")
_LAST = 300
"""Characters at the end of a text in which that line is looked for."""


def output_text(out: str, err: str, *, code: int = 0, stopped: str = "") -> str:
    """Return the result of a command: the output, standard error marked, and the exit code unless it is 0."""
    parts = [out.rstrip("\n")] if out.strip() else []
    if err.strip():
        parts.append("[stderr]\n" + err.rstrip("\n"))
    if stopped:
        parts.append(STOPPED_LINE.format(stopped))
    elif code:
        parts.append(EXIT_LINE.format(code))
    return "\n".join(parts) or "[no output]"


def exit_text(result: str) -> str:
    """Return how a command failed, `exit code 1` or `stopped: …`; empty if it did not, or if it was no command."""
    found = _EXIT.search(result[-_LAST:])
    return found[1] if found is not None else ""


def exit_code(result: str) -> int | None:
    """Return the exit code of a command that failed; None if it did not, or if it was no command."""
    found = _EXIT.search(result[-_LAST:])
    return int(found[2]) if found is not None and found[2] else None


def in_short(result: str) -> str:
    """Return a result on one line: its first line; of a command that failed how it did, and its last line."""
    ended = exit_text(result)
    lines = [line for line in map(str.strip, without_exit(result).splitlines()) if line]
    if ended:
        return f"{ended}: {lines[-1]}" if lines else ended
    return f"{lines[0]} …" if len(lines) > 1 else "".join(lines)


def without_notice(result: str) -> str:
    """Return a result without the notice for the model that a person changed the arguments."""
    return result.partition("\n")[2] if result.startswith(f"[{EDITED}") else result


def without_exit(result: str) -> str:
    """Return a result without the line about its exit code."""
    found = _EXIT.search(result, max(0, len(result) - _LAST))
    return result[: found.start()] if found is not None else result
