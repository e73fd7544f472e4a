"""K1: a channel that somebody else wrote, by the program: named by class path and by entry point, with its own keys."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.proofs.outside import Project
from tests.tables import table

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "own-channel.md"
SPOOL = re.findall(r'^```python title="spool.py"\n(.*?)^```$', GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)[0]
"""The channel that the guide builds: outside of signoff, and known to nothing in it."""
SETTINGS = """\
people: {{ana: {{roles: [ops], desk: "7"}}, ben: {{roles: [ops]}}}}
plugins: {{allow: [spool]}}
policy: [{{ask: "*"}}]
channels:
  desk: {{use: "{use}", directory: "${{SPOOL}}", timeout: 30m}}
"""
WRITES = '- calls: [{tool: write_file, args: {path: a.txt, content: x}}]\n- say: "{{last}}"\n'
INSTALLED = {
    "METADATA": "Metadata-Version: 2.1\nName: spool\nVersion: 1.0\n",
    "entry_points.txt": "[signoff.channels]\nspooled = spool:SPOOL\n",
}


@contextmanager
def running(project: Project, *words: str, **environment: str) -> Generator[start.Lines]:
    """A program that stays, and the events that it prints."""
    process = start.Process(
        [*start.SIGNOFF, *words],
        cwd=project.directory,
        env={**project.environment, "SPOOL": "spool", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    with process:
        try:
            yield start.Lines(process)
        finally:
            process.kill()


def event(printed: start.Lines, *parts: str) -> dict[str, Any]:
    """The first event from here on that has all these parts."""
    while True:
        line = printed.next(f"an event with {parts}")
        if all(part in line for part in parts):
            return json.loads(line)


@pytest.mark.mission("K1")
@pytest.mark.parametrize("way", ["class path", "entry point"])
def test_k1_a_strangers_channel_asks_and_is_answered_without_a_change_of_ours(project: Project, way: str) -> None:
    """In files that the channel writes and reads: by `channels run` from beside the project, by `serve` installed."""
    is_path, site = way == "class path", project.directory / "site"
    (project.directory if is_path else site).mkdir(exist_ok=True)
    (project.directory / "spool.py" if is_path else site / "spool.py").write_text(SPOOL)
    (site / "spool-1.0.dist-info").mkdir(parents=True)
    for name, text in INSTALLED.items():
        (site / "spool-1.0.dist-info" / name).write_text(text)
    use, words = (
        ("spool:SPOOL", ["channels", "run", "desk", "--json"])
        if is_path
        else (
            "spooled",
            ["serve", "--port", "0", "--log", "json"],
        )
    )
    project.put({"signoff.yaml": SETTINGS.format(use=use), "workers/hand.yaml": "toolsets: [filesystem_rw]\n"})
    project.put({"workers/hand.turns": WRITES})
    installed = {} if is_path else {"PYTHONPATH": str(site)}
    with running(project, *words, **installed) as printed:
        event(printed, '"connected"')
        paused = project.run("hand", "--suspend", SPOOL="spool", **installed)
        assert paused.code == 3, paused
        [waiting] = paused.rows[-1]["waiting"]
        request = waiting["request"]
        event(printed, '"shown"', request, '"pending"')
        spool = project.directory / "spool"
        question = spool / "questions" / request
        assert f"answer in answers/{request}" in question.read_text()
        assert not project.has("a.txt")
        (spool / "answers" / ".part").write_text("yes 7")
        (spool / "answers" / ".part").rename(spool / "answers" / request)
        event(printed, '"shown"', request, '"succeeded"')
        assert "answer in" not in question.read_text()
    assert project.read("a.txt") == "x"
    shown = project.signoff("show", request, "--json", SPOOL="spool").data
    assert [(vote["by"], vote["via"]) for vote in shown["votes"]] == [("ana", "desk")]


MISTAKES = [
    ("allow: [spool]", "allow: [other]", "use", "importing `spool` is not allowed", 'allow: ["other", "spool"]'),
    ("spool:SPOOL", "spool:SPOOLS", "use", "`spool` has no `SPOOLS`", "`SPOOL`"),
    ("spool:SPOOL", "spool:ANA", "use", "is not a channel", "a channel is a ChannelKind"),
    ("spool:SPOOL", "spol", "use", "there is no kind of channel called `spol`", "package.module:NAME"),
    ("directory: ", "directry: ", "directry", "unknown key `directry`", "`directory`"),
    ('directory: "${SPOOL}"', "every: 1", "", "`directory` is missing", "its keys: directory, every"),
    ("timeout: 30m", "every: soon", "every", "this should be a valid number", "its keys: directory, every"),
    ("${SPOOL}", "${SPOOLS}", "directory", "the environment has no SPOOLS", "${SPOOLS:-…}"),
    ("timeout: 30m", "workers: hand", "workers", "no workers can be started from there", "remove"),
    ("timeout: 30m", "timeout: soon", "timeout", "a duration, not `soon`", "`15m`"),
    ("timeout: 30m", "extends: desk", "extends", "forms a cycle: desk > desk", "remove"),
    ('desk: "7"', "desk: 7", "ana.desk", "unknown key `desk`", ""),
    ('desk: "7"', 'phone: "7"', "", "nobody could answer in desk", 'desk: "7"'),
    ("timeout: 30m}", "}\n  b: {extends: desk}", "directory", "`desk` already asks there", "change `directory`"),
]


@pytest.mark.mission("K1")
@table(("old", "new", "key", "says", "fix"), MISTAKES)
def test_k1_a_mistake_in_its_keys_is_told_where_it_stands(
    project: Project, old: str, new: str, key: str, says: str, fix: str
) -> None:
    project.put({"spool.py": SPOOL})
    text = SETTINGS.format(use="spool:SPOOL")
    assert old in text
    (project.directory / "signoff.yaml").write_text(text.replace(old, new))
    done = project.signoff("channels", "run", "desk", *(["b"] if "b:" in new else []), SPOOL="spool")
    assert done.code == 2 and done.out == "", done
    assert says in done.err and fix in done.err, done.err
    if key:
        place = rf"signoff.yaml:\d+:\d+: (channels|people)\.(desk\.|b\.)?{re.escape(key)}: "
        assert re.search(place, done.err), done.err
    assert not project.has("store.db") and not project.has("spool")


@pytest.mark.mission("K1")
def test_k1_the_other_commands_know_it_too(project: Project) -> None:
    project.put({"spool.py": SPOOL})
    text = SETTINGS.format(use="spool:SPOOL")
    project.put({"signoff.yaml": text + "  same: {extends: desk, directory: other, timeout: none}\n"})
    [desk, same] = project.signoff("channels", "list", "--json", SPOOL="spool").data["channels"]
    assert (desk["kind"], desk["place"], desk["people"]) == ("spool:SPOOL", "${SPOOL}", ["ana"])
    assert (desk["timeout"], same["timeout"], same["wrong"]) == (1800, None, None)
    found = project.signoff("doctor", "--json", SPOOL="spool").data["findings"]
    assert [one["what"] for one in found if one["check"] == "no-channel"] == [
        "`ben` must look for themselves, at a terminal or in the web inbox: no channel reaches them"
    ]
    project.put({"signoff.yaml": text.replace("directory:", "directry:").replace("ben: {", 'ben: {phone: "1", ')})
    found = {one["check"]: one for one in project.signoff("doctor", "--json", SPOOL="spool").data["findings"]}
    assert "unknown key `directry`" in found["broken-channel"]["what"]
    assert "no channel of the project has accounts called `phone`" in found["unknown-account"]["what"]


@pytest.mark.mission("K1")
def test_k1_a_channel_is_tried_and_secrets_of_it_are_masked(project: Project) -> None:
    failing = (
        "from signoff.channels import ChannelKind\n"
        "from spool import SPOOL, SpoolChannel\n"
        "class Failing(SpoolChannel):\n"
        "    def __init__(self, token: str, context):\n"
        "        self.name, self.token, self.people = context.name, token, context.people\n"
        "    async def start(self, inbox):\n"
        "        raise RuntimeError(f'no connection with {self.token}')\n"
        "    async def stop(self): ...\n"
        "FAILING = ChannelKind(build=Failing, secrets={'token': 'the password of the pager'})\n"
    )
    project.put({"spool.py": SPOOL, "failing.py": failing})
    kind = (
        'plugins: {{allow: [spool, failing]}}\npolicy: []\nchannels: {{a: {{use: "failing:FAILING", token: "{}"}}}}\n'
    )
    project.put({"signoff.yaml": kind.format("k-5ecret-99")})
    written = project.signoff("channels", "test", "a")
    assert written.code == 1 and "secrets come from the environment" in written.out and "5ecret" not in written.out
    project.put({"signoff.yaml": kind.format("${PAGER}")})
    unset = project.signoff("channels", "test", "a")
    assert unset.code == 1 and "the environment has no PAGER" in unset.out and "the password of the pager" in unset.out
    tried = project.signoff("channels", "test", "a", PAGER="k-5ecret-99")
    assert tried.code == 1 and "no connection with" in tried.out and "5ecret" not in tried.out + tried.err, tried


LINKS = """\
from pathlib import Path
from signoff.channels import ChannelKind, card_for

class Links:
    def __init__(self, context):
        self.name, self.link, self.file = context.name, context.link, Path(context.workspace, "told.txt")

    async def start(self, inbox): ...
    async def stop(self): ...

    async def show(self, notice, at="", beside=""):
        request = notice.request
        with self.file.open("a") as file:
            print(request.state, self.link(request.id) if request.state == "pending" else "", file=file)
        return "there"

LINKS = ChannelKind(build=Links, answers=False)
"""


@pytest.mark.mission("K1")
def test_k1_a_channel_that_only_links_is_tried_with_a_request_that_exists(project: Project) -> None:
    settings = 'plugins: {allow: [links]}\npolicy: []\nchannels: {a: {use: "links:LINKS"}}\n'
    project.put({"links.py": LINKS, "signoff.yaml": settings})
    nowhere = project.signoff("channels", "test", "a")
    assert nowhere.code == 1 and "add `server: {url: https://…}`" in nowhere.out
    project.put({"signoff.yaml": f"{settings}server: {{url: https://signoff.example}}\n"})
    with running(project, "channels", "test", "a", "--json") as printed:
        event(printed, "a harmless request is shown")
        link = project.read("told.txt").split()[1]
        request = link.removeprefix("https://signoff.example/requests/")
        assert project.signoff("approve", request).code == 0, "it is in the project's store, where the link leads"
        done = event(printed, '"result"')
    assert (done["ok"], done["by"]) == (True, "ana")
    assert [line.split()[0] for line in project.read("told.txt").splitlines()] == ["pending", "approved"]
    assert [one["state"] for one in project.signoff("inbox", "--json").data["requests"]] == []
