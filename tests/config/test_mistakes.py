"""docs/reference/mistakes.md: every mistake in it is made here, and the page says what the program says."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.config.mistakes import IN_THE_PROJECT, IN_WORKERS, MISTAKES, PROJECT, WORKER, Mistake
from tests.tables import table

from signoff.config import (
    filled_config,
    find_project,
    load_settings,
    load_worker,
    load_workers,
    user_file,
)
from signoff.config.json_schemas import schema_of
from signoff.errors import SignoffError, WrongFile
from signoff.wiring.channel_wiring import kind_of

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "mistakes.md").read_text("utf-8")
ODD_FILES: dict[str, Callable[[Path], object]] = {
    "a link that leads nowhere": lambda file: file.symlink_to("gone.yaml"),
    "a directory of that name": lambda file: file.mkdir(),
    "a pipe of that name": os.mkfifo,
}
ROW = re.compile(r"^\| (?P<title>[^|]+) \| (?P<says>[^|]+) \| (?P<fix>[^|]+) \|$", re.MULTILINE)


def names(mistakes: tuple[Mistake, ...]) -> list[str]:
    return [mistake.title for mistake in mistakes]


def made(mistake: Mistake, directory: Path) -> SignoffError:
    """What the program says about a mistake, in a directory of its own."""
    for name, text in mistake.files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text, "utf-8")
    with pytest.raises(SignoffError) as caught:
        read_everything(mistake.worker)
    return caught.value


def read_everything(worker: str) -> None:
    settings = load_settings(PROJECT)
    for entry in settings.toolsets.values():
        filled_config(entry)
    for entry in settings.channels.values():
        kind_of(entry, settings)
    if worker:
        load_worker(settings, worker)
    load_workers(settings)


def told(error: SignoffError) -> tuple[str, str]:
    """The message and the fix as a row of the page holds them."""
    what, _, fix = str(error).partition("\n")
    return " ".join(what.split()), " ".join(fix.split())


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def rows(text: str) -> dict[str, tuple[str, str]]:
    found = [(row["title"], row["says"], row["fix"]) for row in ROW.finditer(text) if row["title"] != "mistake"]
    return {title.strip(): (plain(says), plain(fix)) for title, says, fix in found if set(title) != {"-"}}


def plain(text: str) -> str:
    return text.replace("`", "").strip()


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ORDERS_URL", raising=False)
    return tmp_path


@pytest.mark.parametrize("mistake", MISTAKES, ids=names(MISTAKES))
def test_a_mistake_is_told_with_its_place_and_a_fix(mistake: Mistake, here: Path) -> None:
    error = made(mistake, here)
    what, fix = told(error)
    if isinstance(error, WrongFile):
        assert error.place is not None
        assert error.place.file in mistake.files
        assert error.fix, "nobody is told what to do"
    where = section("The project file") if mistake in IN_THE_PROJECT else section("Worker files")
    page = rows(where)[mistake.title]
    assert page == (plain(what), plain(fix)), f"\n| {mistake.title} | {what} | {fix} |"


def test_every_row_of_the_page_is_a_mistake_that_was_made() -> None:
    assert list(rows(section("The project file"))) == [*names(IN_THE_PROJECT), *ODD_FILES, "a file of another user"]
    assert list(rows(section("Worker files"))) == [*names(IN_WORKERS), "a file of another user"]


@table("mistake", [one for one in MISTAKES if one.wrong], ids=lambda one: one.title)
def test_the_schema_refuses_it_too(mistake: Mistake) -> None:
    schema = schema_of("project" if mistake.wrong == PROJECT else "worker")
    value = yaml.safe_load(mistake.files[mistake.wrong])
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(schema).validate(value)


def test_a_file_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever can write into a directory above must not decide what agents may do below it."""
    (here / PROJECT).write_text("policy: []\n")
    (here / "below").mkdir()
    assert find_project(str(here / "below")) == str(here / PROJECT)
    _give_away(here / PROJECT, monkeypatch)
    with pytest.raises(WrongFile, match="belongs to another user") as caught:
        find_project(str(here / "below"))
    assert caught.value.place is not None
    assert caught.value.place.file == str(here / PROJECT)
    what, fix = told(caught.value)
    what = re.sub(r"uid \d+", "uid 1001", what.replace(str(here), "/tmp"))
    assert rows(section("The project file"))["a file of another user"] == (plain(what), plain(fix))


def test_a_worker_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (here / PROJECT).write_text("policy: []\n")
    (here / "workers").mkdir()
    (here / WORKER).write_text("instructions: Hi.\n")
    settings = load_settings(PROJECT)
    _give_away(here / WORKER, monkeypatch)
    with pytest.raises(WrongFile) as caught:
        load_worker(settings, "triage")
    what, fix = told(caught.value)
    what = re.sub(r"uid \d+", "uid 1001", what)
    assert rows(section("Worker files"))["a file of another user"] == (plain(what), plain(fix))


@pytest.mark.parametrize("title", ODD_FILES)
def test_what_is_no_file(here: Path, title: str) -> None:
    ODD_FILES[title](here / PROJECT)
    with pytest.raises(WrongFile) as caught:
        find_project()
    what, fix = told(caught.value)
    assert rows(section("The project file"))[title] == (plain(what.replace(str(here), "/tmp")), plain(fix))


def test_a_link_of_another_user_leads_nowhere(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a link away")
    (here / "mine.yaml").write_text("policy: []\n")
    (here / PROJECT).symlink_to("mine.yaml")
    assert find_project() == PROJECT
    os.lchown(here / PROJECT, 1001, -1)
    with pytest.raises(WrongFile, match="belongs to another user"):
        find_project()


def test_the_users_own_file_of_another_user(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(here / "config"))
    file = user_file()
    assert file is not None
    Path(file).parent.mkdir(parents=True)
    Path(file).write_text("policy: []\n")
    (here / PROJECT).write_text("policy: []\n")
    assert load_settings(PROJECT).user is not None
    _give_away(Path(file), monkeypatch)
    with pytest.raises(WrongFile, match="belongs to another user"):
        load_settings(PROJECT)


def _give_away(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.getuid() == 0:
        os.chown(file, 1001, -1)
    else:
        other = os.getuid() + 1
        monkeypatch.setattr(os, "getuid", lambda: other)
