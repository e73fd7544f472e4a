"""docs/reference/policy.md: every snippet works as printed, and every key and operator is on the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.policy.rules import call

from signoff.config import load_settings
from signoff.core.call import LABELS
from signoff.core.verdict import OnTimeout
from signoff.policy import parse, parse_match
from signoff.policy.operators import OPERATORS
from signoff.policy.shell.command_facts import read_shell
from signoff.policy.sql import read_sql

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "policy.md"
TEXT = PAGE.read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
YAML = [text for language, text in BLOCKS if language == "yaml"]
README = re.findall(
    r"^```yaml\n(policy:.*?)^```$", (PAGE.parents[2] / "README.md").read_text(), re.DOTALL | re.MULTILINE
)
CONSOLE = [text for language, text in BLOCKS if language == "console"]


@pytest.mark.parametrize("text", README)
def test_every_policy_in_the_readme_loads(text: str, tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(text + "people: {ana: {roles: [ops]}}\n")
    assert load_settings(file).warnings == ()


def test_the_readme_says_why_a_call_asks() -> None:
    rows = re.findall(r"^\| `(.+)` \| (`.+` .+) \|$", (PAGE.parents[2] / "README.md").read_text(), re.MULTILINE)
    assert len(rows) == 4
    for text, why in rows:
        found = read_sql(text, "postgres").why if text.startswith("WITH") else read_shell(text).why
        assert why in found


def test_what_the_page_says_about_a_whitelist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (text,) = [text for text in YAML if "otherwise" in text]
    Path("signoff.yaml").write_text(text)
    explanation = load_settings("signoff.yaml").policy.explain(call("shell", command="git push; make"))
    (shown,) = [text for text in CONSOLE if "otherwise" in text]
    assert explanation.sentence in shown
    assert str(explanation.place) in shown


@pytest.mark.parametrize("text", YAML)
def test_every_policy_on_the_page_loads_without_a_warning(text: str, tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(text)
    settings = load_settings(file)
    assert settings.policy.rules
    assert settings.warnings == ()


def test_what_the_page_says_about_its_examples(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(YAML[0])
    explanation = load_settings(file).policy.explain(call("write_file", path="a.txt"))
    assert explanation.sentence in CONSOLE[0]
    file.write_text(YAML[1])
    verdict = load_settings(file).policy.judge(call("pay", amount=200))
    assert verdict.rules == ("rule-2",)
    assert verdict.reason in CONSOLE[3]
    file.write_text("policy: [{allow: {tool: shell, command: read-only}}]")
    explanation = load_settings(file).policy.explain(call("shell", command="sort -o a.txt a.txt"))
    assert explanation.sentence in CONSOLE[2]


def test_every_key_operator_and_label_is_on_the_page() -> None:
    keys = [
        *parse.RULE.keys,
        *parse_match.CONDITIONS,
        *OPERATORS,
        *LABELS,
        *OnTimeout,
    ]
    missing = [key for key in keys if not re.search(rf"(?<![\w.]){re.escape(key)}(?![\w=])", TEXT)]
    assert missing == []
