"""The coding agents by the shapes of their events, as the real programs send them (`test_real_agents.py`)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from signoff.cli.coding_policy import coding_policy
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.outside.coding_agents import AGENTS, CodingAgent, HookEvent, HookMoment, Patch
from signoff.outside.outside_gate import CallPermission
from signoff.outside.transcripts import READERS
from signoff.policy.engine import Policy
from signoff.policy.layers import Layers
from signoff.policy.sensitive_files import sensitive_place

PATCH = """*** Begin Patch
*** Add File: docs/new.md
+text
*** Update File: src/app.py
*** Move to: src/../../outside.py
@@
-1
+2
*** Delete File: old.txt
*** End Patch
"""
COMMON: dict[str, Any] = {"session_id": "s1", "cwd": "/work", "transcript_path": "/t", "tool_use_id": "c1"}
YES = CallPermission(allowed=True, args={"command": "ls"}, by="policy", reason="reads")
EDITED = CallPermission(allowed=True, args={"command": "ls -a"}, edited=True, by="ana")
NO = CallPermission(allowed=False, args={}, by="ana", reason="not now", request="r1")


def read(agent: str, name: str, tool: str = "Bash", given: dict[str, Any] | None = None, **more: Any) -> HookEvent:
    event = {**COMMON, "hook_event_name": name, "tool_name": tool, "tool_input": given or {"command": "ls"}, **more}
    return AGENTS[agent].read(event)


def told(host: CodingAgent, event: HookEvent, permission: CallPermission) -> Any:
    reply = host.reply(event, permission)
    assert (reply.code, reply.err) == (0, "")
    return json.loads(reply.out)


def test_codex_is_never_told_a_bare_allow_which_it_takes_for_an_error() -> None:
    codex, before = AGENTS["codex"], read("codex", "PreToolUse")
    yes = told(codex, before, YES)["hookSpecificOutput"]
    assert yes == {"hookEventName": "PreToolUse", "permissionDecision": "allow", "updatedInput": {"command": "ls"}}
    assert told(codex, before, EDITED)["hookSpecificOutput"]["updatedInput"] == {"command": "ls -a"}
    no = told(codex, before, NO)["hookSpecificOutput"]
    assert no["permissionDecision"] == "deny" and "refused by ana: not now" in no["permissionDecisionReason"]


def test_codex_gives_a_command_line_and_nothing_else() -> None:
    """As the real program sends it: of the arguments of `exec_command` only the line reaches the hook."""
    call = read("codex", "PreToolUse", "Bash", {"command": "git status"}).call
    assert call is not None and call.labels == {"proc.exec"} and not call.doubt
    assert call.read(Layers(())).args == {"command": "git status"}
    odd = read("codex", "PreToolUse", "Bash", {"command": ["git", "status"]}).call
    assert odd is not None
    policy = Policy.from_rules([{"allow": {"label": "proc.exec", "command": "read-only"}}])
    assert Layers((policy,)).judge(odd.read(Layers((policy,)))).effect is Effect.ASK


@pytest.mark.parametrize("line", ["less notes.md", "git log | less", "man ls", "journalctl", "sh", "ls; more x"])
def test_codex_types_unasked_so_what_takes_commands_from_a_terminal_is_in_doubt(line: str) -> None:
    def doubt(agent: str, name: str = "PreToolUse", tool: str = "Bash") -> str:
        call = read(agent, name, tool, {"command": line}).call
        assert call is not None
        return call.doubt

    assert "nobody is asked about what this agent types" in doubt("codex")
    assert doubt("claude-code") == "" == doubt("gemini", "BeforeTool", "run_shell_command"), "they have no terminal"


@pytest.mark.parametrize(
    ("agent", "event", "tool", "args", "told"),
    [
        ("claude-code", "PreToolUse", "Bash", {"command": "ls -l", "description": "Look"}, "Run: ls -l"),
        ("claude-code", "PreToolUse", "Edit", {"file_path": "/a/b.py", "old_string": "x"}, "Edit /a/b.py"),
        ("claude-code", "PreToolUse", "WebFetch", {"url": "https://a.b/c", "prompt": "x"}, "WebFetch https://a.b/c"),
        ("codex", "PreToolUse", "Bash", {"command": ["git", "status"]}, ""),
        ("gemini", "BeforeTool", "run_shell_command", {"command": "make"}, "Run: make"),
        ("claude-code", "PreToolUse", "Task", {"command": "ls", "path": "x"}, ""),
    ],
)
def test_calls_of_an_agents_own_tools_are_listed_by_what_they_do(
    agent: str, event: str, tool: str, args: dict[str, Any], told: str
) -> None:
    call = read(agent, event, tool, args).call
    assert call is not None and call.said.get("summary", "") == told
    server = read("gemini", "BeforeTool", "run_shell_command", args, mcp_context={"server_name": "s", "tool_name": "x"})
    assert server.call is not None and not server.call.said, "others may mean something else by the same names"


@pytest.mark.parametrize("agent", AGENTS)
def test_a_tool_of_an_mcp_server_is_none_of_the_agents_own_whatever_it_is_called(agent: str) -> None:
    host = AGENTS[agent]
    before = next(name for name, moment in host.moments.items() if moment is HookMoment.BEFORE)
    policy = load_policy(coding_policy(Path(), agent))
    for tool in (*host.labels, *host.bookkeeping, "Task", "mcp_srv_deploy"):
        found = read(agent, before, tool, {"command": "ls"}, mcp_context={"server_name": "srv", "tool_name": tool})
        assert found.call is not None
        assert found.call.labels == frozenset() and found.call.toolset == "srv"
        assert found.call.tool not in {*host.labels, *host.bookkeeping, "Task"}, tool
        assert policy.judge(found.call.read(policy)).effect is Effect.ASK, tool
    for context in ({}, {"server_name": 3}, "srv", []):
        with pytest.raises(ValueError, match="the event should have"):
            read(agent, before, "x", {}, mcp_context=context)


def test_a_tool_is_named_by_the_server_that_it_comes_from() -> None:
    def named(tool: str, server: str) -> str:
        call = read("gemini", "BeforeTool", tool, {}, mcp_context={"server_name": server, "tool_name": tool}).call
        assert call is not None
        return call.tool

    assert named("read", "y") == named("mcp_y_read", "y") == "mcp_y_read"
    assert named("mcp_y_read", "x") == "mcp_x_mcp_y_read"
    assert named("mcp__y__read", "x") == "mcp_x_mcp__y__read"


@pytest.mark.parametrize("agent", AGENTS)
def test_the_bookkeeping_of_an_agent_waits_for_nobody(agent: str) -> None:
    host = AGENTS[agent]
    before = next(name for name, moment in host.moments.items() if moment is HookMoment.BEFORE)
    policy = load_policy(coding_policy(Path(), agent))
    for tool in host.bookkeeping:
        call = read(agent, before, tool, {"anything": "x"}).call
        assert call is not None
        assert policy.judge(call.read(policy)).effect is Effect.ALLOW, tool
    assert not {"Bash", "Write", "run_shell_command", "write_file", *host.labels} & set(host.bookkeeping)


@pytest.mark.parametrize("agent", AGENTS)
def test_no_agent_may_change_the_hooks_of_any(agent: str) -> None:
    """A row that is new in the table is known to whatever else has to know it."""
    policy = load_policy(coding_policy(Path(), agent))
    for host in AGENTS.values():
        for file in (host.user_file, host.project_file):
            write = Call(tool="Write", args={"file_path": file}, labels=frozenset({"fs.write"}))
            assert policy.judge(write).effect is Effect.DENY, file
            assert policy.judge(replace(write, args={"file_path": f"sub/{file}"})).effect is Effect.DENY, file
            assert sensitive_place(file), "the policy of another agent, or of none, asks at least"
    assert set(READERS) == set(AGENTS)


def load_policy(text: str) -> Layers:
    return Layers((Policy.from_rules(yaml.safe_load(text)["policy"]),))


PATTERNS = {
    ".env": "often holds", ".en*": "often holds", "**/.e*": "often holds", "{.env,x}": "often holds", "[.]env": "often",
    "src/{a,.env}": "often holds", "@(.env)": "not understood", "!(x)": "not understood", "*.pem": "private key",
    "!x .env": "often holds", "!x,.env": "often holds", "!{x} .env": "often", "!a\n.env": "often",
    "!.git,.e?v": "often", "!*\ufeff.env": "often", "!*\u00a0.env": "often", "!*\u2028.env": "often",
    "*.ts,!x": "", "!.env": "", "*.py": "", "src/**": "", "**/*.{ts,tsx}": "", "README.md": "",
}  # fmt: skip


@pytest.mark.parametrize(("pattern", "why"), PATTERNS.items())
def test_a_pattern_that_may_find_a_secret_is_in_doubt(tmp_path: Path, pattern: str, why: str) -> None:
    for agent, name, tool, given in (
        ("gemini", "BeforeTool", "read_many_files", {"include": ["a.md", pattern]}),
        ("gemini", "BeforeTool", "grep_search", {"pattern": "x", "include_pattern": pattern}),
        ("gemini", "BeforeTool", "search_file_content", {"pattern": "x", "include": pattern}),
        ("claude-code", "PreToolUse", "Grep", {"pattern": "x", "glob": pattern}),
    ):
        call = read(agent, name, tool, given, cwd=str(tmp_path)).call
        assert call is not None
        assert why in call.doubt and bool(call.doubt) == bool(why), (tool, call.doubt)
    lists = read("claude-code", "PreToolUse", "Glob", {"pattern": pattern}).call
    assert lists is not None and not lists.doubt, "names of files are no secret"


@pytest.mark.parametrize(
    ("pattern", "asks"),
    [("*", True), ("**/*", True), (".", True), ("conf", True), ("conf/*", True), ("conf/**", True), ("**/*.pem", True),
     ("**/c*", True), ("**/*.{json,md}", True), ("*.py", False), ("src/**", False), ("a.py", False), ("src", False),
     ("conf/*.py", False), ("**/*.{py,md}", False), ("CONF/*", True), ("./Conf/**", True), ("CONF/./*", True),
     ("CONF", True), ("src/../CONF/*", True), ("a.py CONF/*", True), ("con\\f/*", True), ("conf\\*", True),
     ("KEY", True), ("key", True), ("CONF/*.py", False), ("SRC/**", False), ("nowhere/*", False), ("A.PY", False)],
)  # fmt: skip
def test_a_pattern_of_files_that_are_printed_is_looked_up(tmp_path: Path, pattern: str, asks: bool) -> None:
    for file in ("a.py", "src/b.py", "conf/.env", "conf/c.py", "conf/credentials.json"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    (tmp_path / "key").symlink_to("/home/ana/.ssh/id_rsa")
    for given in ({"include": [pattern]}, {"include": [pattern], "useDefaultExcludes": False}, {"paths": [pattern]}):
        call = read("gemini", "BeforeTool", "read_many_files", given, cwd=str(tmp_path)).call
        assert call is not None
        assert bool(call.doubt) is asks, (given, call.doubt)


def test_a_directory_is_looked_through_once_for_all_patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(20):
        (tmp_path / f"f{number}").touch()
    looks: list[object] = []
    real = os.scandir
    monkeypatch.setattr(os, "scandir", lambda *args: (looks.append(args), real(*args))[1])

    def doubt(patterns: list[str]) -> str:
        call = read("gemini", "BeforeTool", "read_many_files", {"include": patterns}, cwd=str(tmp_path)).call
        assert call is not None
        return call.doubt

    assert not doubt([f"f{number}*" for number in range(100)])
    assert len(looks) == 1
    monkeypatch.setattr("signoff.policy.step_count.MOST_STEPS", 1_200)
    assert not doubt(["./" * number + "*" for number in range(5)])
    assert "too many steps" in doubt(["./" * number + f"F{number}" for number in range(20)])


@pytest.mark.parametrize(
    "pattern", ["/etc/passwd", "{/etc/passwd,x}", "{x,/etc/*}", "@(/etc/x|y)", "../*", "a/../../x", "~/x", "{a,~}/b"]
)
def test_a_pattern_that_leads_out_is_judged_by_where_it_leads(tmp_path: Path, pattern: str) -> None:
    root = os.path.realpath(tmp_path)
    policy = Layers((Policy.from_rules([{"allow": {"label": "fs.read", "path": {"inside": "."}}}], root=root),))
    for tool in ("read_many_files", "glob"):
        given = {"include": [pattern]} if tool == "read_many_files" else {"pattern": pattern}
        call = read("gemini", "BeforeTool", tool, given, cwd=root).call
        assert call is not None
        assert policy.judge(call.read(policy)).effect is Effect.ASK
        inside = read("gemini", "BeforeTool", tool, {name: ["src/*"] if isinstance(one, list) else "src/*"
                                                      for name, one in given.items()}, cwd=root).call  # fmt: skip
        assert inside is not None
        assert policy.judge(inside.read(policy)).effect is Effect.ALLOW


@pytest.mark.parametrize(
    ("pattern", "path", "asks"),
    [("*", "", True), ("**/*", "", True), ("**", "conf", True), ("*.py", "", False), ("**/*.py", "", False),
     ("*", "src", False), ("**/*", "src", False), ("!*.md", "", True), ("src/**", "", False), ("conf/*", "", True),
     ("**/conf/*", "", True), ("conf/**", "", True), ("c*f/?env", "", True), ("conf/*.py", "", False)],
)  # fmt: skip
def test_a_pattern_for_all_files_selects_those_that_a_search_leaves_out(
    tmp_path: Path, pattern: str, path: str, asks: bool
) -> None:
    for file in ("a.py", "src/b.py", "conf/.env"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("x")
    below = {"path": str(tmp_path / path)} if path else {}
    for agent, name, tool, given in (
        ("gemini", "BeforeTool", "grep_search", {"pattern": "x", "include_pattern": pattern, **below}),
        ("gemini", "BeforeTool", "search_file_content", {"pattern": "x", "include": pattern, **below}),
        ("claude-code", "PreToolUse", "Grep", {"pattern": "x", "glob": pattern, **below}),
    ):
        call = read(agent, name, tool, given, cwd=str(tmp_path)).call
        assert call is not None
        assert bool(call.doubt) is asks, (tool, call.doubt)


IGNORED = {
    "": True, ".gitignore: .env": False, ".gitignore: *.env": False, ".gitignore: conf": False,
    ".gitignore: conf/": False, ".gitignore: /conf/.env": False, ".gitignore: con?/.e*": False, ".ignore: .env": False,
    ".gitignore: # .env": True, ".gitignore: .env/": True, ".gitignore: /.env": True, ".gitignore: [.]env": True,
    ".gitignore: .env\n!.env": True, ".gitignore: .env\n!*.md": False, ".gitignore: .env; .ignore: !.env": True,
    ".gitignore: .env; conf/.rgignore: !*": True, ".gitignore: .env; .ignore: !conf/": True,
    ".gitignore: .env; .agignore: !.env": True, ".agignore: .env": True, ".fdignore: .env": True,
    ".gitignore:  .env": True, ".gitignore: .env\x1f": True, ".gitignore: #\r.env": True,
    ".gitignore: #\u2028.env": True,
    ".gitignore: x\x0b.env": True, ".gitignore: \udcff\n.env": True, ".gitignore: .env\n\udcff": False,
    ".gitignore: \u00a0.env": True, ".gitignore: .env ": True, ".gitignore: é\n.env": False,
    ".gitignore: .env; src/.ignore: !.env": False, ".gitignore: .env; .git/info/exclude: !.[e]nv": True,
}  # fmt: skip
"""What stands in ignore files, and whether a search may print `conf/.env` then."""


@pytest.mark.parametrize(("files", "asks"), IGNORED.items())
def test_a_search_reads_what_no_ignore_file_leaves_out(tmp_path: Path, files: str, asks: bool) -> None:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    for file in ("conf/.env", "src/b.py"):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("needle")
    for file, _, text in (one.partition(": ") for one in files.split("; ") if one):
        (tmp_path / file).write_bytes(f"{text}\n".encode("utf-8", "surrogateescape"))
    call = read("claude-code", "PreToolUse", "Grep", {"pattern": "x"}, cwd=str(tmp_path)).call
    assert call is not None and bool(call.doubt) is asks
    if rg := shutil.which("rg"):
        command = [rg, "--hidden", "--no-messages", "needle", "."]
        printed = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
        assert asks or ".env" not in printed
    below = read("claude-code", "PreToolUse", "Grep", {"pattern": "x", "path": "src"}, cwd=str(tmp_path)).call
    assert below is not None and not below.doubt


@pytest.mark.parametrize(
    ("file", "given", "asks"),
    [
        (".gitignore", {"pattern": "def x"}, False),
        (".gitignore", {"pattern": r"^import (os|sys)|\bx\.y\(.*\)$"}, False),
        (".gitignore", {"pattern": "é[A-Za-z0-9_]+"}, False),
        (".ignore", {"pattern": "def x"}, True),
        (".geminiignore", {"pattern": "def x"}, True),
        (".gitignore", {"pattern": "x", "no_ignore": True}, True),
        (".gitignore", {"pattern": "x", "max_matches_per_file": 1}, True),
        (".gitignore", {"pattern": "(?:x)"}, True),
        (".gitignore", {"pattern": "(?=x)"}, True),
        (".gitignore", {"pattern": "x{1,99999}"}, True),
        (".gitignore", {"pattern": "[z-a]|x"}, True),
        (".gitignore", {"pattern": "x||y"}, True),
        (".gitignore", {"pattern": "-fx"}, True),
        (".gitignore", {"pattern": "x\n"}, True),
        (".gitignore", {"pattern": ["x"]}, True),
    ],
)
def test_a_search_that_may_be_by_git_or_by_grep_reads_what_one_of_them_reads(
    tmp_path: Path, file: str, given: dict[str, Any], asks: bool
) -> None:
    (tmp_path / ".git").mkdir()
    for name, text in ((".env", "x"), (file, ".env\n")):
        (tmp_path / name).write_text(text)
    for tool in ("grep_search", "search_file_content"):
        call = read("gemini", "BeforeTool", tool, given, cwd=str(tmp_path)).call
        assert call is not None and bool(call.doubt) is asks


@pytest.mark.parametrize("tool", ["Grep", "grep_search"])
@pytest.mark.parametrize("kind", ["pipe", "link", "device"])
def test_an_ignore_file_that_is_no_file_holds_nobody_up_and_leaves_nothing_out(
    tmp_path: Path, kind: str, tool: str
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".env").write_text("x")
    (tmp_path / ".gitignore").write_text(".env\n")
    if kind == "pipe":
        os.mkfifo(tmp_path / ".ignore")
    else:
        (tmp_path / "x").write_text("!.env\n")
        (tmp_path / ".ignore").symlink_to("x" if kind == "link" else "/dev/zero")
    agent, event = ("gemini", "BeforeTool") if tool == "grep_search" else ("claude-code", "PreToolUse")
    call = read(agent, event, tool, {"pattern": "x"}, cwd=str(tmp_path)).call
    assert call is not None and call.doubt


@pytest.mark.parametrize("line", ["conf/", "conf", "/conf", "c*", ".env", "/conf/.env", "*/.env"])
def test_no_ignore_file_is_asked_about_the_directory_that_a_search_is_given(tmp_path: Path, line: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "conf" / "deep").mkdir(parents=True)
    (tmp_path / ".gitignore").write_text(f"{line}\n")
    (tmp_path / "linked").symlink_to("conf")
    (tmp_path / "conf" / ".env").write_text("x")
    for path in ("conf", "conf/", "conf/deep/..", str(tmp_path / "conf")):
        call = read("claude-code", "PreToolUse", "Grep", {"pattern": "x", "path": path}, cwd=str(tmp_path)).call
        assert call is not None and bool(call.doubt) is not line.endswith(".env"), path
    call = read("claude-code", "PreToolUse", "Grep", {"pattern": "x", "path": "linked"}, cwd=str(tmp_path)).call
    assert call is not None and call.doubt


def test_a_search_may_print_what_git_tracks_unless_it_selects_it(tmp_path: Path) -> None:
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "test.pem").write_text("x")
    for tracked in (False, True):
        if tracked:
            for command in (["git", "init", "-q", "."], ["git", "add", "keys"]):
                subprocess.run(command, cwd=tmp_path, check=True)
        for path in (tmp_path, tmp_path / "keys"):
            call = read(
                "claude-code", "PreToolUse", "Grep", {"pattern": "x", "path": str(path)}, cwd=str(tmp_path)
            ).call
            assert call is not None and bool(call.doubt) is not tracked
        call = read("claude-code", "PreToolUse", "Grep", {"pattern": "x", "glob": "k*/*"}, cwd=str(tmp_path)).call
        assert call is not None and call.doubt


def test_an_ignore_file_of_git_counts_in_a_repository_only(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("x")
    (tmp_path / ".gitignore").write_text(".env\n")
    call = read("claude-code", "PreToolUse", "Grep", {"pattern": "x"}, cwd=str(tmp_path)).call
    assert call is not None and call.doubt


@pytest.mark.parametrize(
    "given", [{"dir_path": "src", "directory": "fx"}, {"dir_path": ["src"], "directory": "fx"}, {"directory": 1}]
)
def test_a_command_that_names_several_directories_is_in_doubt(tmp_path: Path, given: dict[str, object]) -> None:
    told: dict[str, Any] = {"command": "git status", **given}
    call = read("gemini", "BeforeTool", "run_shell_command", told, cwd=str(tmp_path)).call
    assert call is not None and "directories" in call.doubt


def test_a_directory_that_a_pattern_names_in_other_letters_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    root, out = tmp_path / "project", tmp_path / "out"
    (root / "src").mkdir(parents=True)
    (out / "sub").mkdir(parents=True)
    (out / "sub" / "x.md").touch()
    (root / "link").symlink_to(out)
    (root / "src" / "inner").symlink_to("..")
    start = os.path.realpath(root)
    policy = Layers((Policy.from_rules([{"allow": {"label": "fs.read", "path": {"inside": "."}}}], root=start),))

    def verdict(pattern: str) -> Effect:
        call = read("gemini", "BeforeTool", "read_many_files", {"include": ["a.md", pattern]}, cwd=start).call
        assert call is not None
        return policy.judge(call.read(policy)).effect

    for pattern in ("link/*.md", "LINK/*.md", "./Link/*.md", "LINK/sub/x.md", "LINK", f"{start}/LINK/*.md"):
        assert verdict(pattern) is Effect.ASK, pattern
    for pattern in ("src/*.md", "SRC/*.md", "SRC/Inner/*.md", "nowhere/*.md", f"{start}/SRC/*.md"):
        assert verdict(pattern) is Effect.ALLOW, pattern


def test_the_model_is_told_that_a_person_changed_its_call_and_what_ran() -> None:
    for agent in ("claude-code", "codex"):
        more = told(AGENTS[agent], read(agent, "PreToolUse"), EDITED)["hookSpecificOutput"]
        assert more["additionalContext"] == (
            'signoff: ana changed the arguments before the call ran. It ran with {"command": "ls -a"}'
        )
        assert "additionalContext" not in told(AGENTS[agent], read(agent, "PreToolUse"), YES)["hookSpecificOutput"]


def test_claude_code_may_ask_signoff_instead_of_its_user() -> None:
    claude = AGENTS["claude-code"]
    plain = {name: value for name, value in COMMON.items() if name != "tool_use_id"}
    event = {**plain, "hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {"command": "ls"}}
    first, second = claude.read(event), claude.read(event)
    assert first.call is not None and second.call is not None
    assert first.moment is HookMoment.PROMPT and first.call.labels == {"proc.exec"}
    assert first.call.key != second.call.key, "an approval is for one of them"
    answer = {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    assert told(claude, first, YES)["hookSpecificOutput"] == answer
    edited = told(claude, first, EDITED)["hookSpecificOutput"]["decision"]
    assert edited == {"behavior": "allow", "updatedInput": {"command": "ls -a"}}
    no = told(claude, first, NO)["hookSpecificOutput"]["decision"]
    assert no["behavior"] == "deny" and "refused by ana: not now" in no["message"]
    plan = claude.read({**event, "tool_name": "ExitPlanMode"})
    assert claude.reply(plan, YES).out == "", "a plan is for its user to accept"


def test_what_a_command_of_claude_code_printed_is_kept_as_of_any_other_shell() -> None:
    result: dict[str, Any] = {"stdout": "one\ntwo\n", "stderr": "no\n", "interrupted": False, "isImage": False}
    assert read("claude-code", "PostToolUse", tool_response=result).preview == "one\ntwo\n[stderr]\nno"
    stopped = {**result, "stdout": "", "stderr": "", "interrupted": True}
    assert read("claude-code", "PostToolUse", tool_response=stopped).preview == "[stopped: interrupted]"
    assert read("claude-code", "PostToolUse", "Read", tool_response={"file": 1}).preview == '{"file": 1}'


def test_gemini_has_words_of_its_own_and_cannot_be_given_other_arguments() -> None:
    gemini, before = AGENTS["gemini"], read("gemini", "BeforeTool", "run_shell_command")
    assert before.moment is HookMoment.BEFORE and before.call is not None and before.call.labels == {"proc.exec"}
    assert told(gemini, before, YES)["decision"] == "allow"
    assert told(gemini, before, NO)["decision"] == "deny" and "not now" in told(gemini, before, NO)["reason"]
    assert not gemini.takes_edits
    assert read("gemini", "AfterTool").moment is HookMoment.AFTER


def test_the_files_of_a_patch_are_judged_however_it_is_handed_over() -> None:
    files = ["docs/new.md", "src/app.py", "src/../../outside.py", "old.txt"]
    for given in ({"input": PATCH}, {"command": ["apply_patch", PATCH]}, {"patch": PATCH.replace("\n", "\r\n")}):
        event = read("codex", "PreToolUse", "apply_patch", given)
        assert event.call is not None and event.call.labels == {"fs.write"}
        assert event.call.reads(event.call.args) == {"paths": files}
    assert Patch().paths({"input": "no patch"}, "/") == {"paths": []}
    hidden = PATCH.replace("*** Delete", " *** Delete")
    assert Patch().paths({"a": hidden, "b": "*** Begin Patch\n*** Add File: b.txt\n"}, "/") == {
        "paths": [*files, "b.txt"]
    }


@pytest.mark.parametrize("piece", ["\n", " ", " \n", "\t", "*** Add File: "])
def test_a_long_patch_is_read_in_time_that_grows_with_it_alone(piece: str) -> None:
    """In squared time these would take hours."""
    text = f"*** Begin Patch\n*** Add File: a{piece * (1_000_000 // len(piece))}b"
    assert Patch().paths({"input": text}, "/")["paths"]


@pytest.mark.parametrize("agent", AGENTS)
def test_an_mcp_tool_keeps_its_name_and_has_no_label(agent: str) -> None:
    name = "BeforeTool" if agent == "gemini" else "PreToolUse"
    call = read(agent, name, "mcp__github__create_issue", {"title": "x"}).call
    assert call is not None and call.tool == "mcp__github__create_issue" and call.labels == frozenset()


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("missing", ["session_id", "cwd", "tool_name", "tool_input"])
def test_an_event_without_what_it_needs_is_refused(agent: str, missing: str) -> None:
    name = "BeforeTool" if agent == "gemini" else "PreToolUse"
    event = {**COMMON, "hook_event_name": name, "tool_name": "x", "tool_input": {}}
    del event[missing]
    with pytest.raises(ValueError, match=missing):
        AGENTS[agent].read(event)
