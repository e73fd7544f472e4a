"""A project that was renamed keeps its runs, grants and record; a copy of it does not take them away."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.cli.program import signoff

SCRIPT = "- calls: [{tool: write_file, args: {path: notes/milk.md, content: milk}}]\n- say: done\n"
WORKER = "instructions: Keep notes.\ntoolsets: [notes]\n"
PROJECT = "toolsets: {notes: {use: filesystem_rw, config: {root: .}}}\n"


class Shop:
    """Projects below one directory, with one home."""

    def __init__(self, above: Path) -> None:
        self.above = above
        self.environment = {"XDG_STATE_HOME": str(above / "state"), "HOME": str(above), "SIGNOFF_AS": "ana"}

    def make(self, name: str) -> Path:
        directory = self.above / name
        (directory / "workers").mkdir(parents=True)
        (directory / "signoff.yaml").write_text(PROJECT)
        (directory / "workers" / "clerk.yaml").write_text(WORKER)
        (directory / "script.yaml").write_text(SCRIPT)
        return directory

    def type(self, directory: Path, *command: str, code: int = 0) -> tuple[str, str]:
        done = signoff(*command, cwd=directory, **self.environment)
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout, done.stderr

    def ask(self, directory: Path) -> str:
        """Have a worker ask; gives the request."""
        self.type(directory, "run", "clerk", "Note the milk", "--model", "script:script.yaml", "--suspend", code=3)
        [waiting] = self.waiting(directory)
        return waiting

    def waiting(self, directory: Path) -> list[str]:
        return [one["id"] for one in json.loads(self.type(directory, "inbox", "--json")[0])["requests"]]

    def stores(self, directory: Path) -> dict[str, Any]:
        return json.loads(self.type(directory, "stores", "--json")[0])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_a_renamed_project_finds_its_questions_again_and_says_so_once(shop: Shop) -> None:
    old = shop.make("old")
    request = shop.ask(old)
    new = old.rename(shop.above / "new")
    out, err = shop.type(new, "inbox")
    assert request in out
    assert err == f"signoff: {new} was at {old} until now; its runs, grants and audit log were found again\n"
    assert shop.type(new, "inbox")[1] == "", "said once"
    assert shop.type(new, "audit", "verify")[0].splitlines()[-1] == f"project {new}, its own store"


def test_a_run_of_a_renamed_project_goes_on_where_the_project_is_now(shop: Shop) -> None:
    old = shop.make("old")
    shop.ask(old)
    new = old.rename(shop.above / "new")
    for code in (3, 0):  # the call names another file than it did, so it is asked about again
        for request in shop.waiting(new):
            shop.type(new, "approve", request)
        shop.type(new, "resume", "--all", code=code)
    assert (new / "notes" / "milk.md").read_text() == "milk"
    assert not old.exists()


def test_a_copy_has_a_store_of_its_own_and_says_whose_it_is(shop: Shop) -> None:
    first = shop.make("first")
    request = shop.ask(first)
    copy = Path(shutil.copytree(first, shop.above / "copy"))
    out, _ = shop.type(copy, "inbox")
    assert out == (
        "No pending requests.\n"
        f"project {copy}, its own store, which does not exist yet; {first} has the same id and another store\n"
    )
    shop.ask(copy)
    assert shop.waiting(first) == [request], "nobody took it away"
    assert [one["project"] for one in shop.stores(first)["stores"]] == sorted([str(copy), str(first)])
    moved = first.rename(shop.above / "moved")
    assert shop.waiting(moved) == [request], "the copy is still where it was, so this is the first"


def test_two_copies_that_both_moved_are_not_guessed(shop: Shop) -> None:
    first = shop.make("first")
    shop.ask(first)
    copy = Path(shutil.copytree(first, shop.above / "copy"))
    shop.ask(copy)
    copy.rename(shop.above / "elsewhere")
    moved = first.rename(shop.above / "moved")
    _, err = shop.type(moved, "inbox", code=2)
    assert "has moved, and so have copies of it" in err
    assert str(first) in err and str(copy) in err


def test_stores_lists_what_is_there_where_nobody_can_tell_which_is_meant(shop: Shop) -> None:
    first = shop.make("first")
    shop.ask(first)
    second = Path(shutil.copytree(first, shop.above / "second"))
    shop.ask(second)
    first.rename(shop.above / "first moved")
    moved = second.rename(shop.above / "second moved")
    told, _ = shop.type(moved, "stores")
    assert "which of their stores is meant?" in told
    assert told.count("1 request waits, 1 active run") == 2
    listed = shop.stores(moved)
    assert listed["here"]["store"] is None
    assert {one["project"] for one in listed["stores"]} == {str(first), str(second)}
    named = listed["stores"][0]["store"]
    assert "1 request waits" in shop.type(moved, "inbox", "--store", named)[0]


def test_a_new_project_in_the_old_place_starts_with_nothing(shop: Shop) -> None:
    old = shop.make("app")
    request = shop.ask(old)
    kept = old.rename(shop.above / "app-old")
    new = shop.make("app")
    (new / ".signoff").mkdir()
    (new / ".signoff" / "project").write_text(f"{'0' * 32}\n")
    out, _ = shop.type(new, "inbox")
    assert "No pending requests." in out
    assert "a project with another id was here before" in out
    shop.ask(new)
    assert shop.waiting(kept) == [request]
    assert shop.waiting(new) != [request]


def test_a_project_whose_id_was_cleaned_away_keeps_its_store(shop: Shop) -> None:
    project = shop.make("app")
    request = shop.ask(project)
    id_file = project / ".signoff" / "project"
    before = id_file.read_text()
    shutil.rmtree(project / ".signoff")
    assert shop.waiting(project) == [request]
    assert id_file.read_text() == before, "it gets the same one again"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_project_that_cannot_be_written_goes_by_its_path(shop: Shop) -> None:
    project = shop.make("app")
    (project / "notes").mkdir()
    project.chmod(0o500)
    try:
        request = shop.ask(project)
        assert shop.waiting(project) == [request]
    finally:
        project.chmod(0o700)


@pytest.mark.parametrize("id_text", ["", "../../etc", "x" * 20_000, "\x00", "0" * 31])
def test_an_id_that_is_none_is_as_good_as_missing(shop: Shop, id_text: str) -> None:
    project = shop.make("app")
    (project / ".signoff").mkdir()
    (project / ".signoff" / "project").write_text(id_text)
    request = shop.ask(project)
    assert shop.waiting(project) == [request]


def test_an_id_that_is_a_pipe_is_not_waited_for(shop: Shop) -> None:
    project = shop.make("app")
    (project / ".signoff").mkdir()
    os.mkfifo(project / ".signoff" / "project")
    request = shop.ask(project)
    assert shop.waiting(project) == [request]


def test_looking_leaves_nothing_behind(shop: Shop) -> None:
    project = shop.make("app")
    for command in (["inbox"], ["runs"], ["grants", "list"], ["audit", "verify"], ["resume", "--all"], ["stores"]):
        shop.type(project, *command)
    assert not (shop.above / "state").exists()
    assert not (project / ".signoff").exists()


def test_stores_lists_what_waits_where_and_whose_project_is_gone(shop: Shop) -> None:
    one, two = shop.make("one"), shop.make("two")
    shop.ask(one)
    shop.ask(two)
    shop.type(two, "halt")
    shutil.rmtree(one)
    out, _ = shop.type(two, "stores")
    assert f"{one}  (no longer there)\n" in out
    assert f"{two}  (here)\n" in out
    assert out.count("  1 request waits, 1 active run\n") == 1
    assert out.count("  1 request waits, 1 active run, halted\n") == 1
    found = {one["project"]: one for one in shop.stores(shop.above)["stores"]}
    assert (found[str(one)]["there"], found[str(two)]["there"]) == (False, True)


def test_a_store_of_an_older_version_is_found_by_its_path_and_labelled(shop: Shop) -> None:
    project = shop.make("app")
    request = shop.ask(project)
    for label in (shop.above / "state" / "signoff").glob("*/project.json"):
        label.unlink()  # as older versions left it
    shutil.rmtree(project / ".signoff")
    assert shop.waiting(project) == [request]
    assert shop.waiting(project.rename(shop.above / "moved")) == [request]


ODD_IDS: dict[str, Callable[[Path], object]] = {
    "a directory": Path.mkdir,
    "a link to what cannot be read": lambda file: file.symlink_to("/proc/self/mem"),
    "a link in a circle": lambda file: file.symlink_to(file.name),
    "a pipe": os.mkfifo,
    "no text": lambda file: file.write_bytes(b"\xff\x00" * 40_000),
}


@pytest.mark.parametrize("odd", ODD_IDS)
def test_a_project_with_something_else_in_place_of_its_id_goes_by_its_path(shop: Shop, odd: str) -> None:
    """A repository may carry anything: people can look and halt all the same."""
    project = shop.make("app")
    (project / ".signoff").mkdir()
    ODD_IDS[odd](project / ".signoff" / "project")
    shop.type(project, "halt")
    assert [one["halted"] for one in shop.stores(project)["stores"]] == [True]


@pytest.mark.parametrize("whole", [True, False], ids=["directory", "file"])
def test_a_link_to_the_id_of_another_project_takes_nothing_from_it(shop: Shop, whole: bool) -> None:
    first = shop.make("first")
    request = shop.ask(first)
    moved = first.rename(shop.above / "moved")
    other = shop.make("other")
    if whole:
        (other / ".signoff").symlink_to(moved / ".signoff")
    else:
        (other / ".signoff").mkdir()
        (other / ".signoff" / "project").symlink_to(moved / ".signoff" / "project")
    assert shop.waiting(other) == []
    shop.type(other, "halt")
    assert shop.waiting(moved) == [request]
    assert shop.stores(moved)["here"]["store"] != shop.stores(other)["here"]["store"]


def test_a_project_with_another_id_than_before_says_that_its_record_is_another_one(shop: Shop) -> None:
    """The id may come with a pull: grants and questions must not be gone without a word."""
    project = shop.make("app")
    shop.ask(project)
    [first] = [one["store"] for one in shop.stores(project)["stores"]]
    (project / ".signoff" / "project").write_text(f"{'0' * 32}\n")
    _, err = shop.type(project, "run", "clerk", "go", "--model", "script:script.yaml", "--suspend", code=3)
    assert "has a different ID from the project that was here before" in err
    assert os.path.dirname(first.removeprefix("sqlite:")) in err
    assert "another id" not in shop.type(project, "inbox")[1], "said until it has a store"


@pytest.mark.parametrize("labelled", [True, False], ids=["with-id", "without-id"])
def test_a_command_with_another_store_gives_the_project_no_other_id(shop: Shop, labelled: bool) -> None:
    """After `git clean -fdx` the project carries no id; one of another store must not make its own store unknown."""
    project = shop.make("app")
    shop.type(project, "halt")
    shutil.rmtree(project / ".signoff")
    if not labelled:  # as where the project could not be written to
        [label] = (shop.above / "state" / "signoff").glob("*/project.json")
        label.write_text(json.dumps({"id": "", "project": str(project)}))
    run = ("run", "clerk", "go", "--model", "script:script.yaml", "--suspend")
    shop.type(project, *run, "--store", f"sqlite:{shop.above}/other.db", code=3)
    assert [one["halted"] for one in shop.stores(project)["stores"]] == [True]
    assert shop.type(project, *run, code=3)[1].startswith("signoff: halted by ana")


def test_another_id_is_no_way_around_a_halt(shop: Shop) -> None:
    project = shop.make("app")
    shop.ask(project)
    shop.type(project, "halt", "--note", "stop")
    id_file = project / ".signoff" / "project"
    before = id_file.read_text()
    command = ("run", "clerk", "Note the milk", "--model", "script:script.yaml", "--suspend")
    for own in ("0" * 32, "1" * 32, "0" * 32):
        id_file.write_text(f"{own}\n")
        _, err = shop.type(project, *command, code=3)
        assert "halted by ana" in err
        assert "signoff unhalt --store sqlite:" in err
    id_file.write_text(before)
    shop.type(project, "unhalt")
    id_file.write_text(f"{'0' * 32}\n")
    shop.ask(project)


def test_a_home_that_takes_no_store_is_not_blamed_on_the_agent(shop: Shop) -> None:
    project = shop.make("project")
    (shop.above / "state").write_text("a file, no directory")
    _, err = shop.type(project, "run", "clerk", "Go", "--model", "script:script.yaml", "--suspend", code=1)
    assert "cannot be created" in err
    assert "--store sqlite:FILE" in err
    assert "the agent failed" not in err
