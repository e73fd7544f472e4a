"""What settings of a project name is sensitive, too: whoever writes it decides what a check reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.gate.likeness import varying
from signoff.links import looked_up
from signoff.policy.engine import Policy

EDITS = {"allow": {"label": "fs.write", "path": {"inside": ".", "sensitive": False}}}


def effect(root: Path, file: str, rule: Mapping[str, object] = EDITS) -> Effect:
    policy = Policy.from_rules([rule], root=str(root))
    call = Call(tool="Write", args={"file_path": file}, labels=frozenset({"fs.write"}))
    return policy.judge(looked_up(call, policy, str(root))).effect


def lay(root: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


@table(
    ("settings", "text", "named"),
    [
        ("tsconfig.json", '{"extends": "./config/ts/strict.json"}', "config/ts/strict.json"),
        ("tsconfig.json", '{"extends": "./config/ts/strict"}', "config/ts/strict.json"),
        ("packages/a/tsconfig.json", '{"extends": "../../config/ts/strict.json"}', "config/ts/strict.json"),
        ("packages/a/tsconfig.json", '{"extends": "@acme/ts/strict.json"}', "packages/config/strict.json"),
        (".eslintrc.json", '{"extends": ["./lint/rules.js"]}', "lint/rules.js"),
        ("eslint.config.mjs", "import own from './lint/own.js'", "lint/own.js"),
        ("eslint.config.js", "const own = require('./lint')", "lint/index.js"),
        (".mocharc.yml", "require: test/hooks\n", "test/hooks.cjs"),
        (".mocharc.json", '{"require": ["./test/hooks.js"]}', "test/hooks.js"),
        ("cspell.json", '{"import": ["words/more.json"]}', "words/more.json"),
        ("package.json", '{"eslintConfig": {"extends": "./lint/base.json"}}', "lint/base.json"),
        ("packages/a/jest.config.ts", "export default {setupFiles: ['<rootDir>/src/set.ts']}", "packages/a/src/set.ts"),
        (".config/x.toml", 'schema = "rules/x.json"', "rules/x.json"),
    ],
)
def test_a_file_that_settings_name_asks(tmp_path: Path, settings: str, text: str, named: str) -> None:
    root = tmp_path / str(len(list(tmp_path.iterdir())))
    lay(root, {settings: text, "other/plain.json": "{}"})
    for there in (False, True):  # it may be made by this very call
        assert effect(root, named) is Effect.ASK
        assert effect(root, f"./other/../{named}") is Effect.ASK
        assert effect(root, "other/plain.json") is Effect.ALLOW
        assert effect(root, "other/plain.js") is Effect.ALLOW
        lay(root, {} if there else {named: "{}"})
    assert effect(root, named, {"ask": {"path": {"code": True}}}) is Effect.ASK


def test_settings_name_settings_and_links_lead_to_them(tmp_path: Path) -> None:
    lay(
        tmp_path,
        {"tsconfig.json": '"./a/one.json"', "a/one.json": '"../b/two"', "b/two.json": '{"extends": "./three"}'},
    )
    lay(tmp_path, {"c/target.json": "{}", "d/x.json": "{}"})
    (tmp_path / "jsconfig.json").symlink_to("c/target.json")
    (tmp_path / "e").symlink_to("b")
    for file in ("a/one.json", "b/two.json", "b/three.json", "c/target.json", "e/two.json"):
        assert effect(tmp_path, file) is Effect.ASK, file
    assert effect(tmp_path, "d/x.json") is Effect.ALLOW


def test_the_code_of_the_project_is_none_of_its_checks(tmp_path: Path) -> None:
    lay(tmp_path, {"package.json": '{"main": "./lib/index.js", "types": "types/index.d.ts"}'})
    lay(tmp_path, {"tsconfig.json": '{"files": ["src/main.ts"]}', ".github/workflows/ci.yml": "run: node ./tool.js"})
    for file in ("lib/index.js", "types/index.d.ts", "src/main.ts", "tool.js"):
        assert effect(tmp_path, file) is Effect.ALLOW


def test_in_a_tree_that_is_too_large_any_file_may_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay(tmp_path, {f"src/{number}.ts": "" for number in range(9)})
    assert effect(tmp_path, "src/x.json") is Effect.ALLOW
    monkeypatch.setattr("signoff.policy.step_count.MOST_STEPS", 120)
    assert effect(tmp_path, "src/x.json") is Effect.ASK
    assert effect(tmp_path, "src/x.ts") is Effect.ASK
    assert effect(tmp_path, "src/x.md") is Effect.ALLOW


def test_an_answer_for_a_directory_does_not_cover_what_settings_name(tmp_path: Path) -> None:
    lay(tmp_path, {"tsconfig.json": '{"extends": "./config/strict.json"}'})
    for file, is_offered in (("config/strict.json", False), ("config/x.json", True)):
        call = Call(tool="write_file", args={"path": file, "content": "config/strict.json"}, start=str(tmp_path))
        assert any("path" in one for one in varying(call, str(tmp_path))) is is_offered


def test_only_a_rule_that_looks_at_it_has_the_project_looked_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> frozenset[str]:
        raise AssertionError("looked through")

    monkeypatch.setattr("signoff.named_settings.named_by_settings", never)
    assert effect(tmp_path, "a/x.json", {"allow": {"label": "fs.write", "path": {"inside": "."}}}) is Effect.ALLOW
    reading = {"deny": {"label": "fs.read", "path": {"sensitive": True}}}
    policy = Policy.from_rules([reading, {"allow": {"path": {"inside": "."}}}], root=str(tmp_path))
    call = Call(tool="Write", args={"file_path": "a/x.json"}, labels=frozenset({"fs.write"}))
    assert policy.judge(looked_up(call, policy, str(tmp_path))).effect is Effect.ALLOW
