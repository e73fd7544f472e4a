"""The JSON Schemas: they take whatever the readers take, and know every key the readers know."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from tests.config import test_project, test_workers
from tests.policy import test_config
from tests.profiles import NIGHTLY
from tests.tables import table

from signoff.channel_kinds import built_in
from signoff.config import channel_entries, load_settings, settings, toolset_entries, worker_keys
from signoff.config.json_schemas import SCHEMA_FILES, SCHEMAS, schema_of
from signoff.config.settings import Settings
from signoff.config.worker_files import parse_worker
from signoff.errors import WrongFile
from signoff.policy import parse, parse_match
from signoff.policy.engine import Policy

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def errors(name: str, value: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in Draft202012Validator(schema_of(name)).iter_errors(value)]


def kind_of(value: Any) -> str | None:
    """What kind of file a YAML text in the docs or the examples is; None where it is a fragment or none of ours."""
    if isinstance(value, list) and value and all(isinstance(one, dict) and {*one} & {"say", "calls"} for one in value):
        return "script"
    if isinstance(value, dict) and {"policy", "toolsets"} & {*value} and "instructions" not in value:
        named = value.get("toolsets")
        return "worker" if isinstance(named, list) else "project"
    if isinstance(value, dict) and "instructions" in value:
        return "worker"
    return None


def texts() -> Iterator[tuple[str, str]]:
    """Every whole file in the documentation, the examples, the templates and the tests of the readers."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        for at, text in enumerate(BLOCK.findall(page.read_text("utf-8"))):
            yield f"{page.name}#{at}", text
    for directory in (ROOT / "examples", ROOT / "src" / "signoff" / "cli" / "templates"):
        for file in sorted((*directory.rglob("*.yaml"), *directory.rglob("*.yml"))):
            yield str(file.relative_to(ROOT)), file.read_text("utf-8")
        for file in sorted(directory.rglob("workers/*.md")):
            if file.name != "README.md":
                yield str(file.relative_to(ROOT)), file.read_text("utf-8").split("---\n")[1] + "\ninstructions: below\n"
    yield "test_config", test_config.WHOLE
    yield "test_project", test_project.WHOLE
    yield "test_workers", test_workers.TRIAGE
    yield "defaults", test_workers.PROJECT


FILES = [(name, kind, value) for name, text in texts() if (kind := kind_of(value := yaml.safe_load(text)))]


@table(("name", "kind", "value"), FILES, ids=[name for name, _, _ in FILES])
def test_every_file_we_show_fits_its_schema(name: str, kind: str, value: Any) -> None:
    assert errors(kind, value) == []


def test_there_are_files_of_every_kind() -> None:
    assert {kind for _, kind, _ in FILES} == set(SCHEMAS)
    assert {"src/signoff/cli/templates/signoff.yaml", "README.md#0"} & {name for name, _, _ in FILES}


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_one_and_says_what_every_key_is(name: str) -> None:
    schema = schema_of(name)
    Draft202012Validator.check_schema(schema)
    assert SCHEMA_FILES[name].endswith(".schema.json")
    references = set(re.findall(r"#/\$defs/(\w+)", str(schema)))
    assert references <= set(schema.get("$defs", {}))
    for key, value in schema.get("properties", {}).items():
        described = value.get("description") or schema["$defs"][value["$ref"].removeprefix("#/$defs/")]["description"]
        assert described, key


def strict(schema: Any, path: str = "") -> Iterator[str]:
    """The places of a schema that name keys and yet take others."""
    if isinstance(schema, dict):
        named = schema.get("properties")
        overlay = "$ref" in schema or set(schema) <= {"properties", "required"} or "required" in schema
        if named and "additionalProperties" not in schema and not overlay:
            yield path
        for key, value in schema.items():
            yield from strict(value, f"{path}/{key}")
    elif isinstance(schema, list):
        for at, value in enumerate(schema):
            yield from strict(value, f"{path}/{at}")


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_refuses_keys_it_does_not_name(name: str) -> None:
    assert list(strict(schema_of(name))) == []


VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2.5, "", " ", "x", "a b", "5m", "early", "read-only", "sqlite:a.db", "ops",
    "requester", "escalate", "allow", "a.b:C", "mycompany.*", "fs.read", "GET", "EUR", [], ["x"], ["x", "y"],
    ["x", "x"], [1], ["fs.read"], [{}], [{"x": 1}], [{"x": 1, "y": 2}], [{"ask": "x"}], [{"deny": {}}],
    [{"allow": "x"}], {}, {"x": 1}, {"x": {}}, {"x": "fs.read"}, {"x": {"use": "sql"}}, {"x": {"extends": "x"}},
    {"allow": ["a.*"]}, {"allow": []}, {"worker": {}}, {"toolset": {"config": {}}}, {"requests": 1}, {"requests": 0},
    {"time": "5m"}, {"time": 3}, {"cost": 0.1}, {"depth": 0}, {"tools": 1}, {"output": 0}, {"type": "object"},
    {"type": "string"}, {"type": "odd"}, {"roles": "ops"}, {"roles": []}, {"x": {"roles": ["ops"]}}, {"match": ["x"]},
    {"match": [{"tool": "x"}]}, {"miss": [{"tool": "z"}]}, {"matches": "x"}, {"matches": []}, {"inside": "."},
    {"outside": ["."]}, {"secret": True}, {"secret": False}, {"does": "writes"}, {"does": []}, {"is": "read-only"},
    {"operation": "select"}, {"tables": "a"}, {"arg": "x"}, {"private": True}, {"scheme": "https"}, {"method": "get"},
    {">": 1}, {">": "1"}, {"currency": "EUR"}, {">": 1, "currency": "EUR"}, {"equals": 1}, {"x": {">": 1}},
    {"hidden": True, "code": False, "sensitive": False}, {"dialect": "mysql"}, {"is": "read-only", "dialect": "mysql"},
    {"matches": "git status", "arg": "line"}, "git status", "a.example.com", "${TOKEN}", "none", "discord", "terminal",
    "112233445566778899", {"discord": {"channel": "112233445566778899"}}, {"terminal": {}},
    {"night": {"use": "terminal"}},
    {"discord": {"use": "terminal"}}, {"terminal": {"use": "discord"}}, {"x": {"discord": "112233445566778899"}},
]  # fmt: skip


def taken_by_reader(read: Callable[[], object]) -> bool:
    try:
        read()
    except WrongFile:
        return False
    return True


def rule_files(effect: str) -> Iterator[dict[str, Any]]:
    """A policy for every key a rule may have, and for every value."""
    for key in parse.RULE_KEYS:
        for value in VALUES:
            yield {"policy": [{effect: "tool", key: value}]}
            if key in ("remind", "escalate_to"):
                yield {"policy": [{effect: "tool", key: value, "timeout": "1h", "on_timeout": "escalate"}]}
    for key in ("tool", *parse_match.CONDITIONS):
        for value in VALUES:
            yield {"policy": [{effect: {key: value}}]}


def project_files() -> Iterator[dict[str, Any]]:
    for value in VALUES:
        for key in settings.PROJECT.keys:
            yield {"policy": [], key: value}
        for key in settings.person_format().keys:
            yield {"policy": [], "people": {"ana": {key: value}}}
        for key in toolset_entries.TOOLSET.keys:
            yield {"toolsets": {"x": {"use": "sql", key: value}}}
        for key in channel_entries.format_of(built_in("discord")).keys:
            good = {"use": "discord", "channel": "112233445566778899"}
            yield {"policy": [], "channels": {"discord": good, "y": {**good, key: value}}}
            yield {"policy": [], "channels": {"discord": {"channel": "112233445566778899", key: value}}}
            yield {"policy": [], "channels": {"discord": good, "terminal": {key: value}}}
        for key in ("use", "extends", "timeout", "workers", "own"):
            yield {"policy": [], "people": {"a": {key: value}}, "channels": {"x": {"use": "a.b:C", key: value}}}
            yield {"policy": [], "channels": {"discord": good, "y": {"extends": "discord", key: value}}}
        yield {"policy": [], "defaults": {"channel": {"timeout": value}}}
        for key in worker_keys.DEFAULTS.keys:
            yield {"policy": [], "defaults": {"worker": {key: value}}}
        for key in toolset_entries.DEFAULTS.keys:
            yield {"policy": [], "defaults": {"toolset": {key: value}}}
        yield {"policy": [], "plugins": {"allow": value}}
        yield {"policy": [], "plugins": {"allow": [value]}}


def check_agreement(kind: str, values: Iterator[dict[str, Any]], read: Callable[[dict[str, Any]], object]) -> int:
    """Whatever the reader takes, the schema takes; says how much that was."""
    validator = Draft202012Validator(schema_of(kind))
    taken = [value for value in values if taken_by_reader(lambda value=value: read(value))]
    assert [value for value in taken if not validator.is_valid(value)] == []
    return len(taken)


@pytest.mark.parametrize(("number", "effect"), [*enumerate(("allow", "ask", "deny"))])
def test_the_schema_takes_every_rule_the_reader_takes(number: int, effect: str) -> None:
    """By day a third of them with each effect, each third another one."""
    files = rule_files(effect) if NIGHTLY else islice(rule_files(effect), number, None, 3)
    assert check_agreement("project", files, parse.parse_rules) > (100 if NIGHTLY else 30)


def test_the_schema_takes_every_project_the_reader_takes() -> None:
    # Thousands of files: on a disk, writing them takes longer than all the rest.
    with TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as directory:
        file = Path(directory, "signoff.yaml")

        def read(value: dict[str, Any]) -> object:
            file.write_text(json.dumps(value), "utf-8")  # JSON is YAML, and fast
            return load_settings(file)

        files = islice(project_files(), 0, None, 1 if NIGHTLY else 5)
        assert check_agreement("project", files, read) > (200 if NIGHTLY else 35)


def test_the_schema_takes_every_worker_the_reader_takes(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    for name in ("x", "y"):
        (tmp_path / "workers" / f"{name}.yaml").write_text("model: test\n")
    here = Settings(policy=Policy(rules=()), people={}, directory=str(tmp_path))
    files = ({key: value} for key in worker_keys.WORKER.keys for value in VALUES)
    taken = check_agreement(
        "worker", files, lambda value: parse_worker(json.dumps(value), str(tmp_path / "workers/a.yaml"), here)
    )
    assert taken > 100
