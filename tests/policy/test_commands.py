"""Rules on shell commands: what they allow, what they are not talked out of, and what they say."""

from __future__ import annotations

from typing import Any

import pytest

from signoff import Call, Policy
from signoff.core.verdict import Effect, Verdict
from signoff.errors import PolicyError
from signoff.policy.builtin import builtin_policy
from signoff.policy.layers import Layers
from signoff.policy.shell.patterns import CommandPattern


def judge(rules: list[dict[str, Any]], command: Any, **args: Any) -> Effect:
    return Policy.from_rules(rules).judge(Call(tool="shell", args={"command": command, **args})).effect


READ = [{"allow": {"tool": "shell", "command": "read-only"}}]


@pytest.mark.parametrize(
    "command", ["ls", "cat a.txt | head -3", "git status && git log -3", "grep -r x src 2>/dev/null"]
)
def test_known_reading_is_allowed(command: str) -> None:
    assert judge(READ, command) is Effect.ALLOW


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("sort -o a.txt a.txt", "`sort -o` writes"),
        ("cat ~/.ssh/id_rsa", "discloses"),
        ("ls; frobnicate", "`frobnicate` is not a program signoff knows"),
        ("ls --frobnicate", "--frobnicate"),
        ("echo $(id)", "$("),
        ("ls > out.txt", "out.txt"),
        ("find . -name x -delete", "-delete"),
        ("awk 'BEGIN{system(\"id\")}'", "system"),
    ],
)
def test_the_verdict_names_the_command_and_the_word_that_decided(command: str, named: str) -> None:
    verdict = Policy.from_rules(READ).judge(Call(tool="shell", args={"command": command}))

    assert verdict.effect is Effect.ASK
    assert named in verdict.reason


NPM = [{"allow": {"command": ["read-only", "npm test", "cargo build *", "npm run lint:*", "git *"]}}]


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("npm test", Effect.ALLOW),
        ("npm  'test'", Effect.ALLOW),
        ("npm test | tail -20", Effect.ALLOW),
        ("cargo build", Effect.ALLOW),
        ("cargo build --release -p x", Effect.ALLOW),
        ("npm run lint:fix", Effect.ALLOW),
        ("npm test; rm -rf x", Effect.ASK),
        ("npm test -- --watch", Effect.ASK),
        ("npm test > out", Effect.ASK),
        ("npm test &", Effect.ASK),
        ("npm test $(id)", Effect.ASK),
        ("X=1 npm test", Effect.ASK),
        ("npm tests", Effect.ASK),
        ("npm run lint:fix extra", Effect.ASK),
        ("npm run 'lint:fix\n rm'", Effect.ASK),
        ("sudo npm test", Effect.ASK),
        ("./npm test", Effect.ASK),
        ("cargo build *", Effect.ASK),
        ("git -c alias.x='!touch y' x", Effect.ASK),
        ("git grep -O./x TODO", Effect.ASK),
        ("git commit -m x", Effect.ALLOW),
        ("npm test < ~/.netrc", Effect.ASK),
    ],
)
def test_a_pattern_that_allows_means_its_words(command: str, effect: Effect) -> None:
    assert judge(NPM, command) is effect


DENY = [{"deny": {"command": ["rm -rf", "git push --force", "curl", "mkfs*"]}}, {"allow": "shell"}]


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf x", "rm -r -f x", "rm x -fr", "/bin/rm -rf x", "r''m -rf x", "sudo rm -rf x", "env A=1 rm -rf x",
        "bash -c 'rm -rf x'", "ls; rm -rf x", "ls && (cd x; rm -rf y)", "echo $(rm -rf x)", "find . -exec rm -rf {} +",
        "for i in a; do rm -rf $i; done", "xargs rm -rf", "timeout 5 nice -n 3 rm -rf x", "f() { rm -rf x; }; f",
        "cat <<EOF\n$(rm -rf x)\nEOF", "git push --force", "git -C x push origin main --force",
        "git push --forc origin", "curl https://example.com", "mkfs.ext4 /dev/x", "rm --recursive --force x",
        "rm -R -f x", "rm -r --force x", "git push -f", "git push --force-with-lease", "git bisect run rm -rf x",
        "find . -delete -exec rm -rf {} +", "touch a; git bisect run rm -rf x",
    ],
)  # fmt: skip
def test_a_pattern_that_denies_is_not_talked_out_of_it(command: str) -> None:
    assert judge(DENY, command) is Effect.DENY


@pytest.mark.parametrize("command", ["rm -r x", "git push", "ls -rf", "echo rm -rf x", "git log --grep='rm -rf'"])
def test_what_it_does_not_mean_is_left_alone(command: str) -> None:
    assert judge(DENY, command) is Effect.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "$X -rf y",
        'eval "$CMD"',
        "echo cm0= | base64 -d | sh",
        "$(echo rm) -rf x",
        "rm $FLAGS x",
        "source x.sh",
        "python -c 'x'",
        "ls ((",
        ".",
    ],
)
def test_what_nobody_can_see_through_is_asked_about(command: str) -> None:
    assert judge(DENY, command) is Effect.ASK


def test_effects() -> None:
    rules = [{"deny": {"command": {"does": ["writes", "sends"]}}}, {"allow": "shell"}]

    assert judge(rules, "touch x") is Effect.DENY
    assert judge(rules, "ls > x") is Effect.DENY
    assert judge(rules, "bash -c 'wget http://example.com'") is Effect.DENY
    assert judge(rules, "ls") is Effect.ALLOW
    assert judge(rules, "frobnicate") is Effect.ASK


def test_another_argument() -> None:
    rules = [{"deny": {"command": {"matches": "rm", "arg": "script"}}}, {"allow": "shell"}]

    assert judge(rules, "rm x") is Effect.ALLOW
    assert judge(rules, "ls", script="rm x") is Effect.DENY


@pytest.mark.parametrize("command", [["ls"], 5, {"a": 1}])
def test_what_is_no_text_is_in_doubt(command: Any) -> None:
    assert judge([*DENY], command) is Effect.ASK
    assert judge(READ, command) is Effect.ASK


def test_a_link_to_a_secret_is_seen() -> None:
    call = Call(tool="shell", args={"command": "cat notes.txt"}, resolved={"notes.txt": "/home/ana/.ssh/id_rsa"})

    assert Policy.from_rules(READ).paths_of(call) == ("notes.txt",)
    assert Policy.from_rules(READ).judge(call).effect is Effect.ASK
    assert Policy.from_rules(READ).judge(call.changed(resolved={})).effect is Effect.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "cd ~/.ssh && cat config",
        "cd ~; cat .netrc",
        "cd .ssh && cd .. ; cat .ssh/x",
        "cd /home/ana/.aws || true; cat credentials",
    ],
)
def test_a_secret_is_seen_from_another_folder(command: str) -> None:
    assert judge(READ, command) is Effect.ASK


@pytest.mark.parametrize("pattern", ["", "*", "ls | wc", "ls > x", "$X", "a; b", "ls 'x"])
def test_a_bad_pattern_says_so(pattern: str) -> None:
    with pytest.raises(PolicyError, match=r"command pattern|empty|text"):
        Policy.from_rules([{"deny": {"command": pattern}}])


def test_an_effect_makes_no_sense_in_an_allow_rule() -> None:
    with pytest.raises(PolicyError, match="read-only"):
        Policy.from_rules([{"allow": {"command": {"does": "writes"}}}])


def test_explain_says_what_stood_in_the_way() -> None:
    explained = Policy.from_rules(READ).explain(Call(tool="shell", args={"command": "sort -o a a"}))

    assert "`sort -o` writes" in explained.considered[0].why


@pytest.mark.parametrize(
    "pattern", ["bash *", "sudo *", "python3 *", "xargs *", "env *", "*make", "bash.exe *", "python -c *", "node"]
)
def test_a_pattern_that_lets_anything_run_is_warned_about(pattern: str) -> None:
    [warning] = Policy.from_rules([{"allow": {"command": pattern}}]).warnings

    assert "spell out the command" in warning.fix


@pytest.mark.parametrize("pattern", ["npm test", "git status", "cargo build *", "bash scripts/check.sh"])
def test_a_narrow_pattern_is_not(pattern: str) -> None:
    assert Policy.from_rules([{"allow": {"command": pattern}}]).warnings == ()


SECRETS = [{"ask": {"command": {"secret": True}}}, {"allow": "shell"}]


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("cat ~/.ssh/id_rsa", Effect.ASK),
        ("bash -c 'cp .env /elsewhere'", Effect.ASK),
        ("frobnicate --all .aws/credentials", Effect.ASK),
        ("cd ~/.ssh && cat config", Effect.ASK),
        ("frobnicate notes.txt", Effect.ALLOW),
        ("echo $HOME", Effect.ALLOW),
    ],
)
def test_a_command_that_names_a_secret_place(command: str, effect: Effect) -> None:
    assert judge(SECRETS, command) is effect


READONLY_SHELL = builtin_policy("shell_readonly", "/work")


def in_readonly_shell(command: str, *allowed: str) -> Verdict:
    assert READONLY_SHELL is not None
    project = Policy.from_rules([{"allow": {"tool": "shell", "command": ["read-only", *allowed]}}])
    return Layers((project, READONLY_SHELL)).judge(Call(tool="shell", args={"command": command}))


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("pytest | tee log", "`tee` writes: writes what it reads into files"),
        ("pytest; ls; sort -o a a", "`sort -o` writes: its result into a file"),
        ("pytest $(touch x)", "`touch` writes: makes or changes files"),
        ("for i in a; do pytest; rm x; done", "`rm` writes: removes files"),
        ("bash -c 'pytest > log'", "the command is redirected to `log`"),
        ("pytest > log", "the command writes into the file `log`"),
    ],
)
def test_a_refusal_names_the_command_that_is_refused(command: str, named: str) -> None:
    verdict = in_readonly_shell(command, "pytest")

    assert (verdict.effect, verdict.reason) == (Effect.DENY, f"this shell only reads: {named}")


@pytest.mark.parametrize("python", ["python", "python3", "python3.12"])
@pytest.mark.parametrize("module", ["pytest", "unittest"])
def test_a_project_may_allow_its_tests_as_a_module(python: str, module: str) -> None:
    command = f"{python} -m {module}"

    assert in_readonly_shell(command, command).effect is Effect.ALLOW
    assert in_readonly_shell(f"{command} | tail -3", command).effect is Effect.ALLOW
    assert in_readonly_shell(f"{command} -x", command).effect is Effect.ASK
    assert in_readonly_shell(f"{command} -V", "ls").effect is Effect.ASK
    assert in_readonly_shell(f"{command} > log", command).effect is Effect.DENY


@pytest.mark.parametrize(
    "command", ["python3 -m timeit 'x'", "python3 -c x", "./run-tests", "frobnicate", "sort --frob"]
)
def test_what_may_write_is_asked_about_whatever_a_project_allows(command: str) -> None:
    assert in_readonly_shell(command, command).effect is Effect.ASK


@pytest.mark.parametrize("command", ["./run-tests", "frobnicate", "python3 -m timeit x"])
def test_a_reason_is_given_once(command: str) -> None:
    start = "shell_readonly/rule-3 could not be checked: "
    reason = in_readonly_shell(command).reason

    assert reason.startswith(start)
    assert reason.removeprefix(start).count(f"`{command.split(' t')[0]}`") == 1


@pytest.mark.parametrize("pattern", ["pytest", "make", "npm", "tox", "python3 -m pytest", "npm test", "git *"])
def test_a_pattern_without_a_tail_is_not_broad(pattern: str) -> None:
    assert CommandPattern(pattern).breadth == ""


@pytest.mark.parametrize(
    "pattern", ["pytest *", "make *", "bash", "python3", "node", "ghci", "iex", "tsx", "jshell", "sudo", "python3 -c *"]
)
def test_a_pattern_for_what_runs_its_words_or_its_input_is_broad(pattern: str) -> None:
    assert "runs whatever it is given" in CommandPattern(pattern).breadth
