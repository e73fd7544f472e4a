"""Nothing is imported before it is needed: the front door and every command that runs no agent stay light."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import signoff
from signoff.broker import Broker
from signoff.cli.main import COMMANDS
from signoff.core.call import Call
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.request import ApprovalRequest
from signoff.core.run import SavedRun
from signoff.store.sqlite import SqliteStore

HEAVY = (
    *("pydantic_ai", "pydantic", "sqlglot", "tree_sitter", "starlette", "uvicorn", "psycopg", "textual", "discord"),
    *("cryptography", "jsonschema"),
)

ANSWERING = """
inbox | inbox --json | inbox --mine --as ana | show abc | show abc --json | take abc --as ana | release abc --as ana
assign abc ana --as ben | people | people --json | delegate ana ben --until 2d --as ana | runs | runs --all --json
halt --as ana | inbox --limit 5 | unhalt --as ana | approve abc --as ana --remember exact --yes
deny abd --as ana --json | grants list | grants list --json | grants explain GRANT | grants revoke GRANT --as ana
channels list | channels list --json | cancel run --as ana | outcome died happened --as ana | db check
db backup copy.db | completion zsh
"""
SERIES = """
import json, sys
from signoff.cli.main import main
for line in json.loads(sys.argv[1]):
    sys.argv = ["signoff", *line.split(" ")]
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code or 0
    print("LOADED", line, "=", code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""

PROBE = """
import sys
from collections.abc import Iterator
try:
    from signoff.cli.main import main
    main()
except SystemExit as end:
    code = end.code or 0
else:
    code = 0
print("LOADED", code, *sorted({name.partition(".")[0] for name in sys.modules}), file=sys.stderr)
"""


def loaded_by(code: str, *arguments: str, cwd: Path | None = None) -> list[str]:
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True, cwd=cwd)
    return next(line for line in done.stderr.splitlines() if line.startswith("LOADED")).split()[1:]


def test_importing_signoff_loads_next_to_nothing() -> None:
    modules = loaded_by(
        "import sys; before = set(sys.modules); import signoff; print('LOADED', *sorted(set(sys.modules) - before), "
        "file=sys.stderr)"
    )
    ours = [name for name in modules if name.startswith("signoff")]
    assert ours == ["signoff", "signoff.lazy_names"]
    assert not {"click", "rich", "yaml", *HEAVY} & {name.partition(".")[0] for name in modules}


def series(lines: list[str], cwd: Path) -> dict[str, tuple[str, set[str]]]:
    """Several commands in one process: the exit code of each, and what had been loaded by its end."""
    environment = {**os.environ, "SIGNOFF_STORE": f"sqlite:{cwd}/s.db"}
    done = subprocess.run(
        [sys.executable, "-c", SERIES, json.dumps(lines)], capture_output=True, text=True, cwd=cwd, env=environment
    )
    told = [line.removeprefix("LOADED ") for line in done.stderr.splitlines() if line.startswith("LOADED ")]
    pairs = (line.partition(" = ") for line in told)
    return {line: (rest.split()[0], set(rest.split()[1:])) for line, _, rest in pairs}


def test_help_needs_the_command_table_and_no_agent(tmp_path: Path) -> None:
    lines = ["--help", *(f"{name} --help" for name in COMMANDS), "policy --help"]
    found = series(lines, tmp_path)
    assert set(found) == set(lines)
    for line, (code, modules) in found.items():
        assert code == "0", line
        light = ("rich", "yaml", "asyncio", "sqlite3") if line == "--help" else ()
        assert not {*light, *HEAVY} & modules, line


def test_a_command_that_runs_no_agent_stays_light(tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").write_text("policy:\n  - allow: look\n")
    (tmp_path / "calls.jsonl").write_text('{"tool": "look", "args": {}}\n')
    lines = ["--version", "nonsense", "init new", "policy check signoff.yaml"]
    lines += ["policy explain signoff.yaml --tool pay --args {}", "policy judge signoff.yaml calls.jsonl"]
    found = series(lines, tmp_path)
    assert list(found) == lines
    for line, (code, modules) in found.items():
        assert code == ("2" if line == "nonsense" else "0"), line
        assert not set(HEAVY) & modules, line


def test_answering_needs_no_agent(tmp_path: Path) -> None:
    grant = asyncio.run(seeded(tmp_path))
    (tmp_path / "signoff.yaml").write_text("people: {ana: {roles: [ops]}, ben: {}}\npolicy: [{ask: '*'}]\n")
    lines = [one.strip().replace("GRANT", grant) for one in ANSWERING.replace("\n", " | ").split(" | ") if one.strip()]
    found = series(lines, tmp_path)
    assert list(found) == lines
    for line, (code, modules) in found.items():
        assert code == "0", line
        assert not set(HEAVY) & modules, line
    assert "rich" not in found["inbox --mine --as ana"][1], "a list is printed plainly; only the card is drawn"


def test_the_inbox_loads_the_least(tmp_path: Path) -> None:
    asyncio.run(seeded(tmp_path))
    code = PROBE.replace('name.partition(".")[0]', "name")
    _, *modules = loaded_by(code, "inbox", "--store", "sqlite:s.db", cwd=tmp_path)
    assert "signoff.store.sqlite" in modules
    spared = ("rich", "yaml", "signoff.broker", "signoff.policy", "signoff.channels", "signoff.gate", "signoff.wiring")
    assert [name for name in modules if name.startswith(spared)] == []


async def seeded(directory: Path) -> str:
    """A store with two questions, a run, a call whose process died, and a grant whose id is returned."""
    store = SqliteStore(directory / "s.db")
    broker = Broker(store)
    ana = Actor(name="ana")
    yes = ApprovalDecision(approved=True)

    def asks(name: str) -> ApprovalRequest:
        call = Call(tool="pay", args={"amount": 1}, call_id=name, run_id="r", schema_hash="h")
        return ApprovalRequest(id=name, tool_call_id=name, tool_name="pay", args=call.args, call=call)

    await broker.open([asks(name) for name in ("abcd234567", "abde234567", "died234567", "kept234567")])
    await broker.answer("died234567", yes, by=ana)
    await broker.claim("died234567")
    await broker.lose("died234567")
    await broker.answer("kept234567", replace(yes, remember=Remember.ALWAYS), by=ana)
    await broker.runs.begin(SavedRun(id="run2345678"))
    [grant] = await broker.grants.list()
    store.close()
    return grant.id


MOST_FOR_A_HOOK = 197
"""Modules of ours that a hook imports for a call that is allowed. Lower it when it can be; never raise it."""
NOT_FOR_A_HOOK = {
    *("asyncio", "ssl", "socket", "subprocess", "logging", "tempfile", "shutil", "random", "difflib", "click", "rich"),
    *("importlib.resources", "zipfile", *HEAVY),
}
HOOK = """
import sys
from collections.abc import Iterator
from signoff.wiring import hook_launcher
code = hook_launcher.main(["claude-code", "--project", sys.argv[1]])
print("LOADED", code, *sys.modules, file=sys.stderr)
"""


def test_a_hook_that_allows_imports_little(tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").write_text("policy: [{allow: {label: proc.exec, command: read-only}}]\n")
    event = {"session_id": "s", "cwd": str(tmp_path), "hook_event_name": "PreToolUse", "tool_use_id": "t"}
    event |= {"tool_name": "Bash", "tool_input": {"command": "git status"}}
    plain = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "SIGNOFF_HOOK_RESIDENT": "0", "SIGNOFF_AS": "ana"}
    done = subprocess.run(
        [sys.executable, "-c", HOOK, str(tmp_path)],
        input=json.dumps(event), capture_output=True, text=True, check=True, env=plain,
    )  # fmt: skip
    assert '"permissionDecision": "allow"' in done.stdout
    _, code, *modules = done.stderr.split()
    assert code == "0"
    assert not NOT_FOR_A_HOOK & set(modules)
    ours = [name for name in modules if name.partition(".")[0] == "signoff"]
    assert len(ours) <= MOST_FOR_A_HOOK, sorted(ours)


def test_the_front_door_is_counted() -> None:
    assert signoff.__all__ == sorted(
        """
        Actor ApprovalDecision ApprovalMemory ApprovalMode ApprovalRequest ApprovalUI Approver Call CallEvent Effect
        Policy ResumedRun Signoff SignoffError SuspendedRun Verdict build_approval_requests call_agent collect_approvals
        collect_approvals_sync resume resume_answered run_with_approval run_with_approval_sync
        """.split()
    )
    for name in signoff.__all__:
        assert getattr(signoff, name) is not None
    assert set(signoff.__all__) <= set(dir(signoff))
    declared = re.findall(r"^    from [\w.]+ import \w+ as (\w+)$", Path(signoff.__file__).read_text(), re.MULTILINE)
    assert sorted(declared) == signoff.__all__, "what type checkers are told"
    with pytest.raises(AttributeError, match="nothing"):
        signoff.nothing  # noqa: B018


# --- imports inside of functions ---

TOP = re.compile(r"^(?:from ([\w.]+) import (?:\(([^)]*)\)|(.+))|import ([\w.]+))", re.MULTILINE)
LATE = re.compile(r"^ +from (signoff[\w.]*) import (?:\(([^)]*)\)|(.+))", re.MULTILINE)
FOR_TYPES = re.compile(r"^if TYPE_CHECKING:.*\n(?:    .*\n|\n)+", re.MULTILINE)
EXTRAS = {*HEAVY, "http.client", "httpx", "mcp", "mcp_types"}
"""A module of ours that imports one of these may be imported by a function, if its own module imports it nowhere."""
STAY_LATE = {
    "A hook that allows a call needs none of these.": """
        broker.broker: broker.edits
        broker.grants: policy.offer policy.remembered
        broker.journal: policy.grant_text
        broker.policies: policy.policy_text
        channels.terminal_kind: channels.approver channels.approvers
        config.settings: policy.builtin policy.lint policy.reach
        config.stricter_layers: policy.lint
        config.toolset_entries: policy.builtin
        core.redact: core.declared_secrets core.hiding_places core.unescaped
        gate.likeness: named_settings policy.first_words policy.offer
        links: found_files named_settings
        outside.coding_agents: found_files ignore_files policy.shell.typed_commands
        policy.call_paths: policy.shell.command_facts policy.shell.common_files policy.sql
        policy.commands: policy.shell.further_words policy.shell.unknown_programs
        policy.engine: policy.explain policy.first_words policy.lint policy.parse policy.secret
        policy.engine: policy.shell.command_facts
        policy.layers: policy.explain
        policy.parse_facts: policy.amounts policy.commands policy.place_conditions policy.recipients
        policy.parse_facts: policy.shell.patterns policy.statements policy.url_conditions
        policy.parse_value: policy.below policy.first_words
        policy.paths: policy.shell.common_files
        policy.shell.command_facts: policy.shell.further_words policy.shell.structured_lines policy.shell.syntax_tree
        policy.shell.command_facts: policy.shell.touched_files policy.shell.written_programs
        policy.shell.languages: policy.shell.languages.awk policy.shell.languages.conditions policy.shell.languages.jq
        policy.shell.languages: policy.shell.languages.ps
        policy.shell.patterns: policy.shell.further_words policy.shell.syntax_tree
        wiring.hook_answer: outside.consumed_calls
        wiring.hook_launcher: wiring.hook_answer""",
    "`signoff inbox` starts fast: it reads a project, and has what answers, only where it is asked to.": """
        cli.id_completion: policy.grant_text
        cli.inbox_command: cli.inbox_answer cli.inbox_screen cli.inbox_watch wiring.project wiring.stores
        views.inbox_view: broker broker.switch
        views.namesakes: core.differences
        wiring.stores: broker broker.switch core.halt store.signing_key store.store_factory""",
    "`signoff --help` and `--version` print no error.": """
        cli.main: core.moment core.safe_text core.visible_text""",
    "`signoff policy check` opens no store.": """
        cli.id_completion: cli.open_broker
        cli.policy_add: cli.approval_desk cli.open_broker wiring.make_rule
        cli.policy_tools: cli.loops""",
    "A program uses one database of three, and the driver of one is an extra.": """
        store.store_factory: store.memory_store store.postgres store.sqlite
        store.upkeep: store.postgres_connection store.postgres_pipeline store.postgres_schema""",
}
"""Which other modules of ours are imported by a function of which, and why."""


def test_modules_of_ours_are_imported_at_the_top_of_a_file() -> None:
    """Somewhere else only where it spares a user something: an extra, a hook's time, the start of the inbox."""
    rows = [row.split(":") for text in STAY_LATE.values() for row in text.split("\n") if row]
    allowed = {(f"signoff.{late.strip()}", f"signoff.{name}") for late, names in rows for name in names.split()}
    found = set(late_imports(sources()))
    assert sorted(found - allowed) == [], "import these at the top of the file, or say in STAY_LATE why not"
    assert sorted(allowed - found) == [], "these are imported late no longer: take them from STAY_LATE"


def test_a_late_import_is_found() -> None:
    files = {
        "signoff.one": "def later() -> None:\n    from signoff.room import two, three\n",
        "signoff.room": "",
        "signoff.room.two": "from signoff.room.agent import X\n",
        "signoff.room.three": "if TYPE_CHECKING:\n    from signoff.room.agent import X\n",
        "signoff.room.agent": "from pydantic_ai import Agent\n",
    }
    assert set(late_imports(files)) == {("signoff.one", "signoff.room.three")}


def sources() -> dict[str, str]:
    """The text of each of our modules, without what it imports for types only."""
    root = Path(signoff.__file__).parents[1]
    files = {".".join(file.relative_to(root).with_suffix("").parts): file for file in root.glob("signoff/**/*.py")}
    return {name.removesuffix(".__init__"): file.read_text("utf-8") for name, file in files.items()}


def late_imports(files: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Which module imports which of ours in a function, except for the sake of an extra."""
    tops: dict[str, set[str]] = {}

    def modules(package: str, names: str) -> Iterator[str]:
        for name in re.findall(r"(\w+)(?: as \w+)?\s*(?:,|$|#)", names, re.MULTILINE):
            yield f"{package}.{name}" if f"{package}.{name}" in files else package

    def extras(module: str) -> set[str]:
        """What it brings with it, through all that it imports at the top."""
        seen, waiting = set[str](), [module]
        while waiting:
            if (one := waiting.pop()) in seen:
                continue
            seen.add(one)
            if one in files and one not in tops:
                found = TOP.findall(files[one])
                tops[one] = {name for home, some, more, _ in found if home for name in modules(home, some or more)}
                tops[one] |= {home or name for home, _, _, name in found}
            waiting += tops.get(one, ())
        return {name if name in EXTRAS else name.partition(".")[0] for name in seen} & EXTRAS

    for module, text in files.items():
        for home, some, more in LATE.findall(FOR_TYPES.sub("", text)):
            yield from ((module, name) for name in modules(home, some or more) if extras(name) <= extras(module))
