"""The helper that stays: the same answers, faster; whatever is odd about it, the hook works its answer out itself."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests import start
from tests.outside.test_hook import POLICY, Agent
from tests.server.serving import until


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    with tempfile.TemporaryDirectory(dir="/tmp") as run:  # the path of a socket has to be short
        made = Agent(tmp_path / "project", tmp_path / "home", {"XDG_RUNTIME_DIR": run})
        made.environment["SIGNOFF_HOOK_RESIDENT"] = "1"
        for one in (made.directory, made.home):
            one.mkdir()
        (made.directory / "signoff.yaml").write_text(POLICY)
        yield made


@pytest.fixture
def resident(agent: Agent) -> Iterator[start.Process]:
    with start.Process([*start.SIGNOFF, "hook", "serve"], env=agent.env, cwd=agent.directory) as process:
        until(lambda: path_of(agent).exists() or process.poll() is not None, "the helper listens")
        assert process.poll() is None
        yield process
        process.kill()


def path_of(agent: Agent) -> Path:
    return Path(agent.environment["XDG_RUNTIME_DIR"]) / "signoff" / "hook" / "socket"


def says(agent: Agent, command: str, number: str) -> str:
    return agent.decides("Bash", {"command": command}, "--limit", "8", number=number)["permissionDecision"]


@pytest.mark.usefixtures("resident")
def test_it_answers_as_the_hook_does_and_reads_what_has_changed(agent: Agent) -> None:
    assert path_of(agent).stat().st_mode & 0o777 == 0o600
    assert path_of(agent).parent.stat().st_mode & 0o777 == 0o700
    assert [says(agent, "ls", "t1"), says(agent, "sudo ls", "t2")] == ["allow", "deny"]
    code, _, err = agent.hook(b"{")
    assert code == 2 and "could not be checked" in err
    (agent.directory / "signoff.yaml").write_text('policy: [{deny: "*"}]\n')
    assert says(agent, "ls", "t3") == "deny"
    (agent.directory / "signoff.yaml").write_text("policy: [{alow: x}]\n")
    assert agent.hook(agent.event("Bash", {"command": "ls"}, "t4"))[0] == 2


@pytest.mark.usefixtures("resident")
def test_a_person_is_waited_for_there_too(agent: Agent) -> None:
    with agent.begin(agent.event("Write", {"file_path": "a", "content": "x"})) as process:
        [request] = until(agent.waits, "the call is asked about")
        assert says(agent, "ls", "t2") == "allow", "others are answered meanwhile"
        agent.signoff("approve", request["id"])
        out, _ = process.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow"


def test_a_helper_that_is_killed_half_way_refuses_nothing_and_allows_nothing(
    agent: Agent, resident: start.Process
) -> None:
    with agent.begin(agent.event("Write", {"file_path": "a", "content": "x"})) as process:
        [request] = until(agent.waits, "the call is asked about")
        resident.kill()
        agent.signoff("approve", request["id"])
        out, _ = process.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "allow", "it is worked out in the hook itself"


def test_a_socket_in_a_place_that_others_can_write_to_is_not_asked(agent: Agent) -> None:
    place = path_of(agent)
    place.parent.mkdir(parents=True)
    os.chmod(place.parent, 0o777)
    with socket.socket(socket.AF_UNIX) as forged:
        forged.bind(str(place))
        forged.listen()
        assert says(agent, "sudo ls", "t1") == "deny"


@pytest.mark.parametrize("reply", [b"", b"{", b'{"out": ""}', b'{"code": "x", "out": "", "err": ""}'])
def test_half_an_answer_is_none(agent: Agent, reply: bytes) -> None:
    place = path_of(agent)
    place.parent.mkdir(parents=True, mode=0o700)
    with socket.socket(socket.AF_UNIX) as broken:
        broken.bind(str(place))
        broken.listen()
        with agent.begin(agent.event("Bash", {"command": "sudo ls"})) as process:
            link, _ = broken.accept()
            link.recv(65536)
            link.sendall(reply)
            link.close()
            out, _ = process.communicate(timeout=start.PATIENCE)
    assert json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.usefixtures("resident")
def test_another_environment_is_not_answered_from_this_one(agent: Agent, tmp_path: Path) -> None:
    assert says(agent, "ls", "t1") == "allow"
    agent.environment["SIGNOFF_STORE"] = f"sqlite:{tmp_path / 'other.db'}"
    assert says(agent, "ls", "t2") == "allow"
    assert (tmp_path / "other.db").exists()
