"""What people wrote down before there was a product: each snippet as its author would write it here.

Only public names, a directory of one's own, a real agent; what counts is what is on disk afterwards, or what the run
came to.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import discord
import httpx
import pytest
from pydantic_ai import Agent, ApprovalRequired, DeferredToolRequests, RunContext
from pydantic_ai.toolsets import FunctionToolset
from tests.discord.service import Message, Service
from tests.discord.service.pointed import point_at
from tests.proofs.outside import Project

from signoff import (
    ApprovalDecision,
    ApprovalMemory,
    ApprovalRequest,
    Signoff,
    collect_approvals_sync,
    run_with_approval,
    run_with_approval_sync,
)
from signoff.channels import DiscordApprovals
from signoff.testing import ScriptedModel, scripted_approver
from signoff.toolsets import approval_tool, with_approval


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory that a program is started in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made_in(directory: Path) -> list[Path]:
    """Every file of a directory."""
    return list(directory.iterdir())


def call(tool: str, **args: Any) -> dict[str, Any]:
    """One turn of a model: it calls a tool."""
    return {"calls": [{"tool": tool, "args": args}]}


SAYS = {"say": "{{last}}"}
"""The last turn: what the tools said last."""


class MyUI:
    """A user interface as anybody would write it: one method."""

    def __init__(self, *answers: ApprovalDecision) -> None:
        self.answers = list(answers)
        self.seen: list[str] = []

    def choose(self, request: ApprovalRequest, *, mode: str) -> ApprovalDecision:
        self.seen.append(request.summary)
        return self.answers.pop(0)


YES, NO = ApprovalDecision(approved=True), ApprovalDecision(approved=False, note="not that one")


# --- deferred approvals ---


@pytest.mark.usefixtures("sync_loop")
@pytest.mark.mission("D5")
def test_d5_the_deferred_loop_with_a_tool_that_says_what_it_is_about_to_do(here: Path) -> None:
    agent = Agent(
        ScriptedModel(
            [call("write_file", path="a.txt", content="milk"), call("write_file", path="b.txt", content="eggs"), SAYS]
        )
    )

    @agent.tool
    def write_file(ctx: RunContext, path: str, content: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"summary": f"Write {len(content)} chars to {path}", "path": path})
        Path(path).write_text(content)
        return f"wrote {path}"

    my_ui, memory = MyUI(YES, NO), ApprovalMemory()
    result = agent.run_sync("Note them", output_type=[str, DeferredToolRequests])
    while isinstance(result.output, DeferredToolRequests):
        assert not (here / "b.txt").exists()
        approvals = collect_approvals_sync(result.output, ui=my_ui, mode="interactive", memory=memory)
        result = agent.run_sync(
            message_history=result.all_messages(),
            deferred_tool_results=approvals,
            output_type=[str, DeferredToolRequests],
        )

    assert my_ui.seen == ["Write 4 chars to a.txt", "Write 4 chars to b.txt"]
    assert (here / "a.txt").read_text() == "milk" and not (here / "b.txt").exists()
    assert "not that one" in result.output


@pytest.mark.mission("D8")
@pytest.mark.usefixtures("sync_loop")
def test_d8_a_toolset_that_pydantic_ai_holds_back_by_a_function_of_the_call(here: Path) -> None:
    (here / "notes.md").write_text("milk")
    (here / "salaries.md").write_text("5")

    def read_file(path: str) -> str:
        return Path(path).read_text()

    def write_file(path: str, content: str) -> str:
        Path(path).write_text(content)
        return f"wrote {path}"

    def needs_approval(ctx: RunContext[Any], tool_def: Any, args: dict[str, Any]) -> bool:
        return tool_def.name == "write_file" or args["path"] == "salaries.md"

    sandbox = FunctionToolset([read_file, write_file])
    turns = [
        call("read_file", path="notes.md"),
        call("read_file", path="salaries.md"),
        call("write_file", path="notes.md", content="eggs"),
        SAYS,
    ]
    agent = Agent(ScriptedModel(turns), toolsets=[sandbox.approval_required(needs_approval)])
    my_ui = MyUI(NO, ApprovalDecision(approved=True, edited_args={"path": "notes.md", "content": "bread"}))
    result = run_with_approval_sync(agent, "Read and write", ui=my_ui)

    assert result.output == "wrote notes.md" and (here / "notes.md").read_text() == "bread"
    assert len(my_ui.seen) == 2 and "salaries.md" in my_ui.seen[0]


@pytest.fixture
def address() -> Iterator[str]:
    """A server that keeps its connections open, as those of models do."""

    class Answers(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"noon")

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.mission("D7")
@pytest.mark.usefixtures("sync_loop")
def test_d7_an_http_client_that_is_kept_from_run_to_run_goes_on_working(address: str) -> None:
    """PydanticAI keeps the clients of models so, and each is bound to the event loop of the first run."""
    client = httpx.AsyncClient()
    agent = Agent(
        ScriptedModel([call("look"), call("set_clock"), SAYS]), output_type=[str, DeferredToolRequests], name="clock"
    )

    @agent.tool_plain
    async def look() -> str:
        return (await client.get(address)).text

    @agent.tool_plain(requires_approval=True)
    async def set_clock() -> str:
        return f"set to {(await client.get(address)).text}"

    for _ in range(2):
        result = agent.run_sync("What time is it?")
        while isinstance(result.output, DeferredToolRequests):
            approvals = collect_approvals_sync(result.output, ui=MyUI(YES))
            result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=approvals)
        assert result.output == "set to noon"
        assert run_with_approval_sync(agent, "And now?", ui=MyUI(YES)).output == "set to noon"
    asyncio.get_event_loop().run_until_complete(client.aclose())


@pytest.mark.mission("D10")
async def test_d10_run_with_approval_asks_once_where_the_answer_is_for_the_session(here: Path) -> None:
    agent = Agent(ScriptedModel([*[call("append", line="milk")] * 3, SAYS]))

    @agent.tool_plain(requires_approval=True)
    def append(line: str) -> str:
        with Path("list.txt").open("a") as file:
            file.write(f"{line}\n")
        return "appended"

    my_ui = MyUI(ApprovalDecision(approved=True, remember="session"))
    result = await run_with_approval(agent, "Three times", ui=my_ui)
    assert result.output == "appended" and (here / "list.txt").read_text() == "milk\n" * 3
    assert len(my_ui.seen) == 1

    my_ui.answers = [NO] * 3
    await run_with_approval(agent, "Once more", ui=my_ui, mode="interactive", memory=None)
    assert len(my_ui.seen) == 4, "it was for that run: each of the calls of the next one is asked about"


# --- a toolset that decides for itself ---


class Shell(FunctionToolset):
    """Commands, for show: each leaves a file behind."""

    def __init__(self) -> None:
        super().__init__([self.shell])

    def shell(self, command: str) -> str:
        """Run a command."""
        Path(command.replace(" ", "-")).touch()
        return f"ran {command}"


class TwoArguments(Shell):
    def needs_approval(self, name: str, tool_args: dict[str, Any]) -> bool | dict[str, Any]:
        command = tool_args["command"]
        if command.startswith("sudo"):
            raise PermissionError(f"Command blocked: {command}")
        return False if command.startswith("git") else {"description": f"Execute: {command}"}


class WithContext(TwoArguments):
    async def needs_approval(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any]
    ) -> Any:
        assert ctx.deps == "ana"
        return super().needs_approval(name, tool_args)


class WithResults(Shell):
    """As pydantic-ai-blocking-approval has it."""

    def needs_approval(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], config: Any) -> Any:
        with pytest.warns(DeprecationWarning, match="ApprovalResult"):
            from signoff.compat.blocking_approval import ApprovalResult
        command = tool_args["command"]
        if command.startswith("sudo"):
            return ApprovalResult.blocked(f"Command blocked: {command}")
        return ApprovalResult.pre_approved() if command.startswith("git") else ApprovalResult.needs_approval()

    def get_approval_description(self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any]) -> str:
        return f"Execute: {tool_args['command']}"


@pytest.mark.mission("W9")
@pytest.mark.parametrize("toolset", [TwoArguments, WithContext, WithResults])
async def test_w9_needs_approval_as_it_is_written_out_there(here: Path, toolset: type[Shell]) -> None:
    asked: list[str] = []

    def approver(request: ApprovalRequest) -> bool:
        asked.append(f"{request.summary} {request.verdict.reason if request.verdict else ''}")
        return request.args["command"] == "make docs"

    commands = ("git status", "make docs", "make clean", "sudo reboot")
    agent = Agent(
        ScriptedModel([*(call("shell", command=one) for one in commands), SAYS]),
        deps_type=str,
        toolsets=[toolset()],
        capabilities=[Signoff([], approver=approver, mode="interactive")],
    )
    result = await agent.run("Tidy up", deps="ana")

    assert sorted(one.name for one in made_in(here)) == ["git-status", "make-docs"]
    assert ["Execute: make docs" in asked[0], "Execute: make clean" in asked[1], len(asked)] == [True, True, 2]
    told = json.loads(result.output)
    assert (told["error"], told["by"]) == ("permission_denied", "policy"), "nobody was asked about what is blocked"
    assert told["reason"] == "Command blocked: sudo reboot"


DATABASE = """
    from pydantic_ai.toolsets import FunctionToolset


    class DatabaseToolset(FunctionToolset):
        def __init__(self, config, context):
            super().__init__([self.query, self.execute])
            self.file = context.workspace + "/" + config["connection_string"]
            self.readonly = config.get("readonly", True)

        def query(self, sql: str) -> str:
            return open(self.file).read()

        def execute(self, sql: str) -> str:
            if self.readonly:
                raise PermissionError("Database is readonly")
            open(self.file, "a").write(sql)
            return "done"

        def needs_approval(self, name, tool_args):
            if name == "query" and tool_args["sql"].lower().startswith("select"):
                return False
            return {"description": f"SQL: {tool_args['sql'][:60]}"}
"""
ENTRIES = """
    plugins: {allow: [mycompany.*]}
    toolsets:
      database: {use: "mycompany.database:DatabaseToolset", config: {connection_string: "${DATABASE}", readonly: true}}
      ledger: {extends: database, config: {readonly: false}}
    policy: []
"""
STATEMENTS = """
    - calls: [{tool: query, args: {sql: "SELECT 1"}}]
    - calls: [{tool: execute, args: {sql: "DROP TABLE t"}}]
    - say: "{{last}}"
"""


@pytest.mark.mission("W8")
def test_w8_a_database_toolset_of_somebody_else_reads_asks_and_refuses(project: Project) -> None:
    project.put({"mycompany/database.py": DATABASE, "signoff.yaml": ENTRIES, "rows.db": "one row\n"})
    for name in ("database", "ledger"):
        project.put({f"workers/{name}.yaml": f"toolsets: [{name}]\n", f"workers/{name}.turns": STATEMENTS})
        paused = project.run(name, "--suspend", DATABASE="rows.db")
        assert (paused.events("query"), paused.events("execute")) == (["allowed", "ran"], ["asked"])
        [waits] = paused.rows[-1]["waiting"]
        assert "SQL: DROP TABLE t" in project.signoff("show", waits["request"], DATABASE="rows.db").out
        done = project.answers(paused, DATABASE="rows.db")
        assert (done.code, "Database is readonly" in done.rows[-1]["output"]) == (0, name == "database"), done
    assert project.read("rows.db") == "one row\nDROP TABLE t", "only where it is not readonly"


# --- the catalog ---

CALCULATOR = """
    from pathlib import Path

    from pydantic_ai.toolsets import FunctionToolset

    calc_tools = FunctionToolset()


    @calc_tools.tool_plain
    def add(a: int, b: int) -> int:
        Path("sum.txt").write_text(str(a + b))
        return a + b


    @calc_tools.tool_plain
    def forget() -> str:
        Path("sum.txt").unlink()
        return "forgotten"


"""
TOOLSETS = 'TOOLSETS = {"calc_tools": calc_tools}\n'
SIDE_MAP = """    TOOLSET_APPROVALS = {"calc_tools": {"add": {"pre_approved": True}}}\n"""
ATTRIBUTE = """    calc_tools.__llm_do_approval_config__ = {"add": {"pre_approved": True}}\n"""
SUMS = """
    - calls: [{tool: add, args: {a: 1, b: 2}}]
    - calls: [{tool: forget}]
    - say: "{{last}}"
"""


@pytest.mark.mission("C10")
@pytest.mark.parametrize(("policy", "runs"), [(SIDE_MAP, True), (ATTRIBUTE, True), ("", False)])
def test_c10_toolsets_with_their_approvals_and_a_worker_that_names_them_with_nothing_in_it(
    project: Project, policy: str, runs: bool
) -> None:
    project.put({"toolsets.py": f"{CALCULATOR}    {TOOLSETS}{policy}", "signoff.yaml": "policy: []\n"})
    project.put({"workers/sums.yaml": "toolsets:\n  calc_tools: {}\n", "workers/sums.turns": SUMS})
    paused = project.run("sums", "--suspend")
    assert paused.code == 3, paused
    assert (paused.events("add"), project.read("sum.txt")) == ((["allowed", "ran"], "3") if runs else (["asked"], ""))
    if runs:
        assert paused.events("forget") == ["asked"]
        project.answers(paused)
        assert not project.has("sum.txt"), "somebody said yes"


FILES = """
    from signoff.toolsets import filesystem_ro

    TOOLSETS = {"my_files": lambda context: filesystem_ro(context.workspace).prefixed("my")}
    TOOLSET_APPROVALS = {"my_files": {"my_read_file": {"pre_approved": True}}}
"""
READS = """
    - calls: [{tool: my_read_file, args: {path: notes.md}}]
    - calls: [{tool: my_read_file, args: {path: ../secret.txt}}]
    - say: "{{last}}"
"""


@pytest.mark.mission("P3")
def test_p3_a_toolset_that_needs_a_sandbox_makes_one_of_the_directory_it_is_given(project: Project) -> None:
    project.put({"toolsets.py": FILES, "signoff.yaml": "policy: []\n", "notes.md": "milk", "../secret.txt": "hunter2"})
    project.put({"workers/reader.yaml": "toolsets: {my_files: {}}\n", "workers/reader.turns": READS})
    done = project.run("reader", "--mode", "auto_approve")
    assert done.events("my_read_file") == ["allowed", "ran", "denied"] and "hunter2" not in done.out, done


@pytest.mark.mission("C1")
def test_c1_the_project_may_let_one_worker_do_more_and_a_worker_file_cannot(project: Project) -> None:
    project.write(signoff="policy: [{allow: {tool: write_file, worker: triage}}]\n")
    turns = "- calls: [{tool: write_file, args: {path: a.txt, content: x}}]\n- say: done\n"
    for name in ("triage", "other"):
        project.put({f"workers/{name}.yaml": "toolsets: [filesystem_rw]\n", f"workers/{name}.turns": turns})
    assert project.run("other", "--suspend").events("write_file") == ["asked"] and not project.has("a.txt")
    project.put({"workers/other.yaml": "toolsets: [filesystem_rw]\npolicy: [{allow: write_file}]\n"})
    refused = project.run("other")
    assert refused.code == 2 and "workers/other.yaml:2:11" in refused.err and "only tighten" in refused.err
    assert project.run("triage").events("write_file") == ["allowed", "ran"] and project.has("a.txt")


@pytest.mark.mission("C4")
async def test_c4_the_helper_the_decorator_and_the_attribute_let_the_same_call_run(here: Path) -> None:
    def clean(name: str) -> str:
        """Make a name harmless."""
        Path(name.strip("/")).touch()
        return f"cleaned {name}"

    helped = with_approval(FunctionToolset([clean]), {"clean": {"pre_approved": True}})
    attributed = FunctionToolset([clean])
    attributed.__llm_do_approval_config__ = {"clean": {"pre_approved": True}}  # pyright: ignore[reportAttributeAccessIssue]
    decorated = FunctionToolset()
    approval_tool(decorated, "allow")(clean)
    for number, tools in enumerate((helped, attributed, decorated, FunctionToolset([clean]))):
        name = f"/{number}"
        gate = Signoff([], approver=scripted_approver(["deny"]))
        result = await Agent(
            ScriptedModel([call("clean", name=name), SAYS]), toolsets=[tools], capabilities=[gate]
        ).run("")
        assert ("cleaned" in result.output) == (here / str(number)).exists() == (number < 3)


# --- one agent, and what differs from run to run ---


async def test_one_agent_serves_runs_that_each_bring_their_policy_memory_and_person(here: Path) -> None:
    agent = Agent(ScriptedModel([call("touch", name="a"), call("touch", name="b"), SAYS]), deps_type=str)

    @agent.tool
    def touch(ctx: RunContext[str], name: str) -> str:
        Path(f"{ctx.deps}-{name}").touch()
        return "touched"

    async def run(who: str, gate: Signoff) -> str:
        return (await agent.run("Go", deps=who, capabilities=[gate])).output

    told = await asyncio.gather(
        run("ana", Signoff([{"allow": "touch"}])),
        run("ben", Signoff([], approver=scripted_approver(["approve", "deny"]), memory=ApprovalMemory(None))),
        run("eve", Signoff([], mode="auto_deny")),
    )
    assert sorted(one.name for one in made_in(here)) == ["ana-a", "ana-b", "ben-a"]
    assert [one.startswith("touched") for one in told] == [True, False, False]


# --- a bot of one's own ---


@pytest.fixture
def service() -> Iterator[Service]:
    """Discord, as the bot sees it; discord.py is the real one."""
    made = Service().start()
    back = point_at(made.url)
    try:
        yield made
    finally:
        back()
        made.stop()
    assert made.errors == []


def homar_agent(prompt: str) -> Agent[None, Any]:
    """The agent of the bot: one tool that always needs a person, and one that needs one now and then."""
    wants = call("update_file", path=".env", content="x") if ".env" in prompt else call("delete_file", path="old.txt")
    homar = Agent(ScriptedModel([wants, {"say": "Homar: {{last}}"}]), output_type=[str, DeferredToolRequests])

    @homar.tool_plain(requires_approval=True)
    def delete_file(path: str) -> str:
        Path(path).unlink()
        return f"{path} is gone"

    @homar.tool
    def update_file(ctx: RunContext, path: str, content: str) -> str:
        if path == ".env" and not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"reason": "protected file"})
        Path(path).write_text(content)
        return f"{path} is written"

    return homar


class HomarBot(discord.Client):
    def __init__(self, channel: int, people: dict[str, int]) -> None:
        super().__init__(intents=discord.Intents(guilds=True, guild_messages=True))
        self.approvals = DiscordApprovals(self, channel=channel, people=people, store="sqlite:homar.db")

    async def setup_hook(self) -> None:
        await self.approvals.start()

    async def on_message(self, message: discord.Message) -> None:
        if self.user not in message.mentions:
            return
        thread = await message.create_thread(name="Homar")
        homar = homar_agent(message.content)
        result = await homar.run(message.content)
        while isinstance(result.output, DeferredToolRequests):
            results = await self.approvals.request_approval(thread, result.output)
            result = await homar.run(message_history=result.all_messages(), deferred_tool_results=results)
        await thread.send(result.output)


@asynccontextmanager
async def running(bot: HomarBot, service: Service) -> AsyncGenerator[None]:
    async with bot:
        task = asyncio.create_task(bot.start(service.token))
        try:
            await service.connected()
            yield
        finally:
            await bot.approvals.stop()
            await bot.close()
            await asyncio.gather(task, return_exceptions=True)


@pytest.mark.mission("H12")
async def test_h12_request_approval_in_the_thread_of_the_conversation(here: Path, service: Service) -> None:
    (here / "old.txt").touch()
    ana = service.person("ana")

    async def talk(text: str, button: str) -> tuple[Message, Message]:
        """Ana says something to the bot and presses a button; the question, and what the bot says in the end."""
        said = await ana.say(service.channel, f"{service.bot.mention} {text}")
        question = await service.message(lambda one: one.place.id == said.id and bool(one.buttons))
        await ana.press(question, button)
        answer = await service.message(lambda one: one.place.id == said.id and one.content.startswith("Homar: "))
        return await service.message(lambda one: one.id == question.id and not one.buttons), answer

    async with running(HomarBot(service.channel.id, {"ana": ana.id}), service):
        question, answer = await talk("please delete the old file", "Approve")
        assert "delete_file" in question.text and "old.txt" in question.text and "approved" in question.text
        assert answer.content == "Homar: old.txt is gone" and not (here / "old.txt").exists()
        question, answer = await talk("now write .env", "Deny")
        assert "protected file" in question.text and "denied" in question.text
        assert '"by": "ana"' in answer.content and not (here / ".env").exists()
