"""Find the texts in a call that are, or may be, paths: once per call, and only if a rule looks at paths."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import unquote

from signoff.core.call import UNFOLLOWED, Call
from signoff.policy.glob import is_visible
from signoff.policy.phrases import shown
from signoff.policy.places import is_too_long, normal, trimmed

if TYPE_CHECKING:
    from signoff.policy.shell.command_facts import ShellFacts
    from signoff.policy.shell.common_files import KnownFiles
    from signoff.policy.shell.touched_files import Touched
    from signoff.policy.sql import SqlFacts

_WHOLE_KEYS = frozenset({
    "src", "dst", "source", "sources", "destination", "destinations", "dest", "target", "targets", "to", "from",
    "workdir", "location",
})  # fmt: skip
_LAST_WORDS = frozenset({
    "path", "paths", "pathname", "file", "files", "filename", "filenames", "filepath", "filepaths", "dir", "dirs",
    "dirname", "directory", "directories", "folder", "folders", "cwd", "root",
})  # fmt: skip
_COMPOUND = re.compile(
    r"(?:log|key|pid|lock|out|in|cert|config|conf|env|data|dump|sub|base|root|tmp|temp|work|home|src|source|dest|target"
    r"|build|cache|save|backup|image|input|output|script|project|repo)(?:file|dir|path|folder)s?"
)
_BEFORE_NAME = frozenset({"file", "path", "dir", "directory", "folder"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
COMMAND = "command"
"""The argument that holds a shell command."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@lru_cache(maxsize=2048)
def is_path_key(key: str) -> bool:
    """Whether an argument of this name is a path: `path`, `filePath`, `target_dir`, `src`, `file2`, `logfile` …"""
    words = [word.lower() for word in _WORD.findall(key)]
    if not words:
        return False
    if words[-1] in _LAST_WORDS or _COMPOUND.fullmatch(words[-1]) or (len(words) == 1 and words[0] in _WHOLE_KEYS):
        return True
    return len(words) > 1 and words[-1] in ("name", "names") and words[-2] in _BEFORE_NAME


class PathText(NamedTuple):
    """A text from the arguments, and the paths that it may stand for."""

    argument: str
    """The top-level argument it was found in."""
    forms: tuple[str, ...]
    """Absolute and normalised: first as written, then other readings, then with symlinks resolved."""
    doubt: str = ""
    """Why the tool may use another path than the forms: the tool might expand something."""
    floating: bool = False
    """Whether it is relative and the directory that it starts from is not known."""


def path_texts(args: Mapping[str, Any], *, named_only: bool) -> Iterator[tuple[str, str | None, bool]]:
    """Yield texts in the arguments as (argument, text, whether a path key names it).

    Everything under a path key counts as a path, including the keys of mappings. A number there may be a file
    descriptor: it is yielded as None. With `named_only`, texts under other keys are left out.
    """
    for argument, value in args.items():
        named = is_path_key(argument)
        if isinstance(value, str):
            if named or not named_only:
                yield argument, value, named
        elif value is not None and not isinstance(value, bool):
            for text, is_named in _below(value, named):
                if is_named or not named_only:
                    yield argument, text, is_named


def _below(value: Any, named: bool) -> Iterator[tuple[str | None, bool]]:
    if isinstance(value, str):
        yield value, named
    elif isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield key, named
            yield from _below(item, named or is_path_key(key))
    elif isinstance(value, (list, tuple)):
        for item in cast("Sequence[Any]", value):
            yield from _below(item, named)
    elif named and value is not None and not isinstance(value, bool):
        yield None, named


class Facts:
    """A call, with facts that are computed on demand: its paths, its shell command, its SQL."""

    __slots__ = (
        "_any", "_files", "_haystack", "_named", "_shells", "_start", "_touched",
        "call", "close", "found", "remark", "root", "rule",
    )  # fmt: skip

    def __init__(self, call: Call, root: str | None) -> None:
        self.call = call
        self.root = root
        start = call.start or root
        self._start = "/" if start is None or start == "/" else f"{start}/"
        self._named: list[PathText] | None = None
        self._any: list[PathText] | None = None
        self._touched: list[PathText] | None = None
        self._haystack: str | None = None
        self._files: KnownFiles | None = None
        self._shells: dict[str, ShellFacts] = {}
        self.rule = ""
        """The id of the rule that is being checked."""
        self.found: dict[str, str] = {}
        """What each rule noted first: part of the verdict's reason if that rule decides."""
        self.close = False
        """Whether the remark is the only thing that kept a rule from allowing the call."""
        self.remark = ""
        """What kept a rule from allowing, or what an ask or deny rule found."""

    def note(self, remark: str, *, close: bool = False) -> None:
        """Set the remark. The first one wins, but a rule that came `close` to allowing takes precedence."""
        self.found.setdefault(self.rule, remark)
        if not self.remark or (close and not self.close):
            self.remark, self.close = remark, close

    def below_start(self, directory: str) -> str | None:
        """Return a directory that a command changes into, symlinks resolved, relative to where commands start.

        None if it is outside; "" is the start itself. If the start is not known, only the start itself is inside.
        """
        if self.call.roams and self.root is not None:
            return self._below_root(directory)
        if not directory:
            return directory
        leads = self.call.resolved.get(directory)
        if leads is None and (directory.startswith("~") or self.call.also or self._floats(directory)):
            return None
        path = self.lexical(directory) if leads is None else normal(leads)
        return path[len(self._start) :] if f"{path}/".startswith(self._start) else None

    def _below_root(self, directory: str) -> str | None:
        """Like `below_start`, but relative to the root of the policy."""
        leads = self.call.resolved.get(directory) if directory else None
        if leads is None and directory.startswith("~"):
            return None
        path = normal(self.call.start) if not directory else self.lexical(directory) if leads is None else normal(leads)
        root = "/" if self.root == "/" else f"{self.root}/"
        return path[len(root) :] if f"{path}/".startswith(root) else None

    def shell(self, command: str) -> ShellFacts:
        """Return what a command line does."""
        found = self._shells.get(command)
        if found is None:
            from signoff.policy.shell.command_facts import read_shell  # slow to import, and few policies need it

            found = self._shells[command] = read_shell(command, self.files)
        return found

    def sql(self, text: str, dialect: str) -> SqlFacts:
        """Return what SQL does."""
        from signoff.policy.sql import read_sql  # imports the SQL parser, which takes 0.1 s

        return read_sql(text, dialect)

    @property
    def haystack(self) -> str:
        """Every form of every text, one per line; "" if any of them is in doubt."""
        if self._haystack is None:
            plain = self.root is not None and not any(path.doubt for path in self.any_paths)
            self._haystack = "\n".join(form for path in self.any_paths for form in path.forms) if plain else ""
        return self._haystack

    @property
    def named_paths(self) -> list[PathText]:
        """The values under path keys, each in every form that must match before a call may run."""
        if self._named is None:
            texts = path_texts(self.call.args, named_only=True)
            self._named = [self._strict(argument, text) for argument, text, _ in texts]
        return self._named

    @property
    def any_paths(self) -> list[PathText]:
        """Every text under any key, in every form that could be understood as a path."""
        if self._any is None:
            texts = path_texts(self.call.args, named_only=False)
            self._any = [self._wide(argument, text, named) for argument, text, named in texts if text is not None]
            self._any += [*self.touched_paths, *self.touched_words]
        return self._any

    @property
    def touched(self) -> Touched | None:
        """The files that a shell command in the call reads or writes; None if it has no command."""
        command = self.call.args.get(COMMAND)
        if not isinstance(command, str):
            return None
        from signoff.policy.shell.command_facts import read_shell

        return read_shell(command).touched

    @property
    def touched_paths(self) -> list[PathText]:
        """The files that a command in the call touches: by name, and those that its patterns are known to match."""
        if self._touched is None:
            self._touched = list(self._touched_paths())
        return self._touched

    def _touched_paths(self) -> Iterator[PathText]:
        if (touched := self.touched) is None:
            return
        yield from map(self.touched_path, touched.paths)
        for path in touched.tracked:
            yield PathText(COMMAND, self._in_repository(path))
        for pattern in touched.patterns:
            yield from map(self.touched_path, self.files.standing_for(pattern))

    @property
    def touched_words(self) -> list[PathText]:
        """The words of programs that are not known, read as paths."""
        return [self.touched_path(word) for word in self.touched.words] if self.touched is not None else []

    @property
    def unseen(self) -> str:
        """Why not everything was looked at that the call is about, on the disk or among its patterns; "" if it was."""
        return self.call.unseen or (self._files.count.why if self._files is not None else "")

    @property
    def files(self) -> KnownFiles:
        """What `Call.resolved` says of the files of a command."""
        if self._files is None:
            from signoff.policy.shell.common_files import KnownFiles  # few policies need it

            self._files = KnownFiles(self.call.resolved)
        return self._files

    def touched_path(self, text: str) -> PathText:
        """Return a file that a command may touch, as written and with symlinks resolved."""
        forms = self._forms(text)
        doubt = "starts with `~`, which a shell expands" if text.startswith("~") else ""
        if (resolved := self.call.resolved.get(text)) == UNFOLLOWED:
            doubt = f"holds {shown(text)}, and the files that it stands for cannot be looked at"
        elif resolved is not None and resolved != forms[0]:
            forms += (normal(resolved),)
        return PathText(COMMAND, forms, doubt, self._floats(text))

    def starts(self) -> tuple[str, ...]:
        """Return the directories that relative paths may start from."""
        found = (self._start,) if not self.call.also or self.call.start else (self._start, self.call.also)
        return tuple(normal(one) for one in found)

    def readings(self, text: str) -> tuple[str, ...]:
        """Return every path that a text may be understood as, absolute and normalised, and where it leads."""
        return self._wide("", text, named=True).forms

    def _in_repository(self, text: str) -> tuple[str, ...]:
        """Return the absolute paths of a file in a revision: its repository may begin in any directory above."""
        forms = [*self._forms(text)]
        directory = normal(self._start)
        while self.root is not None and is_below(directory, self.root) and directory != self.root:
            directory = directory.rpartition("/")[0] or "/"
            forms.append(normal(f"{directory}/{text}"))
        return tuple(dict.fromkeys(forms))

    def _strict(self, argument: str, text: str | None) -> PathText:
        if text is None:
            return PathText(argument, (), "is a number, not a path")
        doubt = _expansion(text)
        if not text:
            doubt = "is empty"
        elif is_too_long(text):
            doubt = "is longer than a path can be"
        elif not is_visible(text):
            doubt = "holds control characters"
        elif text != trimmed(text):
            doubt = "begins or ends with a space, which a tool may remove"
        elif "\\" in text:
            doubt = "holds a backslash, which only some systems read as a separator"
        elif _SCHEME.match(text):
            doubt = "starts with a scheme or a drive"
        forms = self._forms(text)
        if (resolved := self.call.resolved.get(text)) is not None and resolved != forms[0]:
            forms += (normal(resolved),)
        return PathText(argument, forms, doubt, self._floats(text))

    def _wide(self, argument: str, text: str, named: bool) -> PathText:
        forms = self._forms(text)
        if (bare := trimmed(text)) != text:
            forms += (self.lexical(bare),)
        if "\\" in text:
            forms += (self.lexical(text.replace("\\", "/")),)
        if text[4:5] == ":" and text[:4].lower() == "file":
            forms += (self.lexical(unquote(re.sub("^//[^/]*", "", text[5:]))),)
        if (resolved := self.call.resolved.get(text)) is not None and resolved != forms[0]:
            forms += (normal(resolved),)
        if not named:
            return PathText(argument, forms, _expansion(text) if text.startswith("~/") else "", False)
        doubt = _expansion(text) or ("is longer than a path can be" if is_too_long(text) else "")
        return PathText(argument, forms, doubt, self.root is None and self._floats(text))

    def _forms(self, text: str) -> tuple[str, ...]:
        """Return the absolute paths of the text, one for each directory that it may start from."""
        also = self.call.also
        if not also or self.call.start or text.startswith("/"):
            return (self.lexical(text),)
        return tuple(dict.fromkeys((self.lexical(text), normal(f"{also}/{text}"))))

    def _floats(self, text: str) -> bool:
        return self.root is None and not self.call.start and not text.startswith("/")

    def lexical(self, text: str) -> str:
        """Return the text as an absolute, normalised path, without looking at the file system."""
        path = text if text.startswith("/") else self._start + text
        if "/." in path or "//" in path or path.endswith("/"):
            return normal(path)
        return path


def is_below(path: str, directory: str) -> bool:
    """Whether an absolute path is a directory or inside it."""
    return path == directory or path.startswith(directory if directory == "/" else f"{directory}/")


def _expansion(text: str) -> str:
    """Return what a tool might expand in a path, so that its target is not known; "" if nothing."""
    if text.startswith("~"):
        return "starts with `~`, which a tool may expand"
    if "$" in text:
        return "holds `$`, which a tool may expand"
    if "\0" in text:
        return "holds a NUL character, at which a tool may stop reading"
    return ""
