"""What is allowed never prints a secret: a known text lies in a secret place, and commands that name it are run."""

from __future__ import annotations

import io
import shlex
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given
from hypothesis import strategies as st
from tests.policy.shell.commands import FILES, Argv, Program, argvs, looks_at_files, readers
from tests.profiles import examples
from tests.tables import table
from tests.toolsets.scratch import lay_out

from signoff.policy.shell.command_facts import read_shell
from signoff.policy.shell.simple_command import ReadOnlyCommand
from signoff.policy.shell.table import TakesValue

SECRET = "CaNaRy77"
DIRECTORIES = "/usr/bin:/bin:/usr/sbin:/sbin"
LIMITED = ("/bin/sh", "-c", 'ulimit -f 8192; exec "$@"', "sh")
"""What comes behind prints 4 MB at most: what reads /dev/zero would print gigabytes until its time is over."""
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


@table("command", FOUND)
def test_holes_that_were_found_stay_closed(command: str) -> None:
    assert not read_shell(command).read_only


class Canary:
    """Directories with a secret in the home among them."""

    def __init__(self, base: Path) -> None:
        self.base, self.work = base, lay_out(base)
        self.secret = base / "home" / ".netrc"
        self.secret.write_text(f"{SECRET}\n{SECRET} b\n{SECRET}[\n")  # the last is no pattern for names
        self.hostile = self._name_the_secret()
        self.linked = self._link_the_secret()

    def _name_the_secret(self) -> tuple[str, ...]:
        """Files that make some programs read the secret."""
        path = str(self.secret)
        (self.work / "thin.a").write_bytes(thin_archive(path))
        (self.work / "names.deb").write_bytes(package(path))
        (self.work / "entity.xml").write_text(
            f'<!DOCTYPE r [<!ENTITY x SYSTEM "file://{path}"><!ENTITY % p SYSTEM "file://{path}"> %p;]>\n<r>&x;</r>\n'
        )
        (self.work / "dtd.xml").write_text(f'<!DOCTYPE r SYSTEM "file://{path}">\n<r/>\n')
        (self.work / "include.xml").write_text(
            f'<r xmlns:x="http://www.w3.org/2001/XInclude"><x:include href="{path}" parse="text"/></r>\n'
        )
        (self.work / "list").write_text(f"{path}\n")
        (self.work / "options").write_text(f"-f {path}\n{path}\n")
        return ("thin.a", "names.deb", "entity.xml", "dtd.xml", "include.xml", "list", "options")

    def _link_the_secret(self) -> Path:
        """A directory in which files that programs look for by themselves are links to the secret."""
        directory = self.base / "linked"
        (directory / "src").mkdir(parents=True)
        (directory / SECRET[:4]).write_text("x\n")
        (directory / "src" / "a.txt").write_text("x\n")
        for name in (".ignore", ".rgignore", ".agignore", ".fdignore", ".gitignore", ".info", ".ackrc", ".jq"):
            (directory / name).symlink_to(self.secret)
        return directory

    def sings(self, argv: Argv, cwd: Path | None = None) -> bool:
        """Whether the words are allowed, and print the secret when they are run as they would be."""
        facts = read_shell(shlex.join(argv))
        if not facts.read_only:
            return False
        (reading,) = [one for one in facts.judged if isinstance(one, ReadOnlyCommand)]
        argv = (*argv[: reading.at], *reading.program.adds, *argv[reading.at :])
        where = {
            **reading.program.environment,
            "PATH": DIRECTORIES,
            "HOME": str(self.base / "home"),
            "LC_ALL": "C",
            "GIT_OPTIONAL_LOCKS": "0",
            "PAGER": "cat",
        }
        with tempfile.TemporaryFile() as output:
            with suppress(OSError, subprocess.TimeoutExpired):  # what it printed until then counts
                subprocess.run(
                    [*LIMITED, *argv],
                    cwd=cwd or self.work,
                    env=where,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=5,
                    check=False,
                )
            output.seek(0)
            said = output.read()
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


@examples(3_000, daily=25, suppress=CHECKS, database=None)
@given(argv=argvs(files_only=True), data=st.data())
def test_what_is_allowed_prints_no_secret(canary: Canary, argv: Argv, data: st.DataObject) -> None:
    assume(shutil.which(argv[0], path=DIRECTORIES))
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
        if looks_at_files(known) and shutil.which(words[0], path=DIRECTORIES)
        for argv in placed(words, known, str(canary.secret))
        if canary.sings(argv)
    ]
    assert not sung


def test_what_a_file_names_is_not_printed(canary: Canary) -> None:
    """In a few everyday forms; the night tries every option."""
    forms = [("xmllint",), ("xmllint", "--format"), ("ar", "t"), ("dpkg", "-c"), ("file",), ("strings",), ("wc",)]
    assert not [form for form in forms for name in canary.hostile if canary.sings((*form, name))]


@pytest.mark.nightly
@pytest.mark.timeout(1_800)
def test_no_option_prints_what_a_file_names(canary: Canary) -> None:
    sung: list[str] = []
    for words, known in readers():
        if not looks_at_files(known) or not shutil.which(words[0], path=DIRECTORIES):
            continue
        start = (*words, *sorted((known.needs or known.operands_need) & known.options.keys())[:1])
        first = ("x",) if known.operands[:1] and known.operands[0].name in SCRIPTS else ()
        files = [file for file in canary.hostile if read_shell(shlex.join((*start, *first, file))).read_only]
        for name, option in known.options.items():
            value = (ONE_OF.get(option.kind.name, "1"),) if option.takes is TakesValue.VALUE else ()
            for some in (files,) if known.repeats else ([file] for file in files):
                argv = (*start, name, *value, *first, *some)
                sung += [shlex.join(argv)] if not option.trouble and canary.sings(argv) else []
    assert not sung


IGNORING = ("rg", "ag", "fd", "fdfind", "tree", "ack", "jq")
FOLLOWS = frozenset({
    "-L", "--follow", "--dereference", "-f", "-R", "-.", "--hidden", "-u", "--unrestricted", "-a", "-H", "--all-types",
    "-l", "-t", "--all-text", "--text", "--search-files",
})  # fmt: skip


@pytest.mark.nightly
@pytest.mark.parametrize("program", IGNORING)
def test_a_link_in_the_place_of_a_file_that_is_looked_for_is_not_printed(canary: Canary, program: str) -> None:
    """Links that a program is told to follow are seen before it runs; these nobody tells it of."""
    if shutil.which(program, path=DIRECTORIES) is None:
        pytest.skip(f"needs {program}")
    known = next(known for words, known in readers() if words == (program,))
    options = [name for name, one in known.options.items() if not one.trouble and one.takes is TakesValue.NOTHING]
    tried = [(program, *([] if name in FOLLOWS else [name]), *WORDS.get(program, ("x",))) for name in options]
    assert not [shlex.join(argv) for argv in dict.fromkeys(tried) if canary.sings(argv, canary.linked)]


WORDS: dict[str, Argv] = {"tree": (), "jq": ("-n", "1")}
SCRIPTS = frozenset({"text", "awk", "sed", "jq"})


def thin_archive(path: str) -> bytes:
    """What `ar rcT` makes: a list of files that stay where they are."""
    names = f"{path}/\n".encode()
    names += b"\n" * (len(names) % 2)
    heads = f"{'//':<48}{len(names):<10}`\n".encode() + names
    return b"!<thin>\n" + heads + f"{'/0':<16}{0:<12}{0:<6}{0:<6}{644:<8}{len(SECRET) * 2 + 4:<10}`\n".encode()


def package(path: str) -> bytes:
    """A Debian package whose description of itself is a link."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name in ("./control", "./notes"):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, path
            archive.addfile(entry)
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w:gz").close()
    parts = {"debian-binary": b"2.0\n", "control.tar.gz": packed.getvalue(), "data.tar.gz": empty.getvalue()}
    made = b"!<arch>\n"
    for name, data in parts.items():
        made += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) % 2)
    return made


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
        made.append((*start, *operands, name, secret))
        if option.takes is not TakesValue.NOTHING:
            made.append((*start, f"{name}={secret}" if name.startswith("--") else f"{name}{secret}", *operands))
    return made
