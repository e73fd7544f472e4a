"""Draws the command lines of `lines.jsonl` from source packages: `python -m benchmarks.everyday.draw`.

`sources.toml` names the packages, their versions and the sums of their files, and the seed. The packages come from the
index that pip uses here, or from npm. The same packages give the same lines in the same order; what each of them does
is told in `kinds.tsv`, by hand.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urljoin
from urllib.request import Request, urlopen

import yaml

from benchmarks.everyday.lines import LINES, SOURCES, id_of

LONGEST = 400
"""Characters: what is longer is a program in a text, and not a line that somebody types."""


class Found(NamedTuple):
    """One command line, and the file it stands in."""

    line: str
    project: str
    file: str


def main() -> None:
    plan = tomllib.loads(SOURCES.read_text(encoding="utf-8"))
    every: dict[str, Found] = {}
    for source in plan["source"]:
        for found in _drawn(source, plan["seed"], source.get("most", plan["most"])):
            every.setdefault(found.line, found)
    lines = sorted(every.values(), key=lambda found: (found.project, found.file, found.line))
    rows = ({"id": id_of(found.line), **found._asdict()} for found in lines)
    LINES.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(lines)} lines of {len({found.project for found in lines})} projects")


def _drawn(source: dict[str, Any], seed: int, most: int) -> list[Found]:
    """Some of the lines of a package: a large project does not stand for all, nor one program for a project."""
    with tarfile.open(package_file(source)) as package:
        lines = {found.line: found for found in _lines(source["name"], package) if _is_one(found.line)}
    shuffled = [lines[line] for line in sorted(lines)]
    random.Random(f"{seed} {source['name']}").shuffle(shuffled)
    with_word: Counter[str] = Counter()
    found: list[Found] = []
    for each in shuffled:
        word = each.line.split(maxsplit=1)[0]
        told = word == "echo" and each.file.endswith("akefile")  # the help of a Makefile
        if with_word[word] < (2 if told else source.get("most_of_word", 3)):
            with_word[word] += 1
            found.append(each)
    return found[:most]


OTHERS = re.compile(r"(^|/)(subprojects|vendor|vendored-\w+|external|node_modules|third-?party|_core/src)/")
"""What a package brings along of other projects, under their own licences."""
NOT_TYPED = re.compile(
    r"""
      [#%><@-]|//|[*+]\W|[├└│^"'(]|_{3}|\[(?!\[?\ )          # comments, lists, trees, what another program prints
    | \{\s*["}]|\d+\W|HTTP/\d|[a-z+]+://|\S+:(\s|$)         # JSON, times and versions, answers of servers, keys of YAML
    | [A-Z][a-z]+\b(?![=/])|[A-Z]+$|[\w.[\]-]+\ :?=\ |.*\ ===\   # sentences and settings
    | [A-Za-z]:\\|\$env:|.*\\Scripts\\|set\ \w+=|set\ -x\ \w+\ |(py|choco|where|autoload)\   # for another shell
    """,
    re.VERBOSE,
)
LEFT_OPEN = re.compile(
    r"\$\{\{|\{posargs|\{env|\{tox|\{\[|\{toxinidir|\x00|<[A-Za-z]([\w /.-]*\w)?>|"
    r"(^|\s)\.\.\.(\s|$)|\s\[-?[A-Za-z ]+(\.{3})?[]|]"
)
"""What another program, or who reads it, has to fill in."""


def _is_one(line: str) -> bool:
    """Whether it is a line as it would be typed: whole, and with nothing left to be filled in."""
    if not line or len(line) > LONGEST or not line.isascii() or line.endswith("\\"):
        return False
    if NOT_TYPED.match(line) or LEFT_OPEN.search(line):
        return False
    return _is_whole(line)


@cache
def _is_whole(text: str) -> bool:
    """Whether the shell would run it now, instead of waiting for more."""
    read = subprocess.run(["bash", "-n"], input=text.encode(), capture_output=True, check=False)
    return read.returncode == 0 and b"here-document" not in read.stderr


# ------------------------------------------------------------------------------------------- packages


def kept() -> Path:
    """The directory in which packages are kept from one run to the next."""
    cache = Path(os.environ.get("SIGNOFF_PACKAGES") or Path(tempfile.gettempdir()) / "signoff-packages")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


def unpacked(source: dict[str, Any]) -> Path:
    """The directory with the files of a package."""
    place = kept() / "unpacked" / source["sha256"]
    if not place.exists():
        with tarfile.open(package_file(source)) as package:
            package.extractall(place.with_suffix(".part"), filter="data")
        place.with_suffix(".part").rename(place)
    [top] = (one for one in place.iterdir() if one.is_dir())
    return top


def package_file(source: dict[str, Any]) -> Path:
    """The package's file."""
    cache = kept()
    file = cache / source["file"]
    if not file.exists():
        if source.get("index") == "npm":
            subprocess.run(["npm", "pack", "--silent", f"{source['name']}@{source['version']}"], cwd=cache, check=True)
        else:
            file.write_bytes(_sdist(source))
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != source["sha256"]:
        sys.exit(f"{file.name} is another than sources.toml says: {found}")
    return file


def _sdist(source: dict[str, Any]) -> bytes:
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True)
    index = os.environ.get("PIP_INDEX_URL") or asked.stdout.decode().strip() or "https://pypi.org/simple"
    page = f"{index.rstrip('/')}/{source['name']}/"
    with urlopen(Request(page, headers={"Accept": "text/html"})) as answer:
        links = re.findall(r'href="([^"]+)"[^>]*>\s*([^<]+?)\s*<', answer.read().decode())
    link = next(link for link, name in links if name == source["file"])
    with urlopen(urljoin(page, link.split("#")[0])) as answer:
        return answer.read()


# ------------------------------------------------------------------------------------------- lines in files


def _lines(project: str, package: tarfile.TarFile) -> Iterator[Found]:
    for member in sorted(package.getmembers(), key=lambda member: member.name):
        path = member.name.split("/", 1)[-1]
        reader = next((reader for pattern, reader in READERS if re.search(pattern, path)), None)
        if reader is None or not member.isfile() or OTHERS.search(path):
            continue
        opened = package.extractfile(member)
        text = opened.read().decode(errors="replace") if opened else ""
        for line in reader(text):
            yield Found(line.strip(), project, path)


def _of_workflow(text: str) -> Iterator[str]:
    try:
        known = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    for job in (known.get("jobs") or {}).values() if isinstance(known, dict) else ():
        for step in job.get("steps") or ():
            shell = str(step.get("shell") or "bash")
            if isinstance(step.get("run"), str) and shell.startswith(("bash", "sh")):
                yield from _commands(step["run"].splitlines())


def _of_makefile(text: str) -> Iterator[str]:
    recipe = [line[1:].lstrip("@-+ ") for line in _joined(text.splitlines()) if line.startswith("\t")]
    for line in recipe:
        if not re.search(r"(?<!\$)\$(?!\$)", line):  # a variable of make, not of the shell
            yield line.replace("$$", "$")


def _of_tox(text: str) -> Iterator[str]:
    inside = False
    for line in _joined(text.splitlines()):
        begins = re.match(r"commands(?:_pre|_post)?\s*=\s*(.*)", line)
        inside = bool(begins) or (inside and line[:1] in (" ", "\t"))
        if inside:
            line = begins[1] if begins else line
            yield re.sub(
                r"\{posargs(:[^{}]*)?\}",
                lambda words: (words[1] or ":")[1:],
                re.sub(r"^[\w,!-]+: ", "", line.strip()).lstrip("-! "),
            )


def _of_npm(text: str) -> Iterator[str]:
    try:
        known = json.loads(text)
    except ValueError:
        return
    yield from (script for script in (known.get("scripts") or {}).values() if isinstance(script, str))


PROMPT = re.compile(r"(?:\([\w.-]+\) ?)?(?:[\w.-]+@[\w.-]+:[^ $%#]*[$%#]|[a-z]*[$%]) (.+)$", re.DOTALL)


def _of_guide(text: str) -> Iterator[str]:
    """What stands behind a prompt, and the blocks that say they are for a shell."""
    block: list[str] | None = None
    fence, language, depth = "", "", 0
    for line in _joined(text.splitlines()):
        bare = line.strip()
        if block is None:
            opened = re.match(r"(`{3,}|~{3,})\s*\{?\.?([\w-]*)", bare)
            directive = re.match(r"\.\. (code-block|sourcecode|code):: *([\w-]+)$", bare)
            if begun := opened or directive:
                block, fence, depth = [], opened[1] if opened else "", len(line) - len(line.lstrip())
                language = begun[2]
            elif line[:1].isspace() and (prompt := PROMPT.match(bare)):
                yield prompt[1]
            continue
        ended = bare.startswith(fence) if fence else bool(bare) and len(line) - len(line.lstrip()) <= depth
        if not ended:
            block.append(bare)
            continue
        yield from _of_block(block, language)
        block = None
    yield from _of_block(block or [], language)


def _of_block(block: list[str], language: str) -> Iterator[str]:
    """Where one line has a prompt, and in a session, all others are what programs print."""
    prompted = [prompt[1] for line in block if (prompt := PROMPT.match(line))]
    if language in ("bash", "shell", "sh") and not prompted:
        yield from _commands(line for line in block if not line.startswith(":"))
    elif language in ("bash", "shell", "sh", "console", "shell-session", "text", "none", ""):
        yield from prompted


def _of_examples(text: str) -> Iterator[str]:
    """The blocks that stand four columns in, as Markdown has them."""
    for block in re.findall(r"(?:^ {4}\S.*\n+)+", text, re.MULTILINE):
        yield from _of_block([line[4:] for line in _joined(block.splitlines())], "sh")


EVERYDAY = (
    "awk basename cal cat chmod column comm cp curl cut date df diff dig dirname docker du echo egrep env expr file "
    "find free git grep groups head host hostname id join jobs journalctl kill less ln ls lsof md5sum mkdir mv netstat "
    "nl nslookup od paste pgrep ping printf ps pstree pwd readlink realpath rm rsync sed seq sha256sum sort ss stat "
    "strings systemctl tac tail tar tee time top touch tr tree type uname uniq unzip uptime vmstat w wc wget whereis "
    "which who whoami xargs zcat zip"
).split()


def _of_handbook(text: str) -> Iterator[str]:
    """The examples of a page about a program, without what they say in another language."""
    for line in _of_guide(text):
        typed = re.sub(r"\s+#\s.*[^\x00-\x7f].*$", "", line)
        if typed.split(maxsplit=1)[:1] and typed.split(maxsplit=1)[0] in EVERYDAY:
            yield typed


def _of_manual(text: str) -> Iterator[str]:
    """Lines behind a prompt in a page for `man`."""
    for line in text.splitlines():
        bare = re.sub(r"\\f[BIRP]|\\&|\\fB|\\f\(CW", "", line).replace("\\-", "-").replace("\\e", "\\")
        bare = bare.replace("\\(aq", "'").replace("\\(dq", '"').replace("\\.", ".").replace("\\'", "'")
        if prompt := PROMPT.match(bare.strip()):
            yield prompt[1]


READERS = (
    (r"(^|/)\.github/workflows/[^/]+\.ya?ml$", _of_workflow),
    (r"(^|/)(GNU)?[Mm]akefile$", _of_makefile),
    (r"(^|/)tox\.ini$", _of_tox),
    (r"^(\./)?package\.json$", _of_npm),
    (r"^eg/examples/[^/]+\.md$", _of_examples),
    (rf"^command/({'|'.join(EVERYDAY)})\.md$", _of_handbook),
    (
        r"(?i)^(guide|faq)\.md$|(^|/)(contributing|readme|develop)[^/]*\.(md|rst|txt)$|^(docs?|documentation)/.*\.(md|rst|txt)$",
        _of_guide,
    ),
    (r"(^|/)man/.*\.[1-8]$|(^|/)[a-z-]+\.1$", _of_manual),
)


def _joined(lines: Iterable[str]) -> Iterator[str]:
    """Lines that a backslash goes on with, as one."""
    held = ""
    for line in lines:
        if line.endswith("\\"):
            held += line[:-1].rstrip() + " "
        else:
            yield held + (line.strip() if held else line)
            held = ""


def _commands(lines: Iterable[str]) -> Iterator[str]:
    """The commands of a script: a line each, or as many as a loop, a text in quotes or a here-document takes."""
    held: list[str] = []
    for line in _joined(lines):
        if not held and (not line.strip() or line.lstrip().startswith("#")):
            continue
        held.append(line)
        text = "\n".join(held)
        if _is_whole(text):
            yield text
            held = []


if __name__ == "__main__":
    main()
