"""The password of the store is nowhere to be seen: not in what any command prints, nor in any file it leaves behind."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.cli.program import signoff

from signoff.cli.main import program
from signoff.core.redact import redact_text
from signoff.store.store_urls import masked

PASSWORD = "hunter2secret"
AGENT = """
import os
from pydantic_ai import Agent, DeferredToolRequests
from signoff import Signoff

def touch(name: str) -> str:
    return f"touched {name}"

own = Signoff([{"ask": "touch"}], wait="suspend", store=os.environ["OWN_STORE"])
agent = Agent("test", name="hand", tools=[touch])
gated = Agent("test", name="gated", tools=[touch], output_type=[str, DeferredToolRequests], capabilities=[own])
"""
SCRIPT = "- calls: [{tool: touch, args: {name: a.txt}}]\n- say: done\n"
POLICY = "policy: [{ask: touch}]\npeople: {ana: {roles: [ops]}}\n"
GIVEN = {
    "request_id": "REQUEST", "request_ids": "REQUEST", "said": "happened", "person": "ana", "absent": "ana",
    "deputy": "ana", "names": "discord", "run": "RUN", "run_id": "RUN", "grant_id": "abc", "grant_ids": "abc",
    "file": "signoff.yaml", "calls": "turns.yaml", "shell": "bash", "worker": "shop:agent", "prompt": "go",
    "name": "discord", "directory": "new",
    "text": "why?", "question": "abc", "holder": "ana", "ids": "abc", "key_id": "abc", "key_ids": "abc",
    "agent": "codex", "called": "bot",
}  # fmt: skip
"""What each argument is given."""
NOT_PLAYED = {
    "demo": "it waits for a person, and has a store of its own in a directory of its own",
    "serve": "it stays",
    "hook serve": "it stays",
    "mcp approve-tool": "it stays",
    "mcp proxy": "it stays",
}


def leaves(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from leaves(below, (*path, name))
    else:
        yield path, command


COMMANDS = dict(leaves(program))


def words(path: tuple[str, ...], ids: dict[str, str]) -> list[str]:
    """A command with something in the place of each argument."""
    if path == ("db", "backup"):
        return [*path, "copy.db"]
    if path == ("audit", "verify"):
        return [*path]
    arguments = [one for one in COMMANDS[path].params if isinstance(one, click.Argument)]
    given = [GIVEN[str(one.name)] for one in arguments if one.required or one.name in ("run", "request_ids", "names")]
    return [*path, *(ids.get(one, one) for one in given)]


def has_store(path: tuple[str, ...]) -> bool:
    return any(one.name == "store" for one in COMMANDS[path].params)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    directory.mkdir()
    (directory / "shop.py").write_text(AGENT)
    (directory / "turns.yaml").write_text(SCRIPT)
    (directory / "signoff.yaml").write_text(POLICY)
    return directory


def check(done: subprocess.CompletedProcess[str], command: list[str]) -> None:
    assert "Traceback" not in done.stderr, (command, done.stderr)
    assert PASSWORD not in done.stdout + done.stderr, (command, done.stdout, done.stderr)


def check_files(directory: Path, given: Path | None) -> None:
    """No file holds it but the one that was given it."""
    for file in directory.rglob("*"):
        if file.is_file() and file != given and "__pycache__" not in file.parts:
            assert PASSWORD.encode() not in file.read_bytes(), file


BY_NIGHT = pytest.mark.nightly


@pytest.mark.parametrize(
    ("how", "there"),
    [
        pytest.param("environment", True, id="environment-there"),
        pytest.param("option", False, id="option-not there"),
        pytest.param("option", True, id="option-there", marks=BY_NIGHT),
        pytest.param("environment", False, id="environment-not there", marks=BY_NIGHT),
        pytest.param("file", True, id="file-there", marks=BY_NIGHT),
        pytest.param("file", False, id="file-not there", marks=BY_NIGHT),
    ],
)
def test_no_command_tells_the_password(
    project: Path, postgres_store: str, how: str, there: bool, tmp_path: Path
) -> None:
    user = f"postgres:{PASSWORD}@"
    url = postgres_store.replace("postgres@", user) if there else f"postgresql://{user}127.0.0.1:1/db?connect_timeout=1"
    assert PASSWORD in url
    state = {"XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path), "SIGNOFF_AS": "ana", "OWN_STORE": url}
    environment = state | ({"SIGNOFF_STORE": url} if how == "environment" else {})
    given = None
    if how == "file":
        given = project / "signoff.yaml"
        given.write_text(f'{POLICY}store: "{url}"\n')
    option = ["--store", url] if how == "option" else []

    ids: dict[str, str] = {}
    for agent in ("shop:agent", "shop:gated"):
        more = ["--suspend", *option] if agent == "shop:agent" else []  # the other one says itself where it asks
        command = ["run", agent, "go", "--model", "script:turns.yaml", *more]
        done = signoff(*command, cwd=project, **environment)
        check(done, command)
        if there:
            assert done.returncode == 3, done.stderr
            found = re.search(r"signoff approve (\w+).*\n.*signoff resume (\w+)", done.stderr)
            assert found is not None, done.stderr
            ids = {"REQUEST": found[1], "RUN": found[2]}
    for path in COMMANDS:
        if path[0] in NOT_PLAYED or " ".join(path) in NOT_PLAYED:
            continue
        command = [*words(path, ids), *(option if has_store(path) else [])]
        check(signoff(*command, cwd=project, **environment), command)
    check_files(tmp_path, given)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ana:hunter2@h/db", "postgresql://ana:…@h/db"),
        ("postgresql://ana:hun/ter@2@h/db", "postgresql://ana:…@h/db"),
        ("postgresql://ana@h/db?password=hunter2&x=1", "postgresql://ana@h/db?password=…&x=1"),
        ("postgresql://ana@h/db?sslpassword=hunter2", "postgresql://ana@h/db?sslpassword=…"),
        ("host=h user=ana password='hunter 2' dbname=d", "host=h user=ana password=… dbname=d"),
        (r"host=h password='it\'s 2' dbname=d", "host=h password=… dbname=d"),
        ("host=h PASSWORD = hunter2 dbname=d", "host=h PASSWORD=… dbname=d"),
        ("postgresql://ana@h/db", "postgresql://ana@h/db"),
        ("sqlite:a/b.db", "sqlite:a/b.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked(url) == shown
    assert redact_text(shown) == shown, "as in the log of `signoff serve`"
