"""Count in how many places each idea stands that should stand in one.

    python -m tests.meta.doubles            the tree as it is
    python -m tests.meta.doubles --at REV   a revision, as `git archive` has it

`doubles.toml` names the ideas. A place is a file that has what marks the idea: a text, or a class with fields of a
noun.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("doubles.toml")


@dataclass(frozen=True, slots=True, kw_only=True)
class Idea:
    """One idea, and what marks a place where it is written."""

    name: str
    places: tuple[str, ...]
    """The files where it may stand."""
    sample: str
    """What somebody would write who writes it once more."""
    text: str = ""
    """A regular expression over a file's text."""
    fields: frozenset[str] = frozenset()
    """Or fields of a noun, of which a class has at least `least`."""
    least: int = 0
    apart: str = ""
    """Files with this pattern in their path do not count."""

    def stands_in(self, file: str, source: str) -> bool:
        """Whether this file is a place of the idea."""
        if self.apart and re.search(self.apart, file):
            return False
        if self.text:
            return re.search(self.text, source, re.MULTILINE) is not None
        return any(len(self.fields & fields) >= self.least for fields in _classes(source))

    def found(self, tree: Mapping[str, str]) -> list[str]:
        """The files of a tree in which it stands."""
        return sorted(file for file, source in tree.items() if self.stands_in(file, source))


def ideas() -> Sequence[Idea]:
    """The ideas that should stand in one place each."""
    return [
        Idea(
            name=name,
            places=tuple(row["places"]),
            sample=row["sample"],
            text=row.get("text", ""),
            fields=frozenset(row.get("fields", ())),
            least=row.get("least", 0),
            apart=row.get("apart", ""),
        )
        for name, row in tomllib.loads(TABLE.read_text()).items()
    ]


def tree_here() -> dict[str, str]:
    """The sources of this checkout by their path below `src/signoff`."""
    return {
        file.relative_to(ROOT / "src/signoff").as_posix(): file.read_text()
        for file in sorted((ROOT / "src/signoff").rglob("*.py"))
    }


def tree_at(revision: str) -> dict[str, str]:
    """The sources of a revision."""
    packed = subprocess.run(
        ["git", "archive", "--format=tar", revision, "src/signoff"], cwd=ROOT, check=True, stdout=subprocess.PIPE
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [member for member in archive if member.isfile() and member.name.endswith(".py")]
        return {one.name.removeprefix("src/signoff/"): _text(archive, one) for one in files}


def _text(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
    content = archive.extractfile(member)
    assert content is not None
    return content.read().decode()


def _classes(source: str) -> Iterator[frozenset[str]]:
    """The annotated fields and properties of each class."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            yield frozenset(
                one.target.id if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) else one.name
                for one in node.body
                if (isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name))
                or (isinstance(one, ast.FunctionDef) and _is_property(one))
            )


def _is_property(function: ast.FunctionDef) -> bool:
    return any(isinstance(one, ast.Name) and one.id == "property" for one in function.decorator_list)


def main(words: Sequence[str]) -> None:
    """Print a line for each idea."""
    tree = tree_at(words[1]) if words[:1] == ["--at"] else tree_here()
    for idea in ideas():
        found = idea.found(tree)
        print(f"{len(found):>3}  {idea.name}")
        if "--places" in words:
            print(*(f"       {file}" for file in found), sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
