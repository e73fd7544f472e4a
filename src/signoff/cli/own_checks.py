"""Find the tests and checks of a project by its own files: which tools it configures or requires, and its scripts.

Scripts of package.json, environments of tox, sessions of nox and targets of make count if their name says that they
test or check something and nothing in it, or in the script itself, says that they change something. Then the commands
that they run count too. Words behind `--` do not: what an environment or a session does with them, only it knows. An
environment of tox also counts if it runs nothing but known checks.
"""

from __future__ import annotations

import ast
import configparser
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, cast

from signoff.cli.own_lines import KnownChecks, Named, recipes, tox_commands, tox_words, workflow_lines

_TABLE = Path(__file__).parent / "templates" / "own-checks.toml"
_PYTHONS = ("python", "python3")
_RUNNERS = {"uv.lock": "uv run", "poetry.lock": "poetry run", "pdm.lock": "pdm run"}
"""What runs a program of the project's environment, by the file that says which packages are in there."""
_LARGEST = 1_000_000
"""The most characters of a file that are read."""
_COMPILES = re.compile(r"(?:^| )(?:[\w-]*-)?tsc(?: |$)")
_COMMENT = re.compile(r"(\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|//[^\n\r\u2028\u2029]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""A comment in settings of TypeScript, or a text, which may look like one."""
_OUTPUT = re.compile(r"(?i)tsBuildInfoFile|\\u|[\"'](?:incremental|composite)[\"'](?!\s*:\s*false\b)")
"""What says that TypeScript writes what it knows of the last run; also where that may be spelt in other ways."""
_EXTENDS = re.compile(r"[\"']extends[\"']\s*:\s*(\[[^\]]*\]|\"[^\"]*\"|'[^']*')")
_SETTINGS_OF_TYPESCRIPT = ("tsconfig", "jsconfig")
_NOT_OURS = frozenset({"node_modules", ".git"})
_IN_QUOTES = re.compile(r"[\"']([^\"']+)[\"']")
_MOST_NAMES = 60
_MOST_LISTED = 100
"""The most environments and targets that are looked at to find those, and the most lines of one."""
_MOST_STEPS = 1_000
_SEPARATORS = re.compile(r"[-_.:/]+")
_CHECKS = re.compile(
    r"(?:tests?|testing|checks?|checkers?|lint(?:s|er|ers|ing)?|types?|typechecks?|typecheck(?:er|ing)|typing|mypy|pyright"
    r"|flake8|pylint|ruff|black|isort|eslint|oxlint|prettier|stylelint|tsc|tsd|knip|cspell|units?|integration|smoke|e2e|specs?"
    r"|doctests?|cov|coverage|cover|withcov|nocov|style|verify|validate|vet|clippy|jest|vitest|mocha|checklinks|linkcheck"
    r"|py[0-9.]*|pypy[0-9.]*|python[0-9.]*|ci|quality|format)"
)
_CHANGES = re.compile(
    r"(?:(?:auto)?fix(?:es|up)?|write|updates?|updated|upgrade|bump|publish|releases?|deploy|upload|push|install|uninstall|clean|"
    r"cleanup|rm|remove|delete|destroy|drop|reset|watch|serve|server|dev|start|debug|build|dist|pack|package|migrate|migration|seed"
    r"|setup|prepare|gen|generate|regen|docker|format|fmt|apply|commit|tag|sync|accept|approve|snapshots?|record|new|init)"
)
"""Words of a name that say that more is done than a test or a check. `format` alone formats; `format:check` checks."""
_STAYS = frozenset({"check", "checks"})
_REWRITES = re.compile(
    r"(?:^|[\s=])(?:--(?:fix|write|update|updateSnapshot|update-snapshots?|apply|in-place)\b|-[uw]\b|rm\s|rimraf\b|del-cli\b|shx\s|"
    r"git\s+(?!(?:diff|status|log|show|ls-files)\b)|curl\b|wget\b|ssh\b|scp\b|rsync\b|docker\b|kubectl\b|sudo\b|np\b)"
    r"|\b(?:publish|deploy|upload)\b|>"
)
"""What stands in a script that changes more than reports and caches."""
_TARGET = re.compile(r"^([A-Za-z0-9][\w.-]*(?:[ \t]+[A-Za-z0-9][\w.-]*)*)[ \t]*::?(?!=)", re.MULTILINE | re.ASCII)
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][\w.-]*)", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9][\w.:-]*", re.ASCII)
_BRACES = re.compile(r"\{([^{}]*)\}")


class OwnChecks(NamedTuple):
    """The tests and checks of a project, as patterns of rules."""

    allowed: tuple[str, ...]
    rewrites: tuple[str, ...]
    """What some of `allowed` cover too, though it changes files."""


def own_checks(directory: Path) -> OwnChecks:
    """Return the tests and checks of the project in a directory. What cannot be read there counts as absent."""
    named = frozenset(_named(directory))
    allowed: list[str] = []
    rewrites: list[str] = []
    runners = [runner for file, runner in _RUNNERS.items() if (directory / file).is_file()]
    for tool in tools():
        if named & tool.names or any((directory / file).is_file() for file in tool.files):
            allowed += tool.commands
            names = dict.fromkeys(one.split()[0] for one in tool.modules)
            allowed += [f"{python} -m {one}" for one in tool.modules for python in _PYTHONS]
            allowed += [f"{python} -m {one} --version" for one in names for python in _PYTHONS]
            allowed += [f"{runner} {one}" for one in tool.commands if tool.modules for runner in runners]
            rewrites += tool.rewrites
    if (name := _own_name(directory)) and "pytest *" in allowed:
        allowed += [f"{python} -m {name} {option}" for python in _PYTHONS for option in ("--version", "--help")]
    for found in (_scripts, _environments, _sessions, _targets):
        allowed += found(directory)
    allowed += _first(_lines(directory))
    kept = (one for one in dict.fromkeys(allowed) if not (_COMPILES.search(one) and _names_output(directory, one)))
    return OwnChecks(tuple(kept), tuple(dict.fromkeys(rewrites)))


def _names_output(directory: Path, command: str) -> bool:
    """Whether settings of TypeScript name a file that a check writes, or may: those of the project and of the command,
    and what they extend.
    """
    named = (directory / word for word in command.split() if word.endswith(".json"))
    waiting = [*named, *islice(_typescript(directory), _MOST_LISTED + 1)]
    seen = set[Path]()
    while waiting:
        file = Path(os.path.normpath(waiting.pop()))
        if file in seen or not file.exists():
            continue
        seen.add(file)
        text = _COMMENT.sub(lambda found: found[1] or " ", _text(file))
        if not text or len(seen) > _MOST_LISTED or _OUTPUT.search(text):
            return True
        names = [one[1] for found in _EXTENDS.finditer(text) for one in _IN_QUOTES.finditer(found[1])]
        beside = [place for name in names for place in _extended(file.parent, name)]
        if any(not place.is_relative_to(directory) for place in map(Path, map(os.path.normpath, beside))):
            return True
        waiting += beside
    return False


def _typescript(directory: Path) -> Iterator[Path]:
    """Yield the settings of TypeScript in a project, wherever they are: a command may name any of them."""
    for top, directories, files in os.walk(directory):
        directories[:] = [one for one in directories if one not in _NOT_OURS]
        yield from (
            Path(top, one) for one in files if one.endswith(".json") and one.startswith(_SETTINGS_OF_TYPESCRIPT)
        )


def _extended(beside: Path, name: str) -> Iterator[Path]:
    """Yield what settings of TypeScript in a directory may extend by a name: a file, or one of an installed package."""
    top = beside if name.startswith((".", "/")) else beside / "node_modules"
    yield from (top / name, top / f"{name}.json", top / name / "tsconfig.json")


def _known(directory: Path) -> KnownChecks:
    scripts = _package_scripts(directory)
    checks = frozenset(name for name in scripts if only_checks(name, _whole(name, scripts)))
    return KnownChecks(_begins(), _REWRITES, checks.__contains__)


@cache
def _begins() -> frozenset[tuple[str, ...]]:
    begins = {tuple(one.removesuffix(" *").split()) for tool in tools() for one in tool.commands}
    begins |= {
        (python, "-m", *one.removesuffix(" *").split())
        for tool in tools()
        for one in tool.modules
        for python in _PYTHONS
    }
    return frozenset(begins)


def _lines(directory: Path) -> Iterator[str]:
    """Yield the commands that the project's own checks run."""
    known, scripts = _known(directory), _package_scripts(directory)
    for name, script in scripts.items():
        if known.is_check(name):
            yield from known.among([script], trusted=True)
    for environment in _tox(directory):
        if len(environment.lines) <= _MOST_LISTED and only_checks(environment.name):
            yield from known.among(environment.lines, trusted=True)
    for target in islice(recipes(_text(directory / "Makefile")), _MOST_LISTED):
        if len(target.lines) <= _MOST_LISTED and only_checks(target.name, "\n".join(target.lines)):
            yield from known.among(target.lines, trusted=True)
    yield from known.among(list(islice(workflow_lines(directory, _text), _MOST_STEPS)), trusted=False)


class Tool(NamedTuple):
    """A tool that tests or checks, and how to see that a project uses it."""

    files: Sequence[str]
    names: frozenset[str]
    commands: Sequence[str]
    modules: Sequence[str]
    rewrites: Sequence[str]


def tools() -> Iterator[Tool]:
    """Yield every tool that may be found."""
    for keys in tomllib.loads(_TABLE.read_text(encoding="utf-8")).values():
        files, names = keys.get("files", "").split(), frozenset(keys.get("names", "").split())
        yield Tool(files, names, keys.get("commands", ()), keys.get("modules", ()), keys.get("rewrites", ()))


def only_checks(name: str, script: str = "") -> bool:
    """Whether a script, target or session of this name tests or checks and changes nothing, as far as they tell."""
    words = [word for word in _SEPARATORS.split(name.lower()) if word]
    checks = any(map(_CHECKS.fullmatch, words))
    changes = any(map(_CHANGES.fullmatch, words)) and not (words[-1] in _STAYS or words[0] in _STAYS)
    changes = changes or any(word in ("fix", "write", "update", "publish", "release", "deploy") for word in words)
    return bool(_NAME.fullmatch(name)) and checks and not changes and not _REWRITES.search(script)


def _scripts(directory: Path) -> Iterator[str]:
    """Yield how scripts of package.json are run, by the package managers of which there is a lock file."""
    scripts = _package_scripts(directory)
    if not (directory / "package.json").is_file():
        return
    yield from ("npm test", "npm run test", "npm run build", "npm run lint")
    managers = {"yarn.lock": "yarn", "pnpm-lock.yaml": "pnpm", "bun.lock": "bun", "bun.lockb": "bun"}
    used = list(dict.fromkeys(name for file, name in managers.items() if (directory / file).is_file()))
    for name in _first(one for one in scripts if only_checks(one, _whole(one, scripts))):
        yield f"npm run {name}"
        for manager in used:
            yield f"{manager} run {name}"
            if (manager != "bun" and ":" in name) or name in ("test", "lint", "typecheck"):
                yield f"{manager} {name}"


def _package_scripts(directory: Path) -> Mapping[str, str]:
    return {name: text for name, text in _table(_package(directory).get("scripts")).items() if isinstance(text, str)}


def _whole(name: str, scripts: Mapping[str, str]) -> str:
    """Return what a script runs, with the scripts before and after it."""
    return "\n".join(scripts.get(one, "") for one in (f"pre{name}", name, f"post{name}"))


def _environments(directory: Path) -> Iterator[str]:
    """Yield how the environments of tox are run."""
    environments = list(_tox(directory))
    if not (directory / "tox.ini").is_file() and not environments:
        return
    known = _known(directory)
    yield from ("tox", "tox run")
    for name in _first(("py", *(one.name for one in environments if _is_check(one, known)))):  # tox itself knows `py`
        yield from (f"tox -e {name}", f"tox run -e {name}", f"tox r -e {name}")
        yield from (f"python -m tox -e {name}", f"python3 -m tox -e {name}")


def _is_check(environment: Named, known: KnownChecks) -> bool:
    if only_checks(environment.name):
        return True
    words = _SEPARATORS.split(environment.name.lower())
    named = _NAME.fullmatch(environment.name) and not any(map(_CHANGES.fullmatch, words))
    return bool(named) and len(environment.lines) <= _MOST_LISTED and known.only(environment.lines)


def _tox(directory: Path) -> Iterator[Named]:
    """Yield the environments of tox, with what each runs."""
    ini = _sections(directory / "tox.ini")
    base = ini.get("testenv", {}).get("commands", "")
    listed = "\n".join(ini.get("tox", {}).get(key, "") for key in ("envlist", "env_list"))
    sections = (name.partition(":")[2] for name in ini if name.startswith("testenv:"))
    every = (*sections, *re.split(r"[\s,]+(?![^{]*\})", listed))
    names = islice((name for one in every for name in _unbraced(one.strip()) if name), _MOST_LISTED)
    yield from (Named(name, tox_commands(ini.get(f"testenv:{name}", {}).get("commands", base))) for name in names)
    for known in (
        _table(_table(_read(directory / "pyproject.toml", tomllib.loads).get("tool")).get("tox")),
        _read(directory / "tox.toml", tomllib.loads),
    ):
        common = _table(known.get("env_run_base")).get("commands")
        environments = _table(known.get("env"))
        more = known.get("env_list")
        names = dict.fromkeys(
            (*environments, *(map(str, cast("list[object]", more)) if isinstance(more, list) else ()))
        )
        yield from (Named(name, tox_words(_table(environments.get(name)).get("commands", common))) for name in names)


def _unbraced(text: str) -> Iterator[str]:
    """Yield what `py{311,312}-x` stands for."""
    group = _BRACES.search(text)
    if group is None or len(text) > 200:
        yield text
        return
    for one in group[1].split(",")[:20]:
        yield from _unbraced(text[: group.start()] + one.strip() + text[group.end() :])


def _sessions(directory: Path) -> Iterator[str]:
    """Yield how the sessions of nox are run, which are functions of a module."""
    text = _text(directory / "noxfile.py")
    names: list[str] = []
    with suppress(SyntaxError, ValueError, RecursionError, MemoryError):
        names = [name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) for name in _session(node)]
    for name in _first(filter(only_checks, names)):
        for option in ("-s", "--session", "--sessions", "-e"):
            yield f"nox {option} {name}"


def _session(function: ast.FunctionDef) -> Iterator[str]:
    for mark in function.decorator_list:
        call = mark.func if isinstance(mark, ast.Call) else mark
        if (isinstance(call, ast.Attribute) and call.attr == "session") or (
            isinstance(call, ast.Name) and call.id == "session"
        ):
            keywords = mark.keywords if isinstance(mark, ast.Call) else []
            given = (one.value for one in keywords if one.arg == "name" and isinstance(one.value, ast.Constant))
            named = [str(one.value) for one in given]
            yield from named or (function.name, function.name.replace("_", "-"))


def _targets(directory: Path) -> Iterator[str]:
    """Yield the targets of make."""
    file = directory / "Makefile"
    if not file.is_file():
        return
    yield from ("make test", "make build", "make lint", "make check")
    names = (name for found in _TARGET.finditer(_text(file)) for name in found[1].split())
    yield from (f"make {name}" for name in _first(filter(only_checks, names)))


def _named(directory: Path) -> Iterator[str]:
    """Yield the names of the packages that a project requires, and of the tools that it configures."""
    project = _read(directory / "pyproject.toml", tomllib.loads)
    yield from _table(project.get("tool"))
    about = _table(project.get("project"))
    lists = [about.get("dependencies"), *_table(about.get("optional-dependencies")).values()]
    lists += _table(project.get("dependency-groups")).values()
    poetry = _table(_table(project.get("tool")).get("poetry"))
    groups = [poetry, *map(_table, _table(poetry.get("group")).values())]
    for group in groups:
        yield from (*_table(group.get("dependencies")), *_table(group.get("dev-dependencies")))
    for one in lists:
        yield from _required(map(str, cast("list[object]", one)) if isinstance(one, list) else ())
    for file in ("tox.ini", "setup.cfg"):
        sections = _sections(directory / file)
        yield from (name.removeprefix("tool:").partition("-")[0] for name in sections)
        yield from _required(line for keys in sections.values() for line in keys.get("deps", "").splitlines())
    for file in sorted((*directory.glob("requirements*.txt"), *directory.glob("requirements/*.txt")))[:20]:
        yield from _required(_text(file).splitlines())
    package = _package(directory)
    for key in ("dependencies", "devDependencies", "peerDependencies"):
        yield from _table(package.get(key))


def _required(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if name := _REQUIREMENT.match(line.rpartition(": ")[2]):
            yield name[1].lower().replace("_", "-")


def _own_name(directory: Path) -> str:
    """Return the name by which the project may be run as a module; "" if it has none."""
    about = _table(_read(directory / "pyproject.toml", tomllib.loads).get("project"))
    name = about.get("name") or _sections(directory / "setup.cfg").get("metadata", {}).get("name")
    written = str(name or "").strip().lower().replace("-", "_")
    places = (directory / written, directory / "src" / written, directory / f"{written}.py")
    return written if written.isidentifier() and written.isascii() and any(one.exists() for one in places) else ""


def _package(directory: Path) -> Mapping[str, Any]:
    return _read(directory / "package.json", json.loads)


def _sections(file: Path) -> Mapping[str, Mapping[str, str]]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True)
    with suppress(configparser.Error, ValueError):
        parser.read_string(_text(file))
    return {name: {key: value or "" for key, value in parser.items(name)} for name in parser.sections()}


def _read(file: Path, parse: Callable[[str], object]) -> Mapping[str, Any]:
    with suppress(ValueError, RecursionError):
        return _table(parse(_text(file)))
    return {}


def _table(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}


def _text(file: Path) -> str:
    with suppress(OSError, ValueError):
        if file.is_file() and file.stat().st_size <= _LARGEST:
            return file.read_text(encoding="utf-8")
    return ""


def _first(names: Iterable[str]) -> Sequence[str]:
    return list(dict.fromkeys(names))[:_MOST_NAMES]
