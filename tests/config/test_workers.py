"""Worker files: what is read, what they inherit, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pydantic_ai.agent import AgentRetries
from pydantic_ai.agent.spec import AgentSpec
from tests.policy.rules import call
from tests.profiles import examples

from signoff.config import (
    Limits,
    Settings,
    WorkerFile,
    load_settings,
    load_worker,
    load_workers,
    parse_worker,
    worker_names,
    workers_directory,
)
from signoff.config.worker_keys import OWN_KEYS, RETRIES, SPEC_KEYS, WORKER
from signoff.core.call import Call
from signoff.core.verdict import Effect
from signoff.errors import WrongFile, WrongUse
from signoff.policy.layers import Layers

PROJECT = """\
model: anthropic:claude-sonnet-5
policy: [{allow: [read_file, deploy]}]
defaults:
  worker:
    limits: {requests: 50, depth: 2}
    model_settings: {temperature: 0, extra_body: {a: 1}}
    retries: 2
"""
TRIAGE = """\
name: triage
description: Sorts the
  open issues
model: openai:gpt-5.2
instructions: ["Sort the issues of {{repository}}.", Be brief.]
toolsets: [project_files, shell_readonly]
delegates: analyzer
creates: true
policy: [{ask: deploy, by: ops}]
approvers: [ops, dev]
limits: {requests: 10, tokens: 100000, cost: 0.5, time: 5m}
input: {type: object, properties: {repository: {type: string}}, required: [repository]}
output: {type: object, properties: {labels: {type: array, items: {type: string}}}}
attachments: [../README.txt, guide.md]
model_settings: {max_tokens: 500, extra_body: {b: 2}}
end_strategy: early
capabilities: [WebSearch, {Thinking: {effort: high}}]
"""


class Project:
    """A project directory with worker files."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.write("signoff.yaml", PROJECT)

    def write(self, name: str, text: str) -> None:
        file = self.directory / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")

    @property
    def settings(self) -> Settings:
        return load_settings("signoff.yaml")

    @cached_property
    def fixed(self) -> Settings:
        return self.settings


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    return Project(tmp_path)


def test_a_whole_worker(project: Project) -> None:
    project.write("workers/triage.yaml", TRIAGE)
    project.write("workers/analyzer.yml", "instructions: Look closer.\n")
    worker = load_worker(project.settings, "triage")
    assert (worker.name, worker.file) == ("triage", "workers/triage.yaml")
    assert worker.description == "Sorts the open issues"
    assert worker.toolsets == ("project_files", "shell_readonly")
    assert worker.delegates == ("analyzer",)
    assert worker.creates
    assert worker.approvers == ("ops", "dev")
    assert worker.limits == Limits(requests=10, tokens=100_000, cost=0.5, time=timedelta(minutes=5), depth=2)
    assert worker.input is not None
    assert worker.output is not None
    assert worker.attachments == ("../README.txt", "guide.md")
    assert worker.spec == {
        "name": "triage",
        "description": "Sorts the open issues",
        "model": "openai:gpt-5.2",
        "instructions": ["Sort the issues of {{repository}}.", "Be brief."],
        "model_settings": {"temperature": 0, "max_tokens": 500, "extra_body": {"a": 1, "b": 2}},
        "retries": 2,
        "end_strategy": "early",
        "capabilities": ["WebSearch", {"Thinking": {"effort": "high"}}],
    }
    assert worker.policy is not None
    assert [rule.id for rule in worker.policy.rules] == ["triage/rule-1"]
    assert str(worker.spots["toolsets[1]"].place) == "workers/triage.yaml:6:27: toolsets[1]"
    assert str(worker.spots["delegates[0]"].place) == "workers/triage.yaml:7:12: delegates"


def test_the_least_a_worker_can_be(project: Project) -> None:
    project.write("signoff.yaml", "policy: []\n")
    project.write("workers/a.yaml", "instructions: Hi.\n")
    worker = load_worker(project.settings, "a")
    assert worker.spec == {"name": "a", "instructions": "Hi."}
    assert (worker.toolsets, worker.delegates, worker.policy, worker.limits) == ((), (), None, Limits())


def test_markdown_holds_the_instructions_below_the_keys(project: Project) -> None:
    text = "---\ndescription: Sorts\ntoolsets: [files]\n---\n\n# Sort\n\n---\nthe issues of {{repository}}.\n\n"
    for content in (text, text.replace("\n", "\r\n"), "\ufeff" + text):
        project.write("workers/triage.md", content)
        worker = load_worker(project.settings, "triage")
        assert worker.spec["instructions"] == "# Sort\n\n---\nthe issues of {{repository}}."
        assert (worker.description, worker.toolsets) == ("Sorts", ("files",))
        assert str(worker.spots["instructions"].place) == "workers/triage.md:6:1"
        assert str(worker.spots["toolsets"].place) == "workers/triage.md:3:11: toolsets"


def test_markdown_with_keys_alone_or_instructions_alone(project: Project) -> None:
    project.write("workers/a.md", "---\ninstructions: Hi.\n---\n\n")
    project.write("workers/b.md", "---\n---\nHi.")
    workers = load_workers(project.settings)
    assert workers["a"].spec["instructions"] == workers["b"].spec["instructions"] == "Hi."


def test_broken_yaml_on_top_of_markdown_has_its_real_line(project: Project) -> None:
    project.write("workers/a.md", "---\nmodel: a\nmodel: b\n---\nHi.")
    with pytest.raises(WrongFile, match=r"workers/a.md:3:1: the key `model` is already there on line 2"):
        load_worker(project.settings, "a")


@pytest.mark.mission("P7")
def test_p7_a_worker_extends_another(project: Project) -> None:
    project.write(
        "workers/base.md",
        "---\ndescription: The base\ntoolsets: [a, b]\nlimits: {requests: 5, tokens: 9}\nmetadata: {team: {x: 1}}\n"
        "policy: [{deny: deploy}]\noutput_schema: {type: object}\n---\nBe kind.",
    )
    project.write(
        "workers/child.yaml", "extends: base\nlimits: {requests: 7}\ntoolsets: []\nmetadata: {team: {y: 2}}\n"
    )
    project.write(
        "workers/grandchild.yaml",
        "extends: child\ninstructions: Be quick.\noutput: {type: string}\npolicy: [{ask: read_file}]\n",
    )
    workers = load_workers(project.settings)
    child, grandchild = workers["child"], workers["grandchild"]
    assert child.description == "The base"
    assert child.spec["instructions"] == "Be kind."
    assert child.spec["name"] == "child"
    assert child.toolsets == ()
    assert child.spec["metadata"] == {"team": {"x": 1, "y": 2}}
    assert child.limits == Limits(requests=7, tokens=9, depth=2)
    assert child.spec["output_schema"] == {"type": "object"}
    assert grandchild.spec["instructions"] == "Be quick."
    assert grandchild.output == {"type": "string"}
    assert "output_schema" not in grandchild.spec, "two names for one thing: the nearer holds"
    assert grandchild.spots["limits"].document.file == "workers/child.yaml"


def test_rules_add_up_and_keep_their_names(project: Project) -> None:
    """A worker that extends another cannot drop a rule of it."""
    project.write("signoff.yaml", "policy: []\ndefaults: {worker: {policy: [{ask: pay}]}}\n")
    project.write("workers/base.yaml", "policy: [{deny: deploy}]\n")
    project.write("workers/child.yaml", "extends: base\npolicy: [{ask: read_file}, {deny: mail, id: no-mail}]\n")
    child = load_worker(project.settings, "child")
    assert child.policy is not None
    assert [rule.id for rule in child.policy.rules] == ["defaults/rule-1", "base/rule-1", "child/rule-1", "no-mail"]
    assert child.policy.judge(call("deploy")).effect is Effect.DENY
    assert [spot.value for spot in child.policy_spots][1] == {"deny": "deploy"}
    base = load_worker(project.settings, "base").policy
    assert base is not None
    assert base.revision != child.policy.revision
    project.write("workers/again.yaml", "extends: child\npolicy: [{ask: x, id: no-mail}]\n")
    with pytest.raises(WrongFile, match=r"again.yaml:2:10: policy\[0\]: the id `no-mail` is taken"):
        load_worker(project.settings, "again")


@pytest.mark.mission("C2")
def test_c2_a_worker_file_names_toolsets_and_configures_none(project: Project) -> None:
    for text in (
        "toolsets: {files: {root: .}}",
        "toolsets: [{files: {root: .}}]",
        "toolsets:\n- files:\n    root: .\n",
    ):
        project.write("workers/a.yaml", text)
        with pytest.raises(WrongFile, match="lists toolsets by name") as caught:
            load_worker(project.settings, "a")
        assert caught.value.place is not None
        assert (caught.value.place.file, caught.value.place.key.startswith("toolsets")) == ("workers/a.yaml", True)
        assert "write it in `signoff.yaml`, under `toolsets`" in caught.value.fix
        assert "toolsets: [files]" in caught.value.fix
    project.write("workers/a.yaml", "toolsets: files\n")
    assert load_worker(project.settings, "a").toolsets == ("files",)


def test_c10_names_may_be_written_as_keys_that_hold_nothing(project: Project) -> None:
    project.write("workers/a.yaml", "toolsets:\n  files: {}\n  add: {}\n")
    worker = load_worker(project.settings, "a")
    assert worker.toolsets == ("files", "add")
    assert str(worker.spots["toolsets[1]"].place) == "workers/a.yaml:3:8: toolsets.add"
    for text in ("{files: }", "{files: true}", "{files: []}", "{files: {root: .}}", "{files: {}, db: {url: x}}"):
        project.write("workers/a.yaml", f"toolsets: {text}\n")
        with pytest.raises(WrongFile, match="lists toolsets by name"):
            load_worker(project.settings, "a")


@pytest.mark.mission("P13")
def test_p13_a_worker_adds_to_what_its_profile_gives_drops_some_or_replaces_it(project: Project) -> None:
    def given(toolsets: str) -> tuple[str, ...]:
        project.write("workers/child.yaml", f"extends: base\n{toolsets}")
        return load_worker(project.settings, "child").toolsets

    project.write("workers/base.yaml", "toolsets: [a, b, c]\n")
    assert given("") == ("a", "b", "c")
    assert given("toolsets: {add: [d], drop: [b]}\n") == ("a", "c", "d")
    assert given("toolsets: {add: d}\n") == ("a", "b", "c", "d")
    assert given("toolsets: {drop: [a, b, c]}\n") == ()
    assert given("toolsets: [d]\n") == ("d",)
    assert given("toolsets: {d: {}}\n") == ("d",)
    assert given("toolsets: {add: {}}\n") == ("add",), "a toolset of that name, in the place of the others"
    project.write("workers/grand.yaml", "extends: child\ntoolsets: {drop: [d], add: [b]}\n")
    assert given("toolsets: {add: [d], drop: [b]}\n") == ("a", "c", "d")
    grand = load_worker(project.settings, "grand")
    assert grand.toolsets == ("a", "c", "b")
    assert str(grand.spots["toolsets[0]"].place) == "workers/base.yaml:1:12: toolsets[0]"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "{drop: [bb]}",
            ":2:19: toolsets.drop[0]: the extended worker has no toolset `bb` to drop\n  did you mean `b`?",
        ),
        ("{add: [a]}", ":2:18: toolsets.add[0]: `a` is given already (workers/base.yaml:1:12: toolsets[0])"),
        ("{add: [d], drop: [d]}", ":2:18: toolsets.add[0]: `d` is added and dropped"),
        ("{add: [d], e: {}}", ":2:22: toolsets.e: `e` is a name beside `add`"),
        ("{add: [d], drop: {}}", ":2:22: toolsets.drop: `drop` is a name beside `add`"),
        ("{add: []}", ":2:17: toolsets.add: the list is empty"),
        ("{add: [d, d]}", ":2:21: toolsets.add[1]: `d` is named twice"),
        ("{add: [{d: {}}]}", ":2:18: toolsets.add[0]: this should be one of the names of toolsets"),
    ],
)
def test_p13_changes_that_change_nothing(project: Project, text: str, says: str) -> None:
    project.write("workers/base.yaml", "toolsets: [a, b]\n")
    project.write("workers/child.yaml", f"extends: base\ntoolsets: {text}\n")
    with pytest.raises(WrongFile) as error:
        load_worker(project.settings, "child")
    assert str(error.value).startswith(f"workers/child.yaml{says}")


def test_defaults_have_nothing_to_change(project: Project) -> None:
    project.write("signoff.yaml", "policy: []\ndefaults: {worker: {toolsets: {add: [x]}}}\n")
    with pytest.raises(WrongFile, match="defaults apply first"):
        _ = project.settings


def test_no_rule_of_a_worker_can_loosen(project: Project) -> None:
    """The project is silent about `mail`: an `allow` in the worker file would decide alone."""
    project.write("workers/a.yaml", "policy: [{ask: x}, {allow: mail}]\n")
    with pytest.raises(WrongFile, match=r"a.yaml:1:21: policy\[1\].allow: .*only tighten"):
        load_worker(project.settings, "a")
    project.write("workers/a.yaml", "policy: [{deny: read_file}, {ask: mail}]\n")
    settings = project.settings
    policy = load_worker(settings, "a").policy
    assert policy is not None
    layers = Layers((*settings.layers, policy))
    found = {tool: layers.judge(call(tool)).effect for tool in ("read_file", "deploy", "mail", "other")}
    assert found == {"read_file": Effect.DENY, "deploy": Effect.ALLOW, "mail": Effect.ASK, "other": Effect.ASK}


def test_names_come_from_file_names(project: Project) -> None:
    assert worker_names(project.settings) == []
    assert load_workers(project.settings) == {}
    for name in ("b.yaml", "a.md", "c.yml", ".hidden.yaml", "README.md", "notes.txt", "a.yaml.bak"):
        project.write(f"workers/{name}", "---\n---\nbroken: [")
    (project.directory / "workers" / "sub").mkdir()
    assert worker_names(project.settings) == ["a", "b", "c"]


def test_one_broken_file_does_not_stand_in_the_way_of_another(project: Project) -> None:
    project.write("workers/a.yaml", "delegates: [b]\n")
    project.write("workers/b.yaml", "toolset: x\n")
    assert load_worker(project.settings, "a").delegates == ("b",)
    with pytest.raises(WrongFile, match=r"b.yaml:1:1: toolset"):
        load_workers(project.settings)


def test_a_worker_that_is_not_there_says_where_it_looked(project: Project) -> None:
    with pytest.raises(WrongUse, match=r"no worker `a` in workers\n  write it as workers/NAME.yaml"):
        load_worker(project.settings, "a")
    project.write("workers/triage.yaml", "model: x\n")
    for name in ("tirage", "../triage", "triage.yaml", "workers/triage"):
        with pytest.raises(WrongUse, match="did you mean `triage`"):
            load_worker(project.settings, name)


def test_a_circle_is_found_wherever_it_is_reached(project: Project) -> None:
    project.write("workers/a.yaml", "delegates: [b, c]\n")
    project.write("workers/b.yaml", "delegates: [d]\n")
    project.write("workers/c.yaml", "delegates: [d]\n")
    project.write("workers/d.yaml", 'delegates: "*"\n')
    assert load_workers(project.settings)["a"].delegates == ("b", "c"), "two ways to one worker are no circle"
    project.write("workers/d.yaml", "delegates: [e]\n")
    project.write("workers/e.yaml", "delegates: [c]\n")
    for name in "acde":
        with pytest.raises(WrongFile, match=r"a cycle: (\w) > \w > \w > \1"):
            load_worker(project.settings, name)


def test_a_long_line_of_workers_is_no_circle(project: Project) -> None:
    for at in range(1100):
        project.write(f"workers/w{at}.yaml", f"delegates: [w{at + 1}]\n" if at < 1099 else "model: x\n")
    assert load_worker(project.settings, "w0").delegates == ("w1",)


def test_a_new_worker_is_read_before_it_is_a_file(project: Project) -> None:
    project.write("workers/base.yaml", "toolsets: [files]\n")
    settings = project.settings
    worker = parse_worker("extends: base\ninstructions: Hi.\n", "workers/new.yaml", settings)
    assert (worker.name, worker.toolsets, worker.limits.requests) == ("new", ("files",), 50)
    assert worker_names(settings) == ["base"]
    with pytest.raises(WrongFile, match=r"workers/new.md:2:1: tool: unknown key"):
        parse_worker("---\ntool: x\n---\nHi.", "workers/new.md", settings)
    with pytest.raises(WrongFile, match="cycle: new > new"):
        parse_worker("delegates: new\n", "workers/new.yaml", settings)
    with pytest.raises(WrongFile, match="bad name"):
        parse_worker("model: x\n", "workers/n w.yaml", settings)


def test_attachments_stay_in_the_project(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "key.pem"
    outside.write_text("secret")
    project.write("workers/link", "")
    (project.directory / "workers" / "link").unlink()
    (project.directory / "workers" / "link").symlink_to(outside)
    for name in (str(outside), "~/key.pem", "link", "../../x"):
        project.write("workers/a.yaml", f"attachments: [{name}]\n")
        with pytest.raises(WrongFile, match="is outside the project"):
            load_worker(project.settings, "a")
    project.write("workers/a.yaml", f"attachments: [{project.directory}/notes.txt]\n")
    assert load_worker(project.settings, "a").attachments == (f"{project.directory}/notes.txt",)


def test_the_directory_is_beside_the_file(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write("workers/a.yaml", "model: x\n")
    settings = project.settings
    assert workers_directory(settings) == "workers"
    below = project.directory / "below"
    below.mkdir()
    monkeypatch.chdir(below)
    assert worker_names(load_settings("../signoff.yaml")) == ["a"]
    assert workers_directory(load_settings("../signoff.yaml")) == "../workers"
    assert worker_names(settings) == ["a"], "also after the working directory changed"


def test_a_worker_that_cannot_be_read(project: Project) -> None:
    (project.directory / "workers").mkdir()
    (project.directory / "workers" / "a.yaml").mkdir()
    with pytest.raises(WrongFile, match=r"workers/a.yaml: this is a directory"):
        load_worker(project.settings, "a")
    (project.directory / "workers" / "b.yaml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(WrongFile, match=r"workers/b.yaml:1: this is not UTF-8 text"):
        load_worker(project.settings, "b")


@pytest.mark.parametrize(
    ("text", "place", "says"),
    [
        ("- a", ":1:1", "the worker's keys"),
        ("model: 3", ":1:8: model", "the name of a model, not a number"),
        ("model:", ":1:7: model", "not null"),
        ("instructions: []", ":1:15: instructions", "the list is empty"),
        ("instructions: {a: b}", ":1:15: instructions", "what the worker is told"),
        ("retries: -1", ":1:10: retries", "too small"),
        ("retries: {tool: 1}", ":1:11: retries.tool", "unknown key"),
        ("retries: 1.5", ":1:10: retries", "a whole number"),
        ("end_strategy: late", ":1:15: end_strategy", "unknown value `late`"),
        ("tool_timeout: 0", ":1:15: tool_timeout", "too small"),
        ("tool_timeout: true", ":1:15: tool_timeout", "a number, not"),
        ("metadata: [a]", ":1:11: metadata", "a mapping"),
        ("capabilities: WebSearch", ":1:15: capabilities", "a list of capabilities"),
        ("capabilities: [3]", ":1:16: capabilities[0]", "a capability"),
        ("creates: 1", ":1:10: creates", "true or false"),
        ("toolsets: [3]", ":1:12: toolsets[0]", "names of toolsets"),
        ("delegates: {a: b}", ":1:12: delegates", "names of workers"),
        ("approvers: [ops, ops]", ":1:18: approvers[1]", "named twice"),
        ("limits: {cost: 0}", ":1:16: limits.cost", "too small"),
        ("limits: {cost: cheap}", ":1:16: limits.cost", "a number"),
        ("limits: {depth: -1}", ":1:17: limits.depth", "too small"),
        ("limits: {time: 0}", ":1:16: limits.time", "must be more than 0"),
        ("limits: [1]", ":1:9: limits", "a mapping such as"),
        ("policy: {}", ":1:9: policy", "a list of rules"),
        (
            "input: {type: object, properties: {a: {type: strng}}}",
            ":1:46: input.properties.a.type",
            "not a JSON schema",
        ),
        ("deps_schema: {type: 3}", ":1:21: deps_schema.type", "not a JSON schema"),
        ("input: {type: object}\ndeps_schema: {}", ":2:1: deps_schema", "`input` says the same"),
        ("people: {}", ":1:1: people", "configuration"),
    ],
)
def test_a_wrong_worker(project: Project, text: str, place: str, says: str) -> None:
    project.write("workers/a.yaml", text)
    with pytest.raises(WrongFile) as caught:
        load_worker(project.settings, "a")
    assert str(caught.value.place).startswith(f"workers/a.yaml{place}")
    assert says in caught.value.what


WORDS = st.sampled_from(
    [
        *WORKER.keys,
        ": ",
        "- ",
        "[",
        "]",
        "{",
        "}",
        ", ",
        "---",
        "\n",
        "\n  ",
        "x",
        "3",
        '"',
        "\\0",
        "\\ud800",
        "*",
        "&a",
        "~",
    ]
)


@examples(2_000, suppress=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(WORDS, max_size=24).map("".join) | st.text(max_size=60), suffix=st.sampled_from(["yaml", "md"]))
def test_whatever_stands_in_a_file_it_is_read_or_told(project: Project, text: str, suffix: str) -> None:
    file = f"workers/a.{suffix}"
    for start in ("", "---\n"):
        found = read_or_told(start + text, file, project)
        place = found.place if isinstance(found, WrongFile) else found.spot.place
        assert place is not None
        assert place.file == file


def read_or_told(text: str, file: str, project: Project) -> WorkerFile | WrongFile:
    try:
        return parse_worker(text, file, project.fixed)
    except WrongFile as error:
        return error


@pytest.mark.parametrize("name", ['"a\\0b"', '"a\\ud800b"'])
def test_what_no_file_system_takes(project: Project, name: str) -> None:
    project.write("workers/a.yaml", f"attachments: [{name}]\n")
    with pytest.raises(WrongFile, match=r"attachments\[0\]: .* is not a path|not YAML"):
        load_worker(project.settings, "a")
    project.write("signoff.yaml", f"toolsets: {{x: {{use: sql, config: {{root: {name}}}, policy: []}}}}\n")
    try:
        policy = project.settings.toolsets["x"].policy
    except WrongFile:
        return
    assert policy is not None
    assert policy.root == str(project.directory)


def test_every_key_of_pydantic_ais_agent_spec_is_one_of_ours() -> None:
    fields = {field.alias or name for name, field in AgentSpec.model_fields.items()}
    assert fields == set(SPEC_KEYS)
    assert set(get_args(AgentSpec.model_fields["end_strategy"].annotation)) == set(
        SPEC_KEYS["end_strategy"].schema["enum"]
    )
    assert AgentRetries.__optional_keys__ == set(RETRIES.keys)
    assert not set(OWN_KEYS) & fields


@pytest.mark.mission("P12")
def test_p12_what_a_worker_extends_stays_closed(project: Project) -> None:
    """Only rules above an `otherwise` name calls: a nearer file adds rules below it, and opens nothing."""

    def said(tool: str, **args: Any) -> str | None:
        policy = load_worker(project.settings, "child").policy
        verdict = policy.judge_layer(Call(tool=tool, args=args)) if policy is not None else None
        return str(verdict.effect) if verdict is not None else None

    project.write("workers/base.yaml", "policy: [{ask: read}, {otherwise: deny}]\n")
    project.write("workers/child.yaml", "extends: base\npolicy: [{ask: write}]\n")
    assert (said("read"), said("write"), said("zap")) == ("ask", "deny", "deny")
    project.write("workers/base.yaml", "policy: [{ask: {tool: shell, command: git push *}}]\n")
    project.write("workers/child.yaml", "extends: base\npolicy: [{ask: write}, {otherwise: deny}]\n")
    assert (said("write"), said("zap")) == ("ask", "deny")
    assert said("shell", command="git push") == "ask", "what the base names is named"
    assert said("shell", command="git push; make") == "deny", "and no more than that"
