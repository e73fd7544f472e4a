"""Projects written into a folder, and packages to be found from there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import pytest

from signoff.config import load_settings
from signoff.toolsets.catalog import Catalog


@dataclass
class Project:
    """A folder with a signoff.yaml."""

    folder: Path

    def write(self, name: str, text: str) -> Path:
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text))
        return file

    def catalog(self, text: str) -> Catalog:
        """The catalog of a project file; it need not hold a policy."""
        whole = dedent(text)
        return Catalog(
            load_settings(
                self.write("signoff.yaml", whole if "\npolicy:" in f"\n{whole}" else f"{whole}\npolicy: []\n")
            )
        )

    def package(self, name: str, text: str) -> None:
        """A module that Python finds from the project's folder."""
        self.write(f"{name.replace('.', '/')}.py", text)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A fresh project. What it imported is forgotten afterwards."""
    path, modules = list(sys.path), set(sys.modules)
    folder = tmp_path / "project"
    folder.mkdir()
    yield Project(folder)
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]
