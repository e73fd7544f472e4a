"""`signoff init`: a project that works as it stands, offline, and checks in an editor."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.cli.desk import Desk
from tests.cli.program import refused, signoff

FILES = ["hello.yaml", "signoff.yaml", "workers/notetaker.yaml"]
RUN = ("run", "notetaker", "Note the milk", "--model", "script:hello.yaml")


def files_in(folder: Path) -> list[str]:
    return sorted(str(one.relative_to(folder)) for one in folder.rglob("*.yaml"))


def test_init_writes_a_project_that_works_and_overwrites_nothing(tmp_path: Path) -> None:
    done = signoff("init", cwd=tmp_path)
    assert done.returncode == 0
    assert files_in(tmp_path) == FILES
    assert 'Try it:  signoff run notetaker "Note the milk" --model script:hello.yaml' in done.stdout
    tools = "list_files,read_file,search_files,write_file,edit_file,move_file,delete_file"
    assert signoff("policy", "check", "signoff.yaml", "--tools", tools, cwd=tmp_path).returncode == 0
    ran = signoff(*RUN, "--mode", "auto_approve", cwd=tmp_path, XDG_STATE_HOME=str(tmp_path / "state"))
    assert (ran.returncode, (tmp_path / "notes" / "shopping.md").read_text()) == (0, "- milk\n"), ran.stderr
    (tmp_path / "hello.yaml").write_text("mine")
    told = refused(signoff("init", cwd=tmp_path))
    assert "hello.yaml" in told
    assert "nothing was written" in told
    assert (tmp_path / "hello.yaml").read_text() == "mine"


def test_init_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "hello.yaml").write_text("mine")
    refused(signoff("init", cwd=tmp_path))
    assert [file.name for file in tmp_path.iterdir()] == ["hello.yaml"]
    assert "cd new/project && signoff run notetaker" in signoff("init", "new/project", cwd=tmp_path).stdout
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
    (desk.folder / "signoff.yaml").unlink()
    assert desk.run("init").code == 0
    child = desk.sits_down(*RUN)
    child.expect("may write_file run")
    child.expect("notetaker > write_file")
    child.expect("your answer > ")
    child.sendline("a")
    child.expect("wrote 7 bytes to notes/shopping.md")
    child.wait()
    assert (child.exitstatus, (desk.folder / "notes" / "shopping.md").read_text()) == (0, "- milk\n")


@pytest.mark.parametrize("taken", FILES)
def test_each_file_is_kept(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).parent.mkdir(exist_ok=True)
    (tmp_path / taken).write_text("mine")
    assert taken in refused(signoff("init", cwd=tmp_path))
    assert files_in(tmp_path) == [taken]
