"""Recognise places that hold secrets by their names: keys, credentials, histories, devices, other processes.

The list is data, in `secret.toml` beside this module. Names are compared in one folded form, so that neither case nor a
Unicode lookalike of a letter makes a difference. This is a list of known names, not a security boundary.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice, product
from typing import Any, NamedTuple

from signoff.core.normal_form import normal_form
from signoff.policy.table_files import table_text

_HOMES = frozenset({"home", "users", "root"})
_HOME = re.compile(r"~[^/]*|/home/[^/]+|/users/[^/]+|/root")
_ROOT_HOME = re.compile(r"/root(?:/[^/]+|/\.[^/]+/.*)?")
_PROCESS = re.compile(r"/proc/(?:self|thread-self|\d+|x+)(?:/task/[^/]+)?/(.+)")
_PROCESS_SHOWN = frozenset({
    "cmdline", "comm", "stat", "statm", "status", "limits", "cgroup", "mounts", "mountinfo", "mountstats", "io",
    "sched", "schedstat", "oom_score", "oom_adj", "oom_score_adj", "uid_map", "gid_map", "loginuid", "sessionid",
    "wchan", "task",
})  # fmt: skip
_KERNEL = frozenset({"/proc/kcore", "/proc/kmem", "/proc/kmsg", "/proc/keys", "/proc/key-users", "/proc/sysrq-trigger"})
_DEVICES = frozenset({"null", "zero", "full", "random", "urandom", "stdin"})
_FULL_OF_SECRETS = frozenset(
    {"/", "~", "/root", "/etc", "/proc", "/var", "/var/run", "/run", "/dev", "/home", "/users"}
)
_ABOVE_SECRETS = frozenset({
    "/run/user", "/var/lib", "/var/db", "/var/spool", "/etc/ssh", "/etc/ssl", "/etc/pki",
    "/private", "/private/etc", "/private/var", "/system/volumes/data", "/mnt", "/media", "/volumes", "/etc/ppp",
    "/etc/letsencrypt",
})  # fmt: skip
_MOST_CANDIDATES = 2000
_LONGEST = 4096
_TOO_LONG = "is longer than a path can be"


def secret_place(path: str) -> str:
    """Return why this file must not be read unasked, in words that follow the path: "holds credentials".

    Returns "" if nothing is known against it. The path is absolute, relative to anywhere, or starts with `~/`.
    """
    return _secret_place(path) if len(path) <= _LONGEST else _TOO_LONG


def is_plain(path: str) -> bool:
    """Whether nothing is known against an absolute path: a quick `not secret_place(path)` for many files of a
    directory, which may be a wrong no.
    """
    directory, _, name = path.rpartition("/")
    return bool(directory) and _is_plain_name(name) and _is_plain_directory(directory)


def may_match_secret(pattern: str) -> str:
    """Return why the shell may expand this glob pattern to a secret place; "" if that is not expected.

    A backslash escapes the next character; `*`, `?` and `[…]` do not match a leading dot. A part that says nothing
    about a name, such as `*` or `*.json`, is assumed to match ordinary names only.
    """
    return _may_match_secret(pattern) if len(pattern) <= _LONGEST else _TOO_LONG


def holds_secrets(directory: str) -> str:
    """Return why reading everything below this directory probably reads a secret place; "" if nothing is known."""
    return _holds_secrets(directory) if len(directory) <= _LONGEST else _TOO_LONG


class _Places(NamedTuple):
    """The list, prepared for lookup."""

    below: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    """The last part of a directory -> the parts before it, and the reason."""
    ends: Mapping[str, Sequence[tuple[tuple[str, ...], str]]]
    """The same for files: the name -> the directories that it must be in."""
    suffixes: Mapping[str, Sequence[tuple[str, str]]]
    """The extension of patterns such as `*.tar.key` -> everything after the star, and the reason."""
    names: Mapping[str, tuple[re.Pattern[str], Sequence[str]]]
    """The other patterns for file names, by their first character. The number of the group that matches gives the
    reason."""
    never: re.Pattern[str]
    tops: frozenset[str]
    """The first parts of the paths in `absolute`."""
    absolute: re.Pattern[str]
    absolute_reasons: Sequence[str]
    home: Mapping[str, str]
    words: frozenset[str]
    first_words: frozenset[str]
    extensions: frozenset[str]
    not_names: frozenset[str]
    vocabulary: str
    """Every known name, one per line, to match shell patterns against."""
    roots: str
    """The parts of absolute paths, one per line."""


@lru_cache(maxsize=1)
def _places() -> _Places:
    text = table_text("secret.toml")
    data: dict[str, Any] = tomllib.loads(text)
    groups: list[dict[str, Any]] = data["group"]
    of = {key: [(fold(one), group["reason"]) for group in groups for one in group.get(key, ())] for key in _LISTS}
    words, extensions = frozenset[str](data["words"]), frozenset[str](data["extensions"])
    spoken = [f"{word}.{end}".rstrip(".") for word in sorted(words) for end in sorted(extensions)]
    known = [name for key in ("directories", "files", "home") for path, _ in of[key] for name in path.split("/")]
    known += [pattern.replace("*", filler) for pattern, _ in of["patterns"] for filler in ("", "x")]
    roots = {name.replace("*", "x") for path, _ in of["absolute"] for name in path.split("/")[1:]}
    return _Places(
        below=_by_last(of["directories"]),
        ends=_by_last(of["files"]),
        suffixes=_by_suffix(of["patterns"]),
        names=_by_first([(one, reason) for one, reason in of["patterns"] if one[:2] != "*."]),
        never=re.compile("|".join(_as_regex(fold(pattern)) for pattern in data["not_patterns"]), re.DOTALL),
        absolute=re.compile("|".join(f"({_as_regex(path)})(?:/.*)?" for path, _ in of["absolute"]), re.DOTALL),
        tops=frozenset(path.split("/")[1] for path, _ in of["absolute"]),
        absolute_reasons=[reason for _, reason in of["absolute"]],
        home=dict(of["home"]),
        words=words,
        first_words=frozenset(data["first_words"]),
        extensions=extensions,
        not_names=frozenset(data["not_names"]),
        vocabulary="\n".join(dict.fromkeys([*known, *spoken, *data["samples"]])),
        roots="\n".join(sorted(roots | {"root", "proc", "self", "environ", "mem", "kcore", "dev", "sda", "etc"})),
    )


_LISTS = ("directories", "files", "patterns", "home", "absolute")


def _by_last(paths: Iterable[tuple[str, str]]) -> dict[str, list[tuple[tuple[str, ...], str]]]:
    found: dict[str, list[tuple[tuple[str, ...], str]]] = {}
    for path, reason in paths:
        *before, last = path.split("/")
        found.setdefault(last, []).append((tuple(before), reason))
    return found


def _by_suffix(patterns: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    for pattern, reason in patterns:
        if pattern[:2] == "*.":
            found.setdefault(pattern.rpartition(".")[2], []).append((pattern[1:], reason))
    return found


def _by_first(patterns: Sequence[tuple[str, str]]) -> dict[str, tuple[re.Pattern[str], Sequence[str]]]:
    """Return the patterns by the first character of what they match; those for any, by ""."""
    found: dict[str, tuple[re.Pattern[str], Sequence[str]]] = {}
    for first in dict.fromkeys(one[0] for one, _ in patterns):
        mine = [(one, reason) for one, reason in patterns if one[0] == first]
        regex = re.compile("|".join(f"({_as_regex(one)})" for one, _ in mine), re.DOTALL)
        found[first if first != "*" else ""] = (regex, [reason for _, reason in mine])
    return found


def _as_regex(pattern: str) -> str:
    return "[^/]*".join(re.escape(piece) for piece in pattern.split("*"))


def fold(text: str) -> str:
    """Return one form for all spellings that a file system, or a person, may take for the same name."""
    if text.isascii():
        return text.lower()
    plain = normal_form("NFKC", normal_form("NFKC", text).casefold())
    bare = "".join(char for char in plain if unicodedata.category(char) not in ("Cf", "Mn"))
    return normal_form("NFKC", bare.casefold())


def _parts(folded: str) -> list[str]:
    return [part for part in folded.split("/") if part and part != "."]


def _without_dots(parts: list[str]) -> list[str]:
    """Return the parts with every `..` resolved; those that lead above the start stay in front."""
    plain: list[str] = []
    for part in parts:
        if part == ".." and plain and plain[-1] != "..":
            plain.pop()
        else:
            plain.append(part)
    return plain


@lru_cache(maxsize=4096)
def _secret_place(path: str) -> str:
    folded = fold(path)
    absolute = folded.startswith("/")
    parts = _parts(folded)
    if ".." not in parts:
        return _by_parts(parts, absolute)
    plain = _without_dots(parts)
    up = 0
    while up < len(plain) and plain[up] == "..":
        up += 1
    return _by_parts(parts, absolute) or _by_parts(plain[up:], absolute or up > 0)


def _by_parts(parts: list[str], absolute: bool) -> str:
    """Return the reason for a path without `..`; if `absolute`, also compare it with the absolute paths."""
    if not parts:
        return ""
    places = _places()
    for at, part in enumerate(parts):
        if (found := places.below.get(part)) and (why := _fits(found, parts, at)):
            return why
    if why := _by_file(parts, absolute):
        return why
    whole = _COPY.sub("", parts[-1])  # server.pem.gz is as secret as server.pem
    return _by_file([*parts[:-1], whole], absolute) if whole and whole != parts[-1] else ""


def _by_file(parts: list[str], absolute: bool) -> str:
    name = parts[-1]
    if (found := _places().ends.get(name)) and (why := _fits(found, parts, len(parts) - 1)):
        return why
    return _by_name(name) or (_by_place(parts, absolute) if absolute or parts[0][0] == "~" else "")


def _fits(found: Sequence[tuple[tuple[str, ...], str]], parts: list[str], at: int) -> str:
    for before, why in found:
        if not before or tuple(parts[max(0, at - len(before)) : at]) == before:
            return why
    return ""


def _is_plain_name(name: str) -> bool:
    folded = fold(name)
    if folded in ("", ".", "..") or folded[-1] == "~" or folded.rpartition(".")[2] in _COPIES:
        return False
    places = _places()
    return folded not in places.below and folded not in places.ends and not _by_name(folded)


@lru_cache(maxsize=1024)
def _is_plain_directory(directory: str) -> bool:
    """Whether only a file's own name could say that it is secret, directly in this directory."""
    folded = fold(directory)
    parts = _parts(folded)
    if len(directory) > _LONGEST // 2 or ".." in parts or not parts or _secret_place(f"{directory}/x"):
        return False
    places = _places()
    if parts[0] in places.tops or parts[0] in ("dev", "proc") or parts[0][0] == "~":
        return False
    path = f"/{'/'.join(parts)}"
    if parts[0] not in _HOMES or (home := _HOME.match(path)) is None:
        return True
    inside = path[home.end() + 1 :]
    return bool(inside) and not any(place.startswith(f"{inside}/") for place in places.home)


def _by_name(name: str) -> str:
    """Return why a file is secret by its name alone, for names that are not fixed."""
    places = _places()
    why = ""
    if found := places.suffixes.get(name.rpartition(".")[2]):
        why = next((reason for suffix, reason in found if name.endswith(suffix)), "")
    for first in ("", name[:1]):
        if not why and (known := places.names.get(first)) and (match := known[0].fullmatch(name)) is not None:
            why = known[1][(match.lastindex or 1) - 1]
    if not why and _is_spoken(name, places):
        why = "looks like a secret by its name"
    return "" if why and places.never.fullmatch(name) else why


def _is_spoken(name: str, places: _Places) -> bool:
    """Whether the words of the name say that it is a secret: `db-password.txt`, `deploy_key`, `secrets.prod.yaml`."""
    words = [word for word in name.translate(_BETWEEN).split(" ") if word]
    if not words or name in places.not_names:
        return False
    if words[-1] in places.words:
        return True
    if len(words) < 2 or words[-1] not in places.extensions or "." not in name:
        return False
    return words[-2] in places.words or words[0] in places.first_words


_BETWEEN = str.maketrans("-_.", "   ")
_COPIES = frozenset("gz z bz2 xz zst lz4 lzma bak backup old orig save swp tmp copy".split())
_COPY = re.compile(rf"(?:\.(?:{'|'.join(sorted(_COPIES))})|~){{1,4}}$")


def _by_place(parts: list[str], absolute: bool) -> str:
    """Return the reason for a path from the root, or from a home directory."""
    top = parts[0]
    places = _places()
    path = ("/" if absolute else "") + "/".join(parts)
    if absolute and top in places.tops and (match := places.absolute.fullmatch(path)) is not None:
        return places.absolute_reasons[(match.lastindex or 1) - 1]
    if absolute and top == "dev":
        return "" if len(parts) == 1 or path[5:] in _DEVICES else "is a device"
    if absolute and top == "proc":
        return _of_process(path)
    if absolute and top == "root" and _ROOT_HOME.fullmatch(path):
        return "is in the home directory of root"
    if (top not in _HOMES and top[0] != "~") or (home := _HOME.match(path)) is None:
        return ""
    inside = path[home.end() + 1 :]
    return next((why for place, why in places.home.items() if inside == place or inside.startswith(f"{place}/")), "")


def _of_process(path: str) -> str:
    if path in _KERNEL:
        return "shows memory or keys of the system"
    match = _PROCESS.fullmatch(path)
    if match is None or match[1].split("/")[0] in _PROCESS_SHOWN or match[1].startswith("net/"):
        return ""
    return "shows the memory or environment of a process"


@lru_cache(maxsize=1024)
def _holds_secrets(directory: str) -> str:
    if why := _secret_place(directory):
        return why
    folded = fold(directory)
    parts = _without_dots(_parts(folded))
    path = "/".join(parts)
    if folded.startswith("/"):
        path = "/" + "/".join(part for part in parts if part != "..")
    elif parts and parts[-1] == "..":
        return "is above the working directory, and may contain secrets"
    if path in _FULL_OF_SECRETS or path in _ABOVE_SECRETS or _HOME.fullmatch(path) or path.startswith("/proc/"):
        return "contains directories or files that hold secrets"
    return (
        "contains directories or files that hold secrets"
        if parts and parts[-1] in (".config", ".docker", ".kube")
        else ""
    )


class _Part(NamedTuple):
    """One part of a shell pattern, between slashes."""

    literal: str
    """What it stands for if it has no wildcard."""
    regex: str = ""
    says: bool = False
    """Whether it says anything about the name beyond an extension."""
    fillers: tuple[str, ...] = ()
    """The part with every `*` replaced by nothing, and by a letter."""


@lru_cache(maxsize=1024)
def _may_match_secret(pattern: str) -> str:
    folded = fold(pattern)
    parts = [_part(text) for text in folded.split("/") if text not in ("", ".")]
    start = "/" if folded.startswith("/") else ""
    places = _places()
    for path in _candidates(parts, places.vocabulary, only_said=True):
        if why := _secret_place(start + path):
            return why
    if start or (parts and parts[0].literal == ".."):
        for path in _candidates(parts, places.roots, only_said=False):
            found = [part for part in _without_dots(_parts(path)) if part != ".."]
            if found and (why := _by_place(found, True)):
                return why
    return ""


def _candidates(parts: list[_Part], names: str, *, only_said: bool) -> Iterator[str]:
    """Yield paths that the pattern may expand to, made from known names."""
    choices: list[list[str]] = []
    for part in parts:
        if not part.regex:
            choices.append([part.literal])
        elif only_said and not part.says:
            choices.append(list(part.fillers))
        else:
            choices.append([*part.fillers, *re.findall(part.regex, names, re.MULTILINE)])
    made = islice(product(*choices), _MOST_CANDIDATES + 1)
    for number, path in enumerate(made):
        yield "/".join(path) if number < _MOST_CANDIDATES else "~/.ssh"  # too many to check: treated as a secret


def _part(text: str) -> _Part:
    """Parse one part. A bracket stands for any character, so it may match more here than in a shell."""
    regex, empty, filled = "", "", ""
    at = said = some = 0
    stars = wild = False
    while at < len(text):
        char, at = text[at], at + 1
        end = _bracket_end(text, at) if char == "[" else at if char == "?" else 0
        said += char != "*"
        if char == "*" or end:
            wild, stars = True, stars or char == "*"
            some, empty, at = some + bool(end), empty + "x" * bool(end), end or at
            filled += "x"
            continue
        if char == "\\" and at < len(text):
            char, at = text[at], at + 1
        regex += _any(some, stars) + re.escape(char)
        some, stars = 0, False
        empty, filled = empty + char, filled + char
    if not wild:
        return _Part(empty)
    hidden = "" if empty.startswith(".") and text[0] in ".\\" else r"(?!\.)"
    bare_extension = re.fullmatch(r"\**\.[a-z0-9]+", text) is not None
    whole = f"^{hidden}{regex}{_any(some, stars)}$"
    return _Part(empty, whole, said > 0 and not bare_extension, tuple(dict.fromkeys((empty, filled))))


def _any(some: int, more: bool) -> str:
    """Return a run of wildcards as one: matching the stars of `*?*?*` one by one would cost more with each."""
    return f"[^\n]{{{some},{'' if more else some}}}" if some or more else ""


def _bracket_end(text: str, at: int) -> int:
    """Return where the bracket that opened before `at` ends; 0 if it does not, and is an ordinary character."""
    first = at + 1 if text[at : at + 1] in ("!", "^") else at
    return text.find("]", first + 1) + 1
