"""Read which MCP servers a proxy is for: from a configuration file of MCP clients, a command, or a URL."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from signoff.core.declared_secrets import in_headers
from signoff.core.strict_json import read_object
from signoff.core.visible_text import quoted, visible
from signoff.errors import WrongUse

_SAYS_WHERE = frozenset({"HOME", "PWD", "USER", "LOGNAME", "TMPDIR"})
"""Variables that say where and for whom a program runs: as a part of paths, people have to see them."""
SERVERS = ("mcpServers", "servers")
"""Keys under which clients list servers."""
_VARIABLE = re.compile(
    r"\$\{(?:env:)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?::-(?P<default>[^{}]*))?\}|\$\{(?P<odd>[^{}]*)\}"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class UpstreamServer:
    """An MCP server: a program to start, or a URL."""

    name: str
    """Its name in rules, like the toolset of a worker."""
    command: tuple[str, ...] = field(default=(), repr=False)
    env: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    cwd: str = ""
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    filled: tuple[str, ...] = field(default=(), repr=False)
    """The values that were filled in for `${NAME}`, wherever that was."""

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values to mask everywhere: of environment variables and headers, and what was filled in."""
        values = (*self.env.values(), *in_headers(self.headers), *self.filled)
        return tuple(dict.fromkeys(one for one in values if len(one) > 3))


def read_upstream(words: Sequence[str], name: str = "") -> list[UpstreamServer]:
    """Return the servers that a command line names. Raises `WrongUse`."""
    match list(words):
        case []:
            raise WrongUse("name the servers behind the proxy: a file with mcpServers, a URL, or -- COMMAND …")
        case [url] if url.startswith(("http://", "https://")):
            return [UpstreamServer(name=name or "mcp", url=url)]
        case [file] if file.endswith(".json"):
            if name:
                raise WrongUse(f"--name is for a command or a URL; {file} names its servers itself")
            return read_servers(file)
        case command:
            return [UpstreamServer(name=name or "mcp", command=_program(command))]


def read_servers(file: str, environment: Mapping[str, str] | None = None) -> list[UpstreamServer]:
    """Return the servers in a file, without disabled ones. `${NAME}` is replaced from the environment."""
    try:
        with open(file, "rb") as opened:
            told = read_object(opened.read(), what=file)
    except OSError as error:
        raise WrongUse(f"{file} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise WrongUse(str(error)) from error
    listed = next((told[key] for key in SERVERS if key in told), None)
    if not isinstance(listed, dict) or not listed:
        raise WrongUse(f'{file} lists no servers: {{"mcpServers": {{"NAME": {{"command": "…", "args": […]}}}}}}')
    given = os.environ if environment is None else environment
    entries = [_Entry(file, name, _object(entry), given) for name, entry in cast("dict[str, Any]", listed).items()]
    if not (on := [entry for entry in entries if not entry.is_off]):
        raise WrongUse(f"every server in {file} is disabled")
    return [_server(entry.name, entry) for entry in on]


def _object(entry: object) -> Mapping[str, object] | None:
    return cast("Mapping[str, object]", entry) if isinstance(entry, dict) else None


def _program(words: Sequence[str]) -> tuple[str, ...]:
    """Return the command as words. `python` becomes the Python that runs signoff, as for toolsets."""
    return (sys.executable, *words[1:]) if words[0] == "python" else tuple(words)


def _server(name: str, entry: _Entry) -> UpstreamServer:
    url, program = entry.text("url") or entry.text("serverUrl"), entry.text("command")
    if bool(url) == bool(program):
        raise entry.wrong("has either a `command` or a `url`")
    if url:
        if not url.startswith(("http://", "https://")):
            raise entry.wrong("has a `url` that does not begin with http:// or https://")
        return UpstreamServer(name=name, url=url, headers=entry.texts("headers"), filled=tuple(entry.filled))
    words = [program, *entry.words("args")]
    if words[1:3] == ["mcp", "proxy"] and os.path.basename(program) == "signoff":
        raise entry.wrong("is a proxy like this one: give it its own file with the servers behind it")
    env, cwd = entry.texts("env"), entry.text("cwd")
    return UpstreamServer(name=name, command=_program(words), env=env, cwd=cwd, filled=tuple(entry.filled))


@dataclass(frozen=True, slots=True)
class _Entry:
    """One server in a file. Its methods check types and expand variables."""

    file: str
    name: str
    told: Mapping[str, object] | None
    """None: it is not an object."""
    environment: Mapping[str, str]
    filled: list[str] = field(default_factory=list[str])
    """The values that variables were replaced by so far."""

    @property
    def is_off(self) -> bool:
        return self.told is not None and self.told.get("disabled") is True

    def wrong(self, what: str) -> WrongUse:
        return WrongUse(f"{self.file}: the server {quoted(visible(self.name))} {what}")

    def text(self, key: str) -> str:
        value = self._get(key, "")
        if not isinstance(value, str):
            raise self.wrong(f"should have a text as its `{key}`")
        return self._filled(value)

    def words(self, key: str) -> list[str]:
        value = self._get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, str) for one in cast("list[Any]", value)):
            raise self.wrong(f"should have a list of texts as its `{key}`")
        return [self._filled(one) for one in cast("list[str]", value)]

    def texts(self, key: str) -> dict[str, str]:
        value = self._get(key, {})
        if not isinstance(value, dict) or not all(
            isinstance(one, str) for one in cast("dict[str, Any]", value).values()
        ):
            raise self.wrong(f"should have texts by name as its `{key}`")
        return {name: self._filled(one) for name, one in cast("dict[str, str]", value).items()}

    def _get(self, key: str, default: object) -> object:
        if self.told is None:
            raise self.wrong("should be an object")
        found = self.told.get(key)
        return default if found is None else found

    def _filled(self, text: str) -> str:
        return _VARIABLE.sub(self._found, text)

    def _found(self, found: re.Match[str]) -> str:
        name, default = found["name"], found["default"]
        if name is None:
            raise self.wrong(f"uses {found[0]}, which only its client knows; write ${{NAME}}, from the environment")
        value = self.environment.get(name)
        if not value and default is None:
            raise self.wrong(f"uses {found[0]}, and the environment has no {name}")
        if value and name not in _SAYS_WHERE:
            self.filled.append(value)
        return value or default or ""
