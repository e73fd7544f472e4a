"""The settings of a long-running process keep to the file that it began with, whatever happens to it."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.config import load_settings, no_settings
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import SignoffError
from signoff.policy.layers import Layers
from signoff.wiring.followed_settings import FollowedSettings
from signoff.wiring.job import RunOptions, job_for

RULES = {Effect.DENY: "policy: [{deny: drop}]\n", Effect.ALLOW: "policy: [{allow: drop}]\n"}
ABOVE = 'policy: [{allow: "*"}]\n'
STATES = st.sampled_from(["gone", "empty", "broken", "directory", "link", Effect.DENY, Effect.ALLOW])


def becomes(file: Path, state: str) -> None:
    """Put the file into a state, by removing it first as an editor or a deployment may."""
    if file.is_dir() and not file.is_symlink():
        file.rmdir()
    file.unlink(missing_ok=True)
    if state == "directory":
        file.mkdir()
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
