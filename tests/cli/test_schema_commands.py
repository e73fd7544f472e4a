"""`signoff schema`, `signoff workers` and `signoff policy show`, as a person and as a program would use them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from tests import start
from tests.cli.program import refused, signoff
from tests.cli.wording import Wording

from signoff.config.json_schemas import SCHEMA_FILES, schema_of

PROJECT = """\
model: test
toolsets:
  drafts:
    use: filesystem_rw
    policy: [{allow: {tool: write_file, path: {inside: drafts}}}]
  orders: {use: "mycompany.toolsets:Orders", config: {dsn: "${ORDERS_URL}"}}
  calendar: {use: "mycompany.toolsets:Calendar"}
policy:
  - {allow: deploy}
  - {deny: {path: "**/.env"}, reason: "secrets stay"}
"""
TRIAGE = """\
---
description: Sorts the open issues
toolsets: [drafts, shell_readonly, orders, calendar]
delegates: analyzer
policy: [{ask: deploy, by: ops}]
approvers: ops
limits: {requests: 20, time: 5m}
---
Sort them.

All of them.
"""
ANALYZER = "extends: triage\nmodel: openai:gpt-5.2\ndelegates: []\ncreates: true\nmodel_settings: {temperature: 0}\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "workers").mkdir()
    (tmp_path / "signoff.yaml").write_text(PROJECT)
    (tmp_path / "workers" / "triage.md").write_text(TRIAGE)
    (tmp_path / "workers" / "analyzer.yaml").write_text(ANALYZER)
    return tmp_path


def said(*arguments: str, cwd: Path, code: int = 0, **environment: str) -> str:
    done = signoff(*arguments, cwd=cwd, **environment)
    assert done.returncode == code, (done.stdout, done.stderr)
    assert done.stderr == ""
    return done.stdout


def answered(*arguments: str, cwd: Path, code: int = 0, **environment: str) -> Any:
    return json.loads(said(*arguments, "--json", cwd=cwd, code=code, **environment))


@pytest.mark.parametrize("name", ["project", "worker", "script"])
def test_a_schema_is_printed(name: str, tmp_path: Path) -> None:
    assert json.loads(said("schema", name, cwd=tmp_path)) == schema_of(name)


def test_the_projects_schema_is_the_first_one(tmp_path: Path) -> None:
    assert json.loads(said("schema", cwd=tmp_path)) == schema_of("project")


def test_schemas_are_written(tmp_path: Path, wording: Wording) -> None:
    told = said("schema", "--write", "schemas/here", cwd=tmp_path)
    assert told.splitlines() == [f"wrote schemas/here/{file}" for file in SCHEMA_FILES.values()]
    written = json.loads((tmp_path / "schemas/here/worker.schema.json").read_text("utf-8"))
    jsonschema.validate(yaml.safe_load(ANALYZER), written)
    assert said("schema", "script", "--write", ".", cwd=tmp_path) == wording()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["schemas", "script.schema.json"]


def test_a_directory_that_cannot_be_written(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "file").write_text("")
    assert refused(signoff("schema", "--write", "file/below", cwd=tmp_path)) == wording()


def test_the_workers_of_a_project(here: Path, wording: Wording) -> None:
    assert said("workers", cwd=here) == wording()


def test_everything_about_one_worker(here: Path, wording: Wording) -> None:
    assert said("workers", "analyzer", cwd=here) == wording()


def test_workers_for_programs(here: Path) -> None:
    told = answered("workers", cwd=here)
    assert [worker["name"] for worker in told["workers"]] == ["analyzer", "triage"]
    assert told["broken"] == []
    one = answered("workers", "triage", cwd=here)
    assert one == told["workers"][1]
    assert (one["model"], one["delegates"], one["limits"]["time"]) == ("test", ["analyzer"], 300.0)


def test_a_broken_worker_is_listed_with_its_error_and_the_others_still_are(here: Path, wording: Wording) -> None:
    (here / "workers" / "broken.yaml").write_text("toolset: [files]\n")
    (here / "workers" / "odd\x1b[31m.yaml").write_text("model: x\n")
    listed = said("workers", cwd=here, code=1)
    assert "\x1b" not in listed
    assert listed == wording()
    told = answered("workers", cwd=here, code=1)
    assert [one["name"] for one in told["workers"]] == ["analyzer", "triage"]
    assert told["broken"][0]["name"] == "broken"
    assert "unknown key `toolset`" in told["broken"][0]["error"]
    assert refused(signoff("workers", "broken", cwd=here)) == wording()


def test_no_workers(tmp_path: Path, wording: Wording) -> None:
    (tmp_path / "signoff.yaml").write_text("policy: []\n")
    assert said("workers", cwd=tmp_path) == wording()
    assert refused(signoff("workers", "triage", cwd=tmp_path)) == wording()


def test_the_merged_policy_of_a_worker(here: Path, wording: Wording) -> None:
    config = here / "config" / "signoff"
    config.mkdir(parents=True)
    (config / "policy.yaml").write_text("policy:\n- ask: mail\n")
    shown = said("policy", "show", "--worker", "triage", cwd=here, XDG_CONFIG_HOME=str(here / "config"))
    lines = shown.splitlines()
    titles = [line for line in lines if line and not line.startswith(" ")]
    assert "\n".join(titles) == wording()
    text = "\n".join(" ".join(line.split()) for line in lines)
    assert f"user/rule-1 {{ask: mail}}\n{config}/policy.yaml:2" in text
    denies = "rule-2 {deny: {path: '**/.env'}, reason: secrets stay}\nsignoff.yaml:10"
    assert f"{denies}\nrule-1 {{allow: deploy}}\nsignoff.yaml:9" in text, "what denies is judged first"
    assert "drafts/rule-1 {allow: {tool: write_file, path: {inside: drafts}}}\nsignoff.yaml:5" in text
    assert "shell_readonly/rule-1 {allow: {tool: shell, command: read-only}}" in text
    assert "triage/rule-1 {ask: deploy, by: ops}\nworkers/triage.md:5" in text


def test_the_policy_of_the_whole_project(here: Path) -> None:
    told = said("policy", "show", "signoff.yaml", cwd=here)
    assert "toolset drafts" in told
    assert "toolset orders" in told
    assert "worker" not in told
    assert "no rules" in said(
        "policy", "show", "empty.yaml", cwd=_with(here, "empty.yaml", "policy: []\nlocked: true\n")
    )
    assert "locked" in said("policy", "show", "empty.yaml", cwd=here)


def _with(directory: Path, name: str, text: str) -> Path:
    (directory / name).write_text(text)
    return directory


def test_the_merged_policy_for_programs(here: Path) -> None:
    told = answered("policy", "show", "--worker", "analyzer", cwd=here)
    assert (told["worker"], told["silence"], told["locked"]) == ("analyzer", "ask", False)
    assert [(layer["layer"], layer["name"]) for layer in told["layers"]] == [
        ("project", "signoff.yaml"),
        ("toolset", "drafts"),
        ("toolset", "drafts"),
        ("toolset", "shell_readonly"),
        ("toolset", "orders"),
        ("toolset", "calendar"),
        ("worker", "analyzer"),
    ]
    assert told["layers"][0]["rules"][0] == {
        "id": "rule-2",
        "effect": "deny",
        "rule": {"deny": {"path": "**/.env"}, "reason": "secrets stay"},
        "says": "denies calls on a path like `**/.env`",
        "file": "signoff.yaml",
        "line": 10,
        "key": "policy[1]",
    }
    inherited = told["layers"][-1]["rules"][0]
    assert (inherited["id"], inherited["file"], inherited["line"]) == ("triage/rule-1", "workers/triage.md", 5)


def test_a_worker_that_is_not_there(here: Path, wording: Wording) -> None:
    assert refused(signoff("policy", "show", "--worker", "tirage", cwd=here)) == wording()


def test_values_of_variables_are_nowhere(here: Path) -> None:
    for command in (["workers", "triage"], ["workers", "--json"], ["policy", "show"], ["policy", "show", "--json"]):
        done = signoff(*command, cwd=here, ORDERS_URL="correct-horse-battery")
        assert done.returncode == 0
        assert "correct-horse" not in done.stdout + done.stderr


@pytest.mark.parametrize("command", ["schema", "workers", "policy show --worker triage"])
def test_nothing_heavy_is_imported(command: str, here: Path) -> None:
    code = (
        "import sys; from signoff.cli.main import program\n"
        f"program({command.split()!r}, standalone_mode=False)\n"
        "print([name for name in ('pydantic_ai', 'jsonschema', 'rich') if name in sys.modules])"
    )
    assert start.fresh(code, cwd=here).splitlines()[-1] == "[]"
