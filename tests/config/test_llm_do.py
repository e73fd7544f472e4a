"""Whatever the rules of a llm-do shell are: what an import allows, llm-do ran unasked."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples

from signoff.config import load_settings
from signoff.config.llm_do.convert import convert
from signoff.config.llm_do.sources import read_sources
from signoff.core.call import Call
from signoff.core.verdict import Effect

WORDS = st.sampled_from(
    ["ls", "git", "git log", "git push", "rm", "rm -rf", "cat a", "find", "l", "", "ls *", "a;b", "*"]
)
RULE = st.fixed_dictionaries(
    {"pattern": WORDS},
    optional={
        "approval_required": st.booleans(),
        "allowed": st.booleans(),
        "approval_required_if_args": st.lists(st.sampled_from(["-delete", "--force"]), max_size=2),
        "sandbox_paths": st.just(["x"]),
    },
)
DEFAULT = st.none() | st.fixed_dictionaries({}, optional={"allowed": st.booleans(), "approval_required": st.booleans()})
COMMANDS = [
    "ls", "ls -la", "git log", "git log --oneline", "git push", "git push --force", "rm -rf x", "rm x", "cat a",
    "find .", "find . -delete", "ls; rm x", "ls | sh", "lsof", "make", "ls && git push",
]  # fmt: skip


def unasked_there(command: str, rules: list[dict[str, Any]]) -> bool:
    """How llm-do decides: no shell characters, and the first rule that the text begins with."""
    if any(char in command for char in "|><;&`$"):
        return False
    for rule in rules:
        if command.startswith(str(rule["pattern"])):
            asks = any(option in command.split() for option in rule.get("approval_required_if_args", []))
            return rule.get("allowed", True) is True and rule.get("approval_required", True) is False and not asks
    return False


@given(rules=st.lists(RULE, max_size=5), default=DEFAULT)
@examples(500, daily=25)
def test_an_import_never_loosens_a_shell(rules: list[dict[str, Any]], default: dict[str, Any] | None) -> None:
    with tempfile.TemporaryDirectory() as directory:
        shell = {"rules": rules, **({"default": default} if default is not None else {})}
        front = yaml.safe_dump({"name": "main", "toolsets": {"shell": shell}})
        Path(directory, "main.worker").write_text(f"---\n{front}---\nGo.\n")
        result = convert(read_sources(directory))
        assert not result.refused, result.refused
        Path(directory, "signoff.yaml").write_text(result.files["signoff.yaml"])
        policy = load_settings(Path(directory, "signoff.yaml")).toolsets["main_shell"].policy
    assert policy is not None
    for command in COMMANDS:
        verdict = policy.judge(Call(tool="shell", args={"command": command}))
        if verdict.effect is Effect.ALLOW:
            assert unasked_there(command, rules), (command, rules, verdict)
