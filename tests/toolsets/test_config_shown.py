"""`signoff toolsets show` about config, for every way to declare it: a package installed for real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.start import signoff
from tests.toolsets.projects import several

UV = Path(sys.executable).with_name("uv")
MODULE = '''
from __future__ import annotations

import functools
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr
from pydantic_ai.toolsets import FunctionToolset
from typing_extensions import TypedDict

from signoff.toolsets import Registration


class Retry(BaseModel):
    times: int = Field(3, ge=0)
    wait: float = Field(1.5, gt=0, lt=60)


class Config(BaseModel):
    token: SecretStr
    max_results: int = Field(20, ge=1, le=100, description="At most so many tickets.")
    state: Literal["open", "all"] = "open"
    name: str = Field("main", min_length=2, pattern="^[a-z]+$")
    queues: list[str] = Field(["in"], min_length=1)
    most: int | None = Field(None, ge=5)
    retry: Retry = Retry()


def tickets(config: Config) -> FunctionToolset:
    """Tickets."""
    return FunctionToolset()


class Tickets(FunctionToolset):
    Config = Config

    def __init__(self, config):
        super().__init__()


class ByModel(FunctionToolset):
    config_model = Config

    def __init__(self, settings: Config):
        super().__init__()


class Schema(FunctionToolset):
    config_schema = {
        "type": "object",
        "properties": {
            "token": {"type": "string", "writeOnly": True},
            "max_results": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20},
        },
        "required": ["token"],
    }

    def __init__(self, token, max_results=20):
        super().__init__()


def keywords(
    token: SecretStr, *, max_results: Annotated[int, Field(ge=1, le=100)] = 20, password: str = "hunter2"
) -> FunctionToolset:
    return FunctionToolset()


@dataclass
class Plain:
    token: SecretStr
    max_results: Annotated[int, Field(ge=1, le=100)] = 20


class Typed(TypedDict, total=False):
    token: SecretStr
    max_results: Annotated[int, Field(ge=1, le=100)]


def by_dataclass(config: Plain) -> FunctionToolset:
    return FunctionToolset()


def by_typed_dict(config: Typed) -> FunctionToolset:
    return FunctionToolset()


class Standard(typing.TypedDict):
    token: SecretStr


def by_standard(config: Standard) -> FunctionToolset:
    return FunctionToolset()


def maybe(config: Config | None = None) -> FunctionToolset:
    return FunctionToolset(instructions=type(config).__name__)


def annotated(config: Annotated[Config, "what it takes"]) -> FunctionToolset:
    assert isinstance(config, Config), config
    return FunctionToolset()


def placed(place: str, config: Config) -> FunctionToolset:
    return FunctionToolset()


class Maker:
    def __call__(self, config: Config) -> FunctionToolset:
        return FunctionToolset()


class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)
    token: SecretStr = SecretStr("hunter2")
    check: Callable[[str], bool] = len
    maker: Maker = Maker()


def odd(config: Odd) -> FunctionToolset:
    return FunctionToolset()


def anything(config) -> FunctionToolset:
    return FunctionToolset()


def nothing() -> FunctionToolset:
    return FunctionToolset()


registered = Registration(toolset=tickets, policy="ask")
preset = Registration(toolset=tickets, config={"token": "hunter2", "max_results": 50})
preset_keywords = Registration(toolset=keywords, config={"token": "hunter2", "max_results": 50})
registered_class = Registration(toolset=Tickets)
registered_made = Registration(toolset=FunctionToolset())
registered_twice = Registration(toolset=registered, config={"max_results": 50})
made = FunctionToolset()
by_partial = functools.partial(placed, "here")
by_object = Maker()


def makes_registration(config: Config) -> Registration:
    return Registration(toolset=FunctionToolset(), policy="ask")
'''
NAMES = """
    tickets Tickets ByModel Schema keywords by_dataclass by_typed_dict by_standard maybe annotated odd anything nothing
    registered preset preset_keywords registered_class registered_made registered_twice made by_partial
    by_object makes_registration
""".split()
WHOLE = """
config:
  token: secret text, needed
  max_results: whole number from 1 to 100, default 20. At most so many tickets.
  state: open | all, default 'open'
  name: text of at least 2 characters like `^[a-z]+$`, default 'main'
  queues: list of text, at least 1, default ['in']
  most: whole number, at least 5
  retry: mapping
  retry.times: whole number, at least 0, default 3
  retry.wait: number above 0 and below 60, default 1.5
"""
TWO = """
config:
  token: secret text, needed
  max_results: whole number from 1 to 100, default 20
"""
UNREADABLE = "\nconfig: any keys (no schema)\n"
NONE = "\nit takes no config\n"
PRESET = WHOLE.replace("secret text, needed", "secret text, default ‹hidden›").replace("default 20", "default 50")
EXPECTED = {
    "tickets": WHOLE,
    "Tickets": WHOLE,
    "ByModel": WHOLE,
    "Schema": TWO,
    "keywords": f"{TWO}  password: text, default ‹hidden›\n",
    "by_dataclass": TWO,
    "by_typed_dict": TWO.replace(", needed", "").replace(", default 20", ""),
    "by_standard": "\nconfig:\n  token: secret text, needed\n" if sys.version_info >= (3, 12) else UNREADABLE,
    "maybe": WHOLE,
    "annotated": WHOLE,
    "odd": "\nconfig:\n  token: secret text, default ‹hidden›\n  check: anything\n  maker: anything\n",
    "anything": "\nconfig: any keys (no schema)\n",
    "nothing": NONE,
    "registered": WHOLE,
    "preset": PRESET,
    "preset_keywords": f"{TWO}  password: text, default ‹hidden›\n".replace(
        "secret text, needed", "secret text, default ‹hidden›"
    ).replace("default 20", "default 50"),
    "registered_class": WHOLE,
    "registered_made": NONE,
    "registered_twice": WHOLE.replace("default 20", "default 50"),
    "made": NONE,
    "by_partial": WHOLE,
    "by_object": WHOLE,
    "makes_registration": WHOLE,
}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that a package with an entry point for each way was installed into."""
    wheel = tmp_path_factory.mktemp("wheel") / "desk-1.0-py3-none-any.whl"
    target = tmp_path_factory.mktemp("site")
    points = "".join(f"{name} = desk:{name}\n" for name in NAMES)
    content = {
        "desk.py": MODULE,
        "desk-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: desk\nVersion: 1.0\n",
        "desk-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "desk-1.0.dist-info/entry_points.txt": f"[signoff.toolsets]\n{points}",
        "desk-1.0.dist-info/RECORD": "",
    }
    with zipfile.ZipFile(wheel, "w") as file:
        for name, text in content.items():
            file.writestr(name, text)
    done = subprocess.run(
        [
            *(UV, "pip", "install", "--offline", "--no-deps", "--no-config"),
            *("--python", sys.executable, "--target", str(target), str(wheel)),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "UV_NO_CACHE": "1", "UV_NO_PROGRESS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "signoff.yaml").write_text("plugins: {allow: [desk]}\npolicy: []\n")
    return tmp_path


def shown(names: Sequence[str], project: Path, installed: Path) -> dict[str, str]:
    """What is said about config of each, from its empty line on."""
    told = several([("toolsets", "show", name) for name in names], cwd=project, PYTHONPATH=str(installed))
    assert not any("hunter2" in text for text in told)
    return {
        name: text[max(text.rfind("\nconfig:"), text.rfind("\nit takes no config")) :]
        for name, text in zip(names, told, strict=True)
    }


def test_config_is_told_however_it_is_declared(project: Path, installed: Path) -> None:
    assert shown(NAMES, project, installed) == EXPECTED


def test_an_entry_of_the_project_tells_the_same_and_so_does_the_class_it_puts_in(
    project: Path, installed: Path
) -> None:
    (project / "signoff.yaml").write_text("""
plugins: {allow: [desk]}
policy: []
toolsets:
  mine: {use: registered, config: {token: "${NOT_SET}"}}
  path: {use: "desk:registered"}
  inner: {use: filesystem_ro, config: {inner_class: "desk:Tickets"}}
""")
    names = ("mine", "path", "inner")
    assert shown(names, project, installed) == dict.fromkeys(names, WHOLE)


def test_programs_read_the_same_as_a_schema(project: Path, installed: Path) -> None:
    def schema(name: str) -> dict[str, Any]:
        done = signoff("toolsets", "show", name, "--json", cwd=project, PYTHONPATH=str(installed))
        assert "hunter2" not in done.stdout + done.stderr
        return json.loads(done.stdout)["config_schema"]

    told = schema("preset")
    assert told["properties"]["max_results"]["maximum"] == 100
    assert told["properties"]["max_results"]["default"] == 50
    assert told["properties"]["token"]["writeOnly"] is True
    assert "required" not in told
    assert schema("odd")["properties"]["token"]["writeOnly"] is True


def test_a_model_that_may_be_left_out_is_checked_where_it_is_given(project: Path, installed: Path) -> None:
    """What is shown is what holds: an unknown key is refused, and nothing given is nothing handed over."""
    (project / "signoff.yaml").write_text("""
plugins: {allow: [desk]}
policy: []
toolsets:
  none: {use: maybe}
  wrong: {use: maybe, config: {token: x, max_result: 3}}
  low: {use: annotated, config: {token: x, max_results: 0}}
  right: {use: annotated, config: {token: x}}
""")
    listed = signoff("toolsets", "--json", cwd=project, PYTHONPATH=str(installed))
    found = {one["name"]: one["error"] or "" for one in json.loads(listed.stdout)["toolsets"]}
    assert (found["none"], found["right"]) == ("", "")
    assert "unknown key `max_result`" in found["wrong"]
    assert "greater than or equal to 1" in found["low"]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="pydantic takes the TypedDict of `typing` there")
def test_a_type_that_pydantic_cannot_check_is_an_error_that_says_so(project: Path, installed: Path) -> None:
    done = signoff("toolsets", "show", "by_standard", cwd=project, PYTHONPATH=str(installed))
    assert done.returncode == 1 and done.stderr == ""
    assert "pydantic cannot check config against `Standard`: Please use `typing_extensions.TypedDict`" in done.stdout
