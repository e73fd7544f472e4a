"""Which test files a change can reach: `python -m tests.changed` prints them, for `./dev test --changed`.

    python -m tests.changed                 the change since the upstream or main; on main itself what is not
                                            committed yet, or else the last commit
    python -m tests.changed --base v0.1.0   the change since there
    python -m tests.changed --why           the shortest way from a changed file to each test file

A module reaches whoever imports it, and so on. Imports are looked for in the text and not in the syntax tree, which is
ten times as fast and also finds those in code that a test hands to another process. Any other file reaches the modules
beside it and whoever names its path. In doubt a file reaches too much; what nobody can place reaches the whole suite.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

PACKAGES = {"signoff": "src/signoff", "tests": "tests", "benchmarks": "benchmarks"}
SUITE = "tests"
REACHES_ALL = frozenset(
    {"pyproject.toml", "dev", ".ci/run", "requirements/dev.txt", "tests/conftest.py", "tests/forked.py"}
)
"""These change how every test is run."""

_OURS = rf"(?:{'|'.join(PACKAGES)})"
FROM = re.compile(rf"from\s+({_OURS}(?:\.\w+)*)\s+import\s+(\((?:[^)#]|#.*)*\)|[^\n;#\"']*)")
IMPORT = re.compile(r"import(?<!\w import)\s+([\w., ]+)")  # not behind `from`
LOADED = re.compile(rf"(?:[\"']|-m\s+)({_OURS}(?:\.\w+)+)")  # in a string: `python -m`, or a table for later
ANY_BELOW = re.compile(rf"({_OURS}(?:\.\w+)*)\.(?:[{{%]|__path__)")  # a name put together, a walk through it
LATER = "def lazy_names("
"""The one module that loads any other by its name: what a package loads through it is in that package's own table."""
LAZY = re.compile(r"^def __getattr__\(", re.MULTILINE)
AT_ONCE = re.compile(r"^(?:from \S+ import \([^)]*\)|(?:from|import) .*)", re.MULTILINE)
OWN_CLASS = re.compile(r"^class (\w+)(?![\s\S]*\bimport\b)", re.MULTILINE)  # that imports nothing when it is used
SCRIPT = re.compile(r"[\"'](\w+\.py)[\"']")
PROGRAM = re.compile(r"with_name\([\"']signoff[\"']\)")
EVERY_FILE = re.compile(r"[\"']ls-files[\"']")
JOINED = re.compile(r"[\"']\s*/\s*f?[\"']")  # as in ROOT / "docs" / "reference" / "policy.md"


class Graph:
    """Which file uses which, by their paths in the project. Of `gone` files it knows who still names them."""

    def __init__(self, root: Path, gone: Iterable[str] = ()) -> None:
        found = sorted(str(path.relative_to(root)) for top in PACKAGES.values() for path in (root / top).rglob("*.py"))
        self.modules = {_dotted(path): path for path in (*gone, *found) if path.endswith(".py")}
        self.tests = {path for path in found if re.fullmatch(r"tests/(?:.*/)?test_\w+\.py", path)}
        self.used_by: dict[str, set[str]] = defaultdict(set)
        texts = {path: (root / path).read_text("utf-8", "replace").replace("\\n", "\n") for path in found}
        self.lazy = {path for path, text in texts.items() if path.endswith("/__init__.py") and LAZY.search(text)}
        self.homes = {path: _homes(texts[path]) for path in self.lazy}
        tops = {each.name for each in root.iterdir()} | {path.partition("/")[0] for path in gone}
        self._path = re.compile(rf"[\"']((?:{'|'.join(map(re.escape, tops))})(?![\w.-])[^\"'\s]*)")
        for path, text in texts.items():
            self._add(path, text)

    def _add(self, path: str, text: str) -> None:
        for used in self._imports(text):
            self.used_by[used].add(f"{path}:__getattr__" if path in self.lazy else path)
        if path in self.lazy:  # whoever imports a module below it does not ask it for what it loads later
            self.used_by[path].add(f"{path}:__getattr__")
            for used in self._imports("\n".join(AT_ONCE.findall(text))):
                self.used_by[used].add(path)
        if not path.startswith("src/"):
            for used in self._names(path, text):
                self.used_by[used].add(path)
        if path in self.tests:
            for above in _above(path):
                self.used_by[f"{above}/conftest.py"].add(path)

    def _imports(self, text: str) -> Iterator[str]:
        for module, names in FROM.findall(text):
            for name in re.findall(r"\w+", names) or [""]:
                yield from self._imported(f"{module}.{name}")
        for modules in IMPORT.findall(text):
            for module in re.findall(rf"\b{_OURS}\b[\w.]*", modules):
                yield from self._imported(module)
        for module in LOADED.findall(text):
            if "." in self._known(module):
                yield from self._imported(module)
        for module in ANY_BELOW.findall(text) if LATER not in text else ():
            yield from (path for name, path in self.modules.items() if f"{name}.".startswith(f"{module}."))

    def _imported(self, name: str) -> Iterator[str]:
        """The module of that name, or the one that holds it, with the packages above, which are imported before it."""
        known = self._known(name)
        if path := self.modules.get(known):
            rest = name.removeprefix(known).strip(".").partition(".")[0]
            if (home := self.homes.get(path, {}).get(rest)) is not None:
                yield path
                yield from self._imported(home)
            else:
                yield f"{path}:__getattr__" if path in self.lazy else path
        while "." in known:
            known = known.rpartition(".")[0]
            if path := self.modules.get(known):
                yield path

    def _known(self, name: str) -> str:
        """The longest beginning of a dotted name that is a module, or the first word of it."""
        while "." in name and name not in self.modules:
            name = name.rpartition(".")[0]
        return name

    def _names(self, path: str, text: str) -> Iterator[str]:
        """What it reaches by its path: scripts beside it, the program, files of the project."""
        yield from (str(PurePosixPath(path).with_name(script)) for script in SCRIPT.findall(text))
        if PROGRAM.search(text):
            yield from self._imported("signoff.cli.main")
        if EVERY_FILE.search(text):
            yield "."
        if "__file__" in text or "ROOT /" in text:  # without these it means places in a scratch directory
            for named in self._path.findall(JOINED.sub("/", text)):
                yield re.split(r"[^/]*[{*]", named)[0].rstrip("/")

    def reached(self, changed: Iterable[str]) -> dict[str, list[str]]:
        """The test files that a change reaches, each with the shortest way to it. `tests` stands for all of them."""
        ways = {path: [path] for path in sorted(changed)}
        for path in tuple(ways):
            if path in REACHES_ALL or not self._is_placed(path):
                return {SUITE: [path, SUITE]}
            ways |= {each: ways.get(each, [path]) for each in _above(path)}
            ways |= {each: ways.get(each, [path, each]) for each in self._beside(path)}
        following = sorted(ways, key=lambda path: len(ways[path]))
        for path in following:  # grows
            for user in sorted(self.used_by.get(path, ())):
                if user not in ways:
                    ways[user] = [*ways[path], user]
                    following.append(user)
        return {path: ways[path] for path in sorted(ways) if path in self.tests}

    def _is_placed(self, path: str) -> bool:
        is_ours = any(path.startswith(f"{top}/") for top in PACKAGES.values())
        return is_ours or any(each in self.used_by for each in (path, *_above(path)) if each not in (".", "src"))

    def _beside(self, path: str) -> list[str]:
        """The modules that a data file belongs to: those of the nearest directory that has any."""
        if path.endswith(".py"):
            return []
        for above in _above(path):
            if modules := [each for each in self.modules.values() if _above(each)[0] == above]:
                return modules
        return []


def _above(path: str) -> list[str]:
    """The directories it lies in, from the nearest up to the project's own, `.`."""
    return [str(each) for each in PurePosixPath(path).parents]


def _dotted(path: str) -> str:
    """`src/signoff/cli/__init__.py` is `signoff.cli`."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _homes(text: str) -> dict[str, str]:
    """Which module holds the names that a lazy package offers, as type checkers are told; none for own classes."""
    own = dict.fromkeys(OWN_CLASS.findall(text), "")
    return own | {name: module for module, names in FROM.findall(text) for name in re.findall(r"\w+", names)}


def change(root: Path, base: str | None = None) -> list[str]:
    """The files that differ from `base` or are not tracked yet."""
    if base is None:
        main = next((ref for ref in ("@{upstream}", "main", "origin/main") if _commit(root, ref)), None)
        if main is None:
            raise LookupError("this branch has no upstream, and there is no main: say --base REF")
        base = _git(root, "merge-base", "HEAD", main)[0]
        is_main = _git(root, "rev-parse", "--abbrev-ref", "HEAD") == ["main"]
        if is_main and base == _commit(root, "HEAD") and not change(root, "HEAD"):
            base = _commit(root, "HEAD~1") or _git(root, "hash-object", "-t", "tree", "/dev/null")[0]
    differ = _git(root, "diff", "--name-only", "--no-renames", "-z", base, "--")
    return sorted({*differ, *_git(root, "ls-files", "-z", "--others", "--exclude-standard")})


def _commit(root: Path, ref: str) -> str | None:
    """The id of a commit, if there is such a one."""
    try:
        return _git(root, "rev-parse", "--verify", "--quiet", f"{ref}^{{commit}}")[0]
    except subprocess.CalledProcessError:
        return None


def _git(root: Path, *arguments: str) -> list[str]:
    """The lines that git prints, or with `-z` the names."""
    command = ["git", "-c", "safe.directory=*", *arguments]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    return [each for each in re.split(r"\0" if "-z" in arguments else r"\n", done.stdout) if each]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.changed", description="Print what a change can reach.")
    parser.add_argument("--base", metavar="REF", help="the change since there, instead of since the upstream or main")
    parser.add_argument("--why", action="store_true", help="print the shortest way from a changed file to each")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1], help="the project, if not this one")
    asked = parser.parse_args()
    try:
        changed = change(asked.root, asked.base)
    except LookupError as error:
        parser.error(str(error))
    except subprocess.CalledProcessError as error:
        parser.error(error.stderr.strip())
    gone = [path for path in changed if not (asked.root / path).exists()]
    reached = Graph(asked.root, gone).reached(changed)
    if not reached:
        print(f"{len(changed)} changed files: none that a test could reach", file=sys.stderr)
    for path, way in reached.items():
        print(" -> ".join(way) if asked.why else path)


if __name__ == "__main__":
    main()
