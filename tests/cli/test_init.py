"""`signoff init`: a project that works as it stands, offline, and checks in an editor."""

from __future__ import annotations

import errno
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests.cli.desk import Desk
from tests.cli.program import refused, signoff
from tests.cli.wording import Wording

from signoff.config.json_schemas import SCHEMA_FILES

FILES = ["hello.yaml", "signoff.yaml", "workers/notetaker.yaml"]
SCHEMAS = [f".signoff/{name}" for name in SCHEMA_FILES.values()]
RUN = ("run", "notetaker", "Note the milk", "--model", "script:hello.yaml")


def files_in(directory: Path) -> list[str]:
    return sorted(str(one.relative_to(directory)) for one in directory.rglob("*.yaml"))


def test_init_writes_a_project_that_works_and_overwrites_nothing(tmp_path: Path, wording: Wording) -> None:
    done = signoff("init", cwd=tmp_path)
    assert done.returncode == 0
    assert files_in(tmp_path) == FILES
    assert done.stdout == wording()
    tools = "list_files,read_file,search_files,write_file,edit_file,move_file,delete_file"
    assert signoff("policy", "check", "signoff.yaml", "--tools", tools, cwd=tmp_path).returncode == 0
    ran = signoff(*RUN, "--mode", "auto_approve", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert (ran.returncode, (tmp_path / "notes" / "shopping.md").read_text()) == (0, "- milk\n"), ran.stderr
    (tmp_path / "hello.yaml").write_text("mine")
    told = refused(signoff("init", cwd=tmp_path))
    assert told == wording()
    assert (tmp_path / "hello.yaml").read_text() == "mine"


def test_init_leaves_nothing_half_done(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "hello.yaml").write_text("mine")
    refused(signoff("init", cwd=tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["hello.yaml"]
    assert signoff("init", "new/project", cwd=tmp_path).stdout == wording()
    assert files_in(tmp_path / "new" / "project") == FILES


def test_an_editor_finds_the_schema_of_every_file(tmp_path: Path) -> None:
    assert signoff("init", cwd=tmp_path).returncode == 0
    for name in FILES:
        file = tmp_path / name
        named = re.match(r"# yaml-language-server: \$schema=(\S+)\n", file.read_text())
        assert named is not None, name
        schema = json.loads((file.parent / named[1]).read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.validate(yaml.safe_load(file.read_text()), schema)


def test_what_is_printed_asks_at_the_terminal(desk: Desk) -> None:
    (desk.directory / "signoff.yaml").unlink()
    assert desk.run("init").code == 0
    child = desk.sits_down(*RUN)
    child.expect("may write_file run")
    child.expect("notetaker > write_file")
    child.expect("your answer > ")
    child.sendline("a")
    child.expect("wrote 7 bytes to notes/shopping.md")
    child.wait()
    assert (child.exitstatus, (desk.directory / "notes" / "shopping.md").read_text()) == (0, "- milk\n")


@pytest.mark.parametrize("taken", FILES)
def test_each_file_is_kept(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("mine")
    assert taken in refused(signoff("init", cwd=tmp_path))
    assert files_in(tmp_path) == [taken]


def everything_in(directory: Path) -> list[str]:
    return sorted(str(one.relative_to(directory)) for one in directory.rglob("*"))


@pytest.mark.parametrize("taken", [*FILES, *SCHEMAS, "workers", ".signoff"])
def test_a_link_that_leads_nowhere_is_in_the_way_too(tmp_path: Path, taken: str, wording: Wording) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).symlink_to(tmp_path / "nowhere")
    before = everything_in(tmp_path)
    told = refused(signoff("init", cwd=tmp_path))
    assert taken in told
    assert told == wording()
    assert everything_in(tmp_path) == before


@pytest.mark.parametrize("directory", ["workers", ".signoff"])
def test_nothing_is_written_through_a_link(tmp_path: Path, directory: str) -> None:
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (mine := tmp_path / "mine").mkdir()
    (mine / directory).symlink_to(elsewhere)
    assert f"{directory} is a link; nothing was written" in refused(signoff("init", cwd=mine))
    assert everything_in(mine) == [directory] and not everything_in(elsewhere)
    (tmp_path / "here").symlink_to(mine)
    (mine / directory).unlink()
    assert signoff("init", cwd=tmp_path / "here").returncode == 0, "the directory itself may be reached by a link"


@pytest.mark.parametrize("directory", ["workers", ".signoff"])
def test_a_file_where_a_directory_should_be_is_in_the_way(tmp_path: Path, directory: str, wording: Wording) -> None:
    (tmp_path / directory).write_text("mine")
    assert refused(signoff("init", cwd=tmp_path)) == wording()
    assert everything_in(tmp_path) == [directory]


def test_schemas_of_ones_own_are_not_overwritten(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / ".signoff").mkdir()
    (tmp_path / SCHEMAS[0]).write_text("mine")
    assert refused(signoff("init", cwd=tmp_path)) == wording()
    assert (tmp_path / SCHEMAS[0]).read_text() == "mine"
    assert signoff("schema", "--write", ".signoff", cwd=tmp_path).returncode == 0
    done = signoff("init", cwd=tmp_path)
    assert done.returncode == 0, "schemas that are just as they would be written are in nobody's way"
    assert done.stdout == wording()


@pytest.mark.parametrize("fails", ["hello.yaml", "worker.schema.json"])
def test_what_cannot_be_finished_leaves_nothing_behind(desk: Desk, fails: str, wording: Wording) -> None:
    """As when the disk is full: after some files were written."""
    opened = Path.open

    def full(self: Path, mode: str = "r", *rest: Any, **more: Any) -> Any:
        if self.name == fails and mode != "r":
            raise OSError(errno.ENOSPC, "No space left on device", str(self))
        return opened(self, mode, *rest, **more)

    (desk.directory / "mine").mkdir()
    before = everything_in(desk.directory)
    desk.monkeypatch.setattr(Path, "open", full)
    said = desk.run("init", "mine/new/project")
    assert (said.code, said.out) == (2, "")
    assert said.err == wording()
    assert everything_in(desk.directory) == before
