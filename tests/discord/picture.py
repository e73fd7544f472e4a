"""Pictures of messages, drawn from what Discord's REST API receives: `python -m tests.discord.picture`.

A real channel shows the examples to the stand-in of Discord, and what reached that is drawn. Text is read by Discord's
rules (`reader`), not by ours: a picture shows what its clients would make of a payload. The look is only near theirs.
Widths of letters are estimated, and the text is then told to keep to them.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.discord.asking import AT, asked, settled
from tests.discord.house import House
from tests.discord.reader import read
from tests.discord.service import Service
from tests.discord.service.pointed import point_at

from signoff.core.notice import Asked
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest, State
from signoff.core.verdict import Requirement
from signoff.delivery.channel_inbox import StoreInbox
from signoff.wiring.program_inbox import project_inbox

DIRECTORY = Path(__file__).parents[2] / "docs" / "pictures"

_WIDTH = 720
_LEFT, _RIGHT = 96, 24
_SIZE, _LINE = 15, 22
_CODE_SIZE, _CODE_LINE = 13, 18
_SANS = "'gg sans', 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif"
_MONO = "Consolas, 'DejaVu Sans Mono', Menlo, monospace"
_STYLES = {1: "#5865f2", 2: "#4e5058", 3: "#248046", 4: "#da373c", 5: "#4e5058"}
_DIFF = {"+": "#7ee787", "-": "#ff7b72", "@": "#79c0ff"}
_NARROW, _WIDE = frozenset("iIljt.,:;!|'()[]{}f` "), frozenset("mwMW@%—…")


# --- the examples ---


def examples() -> dict[str, ApprovalRequest]:
    """One request as it stands over time, by the names of the files."""
    before = "replicas: 2\nregion: eu-west\nlimits:\n  memory: 512Mi\n"
    after = "replicas: 6\nregion: eu-west\nlimits:\n  memory: 2Gi\n"
    request = asked(
        "apply_config",
        {
            "path": "deploy/shop.yaml",
            "api_token": "ghp_exampleexampleexampleexampleexample",
            "reason": "@everyone says the **sale** starts at noon",
            "notify": ["ops@example.com"],
        },
        metadata={
            "summary": "scale the shop up for the sale",
            "note": "takes effect at once, in production",
            "before": before,
            "after": after,
            "path": "deploy/shop.yaml",
        },
        reason="changes to production need a second pair of eyes",
        rules=("production:3",),
        worker=("triage", "deployer"),
        toolset="cluster",
        requirement=Requirement(role="ops"),
        deadline=AT + timedelta(minutes=5),
    )
    ran = settled(request, State.SUCCEEDED, note="fine, until tonight", preview="6 of 6 replicas are ready")
    return {"discord-asked": request, "discord-settled": ran}


async def pictures(house: House) -> dict[str, str]:
    """Every example, as the text of an SVG file: the message as it was sent, and then as it was changed."""
    channel, at = house.channel(), ""
    drawn: dict[str, str] = {}
    await channel.start(_Inbox(house.broker, "discord", project_inbox(house.broker, house.settings, "discord").take))
    try:
        for name, request in examples().items():
            at = await channel.show(Asked(request=request), at)
            [message] = house.service.messages(house.service.threads()[0])
            words = message.content
            for person in house.people.values():
                words = words.replace(person.mention, f"@{person.name}")
            drawn[name] = draw({**_sent(house.service), "content": words})
    finally:
        await channel.stop()
    return drawn


class _Inbox(StoreInbox):
    """The examples are in no store."""

    async def entitled(self, request_id: str, people: Sequence[Actor]) -> Sequence[Actor]:
        return [one for one in people if "ops" in one.roles]


def _sent(service: Service) -> Mapping[str, Any]:
    """The last message that was sent or changed, as the stand-in received it."""
    return next(
        one.payload
        for one in reversed(service.requests)
        if one.method in ("POST", "PATCH") and one.route.startswith("/channels/{}/messages") and one.payload["embeds"]
    )


# --- drawing ---


def draw(payload: Mapping[str, Any]) -> str:
    """A message as an SVG."""
    page = _Page()
    page.author()
    if payload.get("content"):
        page.words(payload["content"], _LEFT, _WIDTH - _RIGHT)
    for embed in payload.get("embeds") or ():
        page.embed(embed)
    for row in payload.get("components") or ():
        page.buttons(row["components"])
    return page.svg()


@dataclass(slots=True)
class _Line:
    """What goes on one line: pieces, each with what it is and where it begins."""

    x: float
    after_block: bool = False
    parts: list[tuple[str, str, float]] = field(default_factory=list[tuple[str, str, float]])

    def add(self, kind: str, text: str, width: float) -> None:
        if self.parts and self.parts[-1][0] == kind:
            _, before, x = self.parts.pop()
            self.parts.append((kind, before + text, x))
        else:
            self.parts.append((kind, text, self.x))
        self.x += width


@dataclass(slots=True)
class _Page:
    marks: list[str] = field(default_factory=list[str])
    y: float = 20

    def svg(self) -> str:
        height = round(self.y + 20)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
            f'viewBox="0 0 {_WIDTH} {height}" role="img">'
        )
        back = f'<rect width="{_WIDTH}" height="{height}" rx="8" fill="#313338"/>'
        return "\n".join((head, back, *self.marks, "</svg>\n"))

    def author(self) -> None:
        self.marks.append(f'<circle cx="44" cy="{self.y + 20}" r="20" fill="#5865f2"/>')
        self.text("s", 39, self.y + 26, 20, "#ffffff", bold=True)
        width = self.text("signoff", _LEFT - 16, self.y + 14, 16, "#f2f3f5", bold=True)
        badge = _LEFT - 16 + width + 8
        self.box(badge, self.y + 1, 34, 17, "#5865f2", radius=3)
        self.text("APP", badge + 5, self.y + 14, 11, "#ffffff", bold=True)
        self.y += 32

    def embed(self, embed: Mapping[str, Any]) -> None:
        at, top = len(self.marks), self.y
        self.y += 14
        left, right = _LEFT, _WIDTH - _RIGHT - 16
        if embed.get("title"):
            self.words(embed["title"], left, right, size=17, bold=True)
            self.y += 6
        if embed.get("description"):
            self.words(embed["description"], left, right)
        if embed.get("footer"):
            self.y += 6
            self.text(embed["footer"]["text"], left, self.y + 12, 12, "#b5bac1")
            self.y += 18
        self.y += 10
        x, width, height = _LEFT - 16, _WIDTH - _RIGHT - _LEFT + 16, self.y - top
        back = [
            f'<rect x="{x}" y="{_n(top)}" width="{width}" height="{_n(height)}" rx="4" fill="#2b2d31"/>',
            f'<rect x="{x}" y="{_n(top)}" width="4" height="{_n(height)}" rx="2" fill="#{embed.get("color", 0):06x}"/>',
        ]
        self.marks[at:at] = back
        self.y += 8

    def buttons(self, buttons: Sequence[Mapping[str, Any]]) -> None:
        x = float(_LEFT - 16)
        for button in buttons:
            width = _width(button["label"], 14) + 32
            self.box(x, self.y, width, 32, _STYLES[button["style"]], radius=4)
            self.text(button["label"], x + 16, self.y + 21, 14, "#ffffff")
            x += width + 8
        self.y += 40

    def words(self, text: str, left: float, right: float, *, size: int = _SIZE, bold: bool = False) -> None:
        """Text as Discord reads it, folded where there is no more room."""
        line = _Line(left)
        for kind, piece in _runs(text):
            if kind.startswith("block"):
                self.line(line, size, bold)
                self.code(piece, left, right, kind == "block diff")
                line = _Line(left, after_block=True)
                continue
            for word in re.findall(r"\n|[^\s]+|[ \t]+", piece):
                if word == "\n":
                    if line.parts or not line.after_block:
                        self.line(line, size, bold, empty=True)
                    line = _Line(left)
                    continue
                for part in _pieces(word, kind, size, right - left):
                    width = _width(part, size, mono=kind == "span", bold=bold or kind == "bold")
                    if line.x + width > right and line.parts:
                        self.line(line, size, bold)
                        line = _Line(left)
                        if part.isspace():
                            continue
                    line.add(kind, part, width)
        self.line(line, size, bold)

    def line(self, line: _Line, size: int, bold: bool, *, empty: bool = False) -> None:
        for kind, text, x in line.parts:
            self.word(text, x, kind, size, bold=bold)
        if line.parts or empty:
            self.y += _LINE

    def word(self, text: str, x: float, kind: str, size: int, *, bold: bool) -> None:
        y = self.y + _LINE - 6
        if kind == "span":
            self.box(x, self.y + 3, _width(text, size, mono=True), _LINE - 3, "#1e1f22", radius=2)
        if kind == "time":
            self.box(x, self.y + 3, _width(text, size), _LINE - 3, "#3f4147", radius=2)
        if not text.isspace():
            self.text(text, x, y, size, "#dbdee1", mono=kind == "span", bold=bold or kind == "bold")

    def code(self, text: str, left: float, right: float, is_diff: bool) -> None:
        room = int((right - left - 20) / (_CODE_SIZE * 0.6))
        rows = [
            (line[at : at + room], _DIFF.get(line[:1], "#dbdee1") if is_diff else "#dbdee1")
            for line in text.split("\n")
            for at in range(0, max(1, len(line)), room)
        ]
        self.y += 2
        self.box(left, self.y, right - left, len(rows) * _CODE_LINE + 14, "#1e1f22", radius=4)
        for number, (row, colour) in enumerate(rows):
            self.text(row, left + 10, self.y + 20 + number * _CODE_LINE, _CODE_SIZE, colour, mono=True)
        self.y += len(rows) * _CODE_LINE + 20

    def box(self, x: float, y: float, width: float, height: float, colour: str, *, radius: int) -> None:
        self.marks.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="{radius}" fill="{colour}"/>'
        )

    def text(
        self, text: str, x: float, y: float, size: int, colour: str, *, mono: bool = False, bold: bool = False
    ) -> float:
        width = _width(text, size, mono=mono, bold=bold)
        if text.strip():
            weight = ' font-weight="700"' if bold else ""
            lead = len(text) - len(text.lstrip())
            indent = _width(text[:lead], size, mono=mono)
            self.marks.append(
                f'<text x="{_n(x + indent)}" y="{_n(y)}" font-size="{size}" fill="{colour}"{weight} '
                f'font-family="{_MONO if mono else _SANS}" textLength="{_n(width - indent)}" xml:space="preserve">'
                f"{escape(text.lstrip(), quote=False)}</text>"
            )
        return width


def _runs(text: str) -> Iterator[tuple[str, str]]:
    """What is seen of a text, and how: `text`, `bold`, `span`, `time`, `block`."""
    for node in read(text):
        match node.kind:
            case "block":
                yield f"block {'diff' if node.raw.startswith('```diff') else ''}".strip(), node.seen
            case "time":
                yield "time", _moment(node.raw)
            case "bold" | "span":
                yield node.kind, node.seen
            case "text" | "escape" | "italic":
                yield "text", node.seen
            case kind:
                raise AssertionError(f"{node.raw!r} acts: {kind}")


def _moment(raw: str) -> str:
    _, seconds, *style = raw.strip("<>").split(":")
    at = datetime.fromtimestamp(int(seconds), UTC)
    if style == ["R"]:
        return f"in {(at - AT) // timedelta(minutes=1)} minutes"
    return f"{at:%H:%M:%S}" if style == ["T"] else f"{at.day} {at:%B %Y %H:%M}"


def _pieces(word: str, kind: str, size: int, room: float) -> Iterator[str]:
    """A word, in pieces where it is wider than a line."""
    most = max(1, int(room / (size * 0.6)))
    mono_or_short = kind == "span" or _width(word, size) > room
    if not mono_or_short or len(word) <= most:
        yield word
        return
    for at in range(0, len(word), most):
        yield word[at : at + most]


def _width(text: str, size: int, *, mono: bool = False, bold: bool = False) -> float:
    if mono:
        return len(text) * size * 0.6
    units = math.fsum(0.31 if c in _NARROW else 0.9 if c in _WIDE else 0.68 if c.isupper() else 0.58 for c in text)
    return units * size * (1.08 if bold else 1)


def _n(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")


async def _made() -> dict[str, str]:
    service = Service().start()
    back = point_at(service.url)
    try:
        with TemporaryDirectory() as directory:
            house = House(service, Path(directory))
            try:
                return await pictures(house)
            finally:
                house.close()
    finally:
        back()
        service.stop()


def main() -> None:
    DIRECTORY.mkdir(parents=True, exist_ok=True)
    for name, svg in asyncio.run(_made()).items():
        DIRECTORY.joinpath(f"{name}.svg").write_text(svg, "utf-8")
        print(f"docs/pictures/{name}.svg")


if __name__ == "__main__":
    main()
