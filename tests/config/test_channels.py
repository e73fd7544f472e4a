"""`channels` of the project file: read strictly, each mistake told with its place; secrets stay in the environment."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from signoff.channel_kinds import built_in
from signoff.config import Settings, load_settings
from signoff.config.channel_entries import ChannelEntry
from signoff.config.config_check import GivenConfig
from signoff.errors import PolicyError, WrongFile
from signoff.wiring.channel_wiring import given_config

ID = "112233445566778899"
WHOLE = f"""\
policy: []
channels:
  discord:
    channel: "{ID}"
    workers: [triage, clerk]
  night: {{use: discord, token: "${{NIGHT_TOKEN}}", channel: "11223344556677880", timeout: none}}
  terminal: {{timeout: 90s}}
"""


def read(directory: Path, channels: str) -> dict[str, ChannelEntry]:
    return dict(settings_of(directory, channels).channels)


def settings_of(directory: Path, channels: str) -> Settings:
    file = directory / "signoff.yaml"
    file.write_text(channels if "channels" in channels else f"policy: []\nchannels: {channels}\n")
    return load_settings(file)


def test_a_whole_file(tmp_path: Path) -> None:
    channels = read(tmp_path, WHOLE)
    assert list(channels) == ["discord", "night", "terminal"]
    discord, night, terminal = channels.values()
    kind = built_in("discord")
    assert (discord.use, discord.place(kind), discord.workers) == ("discord", ID, ("triage", "clerk"))
    assert (discord.variable(kind, "token"), discord.timeout(kind)) == ("DISCORD_TOKEN", timedelta(minutes=5))
    assert (night.use, night.variable(kind, "token"), night.timeout(kind)) == ("discord", "NIGHT_TOKEN", None)
    assert (terminal.use, terminal.timeout(built_in("terminal"))) == ("terminal", timedelta(seconds=90))
    assert night.spots["timeout"].place.line == 6


@pytest.mark.parametrize("text", ["channels:\npolicy: []\n", "policy: []\n#channels\n", "policy: []\nchannels: {}\n"])
def test_none_is_none(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, text) == {}


def test_the_secret_is_looked_up_when_it_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISCORD_TOKEN", raising=False)
    monkeypatch.delenv("NIGHT_TOKEN", raising=False)
    settings = settings_of(tmp_path, WHOLE)

    def config(name: str) -> GivenConfig:
        return given_config(settings.channels[name], settings)

    with pytest.raises(WrongFile, match="the environment has no DISCORD_TOKEN") as missing:
        config("discord")
    assert missing.value.place is not None
    assert missing.value.place.line == 4, "where the channel stands, for the token is not written"
    with pytest.raises(WrongFile, match="the environment has no NIGHT_TOKEN") as missing:
        config("night")
    assert ":-" not in str(missing.value), "a default would be a secret in the file, and is refused there"
    assert missing.value.place is not None
    assert missing.value.place.key == "channels.night.token"
    monkeypatch.setenv("NIGHT_TOKEN", " ")
    with pytest.raises(WrongFile, match="an empty NIGHT_TOKEN"):
        config("night")
    monkeypatch.setenv("NIGHT_TOKEN", "mfa.night\n")
    assert config("night").values["token"] == "mfa.night"
    assert "mfa" not in repr(config("night"))


GOOD = f'channel: "{ID}"'


@pytest.mark.parametrize(
    ("text", "key", "says", "fix"),
    [
        ("[discord]", "channels", "a mapping of names to channels, not a list", ""),
        ("{discord: on air}", "channels.discord", "a mapping such as", ""),
        ("{'a b': {use: terminal}}", 'channels["a b"]', "bad name `a b` for a channel", "letters"),
        ("{a: {use: a b}}", "channels.a.use", "bad name `a b`", "without spaces"),
        ("{a: {use: a.b}}", "channels.a.use", "is not a class path", "package.module:Class"),
        ("{a: {extends: b}}", "channels.a.extends", "there is no channel `b` to extend", ""),
        ("{a: {extends: b}, b: {extends: a}}", "channels.b.extends", "forms a cycle: a > b > a", "remove"),
        ("{terminal: {workers: a}}", "channels.terminal.workers", "unknown key `workers`", ""),
        ("{discord: {}}", "channels.discord", "`channel` is missing", 'channel: "1122'),
        (f"{{discord: {{{GOOD}, worker: a}}}}", "channels.discord.worker", "unknown key `worker`", "`workers`?"),
        (f"{{terminal: {{{GOOD}}}}}", "channels.terminal.channel", "unknown key `channel`", "known here"),
        ("{discord: {channel: 112233445566778899}}", "channels.discord.channel", "not a number", "quotes"),
        ("{discord: {channel: general}}", "channels.discord.channel", "`general` is not a Discord ID", "Copy ID"),
        ("{discord: {channel: '1234'}}", "channels.discord.channel", "15 to 20 digits", "Developer Mode"),
        (f"{{discord: {{{GOOD}, timeout: soon}}}}", "channels.discord.timeout", "a duration, not `soon`", "`15m`"),
        (f"{{discord: {{{GOOD}, timeout: 0}}}}", "channels.discord.timeout", "must be more than 0", ""),
        (f"{{discord: {{{GOOD}, workers: [a, a]}}}}", "channels.discord.workers[1]", "named twice", ""),
        (f"{{discord: {{{GOOD}, workers: {{}}}}}}", "channels.discord.workers", "a mapping", ""),
        (
            f"{{discord: {{{GOOD}}}, night: {{use: discord, {GOOD}}}}}",
            "channels.night.channel",
            "`discord` already asks there: `channel` and `token` are the same",
            "change `channel` or `token`",
        ),
    ],
)
def test_a_mistake_is_told_where_it_stands(tmp_path: Path, text: str, key: str, says: str, fix: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read(tmp_path, text)
    assert caught.value.place is not None
    assert caught.value.place.key == key
    assert caught.value.place.line == 2
    assert says in caught.value.what
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    "token", ["MTA1.secret.token", "${TOKEN:-MTA1.secret.token}", "Bot ${A} MTA1.secret", "$$MTA1"]
)
def test_a_token_in_the_file_is_refused_and_not_repeated(tmp_path: Path, token: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read(tmp_path, f"{{discord: {{{GOOD}, token: '{token}'}}}}")
    assert 'secrets come from the environment: token: "${DISCORD_TOKEN}"' in caught.value.fix
    assert "MTA1" not in str(caught.value)


def test_two_bots_may_ask_in_one_place_and_one_bot_in_two(tmp_path: Path) -> None:
    entries = read(
        tmp_path,
        f"{{discord: {{{GOOD}}}, b: {{use: discord, {GOOD}, token: '${{B}}'}}, "
        'c: {use: discord, channel: "11223344556677880"}}',
    )
    assert list(entries) == ["discord", "b", "c"]


def test_one_account_is_one_person(tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").write_text(
        f'policy: []\npeople:\n  ana: {{discord: "{ID}"}}\n  ben: {{}}\n  eve: {{discord: "{ID}"}}\n'
    )
    with pytest.raises(PolicyError, match="`ana` has the same Discord account") as caught:
        load_settings(tmp_path / "signoff.yaml")
    assert caught.value.place is not None
    assert caught.value.place.key == "people.eve.discord"
