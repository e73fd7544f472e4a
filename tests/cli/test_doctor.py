"""`signoff doctor`: the page a security reviewer reads."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests import start
from tests.cli.desk import Desk, asks
from tests.cli.wording import Wording
from tests.start import signoff

from signoff.cli.doctor_files import who_else_can
from signoff.core.decision import ApprovalDecision, Remember
from signoff.core.people import Actor
from signoff.core.terms import Scope, Terms

ROOT = Path(__file__).parents[2]
PEOPLE = """\
people: {ana: {roles: [ops], discord: "102938475610293847"}, ben: {roles: [ops], discord: "112233445566778899"}}
"""


@pytest.fixture
def shop(desk: Desk) -> Desk:
    """A project in which nothing is wrong."""
    desk.monkeypatch.setenv("SIGNOFF_MODEL", "test")
    write(desk, "policy:\n  - {allow: {tool: write_file, path: {inside: drafts}}}\n")
    worker(desk, "clerk", "instructions: Write.\ntoolsets: [filesystem_rw]\n")
    return desk


def write(desk: Desk, text: str) -> None:
    (desk.directory / "signoff.yaml").write_text(PEOPLE + dedent(text))


def worker(desk: Desk, name: str, text: str) -> None:
    (desk.directory / "workers").mkdir(exist_ok=True)
    (desk.directory / "workers" / f"{name}.yaml").write_text(dedent(text))


def examined(desk: Desk, *flags: str) -> dict[str, Any]:
    said = desk.run("doctor", "--json", *flags)
    assert said.code == (0 if said.data["ok"] else 1), said.err
    return said.data


def checks(desk: Desk, *flags: str) -> list[tuple[str, str]]:
    return [(one["severity"], one["check"]) for one in examined(desk, *flags)["findings"]]


def finding(desk: Desk, check: str, *flags: str) -> dict[str, Any]:
    [found] = [one for one in examined(desk, *flags)["findings"] if one["check"] == check]
    return found


def tools(desk: Desk, *flags: str) -> dict[str, dict[str, Any]]:
    found = examined(desk, *flags)["workers"]
    return {f"{worker['name']}/{one['tool']}": one for worker in found for one in worker["tools"]}


# --- one call of each tool ---


def test_every_tool_with_a_call_and_the_rules_that_let_others_run(shop: Desk) -> None:
    found = tools(shop)
    written = found["clerk/write_file"]
    assert (written["effect"], written["toolset"], written["labels"]) == ("ask", "filesystem_rw", ["fs.write"])
    assert written["sample"] == {"path": "example.txt", "content": "a"}
    [rule] = written["unasked"]
    assert (rule["rule"], rule["file"], rule["line"]) == ("rule-1", "signoff.yaml", 3)
    assert found["clerk/delete_file"]["effect"] == "ask"
    assert found["clerk/delete_file"]["unasked"] == []
    read = found["clerk/read_file"]
    assert (read["effect"], read["rules"]) == ("allow", ["filesystem_rw/rule-3"])
    assert [one["rule"] for one in read["unasked"]] == ["filesystem_rw/rule-3"]


def test_a_workers_own_rules_count(shop: Desk) -> None:
    worker(
        shop, "boss", "instructions: Lead.\ntoolsets: [filesystem_rw]\ndelegates: [clerk]\npolicy: [{deny: fs.write}]\n"
    )
    found = tools(shop)
    assert found["boss/write_file"]["effect"] == "deny"
    assert found["clerk/write_file"]["effect"] == "ask"
    assert found["boss/worker_call"]["effect"] == "allow"
    assert set(tools(shop, "--worker", "boss")) == {name for name in found if name.startswith("boss/")}


def test_a_server_is_started_only_if_told(shop: Desk) -> None:
    shutil.copy(Path(__file__).with_name("tickets_server.py"), shop.directory / "server.py")
    write(
        shop,
        """
        toolsets: {tickets: {use: mcp, config: {command: [python, server.py]}}}
        policy: [{allow: {toolset: tickets, tool: list_tickets}}, {deny: close_tiket}]
        """,
    )
    worker(shop, "clerk", "instructions: Sort.\ntoolsets: [tickets]\n")
    [found] = examined(shop)["workers"]
    assert found["tools"] == []
    assert [one["toolset"] for one in found["unknown"]] == ["tickets"]
    assert "--connect" in shop.run("doctor").out
    assert finding(shop, "unknown-tool")["severity"] == "note"  # the server may have it
    connected = json.loads(signoff("doctor", "--json", "--connect", cwd=shop.directory).stdout)
    effects = {one["tool"]: (one["kind"], one["effect"]) for one in connected["workers"][0]["tools"]}
    assert effects["list_tickets"] == ("mcp", "allow")
    assert effects["close_ticket"] == ("mcp", "ask")
    [wrong] = [one for one in connected["findings"] if one["check"] == "unknown-tool"]
    assert (wrong["severity"], wrong["fix"]) == ("error", "did you mean `close_ticket`?")
    (shop.directory / "server.py").write_text("raise SystemExit('no')\n")
    connected = json.loads(signoff("doctor", "--json", "--connect", cwd=shop.directory).stdout)
    [failed] = [one for one in connected["findings"] if one["check"] == "unlisted-toolset"]
    assert failed["severity"] == "warning"
    assert "the MCP server of toolset `tickets` did not start" in failed["what"]


def test_servers_of_the_provider_are_named(shop: Desk) -> None:
    entries = [
        f"{name}: {{use: native, config: {{kind: mcp_server, id: {name}, url: 'https://{name}.example/'}}{rules}}}"
        for name, rules in {"aa": ", policy: [{allow: mcp_server}]", "bb": "", "cc": ", policy: [{deny: '*'}]"}.items()
    ]
    write(shop, f"toolsets: {{{', '.join(entries)}}}\n")
    worker(shop, "clerk", "instructions: Sort.\ntoolsets: [aa, bb, cc]\n")
    [found] = examined(shop)["workers"]
    effects = {one["which"]: (one["tool"], one["effect"]) for one in found["tools"]}
    assert effects == {
        "mcp_server:aa": ("mcp_server", "allow"),
        "mcp_server:bb": ("mcp_server", "deny"),
        "mcp_server:cc": ("mcp_server", "deny"),
    }
    page = shop.run("doctor").out
    assert re.search(r"allow +mcp_server:aa ", page)
    assert re.search(r"deny +mcp_server:bb, mcp_server:cc ", page)


CODE = """
from pydantic_ai.toolsets import DynamicToolset, FunctionToolset

def wipe() -> str:
    return "wiped"

TOOLSETS = {"later": DynamicToolset(lambda ctx: FunctionToolset([wipe]) if ctx.prompt else None)}
"""


def test_a_toolset_that_lists_by_the_run_is_unknown(shop: Desk) -> None:
    (shop.directory / "toolsets.py").write_text(CODE)
    worker(shop, "clerk", "instructions: Sort.\ntoolsets: [later]\n")
    [found] = examined(shop)["workers"]
    assert [one["toolset"] for one in found["unknown"]] == ["later"]
    wrong = finding(shop, "unlisted-toolset")
    assert wrong["severity"] == "warning"
    assert "the tools of `later` are not all known" in wrong["what"]
    page = shop.run("doctor").out
    assert "has no tools" not in page
    assert "later" in page and "decided in each run" in page


def test_a_template_over_a_schema_of_yes_and_no_breaks_nothing(shop: Desk) -> None:
    text = "instructions: 'Look at {{a}}'\ninput: {type: object, properties: {a: true}}\ntoolsets: [filesystem_rw]\n"
    worker(shop, "clerk", text)
    assert "clerk/write_file" in tools(shop)


def test_native_tools(shop: Desk) -> None:
    entry = "toolsets: {web: {use: native, config: {kind: web_search}, policy: [{allow: web_search}]}}\n"
    write(shop, f"{entry}policy: []\n")
    worker(shop, "clerk", "instructions: Search.\ntoolsets: [web]\n")
    assert (tools(shop)["clerk/web_search"]["kind"], tools(shop)["clerk/web_search"]["effect"]) == ("native", "allow")
    write(shop, f"{entry}policy: [{{deny: web_search}}]\n")
    assert tools(shop)["clerk/web_search"]["effect"] == "deny"


def test_silence_that_allows_is_told_with_the_tool(shop: Desk) -> None:
    write(shop, "policy: [{ask: read_file, timeout: 60, on_timeout: allow}]\n")
    found = tools(shop)["clerk/read_file"]
    assert (found["effect"], found["rules"], found["unanswered"]) == ("ask", ["rule-1"], "allow")
    assert ("warning", "silence-allows") in checks(shop)
    assert "when nobody answers, it runs by rule-1" in shop.run("doctor").out


# --- what is wrong ---


def test_a_project_in_which_nothing_is_wrong(shop: Desk) -> None:
    assert checks(shop) == []
    said = shop.run("doctor", "--strict")
    assert said.code == 0
    assert "nothing was found" in said.out
    assert " ".join(said.out.split()).endswith("0 errors, 0 warnings, 0 notes.")


def test_without_a_project_and_without_workers(desk: Desk, wording: Wording) -> None:
    (desk.directory / "signoff.yaml").unlink()
    said = desk.run("doctor")
    assert said.code == 0
    assert "none: every tool call is asked about" in said.out
    assert "There are no workers here" in said.out
    assert examined(desk)["workers"] == []
    assert desk.run("doctor", "--worker", "clark").err == wording()


def policy(text: str) -> Callable[[Desk], None]:
    return lambda desk: write(desk, f"policy:\n  - {text}\n")


def toolset(text: str, *, used: bool = True) -> Callable[[Desk], None]:
    def change(desk: Desk) -> None:
        write(desk, f"{text}\npolicy: []\n")
        if used:
            worker(desk, "clerk", "instructions: Write.\ntoolsets: [box]\n")

    return change


@pytest.mark.parametrize(
    ("change", "severity", "check"),
    [
        pytest.param(policy("{allow: '*'}"), "error", "allows-everything", id="allows-everything"),
        pytest.param(
            policy("{allow: read_file}\n  - {ask: {tool: read_file, path: x}}"), "error", "shadowed-rule", id="shadowed"
        ),
        pytest.param(
            policy("{ask: read_file}\n  - {ask: {tool: read_file, path: x}}"), "warning", "dead-rule", id="dead"
        ),
        pytest.param(policy("{deny: delete_fil}"), "error", "unknown-tool", id="unknown-tool-denied"),
        pytest.param(policy("{allow: lst_files}"), "warning", "unknown-tool", id="unknown-tool-allowed"),
        pytest.param(policy("{deny: {toolset: filesystem_rx}}"), "error", "unknown-toolset", id="unknown-toolset"),
        pytest.param(policy("{ask: {worker: clark}}"), "error", "unknown-worker", id="unknown-worker-asked"),
        pytest.param(
            policy("{allow: {worker: '* > clark'}}"), "warning", "unknown-worker", id="unknown-worker-allowed"
        ),
        pytest.param(policy("{ask: read_file, by: opps}"), "error", "role-nobody-holds", id="role-misspelt"),
        pytest.param(policy("{ask: read_file, by: boss}"), "error", "role-nobody-holds", id="role-nobody-holds"),
        pytest.param(policy("{ask: read_file, quorum: 3}"), "error", "quorum", id="quorum"),
        pytest.param(policy("{ask: read_file, by: ops, quorum: 3}"), "error", "quorum", id="quorum-of-a-role"),
        pytest.param(
            policy("{ask: read_file, by: ops, quorum: 2, not_by: requester}"),
            "warning",
            "quorum",
            id="quorum-without-requester",
        ),
        pytest.param(
            policy("{ask: read_file, by: ops, not_by: [requester, owner]}"), "warning", "quorum", id="nobody-left"
        ),
        pytest.param(
            policy("{ask: read_file, timeout: 60, on_timeout: escalate, escalate_to: boss}"),
            "error",
            "escalates-to-nobody",
            id="escalates-to-nobody",
        ),
        pytest.param(policy("{ask: read_file, veto: legal}"), "warning", "role-nobody-holds", id="veto-nobody-holds"),
        pytest.param(
            toolset("toolsets: {box: {use: filesystem_rw}}", used=False), "note", "unused-toolset", id="unused-toolset"
        ),
        pytest.param(
            toolset("toolsets: {box: {use: filesystem_rw}}\nplugins: {allow: ['*']}"),
            "warning",
            "plugins-wide",
            id="plugins-wide",
        ),
        pytest.param(
            toolset("toolsets: {box: {use: 'nowhere.at_all:Box'}}\nplugins: {allow: [nowhere.*]}"),
            "error",
            "broken-worker",
            id="broken-worker",
        ),
        pytest.param(
            toolset("toolsets: {box: {use: 'nowhere.at_all:Box'}}\nplugins: {allow: [nowhere.*]}", used=False),
            "warning",
            "broken-toolset",
            id="broken-toolset",
        ),
        pytest.param(
            toolset("toolsets: {box: {use: mcp, config: {url: 'https://x', headers: {Authorization: Bearer 1234}}}}"),
            "warning",
            "secret-in-file",
            id="secret-in-header",
        ),
        pytest.param(
            toolset("toolsets: {box: {use: sql, config: {url: 'postgresql://a:hunter2@db/x'}}}"),
            "warning",
            "secret-in-file",
            id="secret-in-url",
        ),
    ],
)
def test_a_mistake_is_found_with_its_place_and_a_fix(
    change: Callable[[Desk], None], severity: str, check: str, shop: Desk, wording: Wording
) -> None:
    change(shop)
    page = examined(shop)
    [found] = [one for one in page["findings"] if one["check"] == check]
    assert (found["severity"], page["ok"]) == (severity, severity != "error")
    assert f"{found['what']}\nfix: {found['fix']}" == wording()
    assert found["place"].startswith("signoff.yaml:")
    said = shop.run("doctor", "--strict")
    assert said.code == (severity != "note")
    assert max(map(len, said.out.splitlines())) <= 100
    assert "hunter2" not in said.out
    assert "Bearer 1234" not in said.out


def test_a_worker_whose_file_is_wrong_is_told_and_the_others_are_looked_at(shop: Desk, wording: Wording) -> None:
    worker(shop, "broken", "instructions: x\ntoolsetz: [filesystem_rw]\n")
    worker(shop, "picky", "instructions: x\napprovers: [boss]\n")
    found = examined(shop)
    assert [one["name"] for one in found["workers"]] == ["broken", "clerk", "picky"]
    assert len(found["workers"][1]["tools"]) == 7
    assert "workers/broken.yaml:2" in finding(shop, "broken-worker")["place"]
    assert "every request of picky needs the role `boss`" in finding(shop, "role-nobody-holds")["what"]
    assert "cannot be started; see below" in shop.run("doctor").out
    write(shop, "policy: [{deny: delete_fil}]\n")
    unsure = finding(shop, "unknown-tool")
    assert unsure["severity"] == "note"
    assert f"{unsure['what']}\nfix: {unsure['fix']}" == wording()


def test_rules_in_code_are_told_from_built_in_ones(shop: Desk) -> None:
    code = """
    from pydantic_ai.toolsets import FunctionToolset
    from signoff.toolsets import with_approval

    def look() -> str:
        return "seen"

    TOOLSETS = {"eyes": with_approval(FunctionToolset([look]), "allow", name="eyes")}
    """
    (shop.directory / "toolsets.py").write_text(dedent(code))
    worker(shop, "clerk", "instructions: Look.\ntoolsets: [eyes, filesystem_ro]\n")
    write(shop, "policy: []\n")
    page = shop.run("doctor").out
    assert "allow       look()  (eyes)\n              by eyes/rule-1 (in Python): allows every call\n" in page
    assert "by filesystem_ro/rule-4 (built in)" in page


def test_people_who_cannot_be_reached(shop: Desk, wording: Wording) -> None:
    (shop.directory / "signoff.yaml").write_text(
        "people: {ana: {}, ben: {discord: '102938475610293847'}, cleo: {email: c@example.com, slack: U1}}\npolicy: []\n"
    )
    found = finding(shop, "no-channel")
    assert (found["severity"], found["place"]) == ("note", "signoff.yaml:1:1: people")
    assert found["what"] == wording()


def test_a_worker_that_can_change_its_own_rules(shop: Desk, wording: Wording) -> None:
    write(shop, "policy: [{allow: {tool: shell, command: 'cp * *'}}]\n")
    worker(shop, "clerk", "instructions: Write.\ntoolsets: [shell_file_ops]\n")
    found = finding(shop, "own-rules")
    assert (found["severity"], found["place"]) == ("error", "signoff.yaml:2:10: policy[0]")
    assert found["what"] == wording()
    write(
        shop,
        "policy: [{allow: {tool: shell, command: 'cp notes.txt *'}}, {deny: {path: [signoff.yaml, 'workers/**']}}]\n",
    )
    worker(shop, "clerk", "instructions: Write.\ntoolsets: [shell_readonly]\n")
    assert checks(shop) == []


# --- files and the store ---


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everybody gets as far as the project's directory, as on a machine that is not well kept."""
    theirs = tmp_path.parent.parent.parent

    def status(path: Path, **more: Any) -> os.stat_result:
        found = os.stat(path, **more)
        is_way = path in (tmp_path, *tmp_path.parents) and path not in theirs.parents
        return os.stat_result((found.st_mode | 0o055 if is_way else found.st_mode, *tuple(found)[1:]))

    monkeypatch.setattr(Path, "stat", status)


@pytest.mark.usefixtures("shared")
def test_secrets_that_others_can_read_and_rules_they_can_write(shop: Desk, wording: Wording) -> None:
    for name, mode in ((".env", 0o644), (".env.local", 0o600), (".env.example", 0o644), ("signoff.yaml", 0o646)):
        (shop.directory / name).touch()
        (shop.directory / name).chmod(mode)
    shop.run("audit", "export")  # has a key made
    found = {one["check"]: one for one in examined(shop)["findings"]}
    assert set(found) == {"secret-readable", "writable"}
    assert found["secret-readable"]["what"] == wording()
    assert found["writable"]["what"] == wording()
    key = shop.directory / "state" / "signoff" / "keys" / "record.key"
    assert not who_else_can(key, 4)


@pytest.mark.usefixtures("shared")
def test_a_secret_in_the_file_is_worse_where_others_read_it(shop: Desk) -> None:
    write(shop, "store: postgresql://ana:hunter2@db/approvals\npolicy: []\n")
    (shop.directory / "signoff.yaml").chmod(0o644)
    assert checks(shop) == [("error", "secret-readable"), ("warning", "secret-in-file")]
    assert finding(shop, "secret-in-file")["place"] == "signoff.yaml:2:8: store"
    (shop.directory / "signoff.yaml").chmod(0o600)
    assert checks(shop) == [("warning", "secret-in-file")]
    assert "hunter2" not in shop.run("doctor").out


def test_without_workers_no_agent_is_built(shop: Desk) -> None:
    (shop.directory / "workers" / "clerk.yaml").unlink()
    code = "import sys; sys.argv = ['signoff', 'doctor']; from signoff.cli.main import main\n"
    code += "try: main()\nexcept SystemExit: pass\nprint('pydantic_ai' in sys.modules)"
    assert start.fresh(code, cwd=shop.directory).endswith("False\n")


def test_nobody_gets_through_a_closed_directory(tmp_path: Path) -> None:
    inner = tmp_path / "closed"
    inner.mkdir(mode=0o700)
    (inner / "file").touch(mode=0o666)
    (inner / "file").chmod(0o666)
    assert who_else_can(inner / "file", 2) == ""
    assert who_else_can(inner / "missing", 2) == ""


@pytest.mark.usefixtures("shared")
def test_who_may_write_a_directory_may_exchange_what_is_in_it(tmp_path: Path) -> None:
    inner = tmp_path / "open"
    inner.mkdir()
    (inner / "file").touch(mode=0o600)
    assert who_else_can(inner / "file", 2) == ""
    inner.chmod(0o777)
    assert who_else_can(inner / "file", 2) == "everybody"
    inner.chmod(0o1777)
    assert who_else_can(inner / "file", 2) == ""


def remembered(desk: Desk, tool: str = "write_file", **terms: Any) -> str:
    decision = ApprovalDecision(approved=True, remember=Remember.ALWAYS, terms=Terms(scope=Scope.PROJECT, **terms))
    [asked] = desk.open(asks(tool, {"path": "a"}, call={"toolset": "filesystem_rw"}))
    desk.do(lambda broker: broker.answer(asked, decision, by=Actor(name="ana")))
    return asked


def test_grants_that_sleep_and_grants_that_speak(shop: Desk) -> None:
    remembered(shop)
    found = examined(shop)
    assert "parameters have changed" in found["findings"][0]["what"]
    assert found["findings"][0]["severity"] == "note"
    assert "signoff grants revoke" in found["findings"][0]["fix"]
    assert found["remembered"] == []
    give(shop, schema_hash=True)
    found = examined(shop)
    assert found["findings"] == []
    assert [one["tool"] for one in found["remembered"]] == ["write_file"]
    assert "Remembered answers that" in shop.run("doctor").out
    give(shop, tool="gone")
    assert "no worker has its tool" in finding(shop, "grant-asleep")["what"]
    give(shop, tool="write_file", toolset="other")
    assert "its tool is now in `filesystem_rw`" in finding(shop, "grant-asleep")["what"]
    give(shop, toolset="filesystem_rw", until=datetime.now(UTC) - timedelta(days=1))
    assert "ended at" in finding(shop, "grant-asleep")["what"]


def give(desk: Desk, **changes: Any) -> None:
    """Change the one grant there is."""
    if changes.pop("schema_hash", False):
        from signoff.cli.doctor_findings import Files
        from signoff.cli.inspection import known_tools, listings_of, worker_files
        from signoff.wiring.project import settings_for

        settings = settings_for(None)
        files = Files(settings, worker_files(settings).right)
        tools = known_tools(listings_of(files, ["clerk"], connect=False)[0])
        changes["schema_hash"] = next(one.schema_hash for one in tools if one.name == "write_file")

    async def work(broker: Any) -> None:
        [grant] = await broker.grants.list()
        await broker.store.write("test", lambda tx: tx.grants.put(replace(grant, **changes)))

    desk.do(work)


def test_the_kill_switch_and_a_record_that_was_changed(shop: Desk) -> None:
    import sqlite3

    shop.run("halt", "--note", "lunch")
    found = finding(shop, "halted")
    assert found["severity"] == "warning"
    assert "halted by ana" in found["what"]
    assert re.search(r"schema version \d+, an audit log of 1 event, verified", examined(shop)["store"]["state"])
    shop.run("unhalt")
    with sqlite3.connect(shop.file) as connection:
        connection.execute("update events set kind = 'ran' where seq = 1")
    connection.close()
    assert finding(shop, "record")["severity"] == "error"


def test_a_long_record_is_verified_at_its_end(shop: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    monkeypatch.setattr("signoff.cli.doctor_store.VERIFIED_WHOLE", 1)
    shop.run("halt")
    shop.run("unhalt")
    assert "an audit log of 2 events, its end verified" in examined(shop)["store"]["state"]
    with sqlite3.connect(shop.file) as connection:
        connection.execute("update events set kind = 'ran' where seq = 2")
    connection.close()
    assert "event 2 is missing or was changed" in finding(shop, "record")["what"]


def test_a_store_that_is_not_well(shop: Desk) -> None:
    shop.run("halt")
    shop.file.chmod(0o644)
    found = finding(shop, "store")
    assert (found["severity"], found["fix"]) == ("error", f"run: chmod 600 {shop.file}")
    shop.file.chmod(0o600)
    shop.file.write_bytes(b"something else")
    assert finding(shop, "store")["severity"] == "error"
    assert finding(shop, "store", "--store", "memory:")["severity"] == "warning"


# --- the page ---


@pytest.mark.parametrize("width", [80, 60])
def test_the_page_fits_the_terminal_and_hides_nothing(shop: Desk, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    write(shop, "policy: [{allow: {tool: wr\u202eite_file}}, {ask: read_file, by: boss}]\n")
    monkeypatch.setenv("COLUMNS", str(width))
    said = shop.run("doctor")
    assert "\u202e" not in said.out
    long = [line for line in said.out.splitlines() if len(line) > width and str(shop.file) not in line]
    assert long == []


def test_the_page_of_the_documentation(
    shop: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shop.monkeypatch.delenv("SIGNOFF_MODEL")
    monkeypatch.delenv("SIGNOFF_STORE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    text = (ROOT / "docs" / "guides" / "doctor.md").read_text("utf-8")
    files = dict(re.findall(r'```yaml file="([^"]+)"\n(.*?)```', text, re.DOTALL))
    (page,) = re.findall(r"```text\n\$ signoff doctor\n(.*?)```", text, re.DOTALL)
    (shop.directory / "workers" / "clerk.yaml").unlink()
    for name, content in files.items():
        (shop.directory / name).write_text(content)
    monkeypatch.setenv("COLUMNS", "80")
    said = shop.run("doctor")
    shown = re.sub(r"\nstore .*?\n\n", "\nstore       …\n\n", said.out, flags=re.DOTALL)
    assert shown == page
    assert said.code == 1


def test_a_store_on_a_server(shop: Desk, postgres_url: str) -> None:
    new = examined(shop, "--store", postgres_url)
    assert (new["findings"], new["store"]["state"]) == ([], "not created yet: it is created with the first request")
    assert shop.run("inbox", "--store", postgres_url).code == 0
    found = examined(shop, "--store", postgres_url)
    assert found["findings"] == []
    assert re.fullmatch(r"schema version \d+, an empty audit log", found["store"]["state"])
    shop.run("halt", "--store", postgres_url)
    assert finding(shop, "halted", "--store", postgres_url)
    nowhere = "postgresql://ana:hunter2@127.0.0.1:1/none"
    said = shop.run("doctor", "--store", nowhere)
    assert said.code == 1
    assert "cannot be used" in said.out or "not well" in said.out
    assert "hunter2" not in said.out


def test_json_is_alone_on_standard_output_whatever_the_projects_code_prints(tmp_path: Path) -> None:
    (tmp_path / "signoff.yaml").write_text("policy: []\n")
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers/a.yaml").write_text("toolsets: [mine]\n")
    code = "from pydantic_ai.toolsets import FunctionToolset\nprint('hello')\nTOOLSETS = {'mine': FunctionToolset()}\n"
    (tmp_path / "toolsets.py").write_text(code)
    done = signoff("doctor", "--json", "--store", f"sqlite:{tmp_path / 'signoff.db'}", cwd=tmp_path)
    assert json.loads(done.stdout)
    assert "hello" in done.stderr


SHOP = """
from pydantic_ai import Agent
from signoff import Signoff

inner = Agent(name="helper")
agent = Agent(MODEL, name="shop", capabilities=[Signoff([{"allow": "look"}, {"ask": "pay"}])])
bare = Agent(name="bare")

@agent.tool_plain
async def look() -> str:
    return str((await inner.run("look")).output)

@agent.tool_plain
def pay(amount: int) -> str:
    return "paid"

@bare.tool_plain
def pay(amount: int) -> str:
    return "paid"
"""


def test_an_agent_in_python_is_looked_at(desk: Desk, wording: Wording) -> None:
    (desk.directory / "shop_agents.py").write_text(SHOP.replace("MODEL", "None"))
    (desk.directory / "signoff.yaml").write_text("policy: [{allow: pay}]\n")
    said = desk.run("doctor", "shop_agents:agent", "--json")
    [agent] = said.data["workers"]
    assert {one["tool"]: one["effect"] for one in agent["tools"]} == {"look": "allow", "pay": "ask"}
    assert [one["check"] for one in said.data["findings"]] == ["inner-agent", "model"]
    assert "helper" in said.data["findings"][0]["what"]
    said = desk.run("doctor", "shop_agents:bare", "--json")
    assert [one["check"] for one in said.data["findings"]] == ["no-gate", "model"]
    assert {one["tool"]: one["effect"] for one in said.data["workers"][0]["tools"]} == {"pay": "allow"}
    said = desk.run("doctor", "shop_agents:agents")
    assert said.code == 2
    assert said.err == wording()


@pytest.mark.parametrize("key", ["", "sk-test"])
def test_a_model_that_lacks_its_package_or_key_is_told_and_how_to_get_them(desk: Desk, key: str) -> None:
    desk.monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    (desk.directory / "signoff.yaml").write_text("model: anthropic:claude-sonnet-5\npolicy: [{ask: x}]\n")
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "triage.yaml").write_text("instructions: Sort.\n")
    [found] = [one for one in desk.run("doctor", "--json").data["findings"] if one["check"] == "model"]
    assert found["severity"] == "warning"
    assert "triage: the model 'anthropic:claude-sonnet-5' cannot be used yet" in found["what"]
    assert "pip install 'signoff[anthropic]'" in found["fix"]
    assert ("set ANTHROPIC_API_KEY to its key" in found["fix"]) == (not key)
    said = desk.run("run", "triage", "go")
    assert said.code == 2
    assert found["fix"] in said.err


def test_a_worker_without_a_model_is_told(desk: Desk) -> None:
    desk.monkeypatch.delenv("SIGNOFF_MODEL", raising=False)
    (desk.directory / "workers").mkdir()
    (desk.directory / "workers" / "triage.yaml").write_text("instructions: Sort.\n")
    [found] = [one for one in desk.run("doctor", "--json").data["findings"] if one["check"] == "model"]
    assert (found["severity"], found["what"]) == ("note", "no model is set for triage")
