"""What the final `*` of an allow rule stands for: further words that do not make the program run other programs.

A program that signoff knows says which options and words are fine, in `further_words.toml` or in the table of programs.
Of any other the `*` covers plain words only. What is not listed is not covered.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from posixpath import basename, join
from typing import TypeAlias

from signoff.policy.phrases import shown
from signoff.policy.places import runs_later
from signoff.policy.shell.git_settings import is_elsewhere, pushes_to, sets_unknown
from signoff.policy.shell.languages import OF_TEXT, OF_WORDS
from signoff.policy.shell.languages.trouble import Trouble
from signoff.policy.shell.line import Word
from signoff.policy.shell.listed_words import (
    KINDS,
    PATHS,
    PLAIN,
    Further,
    contained,
    entries,
    files_in,
    is_reader,
    listed,
    operand_trouble,
)
from signoff.policy.shell.literal import Arg
from signoff.policy.shell.simple_command import ReadOnlyCommand, judge_words
from signoff.policy.shell.table import CommandOption, Program, TakesValue, is_own_file, program
from signoff.policy.shell.wrappers import hand_on

_URL = re.compile(
    r"(?:\w+\+)?(?:https?|ssh|git|ftps?|wss?|postgres(?:ql)?|mysql|mariadb|redis|mongodb|amqps?|s3|gs|oci)"
    r"://(?=[\w\[])[^\s'\"`\\|;<>{}]+",
    re.ASCII,
)
"""An address on another machine. Without `..`, what reads it as a path stays in the directory."""
_MOST_LETTERS = 32
_WORD = "some-word"  # `x` is a sub-command to bun
_ELSEWHERE = frozenset("ssh rsh autossh mosh docker podman nerdctl kubectl oc k3s machinectl lxc vagrant".split())
"""Programs that run commands on another machine, or in a container."""
_REMOTE = frozenset("rsync scp sftp tar gtar bsdtar star cpio gcpio pax mt rclone".split())
"""Programs to which `name:path` is a place on another machine."""
_BETWEEN = re.compile(r"[=:,;@+<>{}|\s\"']")
"""What may come before a path in a word."""
_WHERE = re.compile(rf"(?:\A|{_BETWEEN.pattern})(?=[/~]|\.\.(?:/|\Z))|(?:\A|/)\.\.(?:/|\Z)")
_OPTION = re.compile(r"-(?!\d+\Z)\S", re.ASCII)
"""What some program reads as an option, even behind one that wants a value."""
_NO_PLACES = frozenset({"text", "number", "pattern", "sed", "awk", "jq", "glob", "skip", "skip_directory"})
_HARMFUL = ("runs:", "unknown:", "discloses:")
_HARMLESS = "discloses: reads another file"
"""That file is among the words, and so it is judged itself."""
_MANAGERS = frozenset({"npm", "yarn", "pnpm", "bun"})
"""Package managers, which run a script of the project, or a program that it has installed."""
_MAKES = frozenset("clone init mv submodule worktree".split())
"""Commands of git that make what their words name."""


_MOST_TAILS = 4
_LONG_BUNDLE = re.compile(rf"-[A-Za-z]{{{_MOST_LETTERS}}}")
_FOLLOWING = {
    "find": "-L -follow", "gfind": "-L -follow", "chmod": "-L", "chown": "-L", "chgrp": "-L",
    "cp": "-L --dereference --keep-directory-symlink", "gcp": "-L --dereference --keep-directory-symlink",
    "rsync": "-L -k -K --copy-links --copy-dirlinks --keep-dirlinks --copy-unsafe-links",
    "tar": "-h --dereference --keep-directory-symlink", "gtar": "-h --dereference --keep-directory-symlink",
    "bsdtar": "-H -L -P",
}  # fmt: skip
"""Options with which a program follows symlinks below the directories that it is given."""
_INTO = frozenset({"cp", "gcp", "mv", "gmv", "ln", "gln", "install", "ginstall", "ditto"})
"""Programs that may work on a file of the same name in a directory."""
_MOST_INTO = 32

Leads: TypeAlias = Callable[[str], str]
"""Says why a relative path leads out of the directory on the disk, by a symlink; "" if it does not."""


def nowhere(path: str) -> str:
    """Say of every path that it stays where it says, as far as anybody knows: without a look at the disk."""
    return ""


def uncovered(argv: Sequence[str], fixed: int, *, here: bool = True, leads: Leads = nowhere) -> str:
    """Return why a final `*` does not stand for all words from `fixed` on; "" if it does.

    It stands for no place outside the directory, unless the program only reads, or the command is not run `here`. What
    `leads` says of a word on the disk counts, too. However a program is run, its words are judged as its own.
    """
    if at := _handed_over(argv):
        words = [word for number, word in enumerate(argv) if number != _dashes(argv, at)][at:]
        return uncovered(words, max(fixed - at, 1), here=here, leads=leads)
    last = plain_word(argv[:fixed])
    handed = hand_on(tuple(map(Arg, (*argv[:fixed], last))))
    if len(argv) == fixed:
        more = set(hand_on(tuple(map(Arg, argv))).opaque).difference(handed.opaque)
        return next((f"without a further word, {why}" for why in sorted(more)), "")
    inner = handed.inner[0] if len(handed.inner) == 1 else None
    if inner is not None and len(inner.args) > 1 and inner.args[-1].sure == last:
        found = hand_on(tuple(map(Arg, argv))).inner
        words = [arg.sure for arg in found[0].args] if found else []
        before = [arg.sure for arg in inner.args[:-1]]
        if words[: len(before)] != before or None in words:
            return f"{shown(argv[0])} may run something else"
        here = here and argv[0].rpartition("/")[2] not in _ELSEWHERE
        return uncovered([word for word in words if word is not None], len(before), here=here, leads=leads)
    further = _FurtherWords(argv, fixed)
    means_it = any(word.startswith("-") for word in argv[1:fixed]) or (further.entry is None and fixed > 1)
    if handed.inner or (handed.opaque and means_it):
        return ""  # the words of the rule run what follows, whatever it is
    return further.trouble() or (further.elsewhere(leads) if here else "")


def _handed_over(argv: Sequence[str]) -> int:
    """Return where a known program begins that another runs by its name, or from its file; 0 if none does."""
    name = argv[0].rpartition("/")[2]
    at = next((at for at, word in enumerate(argv[1:], 1) if word[:1] != "-"), len(argv))
    if name in _MANAGERS:
        runs = argv[at] in ("run", "run-script", "x") if at < len(argv) else False
        own = frozenset[str]() if runs else entries()[name].commands
        return at + runs if at + runs < len(argv) and argv[at + runs] in entries().keys() - own else 0
    entry = entries().get(name)
    if entry is None or not entry.script or at >= len(argv) or is_own_file(argv[at]) or "/" not in argv[at]:
        return 0
    return at if basename(argv[at]) in entries() else 0


def _dashes(argv: Sequence[str], at: int) -> int:
    """Return where the first `--` from there on is, which a package manager takes away; -1 if there is none."""
    return next((number for number, word in enumerate(argv) if number >= at and word == "--"), -1)


def runs_input(argv: Sequence[str]) -> str:
    """Return why a command may run what it is fed, for a rule with a final `*`; "" if it does not."""
    name = argv[0].rpartition("/")[2]
    if why := next(iter(hand_on(tuple(map(Arg, argv))).opaque), ""):
        return f"{why}, and it is fed"
    entry, known, _ = listed(argv)
    if entry is None and known is None and name not in contained():
        return f"signoff does not know what {shown(name)} does with the input that it is fed"
    return ""


def plain_word(words: Sequence[str]) -> str:
    """Return a word that may follow with which nothing else is run: a read-only sub-command if it has one."""
    known = program(words[0]) if len(words) == 1 else None
    return next((name for name, below in known.commands.items() if not below.trouble), _WORD) if known else _WORD


def left_open(words: Sequence[str]) -> str:
    """Say for people what a final `*` after these words leaves open; "" if signoff knows the program."""
    name = words[0].rpartition("/")[2]
    if name in contained():
        return ""
    found, known, _ = listed(words)
    if found is None and (known is None or not is_reader(known)):
        return (
            f"signoff does not know {shown(name)}, so `*` covers only names and paths: an option that the pattern does "
            "not name, `NAME=value`, `@file` and other words ask"
        )
    return ""


def is_option(name: str, option: str) -> bool:
    """Whether the program of this name is known to have exactly this option."""
    entry, known = entries().get(name), program(name)
    if known is not None and option in known.options:
        return True
    return entry is not None and any(
        option in names for names in (entry.flags, entry.values, entry.texts, entry.attached, entry.fits)
    )


def takes_files(argv: Sequence[str]) -> bool:
    """Whether the program takes any number of files below the directory."""
    entry, _, _ = listed(argv)
    if entry is not None and entry.script and len(inner := hand_on(tuple(map(Arg, argv))).inner) == 1:
        entry, _, _ = listed([arg.text or "" for arg in inner[0].args] or argv)
    return entry is not None and entry.operands in PATHS and not entry.script


def led_away(paths: Iterable[str], leads: Leads) -> str:
    """Return why one of the paths leads out of the directory; "" if none does."""
    return next((why for path in paths if (why := leads(path))), "")


def places_in(words: Sequence[str]) -> Iterator[str]:
    """Yield what in the words of a command may be a relative path that leads elsewhere on the disk."""
    for word in words:
        for reading in _readings(word):
            yield from _pieces(reading)
    yield from _joined(words)


def _pieces(text: str) -> Iterator[str]:
    """Yield a text, what is between the separators in it, and what follows the first of them."""
    found = [text, *_BETWEEN.split(text)] + [text[one.end() :] for one in islice(_BETWEEN.finditer(text), _MOST_TAILS)]
    yield from (piece for piece in dict.fromkeys(found) if piece.strip("./") and piece[0] not in "/~")


def _joined(argv: Sequence[str]) -> Iterator[str]:
    """Yield the places where a program may work on a file in a directory that has the name of another word."""
    names = dict.fromkeys(basename(word.rstrip("/")) for word in argv[1:])
    yield from (join(place, name) for place in _into(argv) for name in names if name.strip("."))


def _into(argv: Sequence[str]) -> list[str]:
    """Return what may be a directory that the program works in: the last word, or the value of an option."""
    if argv[0].rpartition("/")[2] not in _INTO:
        return []
    last = [word for word in argv[1:] if word[:1] != "-"][-1:]
    named = [word for before, word in pairwise(argv) if before[:1] == "-"]
    words = dict.fromkeys((*last, *named, *(word for word in argv[1:] if word[:1] == "-")))
    found = (piece for word in words for reading in _readings(word) for piece in _pieces(reading) if piece[0] != "-")
    return list(islice(dict.fromkeys(found), _MOST_INTO))


def leads_away(word: str, *, address: bool = False) -> bool:
    """Whether a word is, or holds as its value, a path that leads out of the directory as written.

    A URL does not, unless it has a `..` and the program may not take it for an `address`.
    """
    if "://" in word:
        word = _URL.sub(lambda url: "" if address or "/.." not in url[0] else url[0], word)
    return _WHERE.search(word) is not None


def is_hidden_code(word: str) -> bool:
    """Whether a word names a hidden directory whose content programs run or follow, or a file in it: `.git/hooks/x`."""
    steps = (step for part in _BETWEEN.split(word) for step in part.split("/"))
    return any(step[:1] == "." and step.strip(".") and runs_later(f"{step}/x") for step in steps)


class _FurtherWords:
    def __init__(self, argv: Sequence[str], fixed: int) -> None:
        self.argv = argv
        self.fixed = fixed
        self.named = {word.partition("=")[0] for word in argv[1:fixed] if word.startswith("-")}
        self.name = argv[0].rpartition("/")[2]
        self.entry, self.known, self.at = listed(argv)

    def trouble(self) -> str:
        if self.name in contained():
            return ""
        if self.name == "git" and self.argv[self.at - 1] == "config" and (word := sets_unknown(self.argv[self.at :])):
            return self._unfit(word, "git may run what it is set to") if word not in self.argv[: self.fixed] else ""
        if self.name == "git" and (word := self._local_repository()) and word not in self.argv[: self.fixed]:
            return self._unfit(word, "git may push to it, and run what the settings of that repository name")
        if self.entry is not None:
            return self._known(self.entry, self.at)
        if self.known is not None and is_reader(self.known):
            return self._table(self.known, self.at)
        return self._plain()

    def _local_repository(self) -> str:
        """Return the word that may name a repository on this machine for `git push`; "" if there is none."""
        values = dict(self._values())
        ends = next((at for at, word in enumerate(self.argv) if word == "--"), len(self.argv))
        operands = [
            word
            for at, word in enumerate(self.argv[self.at :], self.at)
            if at > ends or (at not in values and not word.startswith("-"))
        ]
        for at in values if self.argv[self.at - 1] == "push" else ():
            name, equals, value = self.argv[at].partition("=")
            repository = value if equals and name == "--repo" else self.argv[at]
            if "--repo" in (name, self.argv[at - 1]) and not is_elsewhere(repository, named=True):
                return self.argv[at]
        return pushes_to(self.argv[self.at - 1], operands)

    def elsewhere(self, leads: Leads) -> str:
        """Return which of the words names a place outside the directory, unless the command only reads."""
        if isinstance(judge_words([Word(word) for word in self.argv]), ReadOnlyCommand):
            return ""
        if word := next(self._following(), ""):
            return self._unfit(word, "it follows symlinks, which may lead out of the directory")
        scripts = dict(self._scripts())
        texts = dict(self._values())
        for at, word in enumerate(self.argv[self.fixed :], self.fixed):
            if at in scripts:
                check, script = scripts[at]
                if found := check(script):
                    return self._unfit(word, found.why)
                if at not in texts:
                    continue
            parts, is_place = texts.get(at, (_readings(word), True))
            if why := next(filter(None, (self._away(at, part, leads, is_place=is_place) for part in parts)), ""):
                return self._unfit(word, why)
            if at not in texts and _LONG_BUNDLE.match(word):
                return self._unfit(word, "it has too many letters")
        if len(_into(self.argv)) == _MOST_INTO:
            return self._unfit(self.argv[-1], "there are too many words that may name a directory")
        return next((self._unfit(path, why) for path in _joined(self.argv) if (why := leads(path))), "")

    def _away(self, at: int, part: str, leads: Leads, *, is_place: bool) -> str:
        """Return why a part of a word names a place outside the directory, or one whose files are run; or ""."""
        if part != "/dev/null" and leads_away(part, address=self._is_address(self.argv[at])):
            return "it is outside the directory"
        if is_place and self._minds_hidden(at) and is_hidden_code(part):
            return "programs follow what is there"
        if self.name in _REMOTE and ":" in part.partition("/")[0] and not part.startswith("-"):
            return "it may be on another machine"
        return led_away(_pieces(part), leads) if self._minds_hidden(at) else ""

    def _following(self) -> Iterator[str]:
        """Yield the options by which it follows symlinks that it finds."""
        options = _FOLLOWING.get(self.name, "").split()
        letters = {option[1] for option in options if len(option) == 2}
        for at, word in enumerate(self.argv[self.fixed :] if options else (), self.fixed):
            dashed = word[:1] == "-" and word[1:2] != "-" and "find" not in self.name
            bundled = dashed or (at == 1 and self.name.endswith("tar"))
            if word.partition("=")[0] in options or (bundled and not letters.isdisjoint(word)):
                yield word

    def _is_address(self, word: str) -> bool:
        """Whether the program takes an operand for an address."""
        return self.entry is not None and self.entry.operands == "address" and not word.startswith("-")

    def _minds_hidden(self, at: int) -> bool:
        """Whether it matters that a word names a hidden directory: version control keeps those, too."""
        if self.name not in ("git", "hg") or not _MAKES.isdisjoint(self.argv[1 : self.at]):
            return True
        word, before = self.argv[at], self.argv[at - 1]
        return word.startswith("-") or (before.startswith("-") and before != "--" and self._takes(before) is not False)

    def _values(self) -> Iterator[tuple[int, tuple[tuple[str, ...], bool]]]:
        """Yield the words of which the options say what they are: where they stand, what in them may be a path, and
        whether it may be one of a place where something is written. What is not certain is left out.
        """
        at = self.at
        while at < len(self.argv):
            word = self.argv[at]
            if word == "--":
                return
            if not word.startswith("-") or len(word) < 2:
                if (self.known is not None and self.known.style == "posix") or (self.entry and self.entry.script):
                    return
                at += 1
                continue
            name, value = self._with_value(word)
            if not name:
                at += 1
                continue
            is_place = self.entry is None or name not in self.entry.values
            if value is not None:
                yield at, (self._files(name, value, (value,)), is_place)
            elif at + 1 < len(self.argv):
                at += 1
                yield at, (self._files(name, self.argv[at], _readings(self.argv[at])), is_place)
            at += 1

    def _with_value(self, word: str) -> tuple[str, str | None]:
        """Return the option in a word that takes a value, and the value if it is attached; "" if that is not known."""
        name, equals, value = word.partition("=")
        if self._takes(name):
            return name, value if equals else None
        if word.startswith("--") or (self.entry is not None and self.entry.single):
            return ("", None) if word.startswith("--") or not self._takes(word[:2]) else (word[:2], word[2:])
        for place, letter in enumerate(word[1:], 2):
            takes = self._takes(f"-{letter}")
            if takes:
                return f"-{letter}", word[place:].removeprefix("=") or None
            if takes is None:
                break
        return "", None

    def _takes(self, option: str) -> bool | None:
        """Whether an option takes a value that the next word may be; None if it is not known, or may be left out."""
        if (entry := self.entry) is not None:
            if option in entry.attached:
                return None
            if option in entry.flags:
                return False
            if any(option in names for names in (entry.values, entry.texts, entry.fits)):
                return True
        known = self.known.options.get(option) if self.known is not None else None
        if known is None or known.trouble or known.takes is TakesValue.MAYBE:
            return None
        return known.takes is TakesValue.VALUE

    def _scripts(self) -> Iterator[tuple[int, tuple[Callable[[str], Trouble | None], str]]]:
        """Yield where scripts of awk, sed and jq are among the words, with the check and the text of each.

        The first operand may be one even if an option gives another: some systems read no options behind it.
        """
        check = next((check for name, check in OF_TEXT.items() if self.name.endswith(name)), None)
        if self.known is None or check is None:
            return
        first, dashes = True, False
        for at, word in enumerate(self.argv[self.at :], self.at):
            dashes = dashes or word == "--"
            name, equals, value = word.partition("=")
            if word.startswith("-") and len(word) > 1:
                option = self.known.options.get(name) or self.known.options.get(word[:2])
                if dashes or option is None or option.kind.name not in OF_TEXT:
                    continue
                if equals and word.startswith("--"):
                    yield at, (check, value)
                elif word[2:] and not word.startswith("--"):
                    yield at, (check, word[2:])
                elif at + 1 < len(self.argv):
                    yield at + 1, (check, self.argv[at + 1])
            elif first and (word or self.name != "sed"):  # on BSD, `sed -i ''` takes the empty word
                first = self._is_value(at)
                yield from () if first else [(at, (check, word))]

    def _is_value(self, at: int) -> bool:
        """Whether the word before this one is an option that takes it as its value."""
        word = self.argv[at - 1]
        if at == self.at or not word.startswith("-"):
            return False
        name, value = self._with_value(word)
        return bool(name) and value is None

    def _files(self, option: str, value: str, parts: tuple[str, ...]) -> tuple[str, ...]:
        """Return what may be a path in the value of an option."""
        kind = self.entry.fits.get(option, "") if self.entry is not None else ""
        if kind in KINDS and kind not in PATHS:
            return tuple(files_in(kind, value))
        return () if self._takes_text(option) else parts

    def _takes_text(self, option: str) -> bool:
        """Whether the value of an option is known to be no path."""
        if (entry := self.entry) is not None:
            if option in entry.texts or option in entry.fits:
                return entry.fits.get(option) not in PATHS
            if option in entry.values:
                return False
        known = self.known.options.get(option) if self.known is not None else None
        if known is None or known.trouble or known.takes is TakesValue.NOTHING:
            return False
        return known.kind.name in _NO_PLACES

    def _unfit(self, word: str, why: str) -> str:
        return f"the final `*` does not stand for {shown(word)}: {why}"

    def _plain(self) -> str:
        """Check the words of a program whose options are not known."""
        for word in self.argv[self.fixed :]:
            if word.startswith("-") and len(word) > 1:
                if word.partition("=")[0] not in self.named:
                    return self._unfit(word, f"signoff does not know the options of {shown(self.name)}")
            elif not PLAIN.fullmatch(word):
                return self._unfit(word, f"signoff does not know what it means to {shown(self.name)}")
        return ""

    def _known(self, entry: Further, start: int) -> str:
        """Check the words of a program with a list of those that are fine."""
        at, operands = start, 0
        if entry.commands and start >= self.fixed:
            return self._unfit(self.argv[start], "not a sub-command that is covered") if start < len(self.argv) else ""
        while at < len(self.argv):
            word, mine = self.argv[at], at >= self.fixed
            if word == "--":
                return self._passed(entry, max(at + 1, self.fixed))
            if word.startswith("-") and len(word) > 1:
                took, why = self._option(entry, word, self.argv[at + 1 : at + 2], at)
                if why and mine:
                    return self._unfit(word, why)
                at += took
                continue
            if mine and word in entry.never:
                return self._unfit(word, "not a sub-command that is covered")
            if mine and (why := operand_trouble(entry.operands, word)):
                return self._unfit(word, why)
            if entry.script and operands == 0:
                return ""
            operands += 1
            at += 1
        return ""

    def _passed(self, entry: Further, at: int) -> str:
        """Check what follows `--`: words for another program, or operands that are no options."""
        for word in self.argv[at:]:
            if word.startswith("-") and len(word) > 1 and entry.passes:
                if word not in entry.passes and word.partition("=")[0] not in self.named:
                    return self._unfit(word, "another program reads it")
            elif word in entry.never:  # to some, `--` ends the options only, and a sub-command may follow
                return self._unfit(word, "not a sub-command that is covered")
            elif why := operand_trouble("plain" if entry.passes else entry.operands, word):
                return self._unfit(word, why)
        return ""

    def _option(self, entry: Further, word: str, following: Sequence[str], at: int) -> tuple[int, str]:
        """Return how many words an option takes, and why it is not fine, or ""."""
        name, equals, value = word.partition("=")
        if word in entry.flags or (name in entry.attached and (equals or name not in entry.values)):
            return 1, ""
        texts = entry.values | entry.texts
        for names, kind in ((texts, "text"), ({name}, entry.fits.get(name, ""))):
            if (kind and name in names) or (name in self.named and name not in entry.flags and kind == "text"):
                if not equals and not following:
                    return 1, "" if kind == "text" else "it has no value"
                if equals:
                    return 1, operand_trouble(kind, value)
                return 2, _following(entry, kind, following[0]) if at + 1 >= self.fixed else ""
        if name in self.named:
            return 1, ""
        if word.startswith("--"):
            return 1, "not an option that is covered"
        if entry.single:
            kind = "" if entry.apart else _kind_of(entry, word[:2])
            return 1, operand_trouble(kind, word[2:]) if kind else "not an option that is covered"
        return self._bundle(entry, word, following, at)

    def _bundle(self, entry: Further, word: str, following: Sequence[str], at: int) -> tuple[int, str]:
        for place, letter in enumerate(word[1:], 2):
            name = f"-{letter}"
            if kind := _kind_of(entry, name):
                if word[place:]:
                    return 1, operand_trouble(kind, word[place:].removeprefix("="))
                return 2, _following(entry, kind, following[0]) if following and at + 1 >= self.fixed else ""
            if name in entry.attached and word[place:]:
                return 1, ""
            if name not in entry.flags and not (letter.isdigit() and "-1" in entry.flags):
                return 1, f"`{name}` is not an option that is covered"
        return 1, ""

    def _table(self, known: Program, start: int) -> str:
        """Check the words of a program by the table of programs, which says what each option does."""
        words = [Word(word) for word in self.argv[start:]]
        if known.language:
            found = OF_WORDS[known.language](words)
            return self._unfit(found.word, found.why) if isinstance(found, Trouble) and _is_harmful(found.why) else ""
        if known.commands:
            return self._unfit(self.argv[start], "not a sub-command that is covered") if words else ""
        at, number = start, 0
        if known.old_style and words and not words[0].text.startswith("-"):  # each letter is an option: `tar cfT x y`
            for letter in words[0].text:
                if (why := _table_option(known, f"-{letter}")[1]) and start >= self.fixed:
                    return self._unfit(words[0].text, why)
        while at < len(self.argv):
            word = self.argv[at]
            option = word.startswith("-") and len(word) > 1 and known.style != "none"
            if option and word != "--":
                took, why = _table_option(known, word)
                if why and at >= self.fixed and word.partition("=")[0] not in self.named:
                    return self._unfit(word, why)
                at += took
                continue
            kinds = known.operands
            kind = kinds[min(number, len(kinds) - 1)].name if kinds and not known.no_first else "text"
            if at >= self.fixed and kind in OF_TEXT and (found := OF_TEXT[kind](word)) and _is_harmful(found.why):
                return self._unfit(word, found.why)
            if at >= self.fixed and kind not in ("text", *OF_TEXT) and word.startswith("@"):
                return self._unfit(word, "it may name a file with options")
            number += 1
            at += 1
        return ""


def _is_harmful(why: str) -> bool:
    return why.startswith(_HARMFUL) and why != _HARMLESS


def _readings(word: str) -> tuple[str, ...]:
    """Return what in a word may be a path: behind which letters of `-abc` a value begins is not known."""
    if word[:1] != "-" or word[1:2] == "-":
        return (word,)
    return (word, *(word[at:] for at in range(2, min(len(word), _MOST_LETTERS))))


def _kind_of(entry: Further, option: str) -> str:
    """Return what the value of an option has to be; "" if it takes none, or is not listed."""
    if option in entry.values or option in entry.texts:
        return "text"
    return entry.fits.get(option, "")


def _table_option(known: Program, word: str) -> tuple[int, str]:
    """Return how many words an option of the table takes, and why it is not covered, or ""."""
    name, equals, _ = word.partition("=")
    if option := known.options.get(word) or known.options.get(name):
        return _taken(option, bool(equals))
    if known.digits and word[1:].isdigit():
        return 1, ""
    if word.startswith("--"):
        return 1, "not an option that signoff knows"
    if known.style == "single":
        option = known.options.get(word[:2])
        return _taken(option, True) if option is not None else (1, "not an option that signoff knows")
    for place, letter in enumerate(word[1:], 2):
        option = known.options.get(f"-{letter}")
        if option is None:
            return 1, f"`-{letter}` is not an option that signoff knows"
        took, why = _taken(option, bool(word[place:]))
        if option.trouble and word[place:].isalpha():
            continue  # whether the rest is its value or more letters is not known
        if why or option.takes is not TakesValue.NOTHING:
            return took, why
    return 1, ""


def _taken(option: CommandOption, attached: bool) -> tuple[int, str]:
    if _is_harmful(option.trouble):
        return 1, option.trouble.partition(": ")[2]
    if option.kind.name == "command":
        return 1, "it names a program to run"
    return (2 if option.takes is TakesValue.VALUE and not attached else 1), ""


def _following(entry: Further, kind: str, word: str) -> str:
    """Return why a word is not fine as the value of the option before it, or ""."""
    if _OPTION.match(word):
        return f"{shown(word)} may be an option of its own"
    if entry.expands and word.startswith("@"):
        return f"{shown(word)} names a file with options"
    return operand_trouble(kind, word)
