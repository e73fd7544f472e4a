"""Draw charts as SVG, without scripts and inline styles. CSS classes give the colours; shapes differ, too."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from signoff.server.insights import Day

WIDTH, HEIGHT = 720, 200
LEFT, BOTTOM, TOP = 36, 24, 8


def days_chart(days: Sequence[Day], *, title: str, about: str) -> Markup:
    """Draw two bars a day: asked as an outline, decided filled. Grid lines at the side show the scale."""
    most = _round_up(max((max(one.asked, one.decided) for one in days), default=0))
    room, height = (WIDTH - LEFT) / max(1, len(days)), HEIGHT - BOTTOM - TOP
    drawn: list[str] = []
    for part in range(3):
        value = most * part // 2
        y = TOP + height - height * value / most
        drawn.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        drawn.append(f'<text class="scale" x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value}</text>')
    every = max(1, -(-len(days) // 8))
    for number, one in enumerate(days):
        x, wide = LEFT + number * room, max(1.0, room * 0.38)
        for shift, count, kind in ((0.08, one.asked, "asked"), (0.52, one.decided, "decided")):
            tall = height * count / most
            if count:
                drawn.append(
                    f'<rect class="{kind}" x="{x + room * shift:.1f}" y="{TOP + height - tall:.1f}" '
                    f'width="{wide:.1f}" height="{tall:.1f}"/>'
                )
        if number % every == 0:
            middle = x + room / 2
            drawn.append(
                f'<text class="scale" x="{middle:.1f}" y="{HEIGHT - 6}" text-anchor="middle">{one.day:%m-%d}</text>'
            )
    return _svg(drawn, title, about)


def rate_bar(rate: float | None, label: str) -> Markup:
    """Draw one bar for a share between 0 and 1."""
    part = 0.0 if rate is None else max(0.0, min(1.0, rate))
    return Markup(
        '<svg class="rate" viewBox="0 0 100 10" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="rest" x="0" y="0" width="100" height="10"/>'
        '<rect class="decided" x="0" y="0" width="{}" height="10"/></svg>'
    ).format(label, f"{part * 100:.0f}")


def badge(count: int) -> str:
    """Draw the favicon with the number of waiting requests; for 0, a check mark."""
    text = "" if count <= 0 else str(count) if count < 100 else "99+"
    size = {0: 0, 1: 20, 2: 17}.get(len(text), 13)
    mark = (
        f'<circle cx="16" cy="16" r="15" fill="#b3261e"/>'
        f'<text x="16" y="{16 + size * 0.36:.1f}" font-family="sans-serif" font-weight="bold" font-size="{size}" '
        f'text-anchor="middle" fill="#fff">{escape(text)}</text>'
        if text
        else '<circle cx="16" cy="16" r="15" fill="#146c43"/>'
        '<path d="M9 16.5l5 5 9-10" fill="none" stroke="#fff" stroke-width="3.5"/>'
    )
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">{mark}</svg>'


def _svg(drawn: Sequence[str], title: str, about: str) -> Markup:
    head = Markup('<svg class="chart" viewBox="0 0 {} {}" role="img" aria-label="{}"><title>{}</title>').format(
        WIDTH, HEIGHT, f"{title}. {about}", title
    )
    return head + Markup("".join(drawn)) + Markup("</svg>")


def _round_up(number: int) -> int:
    """Round up to a number that is easy to halve."""
    for step in (2, 4, 6, 10, 20, 40, 60, 100, 200, 400, 600, 1_000, 2_000, 4_000, 10_000):
        if number <= step:
            return step
    return -(-number // 10_000) * 10_000
