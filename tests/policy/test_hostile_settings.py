"""What settings and ignore files of a hostile project say cannot make the judge work without end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from signoff import ignore_files, named_settings
from signoff.ignore_files import IgnoreFiles
from signoff.named_settings import named_by_settings
from signoff.outside.coding_agents import Search


def test_a_file_that_settings_name_is_read_once_however_often(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / "d" / str(number)).mkdir(parents=True)
        (tmp_path / "d" / str(number) / "x.json").write_text("")
    words = " ".join(f'"{number}/x.json"' for number in range(500))
    (tmp_path / "tsconfig.json").write_text(words)
    read: list[str] = []
    text = named_settings._text
    monkeypatch.setattr(named_settings, "_text", lambda file: read.append(file) or text(file))
    wanted = str(tmp_path / "d" / "7" / "x.json")
    assert named_by_settings(str(tmp_path), [wanted]) == {wanted}
    assert len(read) == len(set(read)) == 31


def test_too_many_lines_of_ignore_files_leave_nothing_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("".join(f"a{number}\n" for number in range(50)) + ".env\n")
    file = str(tmp_path / "sub" / ".env")
    assert IgnoreFiles().leaves_out(file, str(tmp_path)) and not IgnoreFiles().lets_in(file)
    monkeypatch.setattr(ignore_files, "MOST_COMPARED", 250)
    files = IgnoreFiles()
    assert files.leaves_out(file, str(tmp_path)) and files.leaves_out(file, str(tmp_path))
    assert not files.leaves_out(file, str(tmp_path)), "no more is compared"
    assert files.lets_in(file)


@pytest.mark.parametrize("path", ["../" * 300, "a/" * 300, "a\0b"])
def test_a_search_with_more_steps_than_a_path_has_is_in_doubt(tmp_path: Path, path: str) -> None:
    assert "more steps than one can have" in Search("glob").doubt({"pattern": "x", "path": path}, str(tmp_path))
    assert "more steps than one can have" in Search("glob").doubt({"pattern": "x", "glob": path}, os.curdir)
