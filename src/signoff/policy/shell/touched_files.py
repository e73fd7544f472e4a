"""The files that a command line reads or writes, as far as its text tells, for rules that ask or deny on paths.

Of commands in the table the files are known. Of a few others that only work on their operands, they are the operands.
Of all the rest, every word may be one, and what else they touch is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence, Set
from itertools import combinations, islice, pairwise
from posixpath import basename, join
from typing import NamedTuple
from urllib.parse import unquote

from signoff.policy.phrases import shown
from signoff.policy.places import is_too_long
from signoff.policy.shell.common_files import BELOW, FileSet
from signoff.policy.shell.file_patterns import escaped, is_wild, unescaped
from signoff.policy.shell.filters import Filter
from signoff.policy.shell.line import Simple, Word
from signoff.policy.shell.simple_command import Concern, ReadOnlyCommand, Where, judge_words, seen_from
from signoff.policy.shell.syntax_tree import Command, Tree
from signoff.policy.shell.table import PATH, is_own_file, program

MOST_WORDS = 256
"""The most words of a command that is not in the table. The rest is in doubt."""
MOST_FILES = 4_096
"""The most files of each kind."""
MOST_DIRECTORIES = 8
_MOST_PAIRS = 24
_MOST_PARTS = 8
_MOVERS = frozenset({"cd", "pushd", "popd"})
_ALONE = frozenset({"mkdir", "rmdir", "touch", "tee", "truncate", "unlink", "sponge", "fallocate", "mkfifo"})
"""Programs that only work on the files that are their operands."""
_TREES = frozenset({
    "rm", "mv", "cp", "ln", "link", "install", "chmod", "chown", "chgrp", "shred", "srm", "trash", "trash-put", "wipe",
})  # fmt: skip
"""Programs that work on their operands and what is below them."""
_PACKERS = frozenset(
    """
    tar gtar bsdtar star zip 7z 7za 7zr 7zz rar cpio gcpio pax rsync scp sftp rclone unison ditto xcopy robocopy gzip
    bzip2 xz zstd compress restic borg duplicity tarsnap mksquashfs genisoimage mkisofs xorriso diff colordiff sdiff
    find gfind fd fdfind
    """.split()
)
"""Programs that may read everything below their operands. An allow rule that names one of them means such reading, but
not that of a file that another rule is about."""
_GIT_TREES = frozenset({"rm", "mv"})
_GIT_MORE = {
    "clean": re.compile(r"-\w*[xX]"),
    "add": re.compile(r"-\w*f|--force"),
    "stash": re.compile(r"-\w*[au]|--a|--inc"),
}
"""Commands of git, and the options by which they work on ignored files, too."""
_GIT_ALL = frozenset({"grep", *(f"{verb} all" for verb in _GIT_MORE)})
_GIT_WHOLE = {
    **dict.fromkeys("restore add clean checkout-index update-index stage rm mv".split(), re.compile(r"")),
    **dict.fromkeys("checkout switch stash merge rebase pull cherry-pick revert apply am read-tree".split(), None),
    "reset": re.compile(r"--(?:hard|merge|keep)"),
    "commit": re.compile(r"-\w*a|--all"),
    "worktree": re.compile(r"add\Z"),
    "bisect": None,
    "sparse-checkout": None,
    "submodule": None,
}
"""Commands of git that work on everything that is tracked: always (None), if they have such a word, or (an empty
expression) unless their operands name other places. All may have an operand that stands for more than it names."""
_WHOLE = re.compile(r"\.?/?|\.\./?.*", re.DOTALL)
"""An operand by which git means the whole directory, or more."""
_GIT_WILD = re.compile(r"[*?\[\\]")
"""What makes an operand of git a pattern, whose `*` matches any characters, also if the shell leaves the word as it is
because no file matches."""
_GIT_VALUES = frozenset("-C -c --git-dir --work-tree --namespace --super-prefix --config-env --attr-source".split())
"""Options before a command of git that take the next word."""
_COMMIT_VALUE = re.compile(
    r"-[aeinopqsvz]*[mFCct]|--(?:message|file|author|date|template|trailer|fixup|squash|re(?:use|edit)-message|cleanup)"
)
_COMMIT_FLAG = re.compile(r"-[aeinopqsvz]+|-[mFCct].+|--[a-z-]+=.*|--(?:all|amend|no-[a-z-]+|quiet|signoff)", re.DOTALL)
_EITHER = frozenset(("-o", "-or", ",", "!", "-not", "(", "-prune"))
_SEARCHERS = frozenset("grep egrep fgrep rgrep zgrep ugrep ggrep rg ag ack pt sift codespell".split())
"""Programs that may read everything below their operands, or below the working directory."""
_INTO = frozenset({"mv", "cp", "ln", "install"})
"""Those that may put a file of the same name into a directory."""
_EXPANDERS = frozenset(
    """
    curl 7z 7za 7zr 7zz zip zipcloak zipnote convert magick identify mogrify montage composite gm ffmpeg ffprobe
    prettier eslint stylelint rimraf del-cli trash-cli cpy cpx copyfiles ncp globby git svn hg lftp ftp sftp scp
    rsync smbclient aws gsutil gcloud az azcopy rclone s3cmd s5cmd mc b2 restic borg exiftool rename
    """.split()
)
"""Programs that expand patterns in their operands themselves, so that a quoted pattern may stand for any file."""
_GROUP = re.compile(r"\{[^{}]*\}|\[[^][]*\]")
"""A list or a range, as curl and many libraries for patterns read it."""
_NO_PATTERN = re.compile(r"[\s\"']")
_FILE_URL = re.compile(r"(?i)\bfile:(?://[^/]*)?(.*)")
_WILD = re.compile(r"[*?\[]")
_HERE = ("", ".", "./")
_SEEN_BY_PROCESS = re.compile(r"/(?:proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|fd|map_files)|dev/fd)(?:/|\Z)")
"""Links of the kernel that lead elsewhere for each process."""
_SEPARATOR = re.compile(r"[=:,@]")
_OTHER = re.compile(r"[^\w./~+%@-]+")
"""What separates paths in a syntax that is not known, such as code."""


class Touched(NamedTuple):
    """Files, relative to the directory that the line starts in."""

    paths: tuple[str, ...] = ()
    """Files by name."""
    words: tuple[str, ...] = ()
    """The words of commands that are not known: each may be a file."""
    tracked: tuple[str, ...] = ()
    """Files in a revision of git, which are named from the top of the repository."""
    patterns: tuple[str, ...] = ()
    """File patterns that a shell or git expands."""
    below: tuple[FileSet, ...] = ()
    given: tuple[FileSet, ...] = ()
    """Like `below`, for the words of programs that are not known: they may be directories."""
    maybe: tuple[str, ...] = ()
    """What may be a file: parts of words, and words joined to a path."""
    opaque: str = ""
    """Why other files may be touched that nothing here names; "" if that is not so."""
    strange: str = ""
    """The same, if it is only because the files are not known that one of the programs touches."""

    @property
    def sets(self) -> tuple[FileSet, ...]:
        """What stands for files that only the disk tells.

        Where there is doubt anyway, what is below a directory does not matter.
        """
        return (*map(FileSet, self.patterns), *(() if self.opaque else self.below))


NOTHING = Touched()


class Stage(NamedTuple):
    """A simple command of a line that the strict parser accepted."""

    command: Simple
    judged: ReadOnlyCommand | Concern
    """Judged without regard to secrets."""
    directories: tuple[str, ...]
    """Where it may run, relative to where the line starts; none if that is not known."""


def touched(stages: Sequence[Stage] | None, tree: Tree) -> Touched:
    """Return the files that a line touches. `stages` is None if only the full parser understands it.

    `tree` is empty if all stages are in the table and only read: there is nothing else in such a line.
    """
    found = _Touches()
    known = {stage.command.argv for stage in stages or ()}
    hidden = [command for command in tree.commands if command.words not in known]
    runs = {via.partition(" ")[0] for command in hidden for via in command.via}
    for stage in stages or ():
        found.add_stage(stage, runs)
    directories = found.moved(tree.commands)
    for command in hidden:
        found.add_command(command, directories, runs)
    if stages is None or hidden:
        for target in (*tree.reads, *tree.writes):
            found.add_word(_as_word(target), directories)
    if tree.opaque:
        found.doubt(f"the command {tree.opaque[0]}" if not tree.opaque[0].startswith("`") else tree.opaque[0])
    return found.result()


class _Touches:
    """Collects the files of all commands of a line."""

    def __init__(self) -> None:
        self.paths: dict[str, None] = {}
        self.words: dict[str, None] = {}
        self.tracked: dict[str, None] = {}
        self.patterns: dict[str, None] = {}
        self.below: dict[FileSet, None] = {}
        self.given: dict[FileSet, None] = {}
        self.maybe: dict[str, None] = {}
        self.opaque = self.strange = ""

    def result(self) -> Touched:
        found = Touched(
            tuple(self.paths),
            tuple(self.words),
            tuple(self.tracked),
            tuple(self.patterns),
            tuple(self.below),
            tuple(self.given),
            tuple(self.maybe),
            self.opaque,
            self.strange,
        )
        if max(map(len, found[:7])) > MOST_FILES:
            return Touched(opaque="it names too many files")
        named = (*found.paths, *found.words, *found.maybe, *found.patterns)
        if any(_SEEN_BY_PROCESS.search(path) for path in named):
            return found._replace(opaque=found.opaque or "a path in it leads elsewhere for each process")
        return found

    def doubt(self, why: str) -> None:
        self.opaque = self.opaque or why

    def moved(self, commands: Iterable[Command]) -> tuple[str, ...]:
        """Return where commands may run that only the full parser found: wherever any `cd` in the line leads."""
        directories = [""]
        for command in commands:
            if command.words[0] not in _MOVERS:
                continue
            targets = [word for word in command.words[1:] if word is None or not word.startswith("-")]
            if len(targets) != 1 or targets[0] is None or len(directories) > MOST_DIRECTORIES:
                self.doubt("it changes into a directory that is only known when it runs")
                break
            directories += [path for one in directories for path in seen_from(one, targets[0])]
        return tuple(dict.fromkeys(directories))

    def add_stage(self, stage: Stage, runs: Set[str]) -> None:
        if not stage.directories:
            name = shown(stage.command.words[0].text) if stage.command.words else "it"
            self.doubt(f"{name} runs after a `cd`, in a directory that is only known when it runs")
        directories = stage.directories or ("",)
        for redirect in stage.command.redirects:
            if redirect.source is not None:
                self.add_word(redirect.source, directories)
        if isinstance(stage.judged, ReadOnlyCommand):
            self._add_reading(stage.judged)
        else:
            self._add_words(stage.command.words, directories, runs, stage.judged)

    def add_command(self, command: Command, directories: Sequence[str], runs: Set[str]) -> None:
        """Add a command that only the full parser found: what was quoted in it is not known."""
        words = tuple(_as_word(word) for word in command.words if word is not None)
        if None in command.words and (command.words[0] is None or not _takes_text(command.words[0])):
            self.doubt(f"{shown(command.words[0] or '…')} has a word that is only known when it runs")
        if not words:
            return
        judged = judge_words([Word(word.text) for word in words], Where(tuple(directories), wary=False))
        if not isinstance(judged, ReadOnlyCommand):
            self._add_words(words, directories, runs)
            return
        self._add_reading(judged)
        for word in words[1:]:
            if word.glob:
                self.add_word(word, directories)
                if judged.program.risky and word.glob[0] in "-*?[":
                    self.doubt(f"{shown(word.text)} may stand for an option")

    def _add_reading(self, judged: ReadOnlyCommand) -> None:
        if any(map(is_too_long, judged.paths)):
            self.doubt("a word in it is longer than a path can be")
        self.paths.update(dict.fromkeys(judged.paths))
        self.tracked.update(dict.fromkeys(judged.tracked))
        self.patterns.update(dict.fromkeys(judged.patterns))
        self.below.update(dict.fromkeys(FileSet(pattern, judged.filters) for pattern in judged.below))

    def _add_words(
        self, words: Sequence[Word], directories: Sequence[str], runs: Set[str], concern: Concern | None = None
    ) -> None:
        """Add a command that is not known to only read. `concern` says why it is not, if that is known."""
        name = basename(words[0].text) if not is_own_file(words[0].text) else words[0].text
        if len(words) > MOST_WORDS:
            self.doubt(f"{shown(name)} has too many words")
        operands = words[1:MOST_WORDS]
        known = name in _ALONE or name in _TREES
        program, slash, _ = words[0].text.rpartition("/")
        for word in (*(words[:1] if slash and program not in PATH else ()), *operands):
            self.add_word(word, directories, self.paths if known else self.words)
        if name in _MOVERS:
            self.doubt("it changes into a directory that is only known when it runs")
        elif name in _TREES:
            self._add_below(self.below, operands, directories)
        elif name not in _ALONE:
            known_for = concern.sentence if concern is not None and concern.effect != "unknown" else ""
            self._add_strange(name, operands, directories, why=known_for, handed=name in runs)
            self._add_packed(name, operands, directories)
        if name in _INTO:
            places = [*operands, *(value for word in operands for value in _values(word))]
            pairs = ((one, other) for one in places for other in operands if one is not other)
            self._add_joined(pairs, directories, last=True)

    def _add_strange(
        self, name: str, operands: Sequence[Word], directories: Sequence[str], *, why: str, handed: bool
    ) -> None:
        """Add a program that is not known: any part of its words may be a path. `why` says what it is known to do."""
        if not handed:
            self.strange = self.strange or why or f"which files {shown(name)} touches is not known"
        for word in operands:
            if file := _FILE_URL.search(word.text):
                self.maybe.update(dict.fromkeys(_plain(unquote(file[1]), directories)))
            if name in _EXPANDERS and (pattern := _own_pattern(word)):
                self.add_word(Word(word.text, pattern), directories)
            parts = [part for part in _OTHER.split(word.text) if part and part != word.text]
            self.maybe.update(dict.fromkeys(path for part in parts for path in _plain(part, directories)))
        for directory in filter(None, directories):  # it is named, by the `cd` before
            self.words.setdefault(directory)
            self.given.setdefault(FileSet(escaped(directory) + BELOW))
        values = [value for word in operands[:_MOST_PAIRS] for value in _values(word) if value.text not in _HERE]
        self._add_below(self.given, values, directories)
        self._add_joined(combinations(values, 2), directories)

    def _add_packed(self, name: str, operands: Sequence[Word], directories: Sequence[str]) -> None:
        """Add what a program may read below the directories that it is given."""
        verb = _git_verb(operands) if name == "git" else ""
        if name == "git":
            places, everywhere = _git_places(operands)
            self._add_below(self.given, map(Word, places), directories)
            self._add_below(self.given, [Word(".")] if everywhere else (), ("", *directories))
        searches = name in _SEARCHERS or verb in _GIT_ALL
        if searches or name in _PACKERS or verb in _GIT_TREES:
            places = [value for word in operands[:_MOST_PAIRS] for value in _values(word)]
            filters = _of_find(operands) if name in ("find", "gfind") else ()
            self._add_below(self.below, [*places, *([Word(".")] if searches else [])], directories, filters)

    def _add_below(
        self,
        found: dict[FileSet, None],
        words: Iterable[Word],
        directories: Sequence[str],
        filters: tuple[Filter, ...] = (),
    ) -> None:
        for word in words:
            for directory in directories:
                for path in seen_from(escaped(directory), word.glob or escaped(word.text)):
                    found.setdefault(FileSet(path + BELOW, filters))

    def _add_joined(
        self, pairs: Iterable[tuple[Word, Word]], directories: Sequence[str], *, last: bool = False
    ) -> None:
        """Add paths that one word may make with another: a file in a directory."""
        for one, other in islice(pairs, MOST_FILES):
            if one.text == "/dev/null":
                continue  # nothing is below it
            joined = join(one.text, basename(other.text) if last else other.text)
            self.maybe.update(dict.fromkeys(_plain(joined, directories)))

    def add_word(self, word: Word, directories: Sequence[str], found: dict[str, None] | None = None) -> None:
        """Add a word as a path or a file pattern, and what may be one in it: `--file=x`, `-fx`, `if=x`, `@x`."""
        if is_too_long(word.text):
            self.doubt("a word in it is longer than a path can be")
            return
        for part in _parts(word.glob or escaped(word.text)):
            plain = self.paths if found is None else found
            for directory in directories:
                if is_wild(part):
                    self.patterns.update(dict.fromkeys(seen_from(escaped(directory), part)))
                else:
                    plain.update(dict.fromkeys(seen_from(directory, unescaped(part))))


def _plain(text: str, directories: Sequence[str]) -> Iterator[str]:
    return (path for directory in directories for path in seen_from(directory, text))


def _parts(pattern: str) -> Iterator[str]:
    yield pattern
    if pattern[:1] == "-" and pattern[1:2] != "-" and len(pattern) > 2:
        yield pattern[2:].removeprefix("@")
    for number, separator in enumerate(_SEPARATOR.finditer(pattern)):
        if number == _MOST_PARTS:
            return
        yield pattern[separator.end() :]
        yield pattern[: separator.start()]


def _own_pattern(word: Word) -> str:
    """Return the pattern that a program may expand a word to that the shell leaves as it is; "" if it is none."""
    pattern = _GROUP.sub("*", word.text)
    return pattern if not word.glob and is_wild(pattern) and pattern != "*" and not _NO_PATTERN.search(pattern) else ""


def _git_verb(operands: Sequence[Word]) -> str:
    """Return the command of git, with an option by which it also works on files that git does not track."""
    words = [word.text for word in operands]
    verb = next((word for word in words if word in _GIT_MORE or word in _GIT_TREES or word == "grep"), "")
    more = _GIT_MORE.get(verb)
    return f"{verb} all" if more is not None and any(more.match(word) for word in words) else verb


def _git_places(operands: Sequence[Word]) -> tuple[list[str], bool]:
    """Return the directories below which a command of git works though no operand names them by itself.

    Also whether it works on all that is tracked, or may, wherever in the repository it runs.
    """
    words = [word.text for word in operands]
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GIT_VALUES else 1
    verb = words[at] if at < len(words) else ""
    if verb not in _GIT_WHOLE:
        return [], False
    needs, rest = _GIT_WHOLE[verb], words[at + 1 :]
    last = rest[rest.index("--") + 1 :] if "--" in rest else []
    places = last if needs is None else _without_values(rest) if verb == "commit" else _plain_words(rest)
    wild = [place[: found.start()] for place in places if (found := _GIT_WILD.search(place))]
    below = [start.rpartition("/")[0] or ("/" if start.startswith("/") else ".") for start in wild]
    if needs is None:
        whole = not places
    elif needs.pattern:
        whole = any(map(needs.match, rest)) and (not last or verb == "worktree")
    else:
        whole = not places
    whole = whole or any(place.startswith(":") or _WHOLE.fullmatch(place) for place in places)
    return below, whole or any(word.startswith("-") and "pathspec" in word for word in words)


def _plain_words(words: Sequence[str]) -> list[str]:
    """Return the words that are no options. After `--`, all are none."""
    end = words.index("--") if "--" in words else len(words)
    return [*(word for word in words[:end] if not word.startswith("-")), *words[end + 1 :]]


def _without_values(words: Sequence[str]) -> list[str]:
    """Return the operands of `git commit`, of which a message is none.

    Behind an option that is not known here, any word may be an operand.
    """
    found: list[str] = []
    at, sure = 0, True
    while at < len(words) and words[at] != "--":
        word = words[at]
        if sure and _COMMIT_VALUE.fullmatch(word):
            at += 1
        elif not word.startswith("-"):
            found.append(word)
        elif not _COMMIT_FLAG.fullmatch(word):
            sure = False
        at += 1
    return [*found, *words[at + 1 :]]


def _of_find(operands: Sequence[Word]) -> tuple[Filter, ...]:
    """Return the pattern that every file has to match on which find works, if its expression is a plain one."""
    words = [word.text for word in operands]
    names = [name for test, name in pairwise(words) if test == "-name"]
    plain = len(names) == 1 and _EITHER.isdisjoint(words)
    return (Filter(True, names[0]),) if plain else ()


def _values(word: Word) -> Iterator[Word]:
    """Yield a word that is no option, or the value in one."""
    if word.text[:1] != "-":
        yield word
        return
    _, equals, value = word.text.partition("=")
    if equals:
        yield Word(value)
    if word.text[1:2] != "-":
        yield from (Word(word.text[at:]) for at in range(2, min(len(word.text), _MOST_PARTS)))


def _as_word(text: str) -> Word:
    return Word(text, text if _WILD.search(text) else "", text.startswith("~"))


def _takes_text(name: str) -> bool:
    """Whether a program never takes its words for files."""
    known = program(basename(name)) if not is_own_file(name) else None
    return (
        known is not None
        and not (known.commands or known.language or known.trouble)
        and all(kind.name == "text" for kind in (*known.operands, *(one.kind for one in known.options.values())))
    )
