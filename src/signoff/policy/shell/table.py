"""The table of programs: which options only read, what operands mean, what makes them dangerous.

The knowledge is data, in `programs/*.toml` beside this module, one table per program;
docs/explanation/shell.md describes the keys.
A program's table is found by its header and parsed lazily, when the program is first used, to keep start-up fast.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, cast

from signoff.policy.shell.languages import OF_TEXT, OF_WORDS
from signoff.policy.table_files import table_names, table_text

PATH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin", "/usr/local/bin")
"""The search path for programs when a command runs unasked."""
_OF_PROGRAMS = frozenset({"bin", "sbin", ".bin", "libexec", "shims", "scripts", "git-core"})
"""Names of directories in which programs are installed."""
EFFECTS = ("writes", "runs", "sends", "changes", "discloses", "waits", "unknown")
"""What a command may do beyond known reading, from the entry of the program or the option."""

_PLAIN_KINDS = frozenset({
    "text", "number", "path", "name", "ref", "revision", "command", "output", "url", "host", "glob", "skip",
    "skip_directory", "pattern", "web", *OF_TEXT,
})  # fmt: skip
_STYLES = frozenset({"gnu", "posix", "single", "none"})
_OFFLINE, _ONLINE = "shell/programs", "shell/network_reads"
_HEADER = re.compile(r'^\[(?:"([^"\n]+)"|([^]\[."\n]+))\]\s*$', re.MULTILINE)


class BadTable(ValueError):
    """An invalid entry in the table; the message names the program and the key."""


class TakesValue(Enum):
    """Whether an option takes a value."""

    NOTHING = 0
    VALUE = 1
    MAYBE = 2
    """Only attached: `--color=always`."""


class OperandKind(NamedTuple):
    """What an operand or a value means."""

    name: str
    regex: re.Pattern[str] | None = None


class CommandOption(NamedTuple):
    """One option, with all its spellings."""

    names: tuple[str, ...]
    takes: TakesValue
    kind: OperandKind
    trouble: str = ""
    """What it does beyond reading, as `effect: words`; "" if it only reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Everything that is known about a program or a sub-command."""

    name: str
    """For sub-commands with the program: `git log`."""
    does: str
    trouble: str = ""
    """Set if it is never read-only, as `effect: words`."""
    style: str = "gnu"
    options: Mapping[str, CommandOption]
    digits: bool = False
    operands: tuple[OperandKind, ...] = ()
    repeats: bool = False
    """Whether the last kind of operand may be repeated."""
    no_first: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    needs_trouble: str = ""
    only_with: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """Options that are only fine with one of others."""
    only_with_trouble: str = ""
    not_with: tuple[tuple[frozenset[str], frozenset[str]], ...] = ()
    """Options that may do more than read beside one of others."""
    not_with_trouble: str = ""
    by_id: frozenset[str] = frozenset()
    """Set if a revision must not be the id of an object: the options with which it may be, as no content is shown."""
    operands_need: frozenset[str] = frozenset()
    operands_trouble: str = ""
    recursive: frozenset[str] = frozenset()
    hidden: frozenset[str] = frozenset()
    """Set if it skips hidden files: the options that make it read them, too."""
    tracked: frozenset[str] = frozenset()
    """Set if what it reads recursively is what git tracks: the options that make it read other files, too."""
    suffixes: tuple[str, ...] = ()
    """Suffixes that it appends to a path that does not exist."""
    directory: frozenset[str] = frozenset()
    old_style: bool = False
    evaluates: bool = False
    """Whether it is a shell script that puts its words together and evaluates them."""
    language: str = ""
    commands: Mapping[str, Program]
    alone: bool = False
    modules: frozenset[str] = frozenset()
    """Modules for `-m` that run the project's own tests; the words after them contain no code."""
    elsewhere: frozenset[str] = frozenset()
    """Options that make it work in another directory, as if it had been started there."""
    verbs: bool = False
    """Whether the word after its name is a sub-command, not a file."""
    environment: Mapping[str, str]
    adds: tuple[str, ...] = ()
    unaided: str = ""
    """What it may do without these variables and options, as `effect: words`: where signoff does not run it itself."""

    def gives(self, option: str, argv: Sequence[str]) -> bool:
        """Whether an option without a value is surely given, alone or in a bundle of such options."""
        plain = {name[1] for name, one in self.options.items() if len(name) == 2 and one.takes is TakesValue.NOTHING}
        bundles = (word[1:] for word in argv[1:] if word.startswith("-") and plain.issuperset(word[1:]))
        return option in argv or (len(option) == 2 and any(option[1] in bundle for bundle in bundles))

    risky: bool = False
    """Whether any of its options is harmful, so that no word may expand to an option. Options that only wait do not
    count: a timeout ends them."""


def is_own_file(path: str) -> bool:
    """Whether a program is named by a path to a place where none is installed: `./script` is not the program `script`.

    What is known of the program does not count for it, though it may be that program nevertheless.
    """
    directory, slash, _ = path.rpartition("/")
    return bool(slash) and directory not in PATH and directory.rpartition("/")[2].lower() not in _OF_PROGRAMS


def known_programs() -> frozenset[str]:
    """Return the names of all programs in the table."""
    return frozenset(_slices())


@lru_cache(maxsize=1)
def named_programs() -> frozenset[str]:
    """Return the names of programs that any table names: signoff knows them, though not whether they only read."""
    further = tomllib.loads(table_text("shell/further_words.toml"))["programs"]
    network = tomllib.loads(table_text("shell/network.toml"))
    lines = (group["commands"] for group in tomllib.loads(table_text("shell/prefixes.toml")).values())
    starting = (line.split()[0] for text in lines for line in text.strip().splitlines())
    named = (name.strip() for names in (*further, *network) for name in names.split(","))
    return known_programs() | {*named, *starting}


@lru_cache(maxsize=512)
def program(name: str) -> Program | None:
    """Return what is known about a program; None if it is not in the table. Raises `BadTable` for an invalid entry."""
    return _build(name, entry) if (entry := _entry(name)) is not None else None


@lru_cache(maxsize=1)
def tellers() -> Mapping[str, frozenset[str]]:
    """Return the names of programs that with one of these options alone print just what it asks for."""
    both, versions, helps = map(_unasked, ("tellers", "versions", "helps"))
    return {"--help": both, "--version": both | versions, "-h": helps}


@lru_cache(maxsize=1)
def unasked_programs() -> frozenset[str]:
    """Return the names of programs that run unasked if the table says that they only read."""
    return _unasked("programs")


def _unasked(key: str) -> frozenset[str]:
    return frozenset(tomllib.loads(table_text("shell/unasked.toml"))[key].split())


@lru_cache(maxsize=128)
def network_reader(name: str) -> Program | None:
    """Return what is known about how a program only reads over the network; None if it does not."""
    return _build(name, entry) if (entry := _entry(name, directory=_ONLINE)) is not None else None


@lru_cache(maxsize=2)
def _slices(directory: str = _OFFLINE) -> Mapping[str, str]:
    """Return the text of each program's table, by the program's name."""
    found: dict[str, str] = {}
    for file in table_names(directory):
        text = table_text(file)
        heads = list(_HEADER.finditer(text))
        for number, head in enumerate(heads):
            name = head[1] or head[2]
            if name in found:
                raise BadTable(f"{file}: `{name}` stands in the table twice")
            found[name] = text[head.start() : heads[number + 1].start() if number + 1 < len(heads) else None]
    return found


def _entry(name: str, seen: tuple[str, ...] = (), directory: str = _OFFLINE) -> Mapping[str, Any] | None:
    text = _slices(directory).get(name)
    if text is None:
        return None
    try:
        entry = cast("dict[str, Any]", tomllib.loads(text)[name])
    except tomllib.TOMLDecodeError as error:
        raise BadTable(f"`{name}`: {error}") from error
    model = entry.pop("like", None)
    if model is None:
        return entry
    base = _entry(model, (*seen, name), directory) if model not in (*seen, name) else None
    if base is None:
        raise BadTable(f"`{name}` is like `{model}`, which is not in the table")
    return {**base, **entry}


_KEYS = frozenset({
    "does", "effect", "why", "style", "flags", "values", "maybe", "asks", "digits", "operands", "no_first", "needs",
    "needs_why", "only_with", "only_with_why", "not_with", "not_with_why", "by_id", "operands_need", "operands_why",
    "recursive", "hidden", "tracked", "suffixes", "directory", "old_style", "evaluates", "language", "commands",
    "alone", "models", "modules", "elsewhere", "verbs", "environment", "adds", "unaided",
})  # fmt: skip


def _together(entry: Mapping[str, Any], key: str) -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    given = entry.get(key, {})
    return tuple((frozenset(str(some).split()), frozenset(str(others).split())) for some, others in given.items())


def _build(name: str, entry: Mapping[str, Any]) -> Program:
    if not entry.keys() <= _KEYS:
        raise BadTable(f"`{name}`: unknown key `{min(entry.keys() - _KEYS)}`")
    if not isinstance(entry.get("does"), str):
        raise BadTable(f"`{name}`: `does` is missing")
    style, language = entry.get("style", "gnu"), entry.get("language", "")
    if style not in _STYLES or (language and language not in OF_WORDS):
        raise BadTable(f"`{name}`: unknown style or language")
    options = dict(_options(name, entry))
    kinds = str(entry.get("operands", "")).split()
    repeats = bool(kinds) and kinds[-1].endswith("...")
    return Program(
        name=name,
        does=entry["does"],
        trouble=_trouble(name, f"{entry['effect']}: {entry.get('why') or entry['does']}") if "effect" in entry else "",
        style=style,
        options=options,
        risky=any(option.trouble and not option.trouble.startswith("waits:") for option in options.values()),
        digits=bool(entry.get("digits")),
        operands=tuple(_kind(name, kind.removesuffix("...")) for kind in kinds),
        repeats=repeats,
        no_first=_names(entry, "no_first"),
        needs=_names(entry, "needs"),
        needs_trouble=_trouble(name, entry.get("needs_why", "unknown: may do more than read without certain options")),
        only_with=_together(entry, "only_with"),
        only_with_trouble=_trouble(name, entry["only_with_why"]) if "only_with" in entry else "",
        not_with=_together(entry, "not_with"),
        not_with_trouble=_trouble(name, entry["not_with_why"]) if "not_with" in entry else "",
        by_id=_names(entry, "by_id"),
        operands_need=_names(entry, "operands_need"),
        operands_trouble=_trouble(name, entry.get("operands_why", "unknown: may make it do more than read")),
        recursive=_names(entry, "recursive"),
        hidden=_names(entry, "hidden"),
        tracked=_names(entry, "tracked"),
        suffixes=tuple(str(entry.get("suffixes", "")).split()),
        directory=_names(entry, "directory"),
        old_style=bool(entry.get("old_style")),
        evaluates=bool(entry.get("evaluates")),
        language=language,
        commands=_Commands(name, entry),
        alone=bool(entry.get("alone")),
        modules=_names(entry, "modules"),
        elsewhere=_names(entry, "elsewhere"),
        verbs=bool(entry.get("verbs")),
        environment=entry.get("environment", {}),
        adds=tuple(str(entry.get("adds", "")).split()),
        unaided=_trouble(name, entry["unaided"]) if "unaided" in entry else "",
    )


class _Commands(Mapping[str, Program]):
    """Sub-commands, each built lazily: git has more than a hundred."""

    def __init__(self, name: str, entry: Mapping[str, Any]) -> None:
        self._name = name
        self._entry = entry
        self._models: Mapping[str, Mapping[str, Any]] = entry.get("models", entry.get("commands", {}))
        self._tables: Mapping[str, Mapping[str, Any]] = entry.get("commands", {})
        self._built: dict[str, Program] = {}

    def __getitem__(self, sub: str) -> Program:
        if sub not in self._built:
            table = dict(self._tables[sub])
            if (model := table.pop("like", None)) is not None:
                if "like" in self._models.get(model, {"like": ""}):
                    raise BadTable(f"`{self._name} {sub}` is like `{model}`, which is no command with keys of its own")
                table = {**self._models[model], **table}
            if "commands" in table:
                table["models"] = self._models
            self._built[sub] = _build(f"{self._name} {sub}", _inherited(table, self._entry))
        return self._built[sub]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tables)

    def __len__(self) -> int:
        return len(self._tables)


def _inherited(table: Mapping[str, Any], parent: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sub-command's table; it inherits what the environment of the program prevents."""
    return {**{key: parent[key] for key in ("environment", "unaided") if key in parent}, **table}


def _options(name: str, entry: Mapping[str, Any]) -> Iterator[tuple[str, CommandOption]]:
    text = OperandKind("text")
    seen: set[str] = set()

    def option(
        spellings: str, takes: TakesValue, kind: OperandKind, trouble: str = ""
    ) -> Iterator[tuple[str, CommandOption]]:
        made = CommandOption(tuple(spellings.split()), takes, kind, trouble)
        for spelling in made.names:
            if not spelling.startswith(("-", "+")) or spelling in seen:
                raise BadTable(f"`{name}`: `{spelling}` is no option, or stands there twice")
            seen.add(spelling)
            yield spelling, made

    for spelling in str(entry.get("flags", "")).split():
        yield from option(spelling, TakesValue.NOTHING, text)
    for key, takes in (("values", TakesValue.VALUE), ("maybe", TakesValue.MAYBE)):
        for spellings, kind in entry.get(key, {}).items():
            yield from option(spellings, takes, _kind(name, kind))
    for spellings, why in entry.get("asks", {}).items():
        yield from option(spellings, TakesValue.MAYBE, text, _trouble(name, why))


def _kind(name: str, written: str) -> OperandKind:
    if written in _PLAIN_KINDS:
        return OperandKind(written)
    if len(written) > 2 and written[0] == written[-1] == "/":
        return OperandKind("regex", re.compile(written[1:-1], re.DOTALL))
    raise BadTable(f"`{name}`: unknown kind `{written}`")


def _trouble(name: str, why: str) -> str:
    if why.partition(":")[0] not in EFFECTS:
        raise BadTable(f"`{name}`: `{why}` does not start with one of {', '.join(EFFECTS)}")
    return why


def _names(entry: Mapping[str, Any], key: str) -> frozenset[str]:
    return frozenset(str(entry.get(key, "")).split())
