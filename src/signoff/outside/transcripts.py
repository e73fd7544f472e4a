"""What coding agents write down about their sessions: the prompt of the user, and the words of the model before a call.

The path comes from the agent, and others may have written to the file. So it is opened without waiting and without
following a link, only a file of this user's own counts, only its end is read, and what is not understood is left out.
Nothing in it reaches policy.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, TypeAlias, cast

from signoff.core.strict_json import read_object
from signoff.outside.background import NO_BACKGROUND, Background

Record: TypeAlias = Mapping[str, Any]
Event: TypeAlias = Mapping[str, Any]
MOST_READ = 4 * 1024 * 1024
"""How many bytes are read from the end. A prompt that is further away is not found."""
_LONGEST_LINE = 1024 * 1024
_SAFE_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


def background(agent: str, event: Event) -> Background:
    """Return what led to the call that an event of an agent is about, as its transcript tells it."""
    reads = READERS.get(agent)
    return reads(event) if reads is not None else NO_BACKGROUND


def records(path: object) -> list[Record]:
    """Return the JSON objects, one on each line, at the end of a file; none if it is not a file of this user."""
    found: list[Record] = []
    for line in _last_lines(path) if isinstance(path, str) and os.path.isabs(path) else ():
        with suppress(ValueError):
            if line:
                found.append(read_object(line, what="a line", most=_LONGEST_LINE, bounded=True))
    return found


def _last_lines(path: str) -> list[bytes]:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags)
    except (OSError, ValueError):
        return []
    try:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            return []
        start = max(0, about.st_size - MOST_READ)
        lines = os.pread(descriptor, MOST_READ, start).split(b"\n")
    except OSError:
        return []
    finally:
        os.close(descriptor)
    return lines[1:] if start else lines


# --- Claude Code ---


def claude_code(event: Event) -> Background:
    """Read Claude Code's: each block of a message has a line of its own, and agents inside it have other files."""
    path, inner = event.get("transcript_path"), event.get("agent_id")
    if not isinstance(path, str):
        return NO_BACKGROUND
    main = records(path)
    own = records(_of_inner(path, inner)) if inner is not None else main
    words = _claude_words(own, event)
    prompts = [text for one in main if (text := _claude_prompt(one))]
    return Background(prompt=prompts[-1] if prompts else "", words=words or "", is_late=words is None)


def _of_inner(path: str, inner: object) -> str:
    is_safe = isinstance(inner, str) and _SAFE_ID.fullmatch(inner)
    return f"{path.removesuffix('.jsonl')}/subagents/agent-{inner}.jsonl" if is_safe else ""


def _claude_words(found: list[Record], event: Event) -> str | None:
    """Return the text of the message that makes the call; None if it is not written down."""
    texts: dict[str, list[str]] = {}
    caller: str | None = None
    for one in found:
        if one.get("type") != "assistant":
            continue
        message = _object(one.get("message"))
        for block in _objects(message.get("content")):
            if block.get("type") == "text":
                texts.setdefault(_text(message.get("id")), []).append(_text(block.get("text")))
            elif block.get("type") == "tool_use" and _is_claude_call(block, event):
                caller = _text(message.get("id"))
    return None if caller is None else "\n".join(texts.get(caller, ()))


def _is_claude_call(block: Record, event: Event) -> bool:
    if "tool_use_id" in event:
        return block.get("id") == event["tool_use_id"]
    return (block.get("name"), block.get("input")) == (event.get("tool_name"), event.get("tool_input"))


def _claude_prompt(one: Record) -> str:
    """Return what the user typed; empty for all else that is written as from the user."""
    if one.get("type") != "user" or one.get("isMeta") or one.get("isSidechain") or one.get("isCompactSummary"):
        return ""
    content = _object(one.get("message")).get("content")
    if isinstance(content, str):
        return content if not content.startswith(_INTERRUPTED) else ""
    blocks = _objects(content)
    if any(block.get("type") == "tool_result" for block in blocks):
        return ""
    texts = [_text(block.get("text")) for block in blocks if block.get("type") == "text"]
    return "\n".join(text for text in texts if not text.startswith(_INTERRUPTED))


_INTERRUPTED = "[Request interrupted by user"


# --- Codex ---


def codex(event: Event) -> Background:
    """Read Codex's: one line for each item of a turn. What an agent inside it is asked was written by a model."""
    prompt, words, turn, is_open = "", None, list[str](), False
    for one in records(path) if isinstance(path := event.get("transcript_path"), str) else ():
        item = _object(one.get("payload"))
        kind = _text(item.get("type"))
        if one.get("type") == "event_msg":
            prompt = _codex_prompt(item) or prompt
        elif one.get("type") != "response_item":
            continue
        elif kind.endswith("_output") or item.get("role") in ("user", "developer"):
            turn, is_open = [], False
        elif kind == "message" and item.get("role") == "assistant":
            turn += [_text(part.get("text")) for part in _objects(item.get("content"))]
        elif kind.endswith("_call"):
            is_open = True
            if item.get("call_id") == event.get("tool_use_id"):
                words = "\n".join(turn)
    if words is None and is_open:  # calls that its model makes in JavaScript are written down only when that is over
        words = "\n".join(turn)
    return Background(
        prompt=prompt if "agent_id" not in event else "",
        words=words or "",
        is_late=words is None and isinstance(path, str),
    )


def _codex_prompt(item: Record) -> str:
    message = _object(item.get("item"))
    if item.get("type") == "item_completed" and message.get("type") == "UserMessage":
        return "\n".join(text for part in _objects(message.get("content")) if (text := _text(part.get("text"))))
    return _text(item.get("message")) if item.get("type") == "user_message" else ""


# --- Gemini CLI ---


def gemini(event: Event) -> Background:
    """Read Gemini CLI's: a message is written again when its calls are over, so the call itself is not there yet."""
    prompt, turn = "", dict[str, str]()
    for one in _gemini_messages(event.get("transcript_path")):
        text = _gemini_text(one.get("content"))
        if one.get("type") == "gemini":
            turn[_text(one.get("id"))] = text
        elif one.get("type") == "user":
            turn = {}
            prompt = text if text and not text.startswith(_GEMINI_START) else prompt
    return Background(prompt=prompt, words="\n".join(filter(None, turn.values())))


_GEMINI_START = "<session_context>"


def _gemini_messages(path: object) -> Iterator[Record]:
    for one in records(path):
        yield from _objects(_object(one.get("$set")).get("messages"))
        yield one


def _gemini_text(content: object) -> str:
    return (
        content if isinstance(content, str) else "\n".join(_text(one.get("text")) for one in _objects(content)).strip()
    )


READERS: Mapping[str, Callable[[Event], Background]] = {"claude-code": claude_code, "codex": codex, "gemini": gemini}
"""By the names of `signoff.outside.coding_agents`."""


# --- values of any type ---


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _object(value: object) -> Record:
    return cast("Record", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[Record]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("Record", one) for one in items if isinstance(one, dict)]
