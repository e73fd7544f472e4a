"""`signoff channels list`, and what `signoff inbox` says about channels that fail: over real stores."""

from __future__ import annotations

import sys
from datetime import datetime, timedelta

import pexpect
import pytest
from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording

from signoff.broker import Broker
from signoff.cli.inbox_page import clock
from signoff.core.notice import Notice
from signoff.core.request import State
from signoff.delivery import Reconciler, Route
from signoff.errors import ChannelFailed
from signoff.ports import Inbox
from signoff.wiring.program_inbox import project_inbox
from signoff.wiring.project import settings_for

ID = "112233445566778899"
PROJECT = f"""\
people:
  ana: {{roles: [ops], discord: "102938475610293847"}}
  ben: {{roles: [ops]}}
policy: []
channels:
  discord: {{channel: "{ID}", workers: [triage]}}
  night: {{use: discord, token: "${{NIGHT_TOKEN}}", channel: "{ID}", timeout: none}}
  terminal: {{}}
"""


@pytest.fixture(autouse=True)
def project(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").write_text(PROJECT)
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "triage.yaml").write_text("instructions: Sort.\n")
    desk.monkeypatch.setenv("DISCORD_TOKEN", "MTA1.secret")
    desk.monkeypatch.delenv("NIGHT_TOKEN", raising=False)


class Wall:
    """A channel that shows what it is told to, or fails as it is told to."""

    def __init__(self, name: str, failure: ChannelFailed | None = None) -> None:
        self.name = name
        self.failure = failure
        self.shown: list[Notice] = []

    async def start(self, inbox: Inbox) -> None: ...

    async def show(self, notice: Notice, at: str = "", beside: str = "") -> str:
        if self.failure is not None:
            raise self.failure
        self.shown.append(notice)
        return "here"

    async def stop(self) -> None: ...


def posted(desk: Desk, *routes: Route, stays: bool = False) -> None:
    """What a process did that ran these channels, and which ended since, unless it `stays`."""

    async def work(broker: Broker) -> None:
        post = Reconciler(broker, routes, inbox=lambda name: project_inbox(broker, settings_for(None), name))
        await post.round()
        if not stays:
            await post.stop()

    desk.do(work)


# --- list ---


def test_the_channels_of_a_project(desk: Desk, wording: Wording) -> None:
    said = desk.run("channels", "list")
    assert said.code == 0
    assert said.out == wording()
    assert not desk.file.exists(), "who only looks leaves no store behind"


def test_the_channels_for_programs_hold_no_secret(desk: Desk) -> None:
    said = desk.run("channels", "list", "--json")
    discord, night, terminal = said.data["channels"]
    assert discord == {
        "name": "discord",
        "kind": "discord",
        "place": ID,
        "people": ["ana"],
        "answers": True,
        "workers": ["triage"],
        "wrong": None,
        "timeout": 300.0,
        "secrets": [{"variable": "DISCORD_TOKEN", "set": True}],
        "process": None,
        "down": None,
        "failing": [],
    }
    assert (night["secrets"][0]["set"], night["timeout"]) == (False, None)
    assert terminal["secrets"] == []
    assert "MTA1" not in said.out


def test_no_channels_and_nobody_to_ask(desk: Desk, wording: Wording) -> None:
    (desk.directory / "signoff.yaml").write_text("policy: []\n")
    assert desk.run("channels", "list").out == wording()
    assert desk.run("channels", "list", "--json").data == {"channels": []}
    (desk.directory / "signoff.yaml").write_text(
        f'policy: []\npeople: {{ana: {{}}}}\nchannels: {{discord: {{channel: "{ID}"}}}}\n'
    )
    assert desk.run("channels", "list").out == wording()


def test_who_runs_a_channel_and_what_is_wrong_with_it(desk: Desk) -> None:
    [first] = desk.open(asks())
    posted(desk, Route(Wall("discord", ChannelFailed("Discord cannot be reached", whole=True))), stays=True)
    said = desk.run("channels", "list")
    here = desk.do(lambda broker: broker.store.read(lambda tx: broker.process))
    assert f"  runs      in process {here.pid} on " in said.out
    assert "  failing   since " in said.out
    assert ": Discord cannot be reached; next try " in said.out
    data = desk.run("channels", "list", "--json").data["channels"][0]
    assert data["process"]["pid"] == here.pid
    assert data["down"]["problem"] == "Discord cannot be reached"
    assert data["failing"] == [first]


def test_what_single_requests_fail_of(desk: Desk) -> None:
    [first, _] = desk.open(asks(), asks("write_file", {"path": "a"}))
    posted(desk, Route(Wall("discord", ChannelFailed("it is too long", again=False))), stays=True)
    said = desk.run("channels", "list")
    assert "  failing   2 requests could not be shown: it is too long" in said.out
    assert first in desk.run("channels", "list", "--json").data["channels"][0]["failing"]


# --- the inbox says so ---


def test_the_inbox_says_where_a_request_cannot_be_shown(desk: Desk) -> None:
    [first] = desk.open(asks())
    plain = desk.run("inbox").out
    posted(
        desk, Route(Wall("discord", ChannelFailed("Discord cannot be reached\x1b[2J (connection refused)", after=180)))
    )
    said = desk.run("inbox")
    now = desk.clock.now()
    since, soon = clock(now, now), clock(now + timedelta(minutes=3), now)
    told = f"discord: fails since {since} (Discord cannot be reached⟦ESC⟧[2J (connection refused)); next try {soon}"
    assert " ".join(line.strip() for line in said.out.splitlines()[4:]) == told
    assert said.out.startswith(plain.rpartition("\n\n")[0])
    [item] = desk.run("inbox", "--json").data["requests"]
    [delivery] = item["deliveries"]
    assert item["id"] == first
    assert (delivery["channel"], delivery["state"], delivery["attempts"]) == ("discord", "due", 1)
    assert datetime.fromisoformat(delivery["next_at"]) - datetime.fromisoformat(delivery["since"]) == timedelta(
        minutes=3
    )


def test_a_channel_that_is_down_is_told_of_for_whatever_waits(desk: Desk) -> None:
    desk.open(asks())
    posted(desk, Route(Wall("discord", ChannelFailed("Discord cannot be reached", whole=True))), stays=True)
    desk.open(asks("write_file", {"path": "b"}))  # nobody tried to show this one
    assert desk.run("inbox").out.count("discord: fails since ") == 2
    requests = desk.run("inbox", "--json").data["requests"]
    assert [one["deliveries"][0]["problem"] for one in requests] == ["Discord cannot be reached"] * 2


def test_a_part_of_the_inbox_says_it_too(desk: Desk) -> None:
    desk.open(asks(), asks("write_file", {"path": "b"}))
    posted(desk, Route(Wall("discord", ChannelFailed("it is too long", again=False))))
    for flags in (["--limit", "1"], ["--mine", "--limit", "1"]):
        assert desk.run("inbox", *flags).out.count("discord: fails since ") == 1


def test_what_works_is_not_mentioned(desk: Desk) -> None:
    desk.open(asks())
    before = desk.run("inbox").out
    posted(desk, Route(Wall("discord")))
    assert desk.run("inbox").out == before
    [item] = desk.run("inbox", "--json").data["requests"]
    assert [(one["channel"], one["state"]) for one in item["deliveries"]] == [("discord", "shown")]


# --- what cannot work ---


@pytest.mark.parametrize("command", ["run", "test"])
def test_a_channel_that_is_not_there(desk: Desk, command: str, wording: Wording) -> None:
    said = desk.run("channels", command, "dicsord")
    assert said.code == 2
    assert said.err == wording()
    (desk.directory / "signoff.yaml").write_text("policy: []\n")
    assert desk.run("channels", command, "discord").err == wording()
    assert not desk.file.exists()


def test_a_secret_that_is_not_there_is_named(desk: Desk, wording: Wording) -> None:
    said = desk.run("channels", "run", "night")
    assert said.code == 2
    assert said.err == wording()
    tested = desk.run("channels", "test", "night")
    assert tested.code == 1
    assert tested.out == wording()
    assert desk.run("inbox").code == 0, "everything else works without it"
    assert not desk.file.exists()


def test_nobody_could_answer(desk: Desk, wording: Wording) -> None:
    (desk.directory / "signoff.yaml").write_text(
        f'policy: []\npeople: {{ana: {{}}}}\nchannels: {{discord: {{channel: "{ID}"}}}}\n'
    )
    said = desk.run("channels", "run", "discord")
    assert said.code == 2
    assert said.err == wording()


def test_a_worker_that_is_not_there(desk: Desk, wording: Wording) -> None:
    (desk.directory / "workers" / "triage.yaml").rename(desk.directory / "workers" / "triages.yaml")
    said = desk.run("channels", "run", "discord")
    assert said.code == 2
    assert said.err == wording()


@pytest.mark.mission("H12")
@pytest.mark.parametrize(
    ("name", "allowed", "wrong"),
    [
        ("bot:homar", "", "importing `bot` is not allowed"),
        ("bot:homer", "bot", "`bot` has no `homer`"),
        ("nosuchbot:homar", "nosuchbot", "there is no module `nosuchbot`"),
        ("bot:number", "bot", "`bot:number` is a int, not an agent"),
        ("bot:gated", "bot", "`bot:gated` has its own Signoff capability"),
        ("bot:", "bot", "`bot:` is not the location of an agent"),
    ],
)
def test_h12_an_agent_in_python_that_cannot_be_started_is_told_of_before(
    desk: Desk, name: str, allowed: str, wrong: str
) -> None:
    (desk.directory / "bot.py").write_text(
        "from pydantic_ai import Agent\nfrom signoff import Signoff\n"
        "homar = Agent(name='homar')\nnumber = 7\n"
        "gated = Agent(capabilities=[Signoff([{'ask': '*'}])])\n"
    )
    desk.monkeypatch.delitem(sys.modules, "bot", raising=False)
    plugins = f"plugins: {{allow: [{allowed}]}}\n" if allowed else ""
    (desk.directory / "signoff.yaml").write_text(PROJECT.replace("[triage]", f'["{name}"]') + plugins)
    started = desk.run("channels", "run", "discord")
    assert started.code == 2 and wrong in started.err and "signoff.yaml:" in started.err
    listed = desk.run("channels", "list").out
    assert wrong in listed.replace("\n", " ") and "⟦LF⟧" not in listed
    [found] = [one for one in desk.run("doctor", "--json").data["findings"] if one["check"] == "broken-channel"]
    assert wrong in found["what"] and found["place"].startswith("signoff.yaml:")


@pytest.mark.mission("H12")
def test_h12_two_that_are_called_by_the_same_name_are_refused(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").write_text(PROJECT.replace("[triage]", '[triage, "bot:triage"]'))
    assert "people would use the same name for" in desk.run("channels", "run", "discord").err


def test_one_process_at_a_time(desk: Desk) -> None:
    desk.open(asks())
    posted(desk, Route(Wall("terminal")), stays=True)
    said = desk.run("channels", "test", "terminal", "--wait", "1s")
    assert said.code == 2
    assert "terminal is already run by process " in said.err
    assert "signoff channels test terminal --no-answer" in said.err


def test_a_time_that_is_none(desk: Desk, wording: Wording) -> None:
    said = desk.run("channels", "test", "discord", "--wait", "soon")
    assert said.code == 2
    assert said.err == wording()


# --- the terminal is a channel too ---


def test_whoever_sits_at_the_terminal_is_asked(desk: Desk) -> None:
    [first, second] = desk.open(asks(), asks("write_file", {"path": "b"}))
    program = desk.sits_down("channels", "run", "terminal", "--no-resume")
    program.expect("terminal: 2 requests wait")
    program.expect("your answer >")
    program.send("a\r")
    program.expect("you approve it once: pay")
    program.expect("your answer >")
    program.sendintr()
    program.expect("Stopped. Pending requests stay in the channel")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0
    assert "Traceback" not in str(program.before)
    answered = desk.request(first)
    assert (answered.state, desk.request(second).state) == (State.APPROVED, State.PENDING)
    assert answered.decision is not None
    assert answered.decision.by is not None
    assert (answered.decision.by.name, answered.decision.by.via) == ("ana", "terminal")


@pytest.mark.mission("H10")
def test_h10_the_terminal_can_be_tried_too(desk: Desk) -> None:
    program = desk.sits_down("channels", "test", "terminal")
    program.expect("nothing runs")
    program.expect("your answer >")
    program.send("d\r")
    program.expect("denied by ana")
    program.expect("terminal works. Nothing ran.")
    program.expect(pexpect.EOF)
    program.close()
    assert program.exitstatus == 0
    assert not desk.file.exists()


def test_a_terminal_that_is_none(desk: Desk, wording: Wording) -> None:
    desk.types("")
    said = desk.run("channels", "test", "terminal")
    assert said.code == 1
    assert said.out == wording()
