"""A project's directory is where Python looks only while the project's own code is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from signoff.config import load_settings
from signoff.config.import_path import importable, keep_importable
from signoff.errors import WrongUse
from signoff.toolsets.catalog import Catalog
from signoff.workers.load import load_agent


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Path]:
    modules, finders = set(sys.modules), list(sys.meta_path)
    yield tmp_path
    sys.meta_path[:] = finders
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


AGENT = """
from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

agent = Agent(TestModel(), name="shop")
"""


def test_an_agents_directory_is_not_left_on_the_path(here: Path) -> None:
    """Else a file that the agent writes would stand in for a module of Python, or for a package that is not there."""
    (here / "corner_shop.py").write_text(AGENT)
    (here / "corner_prices.py").write_text("MILK = 2\n")
    (here / "corner_parts").mkdir()
    (here / "corner_parts" / "shelf.py").write_text("")
    (here / "corner_notes").mkdir()
    before = list(sys.path)
    assert load_agent("corner_shop:agent", str(here)).name == "shop"
    assert sys.path == before
    assert importlib.import_module("corner_prices").MILK == 2, "its functions may import its other modules later"
    importlib.import_module("corner_parts.shelf")
    (here / "an_optional_package.py").write_text("raise SystemExit('an agent wrote this')\n")
    (here / "corner_notes" / "__init__.py").write_text("raise SystemExit('an agent wrote this')\n")
    (here / "wave.py").write_text("raise SystemExit('an agent wrote this')\n")
    assert load_agent("corner_shop:agent", str(here)).name == "shop", "a second look makes none of them known"
    for name in ("an_optional_package", "corner_notes"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
    sys.modules.pop("wave", None)
    assert not str(importlib.import_module("wave").__file__).startswith(str(here))


def test_a_module_that_an_installed_one_hides_is_named(here: Path) -> None:
    (here / "wave.py").write_text(AGENT)
    with pytest.raises(WrongUse, match=r"Python finds that name in .*wave.py, which is installed"):
        load_agent("wave:agent", str(here))


def test_threads_do_not_take_the_directory_from_each_other(here: Path) -> None:
    (here / "slow_part.py").write_text("")
    first, second, before = importable(str(here)), importable(str(here)), list(sys.path)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    importlib.import_module("slow_part")
    keep_importable(str(here))
    second.__exit__(None, None, None)
    assert sys.path == before
    (here / "corner_shop.py").write_text("")
    importlib.reload(importlib.import_module("slow_part"))
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("corner_shop")


def test_a_directory_that_is_not_there_is_no_error_of_its_own(here: Path) -> None:
    (here / "corner_shop.py").write_text(AGENT)
    with importable(str(here)):
        importlib.import_module("corner_shop")
    assert load_agent("corner_shop:agent", str(here / "nowhere")).name == "shop"
