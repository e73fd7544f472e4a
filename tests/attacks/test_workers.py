"""Worker files, and models that write them, against their bounds: nothing here grants itself more than it was given."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_ai import DeferredToolRequests, ModelSettings
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.native_tools import SUPPORTED_NATIVE_TOOLS, AbstractNativeTool
from pydantic_ai.toolsets import FunctionToolset
from tests.workers.project import calling, project, run, saying
from tests.workers.test_create import Asked
from tests.workers.test_delegate import told

from signoff.broker.edits import fitting
from signoff.config import Settings, load_settings, load_worker
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.errors import EditRefused, LimitReached, WrongFile, WrongUse
from signoff.gate.resume import resume_run
from signoff.policy.engine import Policy
from signoff.testing import FakeClock
from signoff.workers import create, delegation_toolset
from signoff.workers.project_workers import Workers

TOOLSETS = """
toolsets:
  notes: {use: filesystem_rw, config: {root: notes}}
"""
MAKER = "instructions: Make.\ntoolsets: [notes]\ncreates: true\n"


def wrong(settings: Settings, name: str) -> str:
    with pytest.raises(WrongFile) as error:
        Workers(settings, model=saying("x")).worker(name)
    return str(error.value)


# --- what a worker file may name ---


@pytest.mark.parametrize(
    "capability",
    [
        "{SetToolMetadata: {tools: all, labels: [data.read]}}",
        "{MCP: {url: https://example.com/mcp}}",
        "{NativeTool: {kind: web_search}}",
        "LocalWorkspace",
        "WebSearch",
        "WebFetch",
        "{PrefixTools: {prefix: safe, capability: WebFetch}}",
        "{FileUnderstanding: {model: test}}",
    ],
)
def test_a_worker_file_grants_itself_no_tools_and_no_labels(tmp_path: Path, capability: str) -> None:
    settings = project(tmp_path, {"w": f"toolsets: [notes]\ncapabilities: [Thinking, {capability}]"}, file=TOOLSETS)
    said = wrong(settings, "w")
    assert "w.yaml:2:26: capabilities[1]: a worker file cannot name the capability" in said
    assert "{use: native" in said


@pytest.mark.parametrize(
    "setting", ["openai_native_tools: [{type: web_search}]", "extra_body: {tools: []}", "extra_headers: {a: b}"]
)
def test_no_tools_pass_the_gate_in_model_settings(tmp_path: Path, setting: str) -> None:
    said = wrong(project(tmp_path, {"w": f"model_settings: {{temperature: 0, {setting}}}"}), "w")
    assert f"model_settings.{setting.partition(':')[0]}: a worker file cannot set" in said


def test_settings_that_only_change_an_answer_are_left_alone(tmp_path: Path) -> None:
    text = "model_settings: {temperature: 0, openai_reasoning_effort: low, anthropic_cache_instructions: true}"
    assert Workers(project(tmp_path, {"w": text}), model=saying("x")).worker("w").name == "w"


async def test_a_capability_that_is_let_in_changes_nothing_about_the_gate(tmp_path: Path) -> None:
    text = "capabilities: [IncludeToolReturnSchemas, {Caching: {retention: 5m}}]\ntoolsets: [notes]"
    ui = Asked(ApprovalDecision(approved=False, note="not today"))
    model = saying(calling("write_file", path="a.txt", content="x"), "Done.")
    shop = Workers(project(tmp_path, {"w": text}, file=TOOLSETS), model=model, approver=ui)
    [answer] = told(await run(shop, "w"), "write_file")
    assert "not today" in answer and len(ui.requests) == 1


CODE = """
from pydantic_ai.toolsets import FunctionToolset

tools = FunctionToolset()
clock = []

@tools.tool_plain(metadata={"signoff.delegates": True})
def nap() -> str:
    clock[0].advance(2)
    return "ok"

TOOLSETS = {"slow": tools}
"""


SLOW = "toolsets: {s: {use: slow, policy: [{allow: nap}]}}"


async def test_metadata_does_not_stop_the_clock(tmp_path: Path) -> None:
    """Only a call to another worker counts its time elsewhere, whatever a tool says about itself."""
    (tmp_path / "toolsets.py").write_text(CODE)
    settings = project(tmp_path, {"w": "toolsets: [s]\nlimits: {time: 3s}"}, file=SLOW)
    clock = FakeClock()
    turns = (calling("nap"), calling("nap"), calling("nap"), "Done.")
    shop = Workers(settings, model=saying(*turns), clock=clock)
    napping(shop, "w", clock)
    with pytest.raises(LimitReached, match="time"):
        await run(shop, "w")


@pytest.mark.parametrize("capability", ["Thinking", "IncludeToolReturnSchemas"])
async def test_what_a_worker_is_called_for_is_counted_once(tmp_path: Path, capability: str) -> None:
    (tmp_path / "toolsets.py").write_text(CODE)
    workers = {
        "boss": f"capabilities: [{capability}]\ndelegates: [w]\nlimits: {{time: 3s}}",
        "w": f"capabilities: [{capability}]\ntoolsets: [s]\nmodel: script:w.turns",
    }
    scripts = {"w": "- calls: [{tool: nap}]\n- say: rested"}
    clock = FakeClock()
    turns = (calling("worker_call", worker="w", prompt="Rest."), "Done.")
    shop = Workers(project(tmp_path, workers, file=SLOW, scripts=scripts), model=saying(*turns), clock=clock)
    napping(shop, "w", clock)
    assert told(await run(shop, "boss"), "worker_call") == ["rested"]


def napping(shop: Workers, name: str, clock: FakeClock) -> None:
    """Have the tool `nap` move this clock."""
    [leaf] = leaves(shop.delegate(name).agent.toolsets)
    next(iter(leaf.tools.values())).function.__globals__["clock"].append(clock)


def leaves(toolsets: Any) -> list[FunctionToolset[Any]]:
    found: list[Any] = []
    for one in toolsets:
        one.apply(found.append)
    return [one for one in found if isinstance(one, FunctionToolset) and one.tools]


# --- tools that the provider runs ---


class Provider(FunctionModel):
    """A model that notes which tools it was offered to run itself."""

    def __init__(self) -> None:
        self.offered: list[str] = []
        super().__init__(lambda messages, info: ModelResponse(parts=[]))

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        self.offered = [tool.unique_id for tool in model_request_parameters.native_tools]
        return await saying("ok").request(messages, model_settings, model_request_parameters)

    @classmethod
    def supported_native_tools(cls) -> frozenset[type[AbstractNativeTool]]:
        return SUPPORTED_NATIVE_TOOLS


def server(name: str, policy: str = "") -> str:
    rules = f", policy: {policy}" if policy else ""
    return (
        f"  {name}: {{use: native, config: {{kind: mcp_server, id: {name}, url: 'https://{name}.example/'}}{rules}}}\n"
    )


@pytest.mark.parametrize(
    ("names", "rules", "offered"),
    [
        ("[a, b]", "[]", ["mcp_server:a"]),
        ("[b, a]", "[]", ["mcp_server:a"]),
        ("[c, a]", "[]", ["mcp_server:a"]),
        ("[a, c]", "[]", ["mcp_server:a"]),
        ("[a, b, c]", "[{allow: mcp_server}]", ["mcp_server:a", "mcp_server:b"]),
        ("[a, b, c]", "[{deny: mcp_server}]", []),
    ],
)
async def test_each_server_of_the_provider_is_held_to_its_own_rules(
    tmp_path: Path, names: str, rules: str, offered: list[str]
) -> None:
    entries = server("a", "[{allow: mcp_server}]") + server("b") + server("c", "[{deny: mcp_server}]")
    settings = project(tmp_path, {"w": f"toolsets: {names}"}, file=f"policy: {rules}\ntoolsets:\n{entries}")
    model = Provider()
    await run(Workers(settings, model=model), "w")
    assert sorted(model.offered) == offered


def test_two_entries_for_one_tool_of_the_provider_are_refused(tmp_path: Path) -> None:
    file = "toolsets:\n  a: {use: native, config: {kind: web_search}}\n  b: {use: native, config: {kind: web_search}}\n"
    said = wrong(project(tmp_path, {"w": "toolsets: [a, b]"}, file=file), "w")
    assert "w.yaml:1:15: toolsets[1]: `a` and `b` are one tool to the provider, `web_search`" in said


# --- workers that a model writes: names and rules ---


def drafted(settings: Settings, name: str, text: str = "instructions: Hi.\ntoolsets: [notes]\n") -> dict[str, Any]:
    return yaml.safe_load(create.draft(settings, load_worker(settings, "maker"), name, text).text)


@pytest.mark.parametrize(
    ("rule", "name", "is_free"),
    [
        ('{allow: {tool: write_file, worker: "deploy*"}}', "deployx", False),
        ('{allow: {tool: write_file, worker: "deploy*"}}', "helper", True),
        ("{allow: {tool: write_file, worker: [other, fresh]}}", "fresh", False),
        ("{allow: [read_file, {tool: write_file, worker: fresh}]}", "fresh", False),
        ('{allow: {tool: write_file, worker: "*"}}', "deployx", True),
        ('{allow: {tool: write_file, worker: ["maker", "deploy*"]}}', "deployx", True),
        ('{allow: {tool: write_file, worker: "maker > dep*"}}', "deployx", False),
        ('{allow: {tool: write_file, worker: "boss > *"}}', "deployx", True),
        ('{allow: {tool: write_file, worker: "maker > a* > *x"}}', "deployx", False),
        ("{ask: {tool: write_file, worker: fresh}, timeout: 1m, on_timeout: allow}", "fresh", False),
        ("{ask: {tool: write_file, worker: fresh}}", "fresh", True),
        ("{deny: {tool: write_file, worker: fresh}}", "fresh", True),
    ],
)
def test_a_model_takes_no_name_that_rules_trust(tmp_path: Path, rule: str, name: str, is_free: bool) -> None:
    for file in (f"policy: [{rule}]\n{TOOLSETS}", TOOLSETS.replace("}}", f"}}, policy: [{rule}]}}")):
        settings = project(tmp_path, {"maker": MAKER}, file=file)
        if is_free:
            assert drafted(settings, name)["name"] == name
            continue
        with pytest.raises(WrongUse, match=r"the name is not allowed: .*rule-1"):
            drafted(settings, name)


def test_a_name_gets_round_no_stricter_question(tmp_path: Path) -> None:
    rules = '[{ask: {tool: write_file, worker: "junior*"}}, {ask: write_file, by: ops}]'
    settings = project(tmp_path, {"maker": MAKER}, file=f"policy: {rules}\npeople: {{ana: {{roles: [ops]}}}}{TOOLSETS}")
    with pytest.raises(WrongUse, match="the name is not allowed"):
        drafted(settings, "junior1")


@pytest.mark.parametrize("where", ["the project", "the toolset", "the defaults", "the creator"])
async def test_what_binds_the_creator_binds_its_workers_wherever_they_run(tmp_path: Path, where: str) -> None:
    rule = "{deny: {tool: delete_file, worker: maker}, reason: not maker}"
    free = "policy: [{allow: delete_file}]"
    files = {
        "the project": f"policy: [{rule}, {{allow: delete_file}}]{TOOLSETS}",
        "the toolset": free + TOOLSETS.replace("}}", f"}}, policy: [{rule}]}}"),
        "the defaults": f"{free}{TOOLSETS}defaults: {{worker: {{policy: [{rule}]}}}}",
        "the creator": free + TOOLSETS,
    }
    maker = MAKER + (f"policy: [{rule}]\n" if where == "the creator" else "")
    settings = project(tmp_path, {"maker": maker}, file=files[where])
    made = drafted(settings, "fresh")
    [bound] = made["policy"]
    assert bound["reason"] == "not maker" and "worker" not in bound["deny"]
    (tmp_path / "workers" / "fresh.yaml").write_text(yaml.safe_dump(made))
    (tmp_path / "notes" / "a.txt").write_text("a")
    shop = Workers(settings, model=saying(calling("delete_file", path="a.txt"), "Done."), approver=Asked())
    [answer] = told(await run(shop, "fresh"), "delete_file")
    assert "not maker" in answer
    assert (tmp_path / "notes" / "a.txt").exists()


def test_only_what_names_the_creator_is_written_down_again(tmp_path: Path) -> None:
    rules = """
policy:
  - {id: a, ask: [write_file, {tool: edit_file, worker: [maker, leaf]}], by: ops, timeout: 1m, on_timeout: allow}
  - {deny: {worker: "boss > maker", path: "**/x"}}
  - {deny: {tool: delete_file, worker: leaf}}
  - {deny: {tool: delete_file, worker: "*"}}
  - {deny: {tool: delete_file, worker: [maker, fresh]}}
  - {allow: {tool: move_file, worker: maker}}
people: {ana: {roles: [ops]}}
"""
    settings = project(tmp_path, {"maker": MAKER}, file=rules + TOOLSETS)
    assert drafted(settings, "fresh")["policy"] == [
        {"ask": {"tool": "edit_file"}, "by": "ops", "timeout": "1m"},
        {"deny": {"path": "**/x"}},
    ]


def test_rules_of_a_prefixed_toolset_are_written_as_the_worker_sees_them(tmp_path: Path) -> None:
    rule = "{deny: {tool: delete_file, worker: maker, path: private/**}}"
    file = f"toolsets:\n  notes: {{use: filesystem_rw, config: {{root: notes}}, prefix: n, policy: [{rule}]}}\n"
    settings = project(tmp_path, {"maker": MAKER}, file=file)
    assert drafted(settings, "fresh")["policy"] == [{"deny": {"tool": ["n_delete_file"], "toolset": "notes"}}]


RULED = """
from pydantic_ai.toolsets import CombinedToolset, FunctionToolset
from signoff.toolsets import with_approval

def wipe() -> str:
    return "wiped"

rules = [{"allow": {"worker": "deploy*"}}, {"deny": {"worker": "maker"}, "reason": "not maker"}]
TOOLSETS = {"ruled": CombinedToolset([with_approval(FunctionToolset([wipe]), rules, name="inner")])}
"""


@pytest.mark.parametrize("name", ["deployx", "fresh"])
async def test_rules_that_are_attached_in_python_count_as_well(tmp_path: Path, name: str) -> None:
    (tmp_path / "toolsets.py").write_text(RULED)
    settings = project(tmp_path, {"maker": MAKER.replace("notes", "ruled")}, file="policy: [{allow: wipe}]")
    text = "instructions: Hi.\ntoolsets: [ruled]\n"
    caller = Policy.from_rules([{"deny": {"tool": "other", "worker": "maker"}}], name="flags")
    turns = (calling("worker_create", name=name, file=text), "Done.")
    shop = Workers(settings, model=saying(*turns), approver=Asked(), caller=(caller,))
    [answer] = told(await run(shop, "maker"), "worker_create")
    if name == "deployx":
        assert "the name is not allowed" in answer
        return
    made = yaml.safe_load((tmp_path / "workers" / "fresh.yaml").read_text())
    # What one run was told by flags does not stay.
    assert made["policy"] == [{"deny": {"toolset": "ruled"}, "reason": "not maker"}]
    [answer] = told(await run(Workers(settings, model=saying(calling("wipe"), "Done.")), "fresh"), "wipe")
    assert "not maker" in answer


def test_a_rule_about_a_tool_of_the_provider_finds_it(tmp_path: Path) -> None:
    file = "toolsets: {web: {use: native, config: {kind: web_search}, policy: [{deny: {worker: maker}}, {allow: '*'}]}}"
    settings = project(tmp_path, {"maker": MAKER.replace("notes", "web")}, file=file)
    made = drafted(settings, "fresh", "instructions: Hi.\ntoolsets: [web]\n")
    assert made["policy"] == [{"deny": {"toolset": "native"}}]


# --- what was approved is what is written ---


def forgetful(*given: Any) -> str:
    return "At most."


@pytest.mark.parametrize("bound_by", ["schema", "card"])
async def test_defaults_that_change_after_the_approval_are_asked_about_again(
    tmp_path: Path, bound_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bound_by == "card":  # as if what a draft depends on had been forgotten in the schema
        monkeypatch.setattr(delegation_toolset, "powers", forgetful)
    store = f"sqlite:{tmp_path}/store.db"
    text = "instructions: Read, with password hunter2.\ntoolsets: [notes]\n"
    turns = (calling("worker_create", name="fresh", file=text), "Done.")
    file = f"policy: []{TOOLSETS}"
    first = Workers(project(tmp_path, {"maker": MAKER}, file=file), model=saying(*turns), store=store, wait="suspend")
    assert isinstance((await run(first, "maker")).output, DeferredToolRequests)
    [asked] = await first.worker("maker").gate.pending()
    await first.worker("maker").gate.answer(asked.id, ApprovalDecision(approved=True), by="ana")
    first.shared_store.close()

    (tmp_path / "signoff.yaml").write_text(f"{file}defaults: {{worker: {{tool_timeout: 99, retries: 7}}}}\n")
    settings = load_settings(tmp_path / "signoff.yaml")
    second = Workers(settings, model=saying(*turns), store=store, wait="suspend")
    worker = second.worker("maker")
    again = await resume_run(worker.agent, asked.run, **worker.run_options())
    assert isinstance(again.output, DeferredToolRequests)
    assert not (tmp_path / "workers" / "fresh.yaml").exists()
    [request] = await worker.gate.pending()
    assert "tool_timeout: 99" in str(card_for(request).preview)
    await worker.gate.answer(request.id, ApprovalDecision(approved=True), by="ana")
    assert (await resume_run(worker.agent, asked.run, **worker.run_options())).output == "Done."
    written = yaml.safe_load((tmp_path / "workers" / "fresh.yaml").read_text())
    assert (written["tool_timeout"], written["retries"]) == (99, 7)
    second.shared_store.close()


async def test_an_edit_from_elsewhere_is_held_to_what_a_worker_may_be_called(tmp_path: Path) -> None:
    turns = (calling("worker_create", name="fresh", file="instructions: Hi."), "Done.")
    settings = project(tmp_path, {"maker": MAKER}, file=TOOLSETS)
    shop = Workers(settings, model=saying(*turns), store=f"sqlite:{tmp_path}/store.db", wait="suspend")
    await run(shop, "maker")
    [asked] = await shop.worker("maker").gate.pending()
    assert fitting(asked, {"name": "other", "file": "instructions: Hi."})
    for args in ({"name": "../evil", "file": "a: b"}, {"name": "x", "file": ""}, {"name": "x", "file": "x" * 20_001}):
        with pytest.raises(EditRefused):
            fitting(asked, args)  # as `signoff approve --args` does, which has no agent to ask
    shop.shared_store.close()


# --- files that go with a prompt ---


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name in ("finance/salaries.csv", "notes/style.md", "notes/private/a.txt", ".git/config", ".env", "top.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("secret")
    (tmp_path / "notes" / "readme.txt").symlink_to(tmp_path / ".env")
    return tmp_path


@pytest.mark.parametrize(
    ("attachment", "why"),
    [
        ("../finance/salaries.csv", "money is private"),
        ("../notes/private/a.txt", "not for maker"),
        ("../top.txt", "maker has no tool to read it with"),
        ("../notes/readme.txt", "leads through a link"),
        ("../.git/config", "is hidden"),
        ("../.env", "is hidden"),
        ("../notes/style.md", ""),
    ],
)
async def test_a_new_worker_is_told_no_file_that_its_creator_may_not_read(
    files: Path, attachment: str, why: str
) -> None:
    rules = '[{deny: {path: "finance/**"}, reason: money is private}]'
    maker = MAKER + "policy: [{deny: {tool: read_file, path: notes/private/**}, reason: not for maker}]\n"
    settings = project(files, {"maker": maker}, file=f"policy: {rules}{TOOLSETS}")
    text = f"instructions: Hi.\nattachments: [{attachment}]\n"
    ui = Asked()
    shop = Workers(settings, model=saying(calling("worker_create", name="fresh", file=text), "Done."), approver=ui)
    [answer] = told(await run(shop, "maker"), "worker_create")
    assert (why in answer and "fresh.yaml:2:15: attachments[0]" in answer) if why else "was written" in answer
    assert len(ui.requests) == (0 if why else 1)


def test_an_approved_attachment_that_became_a_link_is_not_read(files: Path) -> None:
    text = "instructions: Hi.\nattachments: [../notes/style.md]\nmetadata: {created_by: maker}\n"
    settings = project(files, {"fresh": text, "mine": "extends: fresh"}, file=TOOLSETS)
    workers = [Workers(settings, model=saying("x")).worker(name) for name in ("fresh", "mine")]
    assert all("secret" in str(worker.prompt("Go.")) for worker in workers)
    (files / "notes" / "style.md").unlink()
    (files / "notes" / "style.md").symlink_to(files / ".env")
    for worker in workers:
        with pytest.raises(WrongFile, match="leads through a link, and maker wrote this file"):
            worker.prompt("Go.")


# --- who wrote a worker ---


def test_a_worker_that_extends_a_written_one_was_not_written_by_the_same(tmp_path: Path) -> None:
    workers = {
        "maker": MAKER,
        "fresh": "metadata: {created_by: maker}",
        "admin": "extends: fresh\ntoolsets: [notes]",
        "plain": "instructions: Hi.",
    }
    file = TOOLSETS + "defaults: {worker: {metadata: {created_by: maker}}}"
    shop = Workers(project(tmp_path, workers, file=file), model=saying("x"))
    assert list(shop.callable_by(shop.file("maker"))) == ["fresh"]


# --- never more, and never half ---


@pytest.mark.parametrize(
    ("own", "asked", "wanted"),
    [
        ("tool_timeout: 5", "tool_timeout: 50", {"tool_timeout": 5}),
        ("tool_timeout: 5", "tool_timeout: 2", {"tool_timeout": 2}),
        ("tool_timeout: 5", "", {"tool_timeout": 5}),
        ("retries: 2", "retries: 9", {"retries": 2}),
        ("retries: 0", "", {"retries": 0}),
        ("retries: {tools: 1}", "retries: {tools: 3, output: 4}", {"retries": 1}),
        ("retries: {tools: 3}", "retries: {tools: 2, output: 4}", {"retries": {"tools": 2, "output": 1}}),
        ("", "retries: 1000000", {"retries": 1}),
        ("", "retries: 0", {"retries": 0}),
        ("", "tool_timeout: 99999999", {"tool_timeout": 99999999}),
        ("", "model_settings: {max_tokens: 999999999, timeout: 9999, thinking: high}", {"model_settings": None}),
        ("model_settings: {thinking: low}", "model_settings: {thinking: high}", {"model_settings": None}),
        ("model_settings: {timeout: 5}", "model_settings: {timeout: 50}", {"model_settings": {"timeout": 5}}),
        ("model_settings: {timeout: 5}", "model_settings: {timeout: a}", {"model_settings": {"timeout": 5}}),
        ("model_settings: {max_tokens: 100}", "model_settings: {max_tokens: 9000, seed: 1}",
         {"model_settings": {"max_tokens": 100, "seed": 1}}),
        ("model_settings: {max_tokens: 100}", "", {"model_settings": {"max_tokens": 100}}),
    ],
)  # fmt: skip
def test_the_lower_of_both_holds(tmp_path: Path, own: str, asked: str, wanted: dict[str, Any]) -> None:
    settings = project(tmp_path, {"maker": f"{MAKER}{own}\n"}, file=TOOLSETS)
    made = drafted(settings, "fresh", f"instructions: Hi.\n{asked}\n")
    assert {key: made.get(key) for key in wanted} == wanted


def test_a_file_system_without_hard_links_gets_the_file_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*paths: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refused)
    path = tmp_path / "workers" / "fresh.yaml"
    create.write(create.NewWorker("fresh", str(path), "instructions: Hi.\n", ()))
    assert path.read_text() == "instructions: Hi.\n"
    with pytest.raises(WrongUse, match="nothing was written"):
        create.write(create.NewWorker("fresh", str(path), "instructions: Evil.\n", ()))
    assert path.read_text() == "instructions: Hi.\n"
    assert [one.name for one in path.parent.iterdir()] == ["fresh.yaml"]


def test_a_disk_that_takes_nothing_is_told_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*paths: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(WrongUse, match="cannot be written: No space left"):
        create.write(create.NewWorker("fresh", str(tmp_path / "workers" / "fresh.yaml"), "instructions: Hi.\n", ()))
    assert list((tmp_path / "workers").iterdir()) == []


# --- texts that break what reads them ---


@pytest.mark.parametrize(
    ("schema", "is_right"),
    [
        ("{type: object, properties: {a: true}}", True),
        ("{type: object, properties: {a: {type: array, items: true}}}", True),
        ("{type: object, properties: {a: {anyOf: [true, {type: string}]}}}", True),
        ("{type: object, properties: {a: {$ref: '#/nope'}}}", True),
        ("{type: object, properties: {b: true}}", False),
    ],
)
def test_a_schema_never_breaks_the_reader(tmp_path: Path, schema: str, is_right: bool) -> None:
    text = f"instructions: 'Look at {{{{a}}}}'\ninput: {schema}\n"
    settings = project(tmp_path, {"maker": MAKER, "w": text}, file=TOOLSETS)
    if is_right:
        assert drafted(settings, "fresh", text)["name"] == "fresh"
        assert Workers(settings, model=saying("x")).worker("w").name == "w"
        return
    assert "w.yaml:1:15: instructions" in wrong(settings, "w")
    with pytest.raises(WrongFile, match=r"fresh\.yaml:1:15: instructions"):
        drafted(settings, "fresh", text)


def test_what_is_wrong_is_told_with_the_lines_of_the_one_who_wrote_it(tmp_path: Path) -> None:
    maker = MAKER + "policy: [{ask: write_file, id: w}]\n"
    settings = project(tmp_path, {"maker": maker}, file=TOOLSETS)
    creator = load_worker(settings, "maker")
    text = (
        "toolsets: [notes]\n\n\n\ninput: {type: object, properties: {b: {type: string}}}\ninstructions: Look at {{a}}\n"
    )
    with pytest.raises(WrongFile, match=r"fresh\.yaml:6:15: instructions: the template names `a`"):
        create.draft(settings, creator, "fresh", text)
    with pytest.raises(WrongUse) as error:  # here only what its creator adds makes it wrong
        create.draft(settings, creator, "fresh", "instructions: Hi.\npolicy: [{ask: read_file, id: w}]\n")
    assert "is not valid: policy[1].id: the id `w` is taken" in str(error.value)
    assert ".yaml" not in str(error.value)
