"""`signoff demo`: what was approved happened, and nothing else did."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.program import refused, signoff
from tests.cli.wording import Wording

from signoff.cli.demo_command import split_answers

BEFORE = {
    ".env": "DEPLOY_TOKEN=not-a-real-token\n",
    "drafts/old-plan.md": "# Plan\n\nShip it on Friday.\n",
    "notes.md": "# Relase notes\n\n- Approvals survive a restart\n",
}
WRITTEN = "# Release notes, 2026-01-15\n\n- Approvals survive a restart\n- The inbox is twice as fast\n"


def files(root: Path) -> dict[str, str]:
    return {str(file.relative_to(root)): file.read_text() for file in root.rglob("*") if file.is_file()}


def test_the_directory_holds_exactly_what_was_approved(tmp_path: Path) -> None:
    root = tmp_path / "work"
    done = signoff("demo", "--answers", "approve,deny,edit,always", "--dir", str(root))
    assert done.returncode == 0, done.stderr
    sorted_notes = "".join(sorted(WRITTEN.splitlines(keepends=True)))
    after = files(root)
    assert after.pop("done.txt").strip().isdigit()
    assert after.pop("sorted.md").splitlines() == sorted(set(sorted_notes.splitlines()))
    assert after == {**BEFORE, "notes.md": WRITTEN}
    assert done.stderr.count("your answer >") == 4
    ran, _, rest = done.stdout.partition("What did not")
    assert "not asked again: an earlier answer was remembered always" in ran
    assert "asked by rule secrets; approved by script, with other arguments" in ran
    assert "denied by policy: secrets stay where they are" in rest
    assert "Delete drafts/old-plan.md" in rest
    assert "by --answers" not in done.stderr + done.stdout, "one name for who answers"
    assert "by script: the answer was no" in rest


def test_a_command_that_only_looks_harmless_is_asked_about_and_says_why(tmp_path: Path) -> None:
    done = signoff("demo", "--answers", "deny,deny,deny,deny", "--dir", str(tmp_path / "work"))
    asked = done.stderr.partition("may shell run?")[2].partition("sha256")[0]
    assert "why   `sort -o` writes its output to a" in asked, "first what it does; the line goes on below"
    assert "sandbox" in asked
    assert "allowed       Run: wc -l" in done.stderr


@pytest.mark.parametrize(
    ("answers", "after"),
    [
        ("deny,deny,deny,deny,deny", BEFORE),
        ("approve,approve,deny,deny,deny", {".env": BEFORE[".env"], "notes.md": WRITTEN}),
        ("", BEFORE),
        ('edit:{"path": "new.md", "content": "a,b"},deny', {**BEFORE, "new.md": "a,b"}),
    ],
)
def test_every_other_answer_is_followed_too(answers: str, after: dict[str, str], tmp_path: Path) -> None:
    root = tmp_path / "work"
    done = signoff("demo", "--answers", answers, "--dir", str(root))
    assert done.returncode == 0, done.stderr
    assert files(root) == after


def test_an_edit_that_reaches_for_secrets_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "work"
    done = signoff("demo", "--answers", 'edit:{"path": "x/../.env", "content": "stolen"},deny', "--dir", str(root))
    assert files(root) == BEFORE
    assert "policy denies the edited call: secrets stay where they are" in done.stderr


def test_without_a_terminal_it_answers_by_itself_and_says_how(tmp_path: Path) -> None:
    by_itself = signoff("demo", "--dir", str(tmp_path / "one"))
    told = signoff("demo", "--answers", "approve,deny,edit,always", "--dir", str(tmp_path / "two"))

    assert by_itself.returncode == 0, by_itself.stderr
    assert by_itself.stderr.startswith(
        "There is no terminal to ask at, so the demo answers by itself: --answers approve,deny,edit,always\n"
    )
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert told.returncode == 0


def test_a_directory_with_something_in_it_is_left_alone(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert refused(signoff("demo", "--answers", "approve", "--dir", str(tmp_path))) == wording()
    assert "answers by itself" not in signoff("demo", "--dir", str(tmp_path)).stderr
    assert files(tmp_path) == {"mine.txt": "mine"}


def test_a_word_that_is_no_answer_is_refused_before_anything_happens(tmp_path: Path, wording: Wording) -> None:
    root = tmp_path / "work"
    assert refused(signoff("demo", "--answers", "approve,maybe", "--dir", str(root))) == wording()
    assert not root.exists()


def test_answers_are_separated_by_commas_outside_of_braces() -> None:
    edit = "edit:" + json.dumps({"a": 1, "b": [1, 2]})
    assert split_answers(f"approve, deny:no,{edit},always") == ["approve", "deny:no", edit, "always"]
