"""Two drawings made from the code: the layers, and the life of a request. `./dev docs --write` makes them anew."""

from __future__ import annotations

import ast
import inspect
import re
import tomllib
from collections import defaultdict
from html import escape
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from signoff.core import lifecycle
from signoff.core.request import State

ROOT = Path(__file__).parents[2]
_LOOK = """<style>
  text { font: 14px 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #222 }
  .name { font-weight: bold } .small { font-size: 12px; fill: #555 } .label { font-size: 12px; fill: #00695c }
  .small, .label { paint-order: stroke; stroke: #fafafa; stroke-width: 4px }
  rect { fill: #fff; stroke: #00897b; stroke-width: 1.5 } .final rect { fill: #e0f2f1 }
  .paper { fill: #fafafa; stroke: none }
  path { fill: none; stroke: #777; stroke-width: 1.3; marker-end: url(#end) }
</style>
<defs><marker id="end" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path d="M0 0 L8 4 L0 8 z"
  style="fill: #777; stroke: none; marker-end: none"/></marker></defs>
"""


def drawings() -> dict[str, str]:
    """The drawings by the names of their files."""
    return {"layers": layers(), "lifecycle": life()}


# --- the layers ---


def law() -> list[list[str]]:
    """The rooms from the top down, as the import law has them; those that do not exist yet are left out."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    [law] = [one for one in contracts if one["type"] == "layers"]
    rows = [[room.strip(" ()") for room in row.split("|")] for row in law["layers"]]
    there = [[room for room in row if find_spec(f"signoff.{room}")] for row in rows]
    return [row for row in there if row]


def holds(room: str) -> str:
    """What a room says that it holds: the first sentence of its docstring."""
    said = (import_module(f"signoff.{room}").__doc__ or "").partition("\n\n")[0]
    return re.split(r"(?<=[.:])\s", " ".join(said.split()))[0].rstrip(".:").replace("`", "")


def layers() -> str:
    """The rooms as boxes, one row a layer: whoever is above may import what is below."""
    width, gap = 860, 12
    parts: list[str] = []
    y = gap
    for row in law():
        each = (width - gap * (len(row) + 1)) / len(row)
        texts = [_lines(holds(room), each - 20) for room in row]
        height = 28 + 13 * max(map(len, texts))
        for at, (room, said) in enumerate(zip(row, texts, strict=True)):
            x = gap + at * (each + gap)
            parts.append(f'<g><rect x="{x:.0f}" y="{y}" width="{each:.0f}" height="{height}" rx="6"/>')
            parts.append(f'<text class="name" x="{x + 10:.0f}" y="{y + 18}">{room}</text>')
            parts += (
                f'<text class="small" x="{x + 10:.0f}" y="{y + 33 + 13 * at_line}">{escape(line)}</text>'
                for at_line, line in enumerate(said)
            )
            parts.append("</g>")
        y += height + gap
    return _svg(width, y, parts, "The layers of signoff: imports go down only")


def _lines(text: str, room: float) -> list[str]:
    """A text in lines that fit."""
    longest, lines = int(room / 5.9), [""]
    for word in text.split():
        if len(lines[-1]) + len(word) < longest:
            lines[-1] = f"{lines[-1]} {word}".strip()
        else:
            lines.append(word)
    return lines


# --- the life of a request ---

_PLACES = {
    State.PENDING: (90, 190),
    State.APPROVED: (350, 190),
    State.CLAIMED: (600, 190),
    State.SUCCEEDED: (870, 70),
    State.FAILED: (870, 210),
    State.UNKNOWN: (600, 400),
    State.CANCELLED: (350, 430),
    State.DENIED: (90, 430),
    State.EXPIRED: (90, 40),
}
_BENT = {
    (State.APPROVED, State.SUCCEEDED): -70,
    (State.APPROVED, State.CLAIMED): -14,
    (State.CLAIMED, State.APPROVED): -26,
    (State.PENDING, State.CANCELLED): 10,
}
"""How far an arrow is bent aside, so that it goes around others."""
_HALF, _TALL = 62, 24


def courses() -> dict[tuple[State, State], list[str]]:
    """Which events lead from which state to which, read from the table and from what its functions return."""
    found: dict[tuple[State, State], list[str]] = defaultdict(list)
    for (state, event), step in lifecycle.TABLE.items():
        for target in _targets(step.__name__, state):
            found[state, target].append(_words(event.__name__))
    return found


def _targets(function: str, state: State) -> list[State]:
    """The states that a function of the table may return a request in."""
    tree = ast.parse(inspect.getsource(getattr(lifecycle, function)))
    targets: list[State] = []
    for returned in (node.value for node in ast.walk(tree) if isinstance(node, ast.Return)):
        assert returned is not None
        named = next((word.value for word in getattr(returned, "keywords", ()) if word.arg == "state"), None)
        if isinstance(named, ast.Attribute):
            targets.append(State[named.attr])
        elif isinstance(returned, ast.Call) and isinstance(returned.func, ast.Name):
            targets += _targets(returned.func.id, state)
        else:
            targets.append(state)
    return list(dict.fromkeys(targets))


def _words(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()


def life() -> str:
    """States as boxes, events as arrows; what leaves a request in its state stands below the box."""
    known = courses()
    arrows = [_arrow(start, end, events) for (start, end), events in known.items() if start is not end]
    parts = [part for path, _ in arrows for part in path] + [part for _, label in arrows for part in label]
    for state, (x, y) in _PLACES.items():
        kind = ' class="final"' if state in lifecycle.FINAL else ""
        parts.append(
            f'<g{kind}><rect x="{x - _HALF}" y="{y - _TALL}" width="{2 * _HALF}" height="{2 * _TALL}" rx="8"/>'
        )
        parts.append(f'<text class="name" text-anchor="middle" x="{x}" y="{y + 5}">{state}</text></g>')
        if stays := known.get((state, state)):
            text = ", ".join(stays)
            parts += (
                f'<text class="small" text-anchor="middle" x="{x}" y="{y + _TALL + 15 + 14 * at}">{line}</text>'
                for at, line in enumerate(_lines(f"stays: {text}", 2.2 * _HALF))
            )
    return _svg(950, 480, parts, "The life of a request")


def _arrow(start: State, end: State, events: list[str]) -> tuple[list[str], list[str]]:
    """The way from one state to another, and its label, a line for each event."""
    (x1, y1), (x2, y2) = _PLACES[start], _PLACES[end]
    length = ((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5
    bend = _BENT.get((start, end), 0)
    across = (-(y2 - y1) / length, (x2 - x1) / length)
    middle = ((x1 + x2) / 2 + 2 * bend * across[0], (y1 + y2) / 2 + 2 * bend * across[1])
    (ax, ay), (bx, by) = _edge((x1, y1), middle), _edge((x2, y2), middle)
    x, y = (ax + bx) / 4 + middle[0] / 2, (ay + by) / 4 + middle[1] / 2 - 5 - 13 * (len(events) - 1)
    return (
        [f'<path d="M{ax:.0f} {ay:.0f} Q{middle[0]:.0f} {middle[1]:.0f} {bx:.0f} {by:.0f}"/>'],
        [
            f'<text class="label" text-anchor="middle" x="{x:.0f}" y="{y + 13 * at:.0f}">{event}</text>'
            for at, event in enumerate(events)
        ],
    )


def _edge(box: tuple[float, float], towards: tuple[float, float]) -> tuple[float, float]:
    """Where the way from the middle of a box leaves it."""
    dx, dy = towards[0] - box[0], towards[1] - box[1]
    part = min(_HALF / abs(dx) if dx else 9e9, _TALL / abs(dy) if dy else 9e9)
    return box[0] + dx * part, box[1] + dy * part


def _svg(width: int, height: int, parts: list[str], title: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" aria-label="{title}">'
    paper = f'<rect class="paper" width="{width}" height="{height}"/>'
    return "\n".join([head, f"<title>{title}</title>", _LOOK + paper, *parts, "</svg>", ""])
