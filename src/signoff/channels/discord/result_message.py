"""The Discord message with a run's result: its markdown stays, but mentions, masked links and spoilers are escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator

from signoff.channels.discord.message_text import block, cut_block, first, short_plain, span
from signoff.channels.discord.sheet import CONTENT, AttachedFile, MessageSheet, size
from signoff.core.notice import RunResult
from signoff.core.run import RunState
from signoff.core.safe_text import redacted_text
from signoff.core.visible_text import visible

FILE = "answer.md"
_HEADS = {
    RunState.DONE: ("answered:", "is done, without output."),
    RunState.FAILED: ("failed:", "failed."),
    RunState.CANCELLED: ("was stopped:", "was stopped."),
    RunState.GOING: ("has not finished:", "has not finished."),
}
_LONGEST_NAME = 100
_REST = f"… the rest is in the file **{FILE}**"
# In Discord's order: an escape first, then a block, then a span with the same number of backticks at both ends.
_PIECE = re.compile(
    r"(?P<escape>\\[^\w\s])"
    r"|```(?:(?P<language>[A-Za-z0-9_+.#-]{1,20})\n)?(?P<block>(?s:.*?[^\n`].*?))```(?!`)"
    r"|(?<!`)(?P<ticks>``?)(?!`)(?P<span>(?s:.+?))(?<!`)(?P=ticks)(?!`)"
)
_OPENS = re.compile(r"[<\[`]|@(?=everyone|here)|\|(?=\|)|\|\Z")
"""Begins a mention, a timestamp, an emoji, a masked link, code, or a spoiler."""
_ADDRESS = re.compile(r"<(https?://[^\s<>`]+)>")
_PAIRED = re.compile(r"[*_~|]")
"""Paired markdown. If one end is inside code, Discord no longer treats that as code."""
_ACTS = re.compile(r"[<\[]|@everyone|@here|\|\|")
_INTO = re.compile(r"((?:://|discord\.gg/)[^\s<]*)(?=<|\Z)")
"""A URL up to where something else begins: it would swallow the backslash or backtick that follows."""
_PATH = re.compile(r"""(?<![\w:/.\\-])(?:~|[A-Za-z]:)?(?:[/\\][^\s/\\:'"`<>|]+)*[/\\](?P<name>[^\s/\\:'"`<>|]+)""")
"""A whole path. Part of a path or of a URL does not match."""
_LANGUAGES = frozenset(
    "bash c cpp cs css diff go html ini java javascript js json kotlin lua markdown md php powershell py python rb "
    "ruby rust sh shell sql swift toml ts typescript xml yaml yml".split()
)


def said_sheet(said: RunResult) -> MessageSheet:
    """Return the message. If the answer is too long, it has the beginning, and a file has all of it."""
    name = f"**{short_plain(visible(said.worker), _LONGEST_NAME) or 'The run'}**"
    with_text, without = ("says:", "says nothing.") if said.line else _HEADS[said.state]
    text = redacted_text(said.text.strip(), lines=True)  # a model may write a mask itself, which covers nothing
    if said.state is not RunState.DONE:  # text of a program, not of an agent
        text = without_directories(text)
    if not text:
        return MessageSheet(content=f"{name} {without}")
    head = f"{name} {with_text}\n"
    if said.state is RunState.FAILED:
        whole = f"{head}{block(text)}"
        short = f"{head}{cut_block(text, '', CONTENT - size(head) - size(_REST) - 1)[0]}\n{_REST}"
    else:
        pieces = list(_pieces(text))
        if any(kind != "text" and _PAIRED.search(held) and _ACTS.search(held) for kind, held in pieces):
            pieces = [(kind, _without_pairs(held) if kind == "text" else held) for kind, held in pieces]
        whole = (head + "".join(_drawn(*piece) for piece in pieces)).rstrip()
        short = head + _beginning(pieces, CONTENT - size(head) - size(_REST) - 1) + f"\n{_REST}"
    if size(whole) <= CONTENT:
        return MessageSheet(content=whole)
    return MessageSheet(content=short, paper=AttachedFile(name=FILE, text=f"{text}\n"))


def without_directories(text: str) -> str:
    """Reduce paths of this machine to file names: directories are only for the operator."""
    return _PATH.sub(lambda found: found["name"], text)


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """Split into pieces of kind `text`, `span` or `block:LANGUAGE`, with their content."""
    at = 0
    for found in _PIECE.finditer(text):
        if found["escape"]:
            continue
        if found.start() > at:
            yield "text", text[at : found.start()]
        if found["block"] is not None:
            # An unknown language goes into the block: it may be a line of the text.
            language = (found["language"] or "").lower()
            known = language in _LANGUAGES
            before = "" if known or not language else f"{found['language']}\n"
            yield f"block:{language if known else ''}", before + found["block"].strip("\n")
        else:
            yield "span", found["span"]
        at = found.end()
    if at < len(text):
        yield "text", text[at:]


def _drawn(kind: str, text: str) -> str:
    if kind == "text":
        return _inert(text)
    if kind == "span":
        return span(text.strip())
    return block(text, kind.removeprefix("block:"))


def _inert(text: str) -> str:
    """Escape text outside of code. A URL in angle brackets is shown without them."""
    return _escaped(_OPENS, _INTO.sub(r"\1 ", _ADDRESS.sub(r"\1", text)))


def _without_pairs(text: str) -> str:
    return _escaped(_PAIRED, text)


def _escaped(what: re.Pattern[str], text: str) -> str:
    """Escape what matches. What is escaped already stays as it is: escaped twice it would be active."""
    parts = re.split(r"(\\[^0-9A-Za-z\s])", text)
    return "".join(part if index % 2 else what.sub(r"\\\g<0>", part) for index, part in enumerate(parts))


def _beginning(pieces: list[tuple[str, str]], room: int) -> str:
    drawn = ""
    for kind, text in pieces:
        left = room - size(drawn)
        whole = _drawn(kind, text)
        if size(whole) <= left:
            drawn += whole
            continue
        if kind == "text":
            # Escaping makes it longer: halve it until it fits.
            piece = first(text, left)
            while size(_inert(piece)) > left:
                piece = first(text, len(piece) // 2)
            return (drawn + _inert(piece.removesuffix("\\"))).rstrip()
        if kind.startswith("block:") and left > 120:
            return drawn + cut_block(text, kind.removeprefix("block:"), left)[0]
        break
    return drawn.rstrip()
