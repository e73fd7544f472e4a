"""A project's directory is where Python looks only while the project's own code is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.config import load_settings
from signoff.config.import_path import importable
from signoff.toolsets.catalog import Catalog


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    modules = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - modules:
        if str(getattr(sys.modules[name], "__file__", None) or "").startswith(str(tmp_path)):
            del sys.modules[name]


def test_modules_are_found_only_meanwhile(here: Path) -> None:
    (here / "early_bird.py").write_text("")
    (here / "late_bird.py").write_text("")
    before = list(sys.path)
    with importable(str(here)):
        assert sys.path == [*before, str(here)], "nothing in it stands in for an installed package"
        importlib.import_module("early_bird")
    assert sys.path == before
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("late_bird")
    with pytest.raises(ZeroDivisionError), importable(str(here)):
        raise ZeroDivisionError
    assert sys.path == before


def test_a_directory_that_was_there_stays(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(here)
    before = list(sys.path)
    with importable(str(here)):
        assert sys.path == before
    assert sys.path == before


def test_what_an_agent_writes_into_the_project_is_not_imported_later(here: Path) -> None:
    """Packages that try to import an optional one would else run a file that an agent wrote."""
    (here / "shop_helpers.py").write_text("NAMES = ['a']\n")
    code = "from pydantic_ai.toolsets import FunctionToolset\nfrom shop_helpers import NAMES\n"
    (here / "shop_plugin.py").write_text(f"{code}def make():\n    return FunctionToolset()\n")
    (here / "toolsets.py").write_text(f"{code}TOOLSETS = {{name: FunctionToolset() for name in NAMES}}\n")
    (here / "signoff.yaml").write_text("toolsets: {b: {use: 'shop_plugin:make'}}\nplugins: {allow: [shop_plugin]}\n")
    catalog = Catalog(load_settings(here / "signoff.yaml"))
    assert {"a", "b"} <= set(catalog.names())
    for name in ("a", "b"):
        assert catalog.build(name).toolset is not None
    (here / "an_optional_package.py").write_text("raise SystemExit('an agent wrote this')\n")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("an_optional_package")
