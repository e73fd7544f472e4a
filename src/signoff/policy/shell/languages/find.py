"""Check that a find expression is harmless: every primary and its number of words, in GNU, BSD and busybox."""

from __future__ import annotations

import re
from collections.abc import Sequence

from signoff.policy.shell.languages.trouble import FindResult, Trouble
from signoff.policy.shell.line import Word

_NONE = frozenset(
    """
    ( ) ! , -not -a -and -o -or -true -false -print -print0 -printx -ls -prune -quit -depth -d -mount -xdev -x -follow
    -daystart -noleaf -nowarn -warn -ignore_readdir_race -noignore_readdir_race -empty -executable -readable -writable
    -nouser -nogroup -acl -sparse -xattr -help --help -version --version
""".split()
)
"""Primaries without an argument."""

_TEXT = frozenset(
    """
    -name -iname -path -ipath -wholename -iwholename -regex -iregex -lname -ilname -regextype -type -xtype -fstype
    -size -perm -links -inum -user -group -uid -gid -used -context -flags -xattrname -maxdepth -mindepth -printf
    -amin -atime -cmin -ctime -mmin -mtime -Bmin -Btime
""".split()
)
"""Primaries with one argument: a pattern, a number, a format."""

_FILE = frozenset("-newer -anewer -cnewer -mnewer -Bnewer -samefile".split())
"""Primaries whose argument is a file; they look at its metadata."""

_NEWER = re.compile(r"-newer[aBcm][aBcmt]")
_ASKS = {
    "-exec": "runs: runs a command for each file it finds",
    "-execdir": "runs: runs a command for each file it finds",
    "-ok": "runs: runs a command for each file it finds",
    "-okdir": "runs: runs a command for each file it finds",
    "-delete": "writes: deletes the files it finds",
    "-fprint": "writes: writes its output to a file",
    "-fprint0": "writes: writes its output to a file",
    "-fprintf": "writes: writes its output to a file",
    "-fls": "writes: writes its output to a file",
    "-files0-from": "discloses: reads start directories from a file",
}
_OPTION = re.compile(r"-[EHLPXdsx]+|-O[0-9]+")
_DEPTH = re.compile(r"[-+]?[0-9]+")
_LEADS = frozenset("-(!,)")
"""The first characters of the words of an expression."""
_IN_PRIMARY = re.compile(r"[A-Za-z0-9_(),!-]")


def read_find(words: Sequence[Word]) -> FindResult | Trouble:
    """Return what find would look at, or what keeps it from running unasked."""
    paths: list[Word] = []
    at = _options(words, paths)
    if isinstance(at, Trouble):
        return at
    while at < len(words) and (words[at].glob or words[at].text[:1] not in _LEADS or words[at].text == "-"):
        if trouble := _expansion(words[at]):
            return trouble
        paths.append(words[at])
        at += 1
    files: list[Word] = []
    while at < len(words):
        read = _primary(words, at, files)
        if isinstance(read, Trouble):
            return read
        at = read
    return FindResult(tuple(paths), tuple(files))


def executed(words: Sequence[Word]) -> tuple[Sequence[Word], Sequence[Sequence[Word]]] | Trouble:
    """Return the words without `-exec … ;`, and the words of each command that it runs, with `{}` for the files."""
    rest: list[Word] = []
    commands: list[Sequence[Word]] = []
    at = 0
    while at < len(words):
        if words[at].text != "-exec":
            rest.append(words[at])
            at += 1
            continue
        end = next((to for to in range(at + 1, len(words)) if _ends(words, to)), len(words))
        command = words[at + 1 : end]
        placed = [word for word in command if "{}" in word.text]
        if end == len(words) or not placed or any(word.text != "{}" for word in placed) or command[0].text == "{}":
            return Trouble("-exec", _ASKS["-exec"])
        commands.append(command)
        at = end + 1
    return rest, commands


def _ends(words: Sequence[Word], at: int) -> bool:
    return words[at].text == ";" or (words[at].text == "+" and words[at - 1].text == "{}")


def _options(words: Sequence[Word], paths: list[Word]) -> int | Trouble:
    """Return where the start directories begin. On BSD, `-f` may name some of them."""
    at = 0
    while at < len(words) and not words[at].glob:
        text = words[at].text
        if text == "--":
            return at + 1
        if text in ("-D", "-f"):
            if at + 1 >= len(words):
                return Trouble(text, "unknown: has no value")
            value = words[at + 1]
            if value.glob or value.text[:1] in _LEADS:
                return Trouble(f"{text} {value.text}", "unknown: has an unusual value")
            if text == "-f":
                paths.append(value)
            at += 2
        elif _OPTION.fullmatch(text):
            at += 1
        else:
            break
    return at


def _primary(words: Sequence[Word], at: int, files: list[Word]) -> int | Trouble:
    """Return where the primary at a position ends."""
    word = words[at]
    text = word.text
    if word.glob or word.tilde:
        return Trouble(text, "unknown: is a pattern that the shell may expand to a part of the expression")
    if text in _NONE:
        number = text == "-depth" and at + 1 < len(words) and not words[at + 1].glob
        # BSD takes a number here. GNU does not, and stops at it.
        return at + (2 if number and _DEPTH.fullmatch(words[at + 1].text) else 1)
    is_file = text in _FILE or (_NEWER.fullmatch(text) is not None and text[-1] != "t")
    if not is_file and text not in _TEXT and not _NEWER.fullmatch(text):
        return Trouble(text, _ASKS.get(text, "unknown: is not a test or action signoff knows to be harmless"))
    if at + 1 >= len(words):
        return Trouble(text, "unknown: has no value")
    if trouble := _expansion(words[at + 1]):
        return trouble
    if is_file:
        files.append(words[at + 1])
    return at + 2


def _expansion(word: Word) -> Trouble | None:
    """Return trouble with a glob that may expand to several words, one of them a primary.

    A word that begins like no primary, or has a character that no primary has, can only be a start directory or a
    syntax error, and find reads its whole expression before it does anything.
    """
    if not word.glob or _literals(word.glob):
        return None
    return Trouble(word.text, "unknown: is a pattern that the shell may expand to a part of the expression")


def _literals(glob: str) -> bool:
    """Whether a glob can never expand to a primary."""
    first = glob[1:2] if glob[0] == "\\" else glob[0]
    if first not in _LEADS and (glob[0] == "\\" or first not in "*?["):
        return True
    outside = glob.split("[", 1)[0].replace("\\", "")
    return any(not _IN_PRIMARY.match(char) for char in outside if char not in "*?")
