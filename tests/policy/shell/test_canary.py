"""What is allowed never prints a secret: a known text lies in a secret place, and commands that name it are run."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from tests.policy.shell.commands import FILES, Argv, Program, argvs, looks_at_files, readers
from tests.profiles import examples
from tests.toolsets.scratch import lay_out

from signoff.policy.shell.facts import read_shell
from signoff.policy.shell.table import Takes

SECRET = "CaNaRy77"
FOLDERS = "/usr/bin:/bin:/usr/sbin:/sbin"
ONE_OF = {
    "sed": "p",
    "awk": "1",
    "jq": ".",
    "text": "a",
    "path": "file.txt",
    "name": "file.txt",
    "ref": "HEAD",
    "number": "1",
}
CHECKS = [HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]

FOUND = (
    "tail -b ~/.netrc",
    "file -d ~/.netrc",
    "file --debug /home/u/.netrc",
    "file -m magic ~/.netrc",
    "ps -eTH",
    "ps -e -T -H",
    "rg . ~",
    "rgrep . ~",
    "cd ~ && rg x",
    "diff -N ~ src",
    "diff -uN /etc /mnt/x",
    "cd ~ && diff -N . src",
    "cd ~/.m2 && xmllint settings.xml",
    "xmllint secrets.xml",
    "gawk 1 /inet/tcp/0/example.com/80",
    "git log -L1,10:.env",
    "ag -A . ~/.netrc",
    "ag -B 08 ~/.netrc",
    "ag -C 1x ~/.netrc",
    "ag --context=. ~/.netrc",
    "ag -m 99999999999999999999 ~/.netrc",
    "ack -A . ~/.netrc",
    "ack -B . .env",
    "rg -A . ~/.netrc",
    "grep -A . ~/.netrc",
    "xmllint --c14n a.xml",
    "xmllint --c14n11 a.xml",
    "xmllint --exc-c14n a.xml",
    "lspci -q",
    "xxd file.txt -p",
    "xxd -r file.txt -c8",
    "uniq file.txt -c",
    "head file.txt -n ~/.netrc",
    "sort file.txt -k ~/.netrc",
    "cut file.txt -f1 -d .env",
    "grep x file.txt -e ~/.netrc",
    "fmt -p ~/.netrc",
    "column -n ~/.netrc",
    "ar p thin.a",
    "ar -pv thin.a",
    "dpkg -I a.deb",
    "dpkg --info a.deb",
    "dpkg-deb -I a.deb control",
    "dpkg-deb -f a.deb",
    "dpkg-deb -W a.deb",
    "xmllint --nodefdtd a.xml",
    "ag -D x",
    "ag --debug x",
    "rg --debug x",
    "rg --trace x",
    "rg --ignore-messages x",
    "tree --info",
    "git for-each-ref --sort=signature",
    "git branch --sort=-signature:grade",
    "git tag --sort='*signature'",
)
"""Commands that were allowed once, and printed a secret, used the network or wrote a file."""


@pytest.mark.parametrize("command", FOUND)
def test_holes_that_were_found_stay_closed(command: str) -> None:
    assert not read_shell(command).read_only


class Canary:
    """Folders with a secret in the home among them."""

    def __init__(self, base: Path) -> None:
        self.base, self.work = base, lay_out(base)
        self.secret = base / "home" / ".netrc"
        self.secret.write_text(f"{SECRET}\n{SECRET} b\n")

    def sings(self, argv: Argv) -> bool:
        """Whether the words are allowed, and print the secret when they are run."""
        if not read_shell(shlex.join(argv)).read_only:
            return False
        where = {
            "PATH": FOLDERS,
            "HOME": str(self.base / "home"),
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "PAGER": "cat",
        }
        try:
            ended = subprocess.run(
                argv, cwd=self.work, env=where, stdin=subprocess.DEVNULL, capture_output=True, timeout=5, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
        said = ended.stdout + ended.stderr
        return SECRET.encode() in said or SECRET[::-1].encode() in said


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Canary:
    return Canary(tmp_path_factory.mktemp("canary") / "base")


def test_a_secret_that_is_printed_is_seen(canary: Canary) -> None:
    link = canary.work / "plain.txt"
    link.symlink_to(canary.secret)
    try:
        assert canary.sings(("cat", "plain.txt"))  # where links lead is looked at elsewhere
    finally:
        link.unlink()


@examples(3_000, suppress=CHECKS, database=None)
@given(argv=argvs(files_only=True), data=st.data())
def test_what_is_allowed_prints_no_secret(canary: Canary, argv: Argv, data: st.DataObject) -> None:
    assume(shutil.which(argv[0], path=FOLDERS))
    words = list(argv)
    at = data.draw(st.integers(1, len(words)))
    place = data.draw(
        st.sampled_from((str(canary.secret), "../home/.netrc", "../home/./.netrc", "../work/../home/.netrc"))
    )
    words[at : at + data.draw(st.integers(0, 1))] = [place]
    assert not canary.sings(tuple(words)), shlex.join(words)


@pytest.mark.nightly
def test_no_option_of_any_program_prints_a_secret(canary: Canary) -> None:
    sung = [
        shlex.join(argv)
        for words, known in readers()
        if looks_at_files(known) and shutil.which(words[0], path=FOLDERS)
        for argv in placed(words, known, str(canary.secret))
        if canary.sings(argv)
    ]
    assert not sung


def placed(words: Argv, known: Program, secret: str) -> list[Argv]:
    """The program with each of its options, and the secret where a value or an operand may be."""
    operands = tuple(
        next((one for one in (*FILES, "1", "+%s") if kind.regex.fullmatch(one)), "x")
        if kind.regex
        else ONE_OF.get(kind.name, "a")
        for kind in known.operands
    )
    start = (*words, *sorted((known.needs or known.operands_need) & known.options.keys())[:1])
    made: list[Argv] = [(*start, *operands[:at], secret, *operands[at + 1 :]) for at in range(len(operands) + 1)]
    for name, option in known.options.items():
        if option.trouble:
            continue
        made += [(*start, name, secret), (*start, name, secret, *operands), (*start, name, *operands, secret)]
        if option.takes is not Takes.NOTHING:
            made.append((*start, f"{name}={secret}" if name.startswith("--") else f"{name}{secret}", *operands))
    return made
