"""A program that is a script somewhere, of a shell, Perl or Python, may only run unasked if none of its words does."""

from __future__ import annotations

import os
import shutil
import subprocess
from itertools import pairwise, product
from pathlib import Path

import pytest

from signoff.policy.shell.table import unasked_programs

FAITHFUL = {
    "egrep": '`exec grep -E "$@"`',
    "fgrep": '`exec grep -F "$@"`',
    "rgrep": '`exec grep -r "$@"`',
    "zcat": '`exec gzip -cd "$@"`',
    "which": "compares each word with the directories of PATH, quoted",
    "shasum": "Perl: opens each word with `sysopen`, which knows no commands",
}
"""Scripts that do not evaluate their words, with what they do with them. Each is run here with hostile ones."""
PYTHON = frozenset(
    """
    black pip pip3 csvcut csvformat csvgrep csvjoin csvjson csvlook csvsort csvstack csvstat in2csv
    """.split()
)
"""Programs of Python packages: Python evaluates no words, and the table lists what the programs do with theirs."""
CHOOSERS = frozenset(name for name in unasked_programs() if name.startswith("python")) | {"node", "pip", "pip3"}
"""What a version manager may stand in front of with a script (pyenv, nodenv): it passes its words on as "$@"."""
NEVER = frozenset(
    """
    ldd zgrep zegrep zfgrep zdiff zcmp zless zmore znew zforce gzexe bzgrep bzegrep bzfgrep bzdiff bzcmp bzless bzmore
    bzexe xzgrep xzegrep xzfgrep xzdiff xzcmp xzless xzmore zstdgrep zstdless lzgrep lzegrep lzfgrep lzless lzmore
    lzdiff lzcmp lesspipe lessfile run-mailcap view see xdg-open lsb_release mktexlsr autoconf libtool man apropos
    dpkg-architecture rename prename ack exiftool ps2pdf pdf2ps tzselect vipw catchsegv tput-init gettextize msginit
    updatedb savelog sensible-pager sensible-editor neofetch bashbug c_rehash pod2man perldoc svn2cl cowsay
    """.split()
)
"""Scripts on common distributions that evaluate words, start a pager, or were not looked at."""
HOSTILE = (
    "$(touch CANARY)", "`touch CANARY`", "a;touch CANARY", "a'", "-ea'", "-e;touch CANARY;'", "';touch CANARY;'",
    '";touch CANARY;"', "a|touch CANARY", "touch CANARY|", "|touch CANARY", ">CANARY",
    "a\ntouch CANARY", "a&touch CANARY",

    "x[$(touch CANARY)]", "${IFS}touch", "--", "-", "\\", "--label=';touch CANARY;'", "*", "~", "a b", "",
)  # fmt: skip
SHELLS = [
    words
    for words in (["dash"], ["bash"], ["mksh"], ["zsh", "--emulate", "sh"], ["busybox", "sh"])
    if shutil.which(words[0])
]


def test_no_known_script_runs_unasked_without_a_reason() -> None:
    assert not unasked_programs() & NEVER
    assert unasked_programs() >= FAITHFUL.keys() | PYTHON, "a reason for nothing"


def test_what_is_a_script_on_this_machine_has_a_reason() -> None:
    scripts = {name for name in unasked_programs() if (file := shutil.which(name)) and _first_line(file)}
    assert scripts <= FAITHFUL.keys() | PYTHON | CHOOSERS


@pytest.mark.parametrize("name", FAITHFUL)
def test_no_word_of_a_script_is_run(name: str, tmp_path: Path) -> None:
    file = shutil.which(name)
    if file is None or not (first := _first_line(file)):
        pytest.skip("it is no script here")
    shells = SHELLS if first.rpartition("/")[2].strip() == "sh" else [[]]
    (tmp_path / "a'").write_text("x\n")
    for shell, words in product(shells, [*((one,) for one in HOSTILE), *pairwise(HOSTILE)]):
        subprocess.run(
            [*shell, file, *words],
            cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False,
            env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )  # fmt: skip
        assert [one.name for one in tmp_path.iterdir()] == ["a'"], (shell, words)


def _first_line(file: str) -> str:
    """Return the interpreter that a script names; "" if the file is none."""
    with open(file, "rb") as opened:
        line = opened.readline(200)
    return line[2:].decode("utf-8", "replace").strip() if line.startswith(b"#!") else ""
