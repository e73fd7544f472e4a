"""Changing the arguments in an editor, as a person would: a real file, a real program."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.channels.person import PAGE, PROMPT, request, sitting_at

from signoff.channels.editor import BrokenArgs, find_editor, pretty, read_args, write_args
from signoff.core.decision import ApprovalDecision

AGAIN = "open the editor again, with your text? y yes, Enter no > "
CONFIRM = "run it like this? y yes, Enter no > "

EDITOR = """#!{python} -IS
import os, pathlib, sys
directory, file = pathlib.Path({directory!r}), pathlib.Path(sys.argv[-1])
turn = len(list(directory.glob("seen.*")))
directory.joinpath(f"seen.{{turn}}").write_text(f"{{os.stat(file).st_mode:o}}\\n{{file.name}}\\n" + file.read_text())
old, new = eval(directory.joinpath("edits").read_text())[turn]
if old == "exit":
    sys.exit(new)
text = file.read_text()
assert old in text, text
file.write_text(text.replace(old, new))
"""

Make = Callable[..., str]


@pytest.fixture
def editor(tmp_path: Path) -> Make:
    """An editor that replaces one text by another, a pair for each time it is opened."""

    def make(*edits: tuple[str, Any]) -> str:
        tmp_path.joinpath("edits").write_text(repr(edits))
        script = tmp_path / "editor"
        script.write_text(EDITOR.format(python=sys.executable, directory=str(tmp_path)))
        script.chmod(0o755)
        return str(script)

    return make


def seen(directory: Path, turn: int = 0) -> tuple[int, str, str]:
    """What the editor was given: the file's mode, its name, its text."""
    mode, name, text = directory.joinpath(f"seen.{turn}").read_text().split("\n", 2)
    return stat.S_IMODE(int(mode, 8)), name, text


def approved(decision: ApprovalDecision) -> Any:
    assert decision.approved
    return decision.edited_args


def test_edit_look_and_confirm(tmp_path: Path, editor: Make) -> None:
    with sitting_at(tmp_path, [request()], env={"EDITOR": editor(("hello", "goodbye"))}) as ana:
        ana.answers("e")
        shown = ana.sees(CONFIRM)
        assert '-  "content": "hello"' in ana.screen
        assert '+  "content": "goodbye"' in ana.screen
        assert "your changes: +1 -1" in shown
        ana.types("y")
        ana.sees("you approve it with your changes")
        (decision,) = ana.decides()
    assert approved(decision) == {"path": "notes.txt", "content": "goodbye"}
    mode, name, text = seen(tmp_path)
    assert mode == 0o600
    assert name.endswith(".jsonc")
    assert text.startswith("// The arguments of triage > write_file.")
    assert not list(tmp_path.glob("signoff-*"))


def test_only_yes_confirms(tmp_path: Path, editor: Make) -> None:
    other = ("", "n", "a", "yess")
    with sitting_at(tmp_path, [request()], env={"EDITOR": editor(*[("hello", "goodbye")] * len(other))}) as ana:
        for typed in other:
            ana.answers("e")
            ana.answers(typed, prompt=CONFIRM)
            ana.sees("Nothing is decided.")
        ana.answers("a")
        (decision,) = ana.decides()
        assert decision.approved
        assert decision.edited_args is None


def test_broken_json_can_be_mended(tmp_path: Path, editor: Make) -> None:
    command = editor(('"hello"', '"bye" oops'), ('"bye" oops', '"bye"'))
    with sitting_at(tmp_path, [request()], env={"VISUAL": command, "EDITOR": "false"}) as ana:
        ana.answers("e")
        ana.sees("These arguments cannot be used: line 4, column 20: Expecting ',' delimiter.")
        ana.answers("y", prompt=AGAIN)
        ana.answers("y", prompt=CONFIRM)
        (decision,) = ana.decides()
    assert approved(decision) == {"path": "notes.txt", "content": "bye"}
    assert '"bye" oops' in seen(tmp_path, 1)[2]


def test_broken_json_can_be_left(tmp_path: Path, editor: Make) -> None:
    with sitting_at(tmp_path, [request()], env={"EDITOR": editor(("{", ""))}) as ana:
        ana.answers("e")
        ana.answers("", prompt=AGAIN)
        ana.sees("Nothing is decided.")
        ana.answers("d")
        assert not ana.decides()[0].approved


def test_unchanged_is_no_edit(tmp_path: Path, editor: Make) -> None:
    with sitting_at(tmp_path, [request()], env={"EDITOR": editor(("hello", "hello"))}) as ana:
        ana.answers("e")
        ana.sees("The arguments are unchanged.")
        ana.answers("a")
        assert ana.decides()[0].edited_args is None


def test_masked_secrets_come_back(tmp_path: Path, editor: Make) -> None:
    args = {"url": "https://u:pw99@old.example/x", "password": "hunter2", "note": "declared-1"}
    how = {"env": {"EDITOR": editor(("old.example", "new.example"))}, "options": {"secrets": ["declared-1"]}}
    with sitting_at(tmp_path, [request(args=args)], **how) as ana:
        ana.answers("e")
        ana.answers("y", prompt=CONFIRM)
        (decision,) = ana.decides()
        for secret in ("hunter2", "pw99", "declared-1"):
            assert secret not in ana.screen
            assert secret not in seen(tmp_path)[2]
    assert approved(decision) == args | {"url": "https://u:pw99@new.example/x"}


def test_secrets_that_the_request_declares_are_masked_too(tmp_path: Path, editor: Make) -> None:
    asked = request(args={"to": "ana", "note": "declared-2"}, secrets=("declared-2",))
    with sitting_at(tmp_path, [asked], env={"EDITOR": editor(("ana", "bob"))}) as ana:
        ana.answers("e")
        ana.answers("y", prompt=CONFIRM)
        (decision,) = ana.decides()
        assert "declared-2" not in ana.screen + seen(tmp_path)[2]
    assert approved(decision) == {"to": "bob", "note": "declared-2"}


def test_a_moved_mask_is_refused(tmp_path: Path, editor: Make) -> None:
    args = {"to": "ana", "password": "hunter2"}
    command = editor(('"to": "ana"', '"to": "⟦masked 1: password⟧"'), ("⟦masked 1: password⟧", "bob"))
    with sitting_at(tmp_path, [request(args=args)], env={"EDITOR": command}) as ana:
        ana.answers("e")
        ana.sees("to: a mask was moved or copied here")
        ana.answers("y", prompt=AGAIN)
        ana.answers("y", prompt=CONFIRM)
        assert approved(ana.decides()[0]) == {"to": "bob", "password": "bob"}


def test_hidden_characters_are_spelled_in_the_file_and_survive(tmp_path: Path, editor: Make) -> None:
    args = {"a": "x\u202ey\x1b\u200b\U000e0041\x7f⟦", "b": "old", "c": "नमस्ते tiếng\u00a0"}
    with sitting_at(tmp_path, [request(args=args)], env={"EDITOR": editor(("old", "new"))}) as ana:
        ana.answers("e")
        ana.answers("y", prompt=CONFIRM)
        assert approved(ana.decides()[0]) == args | {"b": "new"}
    text = seen(tmp_path)[2]
    assert r'"x\u202ey\u001b\u200b\udb40\udc41\u007f⟦"' in text
    assert "नमस्ते tiếng\\u00a0" in text


def test_a_refused_draft_is_where_editing_goes_on(tmp_path: Path, editor: Make) -> None:
    asked = request(problem="content: too long", metadata={"draft": {"path": "notes.txt", "content": "my draft"}})
    with sitting_at(tmp_path, [asked], env={"EDITOR": editor(("my draft", "mine"))}) as ana:
        ana.answers("e")
        ana.answers("y", prompt=CONFIRM)
        assert approved(ana.decides()[0]) == {"path": "notes.txt", "content": "mine"}
        assert '-  "content": "hello"' in ana.screen
    assert "// Not accepted before: content: too long" in seen(tmp_path)[2]


def test_an_editor_that_fails_changes_nothing(tmp_path: Path, editor: Make) -> None:
    with sitting_at(tmp_path, [request()], env={"EDITOR": editor(("exit", 3))}) as ana:
        ana.answers("e")
        ana.sees("ended with exit code 3")
        ana.answers("d")
        assert not ana.decides()[0].approved


def test_an_editor_that_is_not_there(tmp_path: Path) -> None:
    with sitting_at(tmp_path, [request()], options={"editor": "/nowhere/vi -x"}) as ana:
        ana.answers("e")
        ana.sees("Not edited: /nowhere/vi cannot be started: No such file or directory.")
        ana.answers("d")
        ana.decides()


def test_ctrl_c_in_the_editor_does_not_end_the_run(tmp_path: Path) -> None:
    script = tmp_path / "waits"
    script.write_text("#!/bin/sh\necho in the editor\nread line\nexit 1\n")
    script.chmod(0o755)
    with sitting_at(tmp_path, [request()], env={"EDITOR": str(script)}) as ana:
        ana.answers("e")
        ana.sees("in the editor")
        ana.presses("\x03\r")
        ana.sees("ended with exit code 1")
        ana.answers("d")
        assert not ana.decides()[0].approved


def test_an_edit_may_follow_what_was_not_shown_whole(tmp_path: Path, editor: Make) -> None:
    """In the editor a person has everything before them."""
    args = {"content": "x" * 5000, "mode": "old"}
    with sitting_at(tmp_path, [request(args=args)], env={"EDITOR": editor(*[("old", "new")] * 2)}) as ana:
        assert "press m" in ana.sees(PROMPT)
        ana.types("e")
        ana.answers("g", prompt=f"{PAGE} > ")
        ana.sees("You have not seen all of your changes.")
        ana.answers("e")
        ana.pages(CONFIRM)
        ana.types("y")
        assert approved(ana.decides()[0]) == args | {"mode": "new"}


# --- the file ---


@pytest.mark.parametrize(
    "args", [{}, {"a": [1, 2.5, None, True, {"b": "\u2028\ud800\t\n"}]}, {"⟦U+202E⟧": "//", "//": " "}]
)
def test_what_is_written_reads_back(args: dict[str, Any]) -> None:
    assert read_args(write_args(args, ["one", "two"])) == args
    assert pretty(args).encode()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('// x\n{"a": 1,}', "line 2, column "),  # which one depends on Python
        ("", "line 1, column 1: "),
        ("[1]", "one object"),
        ('{"a": 1, "a": 2}', 'the key "a" is given twice'),
        ('{"a": NaN}', "NaN is not a JSON number"),
        ('{"a": 1} // later', "line 1, column 10: "),
        ('{"a": ' + "[" * 5000, ""),
    ],
)
def test_a_broken_file_says_where(text: str, problem: str) -> None:
    with pytest.raises(BrokenArgs) as broken:
        read_args(text)
    assert problem in str(broken.value)


def test_which_editor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VISUAL", "code --wait")
    monkeypatch.setenv("EDITOR", "ed")
    assert find_editor("my 'own editor'") == ["my", "own editor"]
    assert find_editor() == ["code", "--wait"]
    monkeypatch.setenv("VISUAL", " ")
    assert find_editor() == ["ed"]
    monkeypatch.delenv("EDITOR")
    monkeypatch.setenv("PATH", "")
    assert find_editor() == []


def test_the_file_is_json_for_an_editor() -> None:
    text = write_args({"a": "x"}, ["hello"])
    assert text == '// hello\n{\n  "a": "x"\n}\n'
    assert json.loads(text.split("\n", 1)[1]) == {"a": "x"}
