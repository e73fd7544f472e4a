"""Path conditions: an allow rule has to be sure, and a rule that asks or denies is not talked out of it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policy.rules import ROOT, call, finding, policy
from tests.tables import table

from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.policy.call_paths import Facts, is_path_key
from signoff.policy.engine import Policy
from signoff.policy.match_result import Truth

YES, NO, UNKNOWN = Truth.YES, Truth.NO, Truth.UNKNOWN


@table(
    "written",
    [
        ".env",
        "./.env",
        "a/../.env",
        "a/b/../../.env",
        ".//.env",
        "a//.env",
        "/etc/.env",
        "//etc//.env",
        "../other/.env",
        "x/./.env",
        ".env/",
        ".env/.",
        f"{ROOT}/.env",
        "a\\.env",
        "..\\x\\.env",
        "C:\\x\\.env",
        "file:///etc/.env",
        "file://localhost/etc/%2Eenv",
        "FILE:/x/.env",
        "~/.env",
        "$HOME/.env",
        "nope/" * 3000 + "../" * 3000 + ".env",
    ],
)
@table("key", ["path", "where", "anything"])
def test_a_denied_name_is_found_however_it_is_written(written: str, key: str) -> None:
    assert finding({"path": "**/.env"}, call("x", args={key: written}), effect="deny").truth is YES


@pytest.mark.parametrize(
    "args",
    [
        {"path": "src/a.py", "note": {"deep": [{"er": "conf/.env"}]}},
        {"files": {"conf/.env": "SECRET=1"}},
        {"batch": [{"conf/.env": "x"}]},
        {"command": "cat conf/.env"},
    ],
)
def test_a_denied_name_is_found_anywhere_in_the_arguments(args: dict[str, Any]) -> None:
    assert finding({"path": "**/.env"}, call("x", args=args), effect="deny").truth is YES


@pytest.mark.parametrize("written", ["x.env", ".envrc", "env", "a/.env/b", ".ENV", "a b", ""])
def test_other_names_are_not_denied(written: str) -> None:
    assert finding({"path": "**/.env"}, call("x", path=written), effect="deny").truth is NO


@table(
    ("written", "answer"),
    [
        ("src/a.py", YES),
        ("./src/a.py", YES),
        ("src//a/b.py", YES),
        ("lib/../src/a.py", YES),
        (f"{ROOT}/src/a.py", YES),
        ("src/a b.py", YES),
        ("src/file~", YES),
        ("src/é.py", YES),
        ("lib/a.py", NO),
        ("src", NO),
        ("src/../.env", NO),
        ("src/../../../../../src/a.py", NO),
        ("/src/a.py", NO),
        ("/etc/passwd", NO),
        ("srcs/a.py", NO),
        (f"{ROOT}/../project/src/a.py", YES),
        (f"{ROOT}_evil/src/a.py", NO),
        # Where nobody can say where a path leads, it is not allowed.
        ("src/$NAME.py", UNKNOWN),
        ("src/${HOME}", UNKNOWN),
        ("src/a\0b", UNKNOWN),
        ("src/a\nb", UNKNOWN),
        ("src/a\x1b[2K", UNKNOWN),
        ("src/..\\..\\secret", UNKNOWN),
        ("~/src/a.py", NO),
        ("", NO),
        ("file:src/a.py", NO),
    ],
)
def test_an_allowed_directory(written: str, answer: Truth) -> None:
    assert finding({"path": "src/**"}, call("x", path=written), effect="allow").truth is answer


@pytest.mark.parametrize("written", ["~/x", "~root/x", "", "C:x", "file:///etc/passwd", "https://x", "\\\\host\\x"])
def test_not_even_the_widest_allow_takes_what_may_lead_anywhere(written: str) -> None:
    for match in ({"path": "**"}, {"path": {"inside": "/"}}):
        assert finding(match, call("x", path=written), effect="allow").truth is UNKNOWN


def test_an_allow_rule_needs_every_path_to_match() -> None:
    match = {"path": "src/**"}
    assert finding(match, call("copy", src="src/a", dst="src/b"), effect="allow").truth is YES
    assert finding(match, call("copy", src="src/a", dst="/etc/b"), effect="allow").truth is NO
    assert finding(match, call("copy", paths=["src/a", ["src/b", "x"]]), effect="allow").truth is NO
    assert finding(match, call("copy", job={"target_dir": "x", "file": "src/a"}), effect="allow").truth is NO
    assert finding(match, call("copy", files={"src/a": "src/b"}), effect="allow").truth is YES
    assert finding(match, call("copy", files={"../a": "src/b"}), effect="allow").truth is NO
    assert finding(match, call("copy", path="src/a", file=3), effect="allow").truth is UNKNOWN
    assert finding(match, call("copy", path="src/a", file=None, is_dir=True), effect="allow").truth is YES


def test_an_allow_rule_needs_a_path_at_all() -> None:
    found = finding({"path": "**"}, call("x", content="src/a"), effect="allow")
    assert found.truth is NO
    assert found.why == "no argument has the name of a path"


def test_links_are_followed_where_the_call_says_where_they_lead() -> None:
    linked = call("read", path="src/link", resolved={"src/link": "/etc/passwd"})
    inside = call("read", path="src/link", resolved={"src/link": f"{ROOT}/src/real"})
    assert finding({"path": "src/**"}, linked, effect="allow").truth is NO
    assert finding({"path": "src/**"}, inside, effect="allow").truth is YES
    assert finding({"path": "/etc/**"}, linked, effect="deny").truth is YES
    assert finding({"path": "/etc/**"}, inside, effect="deny").truth is NO
    odd = call("read", args={"what": "src/link"}, resolved={"src/link": "/etc/passwd"})
    assert finding({"path": "/etc/**"}, odd, effect="ask").truth is YES


@pytest.mark.parametrize("written", ["$HOME/x", "~/x", "a\0b"])
def test_a_deny_rule_does_not_shrug_at_what_a_tool_may_expand(written: str) -> None:
    assert finding({"path": "/etc/**"}, call("x", path=written), effect="deny").truth is UNKNOWN
    elsewhere = UNKNOWN if written.startswith("~/") else NO
    assert finding({"path": "/etc/**"}, call("x", prompt=written), effect="deny").truth is elsewhere


def test_a_deny_rule_does_not_shrug_at_control_characters() -> None:
    assert finding({"path": "**/.env"}, call("x", path="a\nb/.env"), effect="deny").truth is UNKNOWN


@pytest.mark.parametrize(
    ("written", "answer"),
    [("secrets", YES), ("./secrets/", YES), ("secrets/a", YES), ("secrets2", NO), (".", NO)],
)
def test_a_denied_directory_includes_itself(written: str, answer: Truth) -> None:
    assert finding({"path": "secrets/**"}, call("rmtree", path=written), effect="deny").truth is answer
    assert finding({"path": "**/secrets/**"}, call("rmtree", path=written), effect="deny").truth is answer


@table(
    ("match", "written", "answer"),
    [
        ({"inside": "."}, "a", YES),
        ({"inside": "."}, ".", YES),
        ({"inside": "."}, "..", NO),
        ({"inside": "."}, "../project_evil/a", NO),
        ({"inside": "src"}, "src", YES),
        ({"inside": "src/"}, "src/a", YES),
        ({"inside": "./src"}, "srcs", NO),
        ({"inside": ["src", "/tmp"]}, "/tmp/x", YES),
        ({"inside": "/"}, "/etc", YES),
        ({"inside": "src", "matches": "**/*.py"}, "src/a.py", YES),
        ({"inside": "src", "matches": "**/*.py"}, "src/a.txt", NO),
        ({"inside": "src", "matches": "**/*.py"}, "a.py", NO),
        (["*.md", "docs/**"], "README.md", YES),
        (["*.md", "docs/**"], "docs/x/y", YES),
        (["*.md", "docs/**"], "x/README.md", NO),
        ("/tmp/*", "/tmp/x", YES),
        ("/tmp/*", "tmp/x", NO),
        ("a//b", "a/b", YES),
    ],
)
@table("effect", ["allow", "deny"])
def test_patterns_and_directories(match: Any, written: str, answer: Truth, effect: str) -> None:
    assert finding({"path": match}, call("x", path=written), effect=effect).truth is answer


def test_a_root_with_glob_characters_is_taken_as_it_is() -> None:
    root = "/srv/[a-z]*/x"
    assert finding({"path": "src/*"}, call("x", path="src/a"), effect="allow", root=root).truth is YES
    assert finding({"path": "src/*"}, call("x", path="/srv/b/x/src/a"), effect="allow", root=root).truth is NO


@pytest.mark.parametrize("effect", ["allow", "deny"])
def test_without_a_root_nobody_knows_where_relative_paths_are(effect: str) -> None:
    def found(match: Any, written: str) -> Truth:
        return finding({"path": match}, call("x", path=written), effect=effect, root=None).truth

    assert found("src/**", "src/a") is UNKNOWN
    assert found({"inside": "src"}, "src/a") is UNKNOWN
    assert found("/srv/**", "srv/a") is UNKNOWN if effect == "allow" else YES
    assert found("/data/**", "a") is NO if effect == "allow" else UNKNOWN
    assert found("/srv/**", "/srv/a") is YES
    assert found("**/.env", "a/../.env") is YES


def test_the_root_of_a_policy_is_checked_and_tidied() -> None:
    assert policy(root="/srv/x/../y/").root == "/srv/y"
    with pytest.raises(ValueError, match="absolute"):
        policy(root="srv")


@table(
    "key",
    "path paths file files filename file_name fileName dir directory directories cwd root src dst source destination "
    "target dest folder old_path newPath FILE_PATH outputFile log_dir path2 file_1 to from filepath working_directory "
    "base-dir logfile keyfile pidFile subdir OUTDIR cacheDir".split(),
)
def test_names_that_hold_paths(key: str) -> None:
    assert is_path_key(key)


@table("key", ["content", "file_text", "text", "profile", "pathology", "targets_met", "name", "", "42"])
def test_names_that_do_not(key: str) -> None:
    assert not is_path_key(key)


def test_the_texts_to_follow_depend_on_the_rules() -> None:
    args = {"path": "a", "note": "b", "deep": {"file": "c", "x": ["d\n", "a"]}, "empty": "", "long": "x" * 5000}
    made = call("t", args=args)
    assert policy({"allow": "t"}).paths_of(made) == ()
    assert policy({"allow": {"tool": "t", "path": "**"}}).paths_of(made) == ("a", "c")
    assert policy({"deny": {"path": "**/.env"}}).paths_of(made) == ("a", "b", "file", "c", "x")
    assert policy({"deny": {"tool": "other", "path": "**/.env"}}).paths_of(made) == ()
    assert policy({"allow": "t"}).wants_paths is False
    assert policy({"deny": {"tool": "other", "path": "**/.env"}}).wants_paths is True


def test_facts_are_gathered_once() -> None:
    facts = Facts(call("x", path="a/./b"), ROOT)
    assert facts.any_paths is facts.any_paths
    assert facts.named_paths is facts.named_paths
    assert facts.named_paths[0].forms == (f"{ROOT}/a/b",)


@pytest.mark.parametrize(
    "path",
    [" /etc/passwd", "/etc/passwd ", "\u00a0/etc/x", " ~/notes", "notes.txt ", "\ufeff/etc/x", "\u200b\ufeff ~/notes"],
)
def test_blanks_that_a_tool_may_cut_off_allow_nothing_and_hide_nothing(path: str) -> None:
    inside = Policy.from_rules([{"allow": {"tool": "read", "path": {"inside": "."}}}], root="/work")
    assert inside.judge(Call(tool="read", args={"path": path})).effect is Effect.ASK
    denied = Policy.from_rules([{"deny": {"path": "/etc/**"}}, {"allow": "read"}], root="/work")
    wanted = Effect.DENY if "etc" in path else Effect.ALLOW
    assert denied.judge(Call(tool="read", args={"path": path})).effect is wanted


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("sort -u a -o a", "`sort -o` writes its output to a file"),
        ("git push", "`git push` sends commits to another repository"),
        ("frob x", "which files `frob` touches is not known"),
        ("python -c x", "`python` runs code of another language"),
    ],
)
def test_doubt_about_the_files_of_a_command_says_what_the_program_is_known_to_do(command: str, why: str) -> None:
    rules = policy({"id": "secrets", "deny": {"path": "**/.env"}})
    reason = rules.judge(call("shell", command=command)).reason
    assert reason == f"{why}; rule “secrets” could not be checked"
