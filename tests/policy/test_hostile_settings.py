"""What settings and ignore files of a hostile project say cannot make the judge work without end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from signoff import named_settings
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.disk_steps import DiskSteps
from signoff.ignore_files import IgnoreFiles
from signoff.links import looked_up
from signoff.named_settings import named_by_settings
from signoff.outside.coding_agents import Search
from signoff.policy.engine import Policy
from signoff.policy.shell.command_facts import forget
from signoff.policy.step_count import COSTS, MOST_STEPS, Unclear


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
    assert named_by_settings(str(tmp_path), [wanted], DiskSteps()) == {wanted}
    assert len(read) == len(set(read)) == 31


def test_too_many_lines_of_ignore_files_are_in_doubt(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("".join(f"a{number}\n" for number in range(50)) + ".env\n")
    file = str(tmp_path / "sub" / ".env")
    files = IgnoreFiles(count := DiskSteps(5_000))
    assert files.leaves_out(file, str(tmp_path)) and not files.lets_in(file)
    count.left = 100
    with pytest.raises(Unclear, match="too many steps"):  # they are read once, and compared each time
        files.leaves_out(file, str(tmp_path))
    assert count.why


def test_comments_in_ignore_files_take_steps_too(tmp_path: Path) -> None:
    (tmp_path / ".ignore").write_text("#\n" * 10_000)
    files = IgnoreFiles(count := DiskSteps(1_000))
    with pytest.raises(Unclear, match="too many steps"):
        files.lets_in(str(tmp_path / ".h"))
    assert count.why


def test_links_are_followed_as_the_system_does_and_each_takes_steps(tmp_path: Path) -> None:
    home = Path(os.path.realpath(tmp_path))
    (home / "x" / "y").mkdir(parents=True)
    (home / "l").symlink_to("x/y")
    (home / "a0").symlink_to("x/r")
    (home / "x" / "r").symlink_to(f"{home}/none")
    (home / "round").symlink_to("round")
    for number in range(1, 50):
        (home / f"a{number}").symlink_to("/".join([f"../{home.name}/."] * 20 + [f"a{number - 1}"]))
    for path in (
        "l/../r",
        "l/..",
        "./x//y/../r",
        "nowhere/../x",
        "l/none/../../r",
        "x/y/",
        "a0/..",
        "a20",
        "round",
        "round/x/../y",
        "",
        "/",
    ):
        assert DiskSteps().real(os.path.join(home, path)) == os.path.realpath(os.path.join(home, path)), path
    left = [(count := DiskSteps(), count.real(f"{home}/a{number}"))[0].left for number in (10, 20, 30)]
    assert left[0] - left[1] == left[1] - left[2] > 400
    with pytest.raises(Unclear):
        (count := DiskSteps()).real(f"{home}/a45")
    assert "more links than a system follows" in count.why


def test_a_tree_that_is_not_searched_to_its_end_is_in_doubt(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / f"f{number}").touch()
    doubt = Search("glob").doubt
    assert not doubt({"pattern": "x"}, str(tmp_path), DiskSteps())
    assert "too many steps" in Search("glob", prints=True).doubt({"pattern": "x"}, str(tmp_path), DiskSteps(100))


@pytest.mark.parametrize("path", ["../" * 300, "a/" * 300, "a\0b"])
def test_a_search_with_more_steps_than_a_path_has_is_in_doubt(tmp_path: Path, path: str) -> None:
    for given, where in (({"path": path}, str(tmp_path)), ({"glob": path}, os.curdir)):
        assert "more steps than one can have" in Search("glob").doubt({"pattern": "x", **given}, where, DiskSteps())


PATTERNS: dict[str, Callable[[int], str]] = {
    "patterns": lambda many: "cat " + " ".join(f"l/*a{many + one}*" for one in range(many)),
    "patterns that nearly match": lambda many: (
        "cat " + " ".join("l/" + "*a" * 20 + str(many + one) for one in range(many))
    ),
    "patterns in commands": lambda many: "; ".join(f"cat l/?*{many + one}" for one in range(many)),
    "directories": lambda many: "grep -r x " + " ".join("./" * (one % 8) + "l" for one in range(many)),
    "patterns of git": lambda many: "git log -- " + " ".join(f"'l/*{many + one}*'" for one in range(many)),
    "any depth": lambda many: "cat " + " ".join(f"**/*{many + one}" for one in range(many)),
    "links": lambda many: "cat " + " ".join(f"l/../l/{'a' * 90}{one % 40}" + "/." * (many % 7) for one in range(many)),
}


@pytest.mark.parametrize("kind", PATTERNS)
@pytest.mark.parametrize("rule", [{"deny": {"path": "**/.env"}}, {"ask": {"path": {"sensitive": True}}}], ids=str)
def test_the_work_for_a_line_of_patterns_ends(
    tmp_path: Path, kind: str, rule: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It grows with the line until the steps of one call are taken, whatever the line names."""
    (tmp_path / "l").mkdir()
    for number in range(40):
        (tmp_path / "l" / f"{'a' * 90}{number}").symlink_to("../x")
    rules = Policy.from_rules([rule, {"allow": {"tool": "shell", "command": "read-only"}}], root=str(tmp_path))

    def seen(many: int, count: DiskSteps) -> Call:
        forget()
        return looked_up(Call(tool="shell", args={"command": PATTERNS[kind](many)}), rules, str(tmp_path), count)

    used = [MOST_STEPS - (seen(many, count := DiskSteps()), count.left)[1] for many in (3, 6, 12)]
    assert used[0] < used[1] <= 2.5 * used[0] and used[2] <= 2.5 * used[1]
    monkeypatch.setattr("signoff.policy.step_count.MOST_STEPS", 2_000)
    monkeypatch.setattr("signoff.policy.shell.common_files.MOST_COMPARED", 2_000)
    looks: list[object] = []
    for name in ("scandir", "listdir", "lstat", "readlink"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, real=real: (looks.append(args), real(*args))[1])
    call = seen(60, count := DiskSteps())
    assert len(looks) <= 2_000 / min(COSTS["directory"], COSTS["status"], COSTS["component"]) + 10
    assert -200 < count.left < 0, "it ends there"
    found = rules.judge(call)
    assert found.effect is Effect.ASK and any("too many steps" in one for one in found.errors)
