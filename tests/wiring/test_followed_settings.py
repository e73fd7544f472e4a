"""The settings of a long-running process keep to the file that it began with, whatever happens to it."""

from __future__ import annotations

import os
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.config import load_settings, no_settings
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import SignoffError
from signoff.file_stamp import Followed, file_stamp
from signoff.policy.layers import Layers
from signoff.wiring.followed_settings import FollowedSettings
from signoff.wiring.job import RunOptions, job_for
from signoff.wiring.project_people import OnFile

RULES = {Effect.DENY: "policy: [{deny: drop}]\n", Effect.ALLOW: "policy: [{allow: drop}]\n"}
ABOVE = 'policy: [{allow: "*"}]\n'
STATES = st.sampled_from(["gone", "empty", "broken", "directory", "pipe", "link", Effect.DENY, Effect.ALLOW])


def becomes(file: Path, state: str) -> None:
    """Put the file into a state, by removing it first as an editor or a deployment may."""
    if file.is_dir() and not file.is_symlink():
        file.rmdir()
    file.unlink(missing_ok=True)
    if state == "directory":
        file.mkdir()
    elif state == "pipe":
        os.mkfifo(file)
    elif state == "link":
        file.symlink_to(file.parent / "nowhere")
    elif state != "gone":
        file.write_text({"empty": "", "broken": "policy: [{alow: x}]\n", **RULES}[state])


def says(followed: FollowedSettings) -> Effect | None:
    """What is decided about a call; None: nothing is, because that cannot be said."""
    try:
        return Layers(followed.read().layers).judge(Call(tool="drop", args={})).effect
    except SignoffError:
        return None


@given(st.lists(STATES, max_size=6), st.booleans())
@examples(nightly=500, daily=50)
def test_the_file_above_never_decides(states: list[str], begins_with_one: bool) -> None:
    with tempfile.TemporaryDirectory() as above:
        (Path(above) / "signoff.yaml").write_text(ABOVE)
        project = Path(above) / "project"
        project.mkdir()
        file = project / "signoff.yaml"
        if begins_with_one:
            becomes(file, Effect.DENY)
        followed = FollowedSettings(load_settings(file) if begins_with_one else no_settings(project))
        has_one = begins_with_one
        for state in states:
            becomes(file, state)
            without = Effect.ASK if not has_one else None  # it never had a file: everything is asked about
            assert says(followed) == (without if state == "gone" else state if state in RULES else None), states
            has_one |= state in RULES


def test_a_worker_is_not_started_by_the_file_above(tmp_path: Path) -> None:
    """As `signoff serve` starts one: in the directory of the project, with the file that it began with."""
    for place in (tmp_path, tmp_path / "project"):
        (place / "workers").mkdir(parents=True)
        (place / "signoff.yaml").write_text(f"model: test\n{ABOVE}")
        (place / "workers" / "clerk.yaml").write_text("name: clerk\ninstructions: Work.\n")
    own = tmp_path / "project" / "signoff.yaml"
    options = RunOptions(directory=str(own.parent), own=str(own), store="memory:")
    job_for("clerk", options).close()
    own.unlink()
    with pytest.raises(SignoffError, match="there is no file"):
        job_for("clerk", options)


async def test_in_an_event_loop_what_changed_is_read_in_a_thread(tmp_path: Path) -> None:
    """By a server, a proxy and the helper of hooks: whoever waits for an answer does not wait for a disk."""
    file = tmp_path / "signoff.yaml"
    file.write_text("policy: []\npeople: {ana: {}}\n")
    on_file, loop, read_in = OnFile(load_settings(file)), threading.get_ident(), list[int]()
    followed = Followed(lambda: file_stamp(file), lambda: read_in.append(threading.get_ident()))
    for text in ("people: {ana: {}, ben: {}}\n", "people: {ben: {}, cat: {}}\n"):
        file.write_text(f"policy: []\n{text}")
        await followed.soon()
        await followed.soon()
        await on_file.look()
    assert len(read_in) == 2 and loop not in read_in
    assert sorted(on_file.people()) == ["ben", "cat"]


def test_what_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    file, read = tmp_path / "file", list[str]()

    def reads() -> str:
        read.append(file.read_text())
        file.write_text("x" * len(read)) if len(read) < 3 else None
        return read[-1]

    file.write_text("")
    followed = Followed(lambda: file_stamp(file), reads)
    assert [followed.now() for _ in range(5)] == ["", "x", "xx", "xx", "xx"] and len(read) == 3
