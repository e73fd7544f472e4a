"""Lines with variables, substitutions, conditions and loops that are allowed, in five real shells, inside a sandbox.

None may print what lies in a secret place or variable, change a file, or run what is in a word or beside it.
"""

from __future__ import annotations

import json
import re
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, product
from pathlib import Path

import pytest
from tests.policy.shell.structured import lines
from tests.policy.shell.test_words_shells import SHELLS
from tests.profiles import NIGHTLY

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.shell_variables import may_be_kept

SECRET = "CaNaRy77"
TRIED = 400_000 if NIGHTLY else 600
SEED = 7

NAMES = ".env\n../home/.netrc\na.txt\n-f .env\n*\nx=.env\n'; touch PWNED; '\n$(touch PWNED)\nPATH\n"
CODE = "path[$(touch PWNED)]\nPATH=.\nx[$(touch PWNED)]\n`touch PWNED`\n-eq\n1 -o 1 -eq path[$(touch PWNED)]\n"
DRIVER = r"""
import json, os, shutil, subprocess, sys
base, secret, *shell = sys.argv[1:]
work, pristine = os.path.join(base, "room"), os.path.join(base, "pristine")
env = {"PATH": "/usr/bin:/bin", "HOME": work + "/home", "LC_ALL": "C", "API_TOKEN": secret, "password": secret,
       "DATABASE_URL": secret, "x": "from-outside", "PAGER": "cat", "GIT_PAGER": "cat"}

def seen():
    paths = [os.path.join(at, name) for at, below, files in os.walk(work) for name in (*below, *files)]
    return {path: (os.lstat(path).st_mtime_ns, os.lstat(path).st_size) for path in paths}

def lay_out():
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(pristine, work, symlinks=True)
    return seen()

before = lay_out()
for line in json.load(open(os.path.join(base, "lines.json"))):
    said = b""
    process = subprocess.Popen([*shell, "-c", line], cwd=work + "/work", env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        said = process.communicate(timeout=3)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        said = process.communicate()[0]
    why = "prints a secret" if secret.encode() in said or secret[::-1].encode() in said else ""
    if seen() != before:
        why = "changes files: " + " ".join(sorted(set(seen()) ^ set(before)))
        before = lay_out()
    if why:
        print(json.dumps([line, why]), flush=True)
"""


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("structured")
    work, home = base / "pristine" / "work", base / "pristine" / "home"
    for directory in (work / "src", home / ".ssh"):
        directory.mkdir(parents=True)
    for secret in (work / ".env", work / "src" / ".env", home / ".netrc", home / ".ssh" / "id_rsa"):
        secret.write_text(f"A x {SECRET}\n")
    for plain in ("a.txt", "src/b.txt", "a b", "two words", "x", "-n", "x .env", "1", "2"):
        (work / plain).write_text("x plain\n")
    (work / "names").write_text(
        ".env\n../home/.netrc\na.txt\n-f .env\n*\nx=.env\n'; touch PWNED; '\n$(touch PWNED)\nPATH\n"
    )
    (work / "code").write_text(
        "path[$(touch PWNED)]\nPATH=.\nx[$(touch PWNED)]\n`touch PWNED`\n-eq\n1 -o 1 -eq path[$(touch PWNED)]\n"
    )
    for program in ("run", "ls", "cat", "head", "grep", "sort", "wc", "src/ls", "src/cat"):
        file = work / program
        file.write_text("#!/bin/sh\n: > PWNED\n")
        file.chmod(0o755)
    return base


def harmful(base: Path, shell: Sequence[str], tried: Sequence[str]) -> list[tuple[str, str]]:
    """Those that print a secret or change a file, and which of the two."""
    (base / "driver.py").write_text(DRIVER)
    (base / "lines.json").write_text(json.dumps(tried))
    sandbox = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--bind", str(base), str(base)]
    words = [
        *sandbox,
        "--unshare-all",
        "--die-with-parent",
        sys.executable,
        str(base / "driver.py"),
        str(base),
        SECRET,
        *shell,
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(line, why) for line, why in map(json.loads, done.stdout.splitlines())]


@pytest.fixture(scope="module")
def allowed() -> list[str]:
    found = [line for line in islice(lines(SEED), TRIED) if read_shell(line).read_only]
    assert len(found) > TRIED / 25
    return found


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> Sequence[str]:
    name, *options = SHELLS[request.param]
    path = shutil.which(name)
    if path is None or shutil.which("bwrap") is None:
        pytest.skip(f"needs {name} and bwrap")
    return (path, *options)


@pytest.mark.timeout(1_800)
def test_what_is_allowed_does_no_harm_in_any_shell(shell: Sequence[str], base: Path, allowed: list[str]) -> None:
    assert harmful(base, shell, allowed) == []


@pytest.mark.parametrize(
    "line",
    [
        "cat .env",
        'x=.env; cat "$x"',
        "echo $API_TOKEN",
        'for f in a.txt .env; do cat "$f"; done',
        "touch a.txt",
        "./run",
        "PATH=.:$PATH; ls",
        "sort -o x a.txt",
        "while read -r f; do cat $f; done < names",
        "cat -- $(cat names)",
    ],
)
def test_harm_is_seen(line: str, base: Path) -> None:
    if shutil.which("bwrap") is None:
        pytest.skip("needs bwrap")
    assert [one for one, _ in harmful(base, SHELLS["bash"], [line])] == [line]
    assert not read_shell(line).read_only


# --- what a shell evaluates as a number ---

EVALUATED = "argv[$(echo {}>>RAN)]"
"""A value or subscript that runs a command if a shell takes it for an expression."""
EACH = 'while IFS= read -r line; do ( eval "$line" ); done'


def ran(shell: Sequence[str], tried: Sequence[str], work: Path) -> list[str]:
    """What the evaluated texts in these lines have written, each line in a shell of its own."""
    subprocess.run(
        [*shell, "-c", EACH],
        input="\n".join(tried) + "\n",
        text=True,
        cwd=work,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return (work / "RAN").read_text().split() if (work / "RAN").exists() else []


def expansions() -> Iterator[str]:
    """Expansions with any character behind them, and then what would be a subscript of a longer one."""
    simple = ("$#", "$?", "$$", "$x", "$argv", "$PWD", "${x}", "${#x}", "${x:-a}", "${x#a}", "${?}", "${#?}")
    tails = ("x[y]", "[y]", "y", "{y}", "", "x[1,y]", "argv[y]") if NIGHTLY else ("x[y]", "argv[y]")
    forms = ('"{}"', "{}") if NIGHTLY else ('"{}"',)
    behind = ["", *map(chr, range(32, 127))] if NIGHTLY else ["", *string.punctuation, *" aA_1"]
    for name, char, tail, form in product(simple, behind, tails, forms):
        yield f"y='{EVALUATED.format('$')}'; x=y; echo {form.replace('{}', name + char + tail)}"


def test_no_shell_evaluates_what_is_behind_an_expansion(shell: Sequence[str], tmp_path: Path) -> None:
    tried = [line for line in expansions() if read_shell(line).read_only]
    assert len(tried) > 400
    assert ran(shell, tried, tmp_path) == []


def test_no_shell_evaluates_the_value_of_a_variable_that_a_line_may_set(shell: Sequence[str], tmp_path: Path) -> None:
    files = [Path(shell[0]), *Path("/usr/lib").glob("*/zsh/**/*.so")]
    known = {name.decode() for file in files for name in re.findall(rb"[A-Z][A-Z0-9_]+", file.read_bytes())}
    names = sorted(name for name in {*known, "RANDOM"} if may_be_kept(name))
    assert len(names) > 100
    set_to = [f"{name}='{EVALUATED.format(name)}'; : ${name}" for name in names]
    assert ran(shell, ["; ".join(set_to[at : at + 20]) for at in range(0, len(names), 20)], tmp_path) == []
    assert not any(read_shell(line).read_only for line in set_to[::20])


def test_an_evaluated_value_is_seen(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None
    said = f"OPTIND='{EVALUATED.format('OPTIND')}'"
    assert ran([bash], [said, f"y='{EVALUATED.format('y')}'; echo $((y))"], tmp_path) == ["OPTIND", "y"]
