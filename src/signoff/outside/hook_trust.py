"""Whether an agent runs an installed hook at all. Codex skips, without a word, what it has not been told to trust."""

from __future__ import annotations

import json
import os
import selectors
import shutil
import subprocess
import time
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from signoff.outside.coding_agents import CODEX
from signoff.outside.hook_settings import HookPlace, is_own_command
from signoff.regular_file import bytes_of

PATIENCE = 15.0
"""How many seconds Codex is given to say which hooks it trusts."""
_CONFIRM = "start codex in the project and confirm the hook"


def why_skipped(place: HookPlace) -> str:
    """Return why the agent skips our hook in this file; "" if it does not, or if it cannot be told.

    Codex itself is asked. Without the program, its settings tell at least whether any hook of this file was confirmed.
    """
    if place.agent != CODEX.name:
        return ""
    listed = codex_hooks(place.project or os.path.expanduser("~"))
    if listed is None:
        confirmed = any(name.startswith(f"{os.path.realpath(place.file)}:pre_tool_use:") for name in _confirmed())
        return (
            "" if confirmed else f"Codex has not been told to trust this hook, so every call runs unjudged: {_CONFIRM}"
        )
    file = os.path.realpath(place.file)
    mine = [one for one in listed if os.path.realpath(str(one.get("sourcePath"))) == file and _is_ours(one)]
    if not mine:
        return f"Codex does not load this file, so every call runs unjudged: is its directory trusted? Then {_CONFIRM}"
    if any(one.get("trustStatus") not in ("trusted", "managed") for one in mine):
        return f"Codex does not trust this hook as it is now, so every call runs unjudged: {_CONFIRM}"
    off = any(one.get("enabled") is False for one in mine)
    return "this hook is switched off in Codex, so every call runs unjudged" if off else ""


def _is_ours(hook: Mapping[str, Any]) -> bool:
    return hook.get("eventName") == "preToolUse" and is_own_command(str(hook.get("command")))


def _confirmed() -> Iterator[str]:
    """Yield the keys of the hooks for which Codex's settings hold a hash."""
    home = os.environ.get("CODEX_HOME") or os.path.expanduser("~/.codex")
    with suppress(OSError, ValueError, AttributeError):
        text = bytes_of(Path(home, "config.toml")).decode("utf-8")
        for key, state in tomllib.loads(text).get("hooks", {}).get("state", {}).items():
            if state.get("trusted_hash"):
                file, _, rest = key.partition(":")
                yield f"{os.path.realpath(file)}:{rest}"


def codex_hooks(directory: str, program: str = "codex") -> list[Mapping[str, Any]] | None:
    """Return the hooks that Codex finds for work in a directory, as it describes them; None if it cannot be asked."""
    found = shutil.which(program)
    if found is None:
        return None
    try:
        process = subprocess.Popen(
            [found, "app-server"],
            cwd=os.path.expanduser("~"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except OSError:
        return None
    with process:
        try:
            asked = {"method": "hooks/list", "params": {"cwds": [directory]}}
            hello = {"method": "initialize", "params": {"clientInfo": {"name": "signoff", "version": "1"}}}
            _told(process, {"id": 0, **hello})
            _told(process, {"method": "initialized"}, reads=False)
            [entry] = _told(process, {"id": 1, **asked})["data"]
            return [cast("Mapping[str, Any]", one) for one in entry["hooks"]]
        except (OSError, ValueError, KeyError, TypeError, TimeoutError):
            return None
        finally:
            process.kill()


def _told(process: subprocess.Popen[bytes], message: Mapping[str, Any], *, reads: bool = True) -> Mapping[str, Any]:
    """Send a message, and return the result with its id."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()
    until, got = time.monotonic() + PATIENCE, b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while reads:
            if not selector.select(max(0.0, until - time.monotonic())):
                raise TimeoutError
            part = os.read(process.stdout.fileno(), 65536)
            if not part:
                raise ValueError("it ended")
            *lines, got = (got + part).split(b"\n")
            for line in lines:
                answer = json.loads(line)
                if answer.get("id") == message["id"]:
                    return cast("Mapping[str, Any]", answer["result"])
    return {}
