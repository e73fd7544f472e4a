"""Times on the screens: by the clock on the wall, and always with the zone. For programs: UTC."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from tests.cli.desk import Desk, asks

from signoff.broker import Broker
from signoff.core.verdict import Requirement

MOMENT = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d)?(?:\.\d+)?(Z| [A-Z]{3,4}\b)?")
ZONES = {"Asia/Kolkata": {"IST"}, "America/New_York": {"EST", "EDT"}}


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


def test_every_screen_goes_by_the_clock_on_the_wall(desk: Desk, zone: str) -> None:
    needs = Requirement(timeout=timedelta(hours=2))
    [one, two] = desk.open(asks(needs=needs), asks(args={"to": "ben", "amount": 3}))
    desk.begin("runabc2345")
    said = desk.run("approve", two, "--remember", "exact", "--until", "3d", "--yes")
    [grant] = desk.run("grants", "list", "--json").data["grants"]
    screens = [
        said.out + said.err,
        desk.run("approve", two).err,
        desk.run("delegate", "ana", "ben", "--until", "2w").out,
        desk.run("people").out,
        desk.run("halt", "--note", "wrong prices").out,
        desk.run("inbox").out,
        desk.run("runs").out,
        desk.run("show", one).out,
        desk.run("show", two).out,
        desk.run("grants", "list").out,
        desk.run("grants", "explain", grant["id"]).out,
        desk.run("audit", "log").out,
        desk.run("approve", one, "--until", "2020-01-01", "--remember", "exact").err,
    ]
    for screen in ("\n".join(row for row in each.splitlines() if " granted " not in row) for each in screens):
        # What a grant says is on the record as it was written: in UTC.
        named = {found[1] for found in MOMENT.finditer(screen)}
        assert named <= {f" {name}" for name in ZONES[zone]}, screen
        assert "UTC" not in screen, screen
    assert sum(bool(MOMENT.search(screen)) for screen in screens) >= 10
    asked = desk.request(one)
    assert asked.opened_at is not None
    assert asked.deadline is not None
    for moment in (asked.opened_at, asked.deadline):
        assert f"{moment.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S %Z}" in screens[7]
    assert f"until {asked.deadline.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S %Z}" in " ".join(screens[7].split())


def test_for_programs_every_time_is_utc(desk: Desk, zone: str) -> None:
    [one] = desk.open(asks(needs=Requirement(timeout=timedelta(hours=2))))
    desk.run("halt")
    for words in (["inbox"], ["show", one], ["runs"], ["audit", "log"], ["grants", "list"]):
        for line in desk.run(*words, "--json").out.splitlines():
            for found in MOMENT.finditer(json.dumps(json.loads(line), ensure_ascii=False)):
                assert found[1] in ("Z", " UTC") or "+00:00" in line[found.end() - 30 :], line


def test_an_answer_that_comes_too_late_for_its_deadline(desk: Desk, zone: str) -> None:
    [one] = desk.open(asks(needs=Requirement(timeout=timedelta(minutes=1))))
    desk.clock.advance(timedelta(hours=1))

    async def sweep(broker: Broker) -> None:
        await broker.sweep()

    desk.do(sweep)
    told = desk.run("approve", one).err
    [found] = MOMENT.finditer(told)
    assert found[1].strip() in ZONES[zone]
    settled = desk.request(one).decision
    assert settled is not None
    assert isinstance(settled.at, datetime)
    assert f"{settled.at.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M:%S}" in told
