"""P8 and P12: rules by command pattern, in a file: allowed, asked about, blocked; and a whitelist."""

from __future__ import annotations

import json

import pytest
from tests.proofs.outside import Project

PROJECT = """\
toolsets:
  terminal:
    use: shell_file_ops
    config: {root: ., sandbox: "off"}
    policy:
      - {allow: {tool: shell, command: "touch free-*"}}
      - {deny: {tool: shell, command: "rm *"}, reason: nothing is deleted here}
policy: []
"""


def turns(*commands: str) -> str:
    made = [{"calls": [{"tool": "shell", "args": {"command": one}}]} for one in commands]
    return json.dumps([*made, {"say": "{{last}}"}])


@pytest.mark.mission("P8")
def test_p8_rules_by_command_pattern_let_run_ask_and_block(project: Project) -> None:
    project.write(signoff=PROJECT, workers__hand="toolsets: [terminal]\n")
    project.put({"keep.txt": "kept", "workers/hand.turns": turns("rm keep.txt", "touch free-a", "touch other-b")})
    paused = project.run("hand", "--suspend")
    assert paused.events("shell") == ["denied", "allowed", "ran", "asked"], paused.out
    assert project.has("keep.txt") and project.has("free-a") and not project.has("other-b")
    done = project.answers(paused)
    assert (done.code, project.has("other-b")) == (0, True), done.err
    project.put({"workers/hand.turns": turns("touch free-a; rm keep.txt", "touch free-c && touch other-d")})
    several = project.run("hand", "--suspend")
    assert several.events("shell") == ["denied", "asked"], "a rule lets in what it names, not what stands beside it"
    assert project.has("keep.txt") and not project.has("free-c")


@pytest.mark.mission("P8")
def test_p8_what_is_blocked_is_an_answer_to_the_model_and_the_run_goes_on(project: Project) -> None:
    project.write(signoff=PROJECT, workers__hand="toolsets: [terminal]\n")
    project.put({"keep.txt": "kept", "workers/hand.turns": turns("rm keep.txt")})
    done = project.run("hand", "--mode", "auto_approve")
    assert json.loads(done.rows[-1]["output"]) == {
        "error": "permission_denied",
        "tool": "shell",
        "by": "policy",
        "reason": "nothing is deleted here: it runs `rm keep.txt`",
        "retryable": False,
    }
    assert project.read("keep.txt") == "kept"


@pytest.mark.mission("P12")
def test_p12_a_whitelist_lets_in_what_a_rule_names_and_tells_the_model_of_the_rest(project: Project) -> None:
    closed = PROJECT.replace(
        "      - {deny:", "      - {otherwise: deny, reason: this shell only touches}\n      - {deny:"
    )
    project.write(signoff=closed, workers__hand="toolsets: [terminal]\n")
    commands = ("touch free-a", "touch other-b", "touch free-c; touch other-d", "$(echo touch) other-e")
    project.put({"workers/hand.turns": turns(*commands)})
    done = project.run("hand", "--mode", "auto_approve")
    assert done.code == 0 and done.events("shell") == ["allowed", "ran", "denied", "denied", "denied"], done.out
    assert project.has("free-a") and not any(project.has(f"{name}") for name in ("other-b", "free-c", "other-e"))
    told = json.loads(done.rows[-1]["output"])
    assert (told["error"], told["by"]) == ("permission_denied", "policy") and "only touches" in told["reason"]
