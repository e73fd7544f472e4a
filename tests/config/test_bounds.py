"""Worker files cannot go beyond what the project says for every worker, nor be written by somebody else."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from signoff.config import Limits, load_settings, load_worker, load_workers, worker_text
from signoff.errors import WrongFile, WrongUse

DEFAULTS = "policy: []\ndefaults: {worker: {approvers: [ops, boss], limits: {requests: 50, time: 5m, depth: 2}}}\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "signoff.yaml").write_text(DEFAULTS)
    (tmp_path / "workers").mkdir()
    return tmp_path


def write(directory: Path, **workers: str) -> None:
    for name, text in workers.items():
        (directory / "workers" / f"{name}.yaml").write_text(text)


def test_of_each_limit_the_lower_one_holds(here: Path) -> None:
    write(
        here,
        free="limits: {requests: 5000, tokens: 9, time: 1h, depth: 0}",
        base="limits: {requests: 400, time: 10s}",
        child="extends: base\nlimits: {requests: 30, depth: 9}",
        plain="instructions: Hi.",
    )
    workers = load_workers(load_settings("signoff.yaml"))
    assert workers["free"].limits == Limits(requests=50, tokens=9, time=timedelta(minutes=5), depth=0)
    assert workers["child"].limits == Limits(requests=30, time=timedelta(seconds=10), depth=2)
    assert workers["plain"].limits == Limits(requests=50, time=timedelta(minutes=5), depth=2)
    spots = workers["free"].spots
    assert spots["limits.requests"].place.file == "signoff.yaml", "whoever reaches it is told whose it is"
    assert spots["limits.depth"].place.file == "workers/free.yaml"


def test_without_defaults_what_is_nearer_wins(here: Path) -> None:
    (here / "signoff.yaml").write_text("policy: []\n")
    write(
        here, base="limits: {requests: 5}\napprovers: ops", child="extends: base\nlimits: {requests: 7}\napprovers: []"
    )
    child = load_worker(load_settings("signoff.yaml"), "child")
    assert (child.limits.requests, child.approvers) == (7, ())


@pytest.mark.parametrize(
    ("own", "answer"),
    [
        ("", ("ops", "boss")),
        ("approvers: []", ("ops", "boss")),
        ("approvers: boss", ("boss",)),
        ("approvers: [dev, ops]", ("ops",)),
        ("extends: base", ("boss",)),
        ("extends: base\napprovers: []", ("ops", "boss")),
    ],
)
def test_only_those_answer_who_answer_for_every_worker(here: Path, own: str, answer: tuple[str, ...]) -> None:
    write(here, base="approvers: boss", one=f"instructions: Hi.\n{own}\n")
    assert load_worker(load_settings("signoff.yaml"), "one").approvers == answer


def test_somebody_else_alone_cannot_answer(here: Path) -> None:
    write(here, one="approvers: [dev]")
    with pytest.raises(WrongFile) as caught:
        load_worker(load_settings("signoff.yaml"), "one")
    assert str(caught.value.place) == "workers/one.yaml:1:13: approvers[0]"
    assert "signoff.yaml:2:" in caught.value.what
    assert "`ops` or `boss` answers for every worker" in caught.value.what


@pytest.mark.parametrize("time", ["500ms", "0.5", "1.5s", "'20 us'", ".5 s"])
def test_the_smallest_time_is_a_second(here: Path, time: str) -> None:
    write(here, one=f"limits: {{time: {time}}}")
    with pytest.raises(WrongFile, match="time is counted in whole seconds") as caught:
        load_worker(load_settings("signoff.yaml"), "one")
    assert "the smallest is `1s`" in caught.value.fix


@pytest.mark.parametrize("name", ["", "  "])
def test_no_name_is_no_worker(here: Path, name: str) -> None:
    with pytest.raises(WrongUse, match="this is not the name of a worker") as caught:
        load_worker(load_settings("signoff.yaml"), name)
    assert "`signoff workers` lists those in workers" in str(caught.value)


def test_a_worker_that_is_a_pipe_is_told_and_not_waited_for(here: Path) -> None:
    os.mkfifo(here / "workers" / "one.yaml")
    with pytest.raises(WrongFile, match=r"workers/one\.yaml: this is no regular file"):
        load_worker(load_settings("signoff.yaml"), "one")


def test_a_worker_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(here, base="instructions: Hi.", one="extends: base")
    settings = load_settings("signoff.yaml")
    give_away(here / "workers" / "base.yaml", monkeypatch)
    for name in ("base", "one"):
        with pytest.raises(WrongFile, match="belongs to another user") as caught:
            load_worker(settings, name)
    assert "--policy" not in caught.value.fix, "another policy does not help"
    with pytest.raises(WrongFile, match="belongs to another user"):
        worker_text("workers/base.yaml")


def give_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(file, 1001, -1)
    else:
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
