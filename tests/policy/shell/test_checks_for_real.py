"""Checks that run unasked, with every option that is covered, run for real: they run no code that somebody wrote
unasked, change no file, print no secret and write nowhere else.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.cli.own_checks import tools
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.engine import Policy
from signoff.policy.places import runs_later
from signoff.policy.shell.listed_words import entries

RUNS_TESTS = frozenset(
    "pytest unittest coverage mocha ava tap jest vitest borp tstyche tsd playwright c8 nyc spin".split()
)
"""They run code of the project: that is what they are for."""
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
PROGRAMS = sorted(
    {command.split()[0] for tool in tools() for command in tool.commands if command.endswith(" *")} - RUNS_TESTS
)
BY_DAY = 20
"""How many of the lines of ruff are run by day."""
LIKELY = frozenset(
    "-c --config -p --project -o --output-file --fix --include --parser --file-list --plugin -r --root".split()
)
"""What many programs take for settings, code or places."""
NAMED = {
    "evil.js": "require('fs').writeFileSync('{top}/RAN', ''); module.exports = {};",
    "evil.mjs": "import fs from 'fs'; fs.writeFileSync('{top}/RAN', ''); export default [];",
    "evil.py": "open('{top}/RAN', 'w').close()",
    "evil.json": '{"compilerOptions": {"incremental": true, "tsBuildInfoFile": "../outside"}, "files": ["src/a.ts"], '
    '"extends": "./.env", "import": ["./evil.mjs"], "plugins": ["./evil.mjs"]}',
    "evil.toml": 'cache-dir = "../outside-cache"\nfix = true\n[main]\ninit-hook = "import evil"\n',
    "evil.args": "--fix\n--output-file=../outside\n--init-hook=import evil\n",
    "evil.list": ".env\n",
}
"""Files that nobody is asked about, and what they say to the programs that take them for their own."""
VALUES = [
    *NAMED,
    "@evil.args",
    "./evil.js",
    "evil",
    "evil.json/",
    "./evil.json/./",
    ".*",
    "\\.en",
    "../outside",
    "src/a.py",
    "json",
    "2",
]


def lay_out(top: Path) -> Path:
    place = top / "project"
    (place / "src").mkdir(parents=True)
    for name, text in NAMED.items():
        assert not runs_later(name)
        (place / name).write_text(text.replace("{top}", str(top)))
    for secret in (".env", "src/.env"):
        (place / secret).write_text("SECRETMARK = 1 ;\n")
    (top / "outside").write_text("outside")
    (place / "tsconfig.json").write_text("{}")
    for name, text in {
        "a.py": "import os\nx=1\n",
        "a.ts": "let x: number = ''\n",
        "a.js": "var x\n",
        "a.css": "a{}",
    }.items():
        (place / "src" / name).write_text(text)
    return place


def lines(program: str) -> Iterator[list[str]]:
    """Yield the command lines of a program that run unasked, with each of its options and values for it."""
    rewrites = [one for tool in tools() for one in tool.rewrites]
    allowed = [one for tool in tools() for one in tool.commands if one.split()[0] == program]
    rules = [{"ask": {"command": rewrites}}, {"allow": {"tool": "shell", "command": allowed}}]
    policy = Policy.from_rules(rules)
    for command in allowed:
        fixed = command.split()[:-1] if command.endswith("*") else command.split()
        names = [name for name in entries() if name == " ".join(fixed[:2]) or name == program]
        lists = [entries()[name] for name in names]
        values = {one for entry in lists for one in (*entry.values, *entry.texts, *entry.fits)} | LIKELY
        flags = {flag for entry in lists for flag in entry.flags}
        last = ["--diff", "src"] if "--diff" in flags else ["src"]
        tried = [[flag, *last] for flag in sorted(flags)] + [[value] for value in VALUES]
        for option in sorted(values):
            tried += [[option, value, *rest] for value in VALUES for rest in (last, [])]
        yield from ([*fixed, *words] for words in tried if is_allowed(policy, [*fixed, *words]))


def is_allowed(policy: Policy, words: list[str]) -> bool:
    return policy.judge(Call(tool="shell", args={"command": shlex.join(words)})).effect is Effect.ALLOW


def state(top: Path) -> dict[str, bytes]:
    """Return what is in each file but those that checks keep for themselves."""
    kept = ("cache", "node_modules", "tsbuildinfo")
    files = (path for path in top.rglob("*") if path.is_file() and not any(part in str(path) for part in kept))
    return {str(path.relative_to(top)): path.read_bytes() for path in files}


@pytest.mark.parametrize("program", [pytest.param(one, marks=pytest.mark.nightly) for one in PROGRAMS])
def test_a_check_only_checks(program: str, tmp_path: Path) -> None:
    found = list(lines(program))
    assert len(found) > 10
    run(found, tmp_path)


def test_some_checks_only_check(tmp_path: Path) -> None:
    found = list(lines("ruff"))
    run(found[:: len(found) // BY_DAY], tmp_path)


def run(found: list[list[str]], tmp_path: Path) -> None:
    if not (program := shutil.which(found[0][0], path=PATH)):
        pytest.skip(f"needs {found[0][0]}")
    place = lay_out(tmp_path)
    before = state(tmp_path)
    for words in found:
        done = subprocess.run(
            [program, *words[1:]], cwd=place, stdin=subprocess.DEVNULL, capture_output=True, timeout=120, check=False
        )
        assert b"SECRETMARK" not in done.stdout + done.stderr, shlex.join(words)
        assert state(tmp_path) == before, shlex.join(words)
