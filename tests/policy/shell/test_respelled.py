"""The same effect in another spelling: of no command that is asked about does a respelling run unasked."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

import pytest
from tests.policy.shell.programs.test_programs import CASES
from tests.policy.shell.respellings import respellings
from tests.policy.shell.test_further_words import BEYOND, allows

from signoff.policy.shell import simple_command, table
from signoff.policy.shell.command_facts import forget, read_shell

OTHERWISE = {
    r"lsof -- \+.*|(?:less|more) -- '?\+.*|tar -- c?x?[TIf]+ .*": "behind `--` nothing is an option",
    r".* --(?:exclude=\.env|cursor=b|text|stdin|cache src|output src|data x@|test |get branch).*": "another option",
    r"git .* --(?:format|pretty|submodule|ignore-submodules) .*|git .* --(?:column|merged)=.*": "its value is attached",
    r"test -[vR]x|gzip -ka|git log -pmain\.\.stash": "no option, another, or an error",
    r".*(?: -[kmDl]|=)@.*": "only a whole word names a file of words",
    r".*=--.*|git show .* --stat=-p": "it is the value of an option",
    r"git (?:log -p|rev-parse .*) refs/.*|git config \S+/.*": "there is no such name in git",
    r"iconv -f ?\.//map a": "a character set, not a file",
}
"""Respellings that do something else, and why. None is known to do what is asked about."""


def words_of(line: str) -> Sequence[str]:
    """Return the words of a line that is one plain command; none of any other."""
    try:
        return shlex.split(line) if not re.search(r"[|;&<>$`\n()*?\[\]{}~#]", line) else ()
    except ValueError:
        return ()


def others(line: str) -> Iterator[str]:
    words = words_of(line)
    yield from (shlex.join(one) for one in dict.fromkeys(respellings(words)) if len(words) > 1)


def unexplained(found: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(line, other) for line, other in found if not any(re.fullmatch(one, other) for one in OTHERWISE)]


def test_what_is_asked_about_is_asked_about_in_every_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simple_command, "unasked_programs", table.known_programs)
    forget()
    asked = [line for line, wanted in CASES if wanted == "asks"]
    found = [(line, other) for line in asked for other in others(line) if read_shell(other).read_only]
    forget()
    assert unexplained(found) == []


@pytest.mark.parametrize("part", [pytest.param(part, marks=pytest.mark.nightly if part else []) for part in range(5)])
def test_what_no_last_star_covers_it_covers_in_no_spelling(part: int) -> None:
    rows = [row.partition(" :: ") for row in BEYOND.strip().splitlines()[part::5]]
    found = [(line, other) for star, _, line in rows for other in others(line) if allows(star, other)]
    assert unexplained(found) == []


def test_respellings_are_tried_of_paths_options_and_values() -> None:
    tried = set(map(shlex.join, respellings(["tsc", "-p", "a/x.json", "--noEmit", "--lib=b.d"])))
    assert {
        "tsc -p a/x.json/ --noEmit --lib=b.d", "tsc -p ./a/x.json --noEmit --lib=b.d",
        "tsc -pa/x.json --noEmit --lib=b.d",
        "tsc -p a//x.json --noEmit --lib=b.d", "tsc -p a/x.json --noEm --lib=b.d", "tsc -p a/x.json --noEmit --lib b.d",
        "tsc -p a/./x.json --noEmit --lib=b.d", "tsc -p a/x/../x.json --noEmit --lib=b.d",
        "tsc -p a/x.json --noEmit --lib=./b.d",
    } <= tried  # fmt: skip
    assert ("cat", "--", ".env") in set(respellings(["cat", ".env"]))
