"""Workers that write workers: never more than they have, shown whole, written as shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic_ai import DeferredToolRequests
from tests.workers.project import calling, project, run, saying
from tests.workers.test_delegate import told

from signoff.config import Settings, load_worker
from signoff.core.call import Call
from signoff.core.card import card_for
from signoff.core.decision import ApprovalDecision
from signoff.core.mode import ApprovalMode
from signoff.core.request import ApprovalRequest
from signoff.core.verdict import Effect
from signoff.errors import WrongUse
from signoff.gate.resume import resume_run
from signoff.workers import create
from signoff.workers.project_workers import Workers

CREATOR = """
instructions: Make workers.
toolsets: [reading]
delegates: [leaf]
creates: true
model: script:maker.turns
limits: {requests: 20, cost: 2, time: 10m, depth: 2}
approvers: [ops]
capabilities: [{Thinking: low}]
policy:
  - {deny: {tool: read_file, path: "**/private/**"}, reason: private}
"""
FILE = """
policy: [{allow: worker_create}]
people: {ana: {roles: [ops]}, bo: {}}
toolsets:
  files: {use: filesystem_rw, config: {root: notes}}
  reading: {use: filesystem_ro, config: {root: notes}}
"""
PLAIN = (
    "instructions: Read.\ntoolsets: [reading]\nlimits: {requests: 5, cost: 1, time: 1m, depth: 0}\napprovers: [ops]\n"
)


class Asked:
    """Somebody with the role, who looks at the card."""

    def __init__(self, decision: ApprovalDecision | None = None) -> None:
        self.decision = decision or ApprovalDecision(approved=True)
        self.requests: list[ApprovalRequest] = []

    def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
        self.requests.append(request)
        return self.decision


def maker(directory: Path, *, creator: str = CREATOR, **workers: str) -> Settings:
    return project(directory, {"maker": creator, "leaf": "description: Reads.", **workers}, file=FILE)


def shop_of(settings: Settings, *turns: Any, **options: Any) -> Workers:
    """A shop whose creator's own rule on approvers is met by nobody in particular."""
    return Workers(settings, model=saying(*turns, priced=True), **options)


async def created(
    directory: Path, file: str, *, name: str = "fresh", creator: str = CREATOR, **workers: str
) -> tuple[str, Asked]:
    """What the model is told about a new worker, and what a person saw."""
    [answer], ui = await created_all(directory, {name: file}, creator=creator, **workers)
    return answer, ui


async def created_all(
    directory: Path, files: Mapping[str, str] | Sequence[tuple[str, str]], *, creator: str = CREATOR, **workers: str
) -> tuple[list[str], Asked]:
    """The same of several, each with its name, which the model asks for at once."""
    ui = Asked()
    creator = creator.replace("approvers: [ops]\n", "")
    settings = maker(directory, creator=creator, **workers)
    named = files.items() if isinstance(files, Mapping) else files
    calls = [calling("worker_create", name=name, file=file) for name, file in named]
    return told(await run(shop_of(settings, calls, "Done.", approver=ui), "maker"), "worker_create"), ui


def written(directory: Path, name: str = "fresh") -> dict[str, Any]:
    return yaml.safe_load((directory / "workers" / f"{name}.yaml").read_text())


@pytest.mark.mission("P9")
async def test_p9_a_new_worker_is_shown_whole_then_written_exactly_so_and_usable(tmp_path: Path) -> None:
    text = (
        "instructions: |\n  Read the notes.\n  Say what is in them.\ntoolsets: [reading]\nmodel: script:maker.turns\n"
    )
    ui = Asked()
    turns = (
        calling("worker_create", name="fresh", file=text),
        calling("worker_call", worker="fresh", prompt="Go."),
        "Done.",
    )
    creator = CREATOR.replace("approvers: [ops]\n", "").replace("cost: 2, ", "")
    settings = maker(tmp_path, creator=creator)
    (tmp_path / "workers" / "maker.turns").write_text("- say: fresh")
    shop = Workers(settings, model=saying(*turns), approver=ui)
    result = await run(shop, "maker")

    [request] = ui.requests
    card = card_for(request)
    file = (tmp_path / "workers" / "fresh.yaml").read_text()
    assert card.preview is not None and card.preview.kind == "diff"
    shown = [line[1:] for line in card.preview.text.split("\n")[3:]]
    assert "\n".join(shown) + "\n" == file
    assert card.title == "write a new worker, fresh"
    assert [one.name for one in card.details] == [], "our own bookkeeping is nothing that a person has to read"
    assert "instructions: |\n  Read the notes.\n  Say what is in them.\n" in file
    assert yaml.safe_load(file)["metadata"] == {"created_by": "maker"}

    assert told(result, "worker_call") == ["fresh"]
    later = Workers(settings, model=saying("x"))  # in later runs, too, and for nobody else
    assert sorted(later.callable_by(later.file("maker"))) == ["fresh", "leaf"]
    assert later.callable_by(load_worker(settings, "leaf")) == {}


ESCALATIONS = {
    "more toolsets": (
        "toolsets: [reading, files, shell_file_ops]",
        "toolsets",
        ["reading"],
        "`files`, `shell_file_ops`",
    ),
    "every worker": ('delegates: "*"', "delegates", ["leaf"], "`*` in delegates became"),
    "a worker it may not call": ("delegates: [leaf, other]", "delegates", ["leaf"], "delegates `other`"),
    "its creator": ("delegates: [maker]", "delegates", None, "delegates `maker`"),
    "more requests": ("limits: {requests: 99}", "limits.requests", 20, "limits.requests is 20 instead of 99"),
    "no limit": ("limits: {depth: 1}", "limits.requests", 20, "limits.requests is 20 as for maker"),
    "more time": ("limits: {time: 2h}", "limits.time", "600s", "limits.time is 600s instead of 7200s"),
    "more money": ("limits: {cost: 3.5}", "limits.cost", 2, "limits.cost is 2 instead of 3.5"),
    "deeper": ("limits: {depth: 5}", "limits.depth", 2, "limits.depth is 2 instead of 5"),
    "another model": ("model: openai:gpt-5", "model", "script:maker.turns", "without the model `openai:gpt-5`"),
    "settings that cost more": (
        "model_settings: {temperature: 0.1, service_tier: priority}",
        "model_settings",
        {"temperature": 0.1},
        "model settings `service_tier`",
    ),
    "another creator": ("metadata: {created_by: leaf}", "metadata", {"created_by": "maker"}, ""),
}


@pytest.mark.mission("P9")
async def test_p9_what_the_creator_lacks_is_taken_out_and_the_card_says_so(tmp_path: Path) -> None:
    names = {case: case.replace(" ", "-") for case in ESCALATIONS}
    files = {names[case]: f"instructions: Hi.\n{one[0]}\n" for case, one in ESCALATIONS.items()}
    answers, ui = await created_all(tmp_path, files, other="name: other")
    asked = {request.args["name"]: request for request in ui.requests}
    shop = Workers(maker(tmp_path, other="name: other"), models=False)
    for (case, (_, key, wanted, note)), answer in zip(ESCALATIONS.items(), answers, strict=True):
        found: Any = written(tmp_path, names[case])
        for step in key.split("."):
            found = found.get(step) if isinstance(found, dict) else None
        assert found == wanted, case
        assert note in card_for(asked[names[case]]).note, case
        assert note in answer, case
        assert shop.worker(names[case]).name == names[case], "what was written is right"


REFUSED = {
    "a capability it lacks": ("capabilities: [WebFetch]", "fresh.yaml:2:15: capabilities: its creator maker does not"),
    "the capability in another form": ("capabilities: [{Thinking: high}]", "capabilities: its creator maker does not"),
    "settings with a body": (
        "model_settings: {extra_body: {tools: [web]}}",
        "fresh.yaml:2:30: model_settings.extra_body: a worker file cannot set `extra_body`",
    ),
    "a rule that allows": ("policy: [{allow: write_file}]", "a worker's own rules can only tighten"),
    "silence that allows": (
        "policy: [{ask: write_file, timeout: 1m, on_timeout: allow}]",
        "this would allow when nobody answers",
    ),
    "another worker's powers": ("extends: leaf", "fresh.yaml:2:1: extends: a new worker extends no other"),
    "a tag": ("description: !!python/object/apply:os.system [id]", "fresh.yaml:2"),
    "an alias": ("metadata: &a {b: *a}", "fresh.yaml:2"),
    "an unknown key": ("toolset: [reading]", "fresh.yaml:2:1: toolset: unknown key"),
    "configuration": ("toolsets: [{files: {root: /}}]", "a worker file lists toolsets by name"),
    "a file from elsewhere": ("attachments: [/etc/passwd]", "is outside the project"),
    "a secret": ("attachments: [../.env]", "fresh.yaml:2:15: attachments[0]: `../.env`"),
    "another name": ("name: other", "so the worker is called `fresh`"),
    "an output that is no object": (
        "input: {type: object, properties: {}}\noutput: {type: string}",
        "of type `object`",
    ),
}


@pytest.mark.mission("P9")
async def test_p9_what_cannot_be_clipped_is_refused_with_the_place_and_nobody_is_asked(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("KEY=1")
    calls = [("fresh", f"instructions: Hi.\n{text}\n") for text, _ in REFUSED.values()]
    answers, ui = await created_all(tmp_path, calls)
    for (case, (_, why)), answer in zip(REFUSED.items(), answers, strict=True):
        assert "nothing was written" in answer and why in answer, case
    assert ui.requests == []
    assert not (tmp_path / "workers" / "fresh.yaml").exists()


@pytest.mark.mission("P9")
async def test_p9_a_name_leads_nowhere_else_and_replaces_nothing(tmp_path: Path) -> None:
    refused = {
        "../evil": "bad name",
        "a/b": "bad name",
        "": "bad name",
        "Fresh": "bad name",
        ".hidden": "bad name",
        "x" * 65: "bad name",
        "a\nb": "bad name",
        "leaf": "there is a worker `leaf` already",
        "maker": "there is a worker `maker` already",
    }
    answers, ui = await created_all(tmp_path, dict.fromkeys(refused, PLAIN))
    for (name, why), answer in zip(refused.items(), answers, strict=True):
        assert "nothing was written" in answer and why in answer, name
    assert ui.requests == []
    assert sorted(path.name for path in (tmp_path / "workers").iterdir()) == ["leaf.yaml", "maker.yaml"]


async def test_a_name_that_another_kind_of_file_has_is_taken(tmp_path: Path) -> None:
    (tmp_path / "workers").mkdir()
    (tmp_path / "workers" / "fresh.md").write_text("---\nname: fresh\n---\nHi.")
    answer, _ = await created(tmp_path, PLAIN)
    assert "there is a worker `fresh` already" in answer


async def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    settings = maker(tmp_path / "project", creator=CREATOR.replace("approvers: [ops]\n", ""))
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "project" / "workers").rename(elsewhere)
    (tmp_path / "project" / "workers").symlink_to(elsewhere)
    turns = (calling("worker_create", name="fresh", file=PLAIN), "Done.")
    [answer] = told(await run(shop_of(settings, *turns, approver=Asked()), "maker"), "worker_create")
    assert "is a symbolic link" in answer
    assert not (elsewhere / "fresh.yaml").exists()


@pytest.mark.mission("P9")
async def test_p9_the_creators_rules_come_first_and_its_approvers_answer(tmp_path: Path) -> None:
    settings = maker(tmp_path)
    text = "instructions: Hi.\napprovers: [dev]\npolicy: [{ask: read_file, reason: mine}]\n"
    made = create.draft(settings, load_worker(settings, "maker"), "fresh", text)
    values = yaml.safe_load(made.text)
    assert values["approvers"] == ["ops"]
    assert [rule.get("reason") for rule in values["policy"]] == ["private", "mine"]
    assert any("its approvers are `ops`" in note for note in made.cut)

    shop = Workers(
        settings, model=saying(calling("worker_create", name="fresh", file=text), "Done.", priced=True), wait="suspend"
    )
    await run(shop, "maker")
    [asked] = await shop.worker("maker").gate.pending()
    assert asked.requirement.role == "ops"


def test_a_creator_that_may_call_every_worker_may_say_so(tmp_path: Path) -> None:
    settings = maker(tmp_path, creator=CREATOR.replace("[leaf]", '"*"'), other="name: other")
    creator = load_worker(settings, "maker")
    for asked, wanted in {'"*"': "*", "[leaf, other]": ["leaf", "other"], "[leaf, maker]": ["leaf"]}.items():
        made = create.draft(settings, creator, "fresh", f"instructions: Hi.\ndelegates: {asked}\n")
        assert yaml.safe_load(made.text)["delegates"] == wanted
        assert any("delegates" in note for note in made.cut) == ("maker" in asked)


async def test_two_new_workers_of_which_one_is_answered_later(tmp_path: Path) -> None:
    """Writing the first changes nothing about what the second may have, so its card still holds."""
    settings = maker(tmp_path, creator=CREATOR.replace("approvers: [ops]\n", ""))
    both = [calling("worker_create", name=name, file=PLAIN) for name in ("one", "two")]
    shop = shop_of(settings, both, "Done.", store=f"sqlite:{tmp_path}/store.db", wait="suspend")
    await run(shop, "maker")
    worker = shop.worker("maker")
    first, second = await worker.gate.pending()
    for request in (first, second):
        await worker.gate.answer(request.id, ApprovalDecision(approved=True), by="ana")
        result = await resume_run(worker.agent, first.run, **worker.run_options())
    assert result.output == "Done."
    assert written(tmp_path, "one")["name"] == "one" and written(tmp_path, "two")["name"] == "two"
    shop.shared_store.close()


async def test_a_rule_of_the_projects_defaults_is_not_copied(tmp_path: Path) -> None:
    file = FILE + "defaults: {worker: {policy: [{id: house, ask: write_file}]}}\n"
    settings = project(tmp_path, {"maker": CREATOR, "leaf": "name: leaf"}, file=file)
    made = create.draft(settings, load_worker(settings, "maker"), "fresh", PLAIN)
    create.write(made)
    assert "house" not in made.text
    policy = load_worker(settings, "fresh").policy
    assert policy is not None and [rule.id for rule in policy.rules] == ["house", "fresh/rule-1"]


@pytest.mark.mission("P9")
async def test_p9_a_new_worker_is_asked_about_whatever_the_rules_allow(tmp_path: Path) -> None:
    """The project's file says `allow: worker_create`; a person is asked all the same, and may say no."""
    ui = Asked(ApprovalDecision(approved=False, note="not today"))
    settings = maker(tmp_path, creator=CREATOR.replace("approvers: [ops]\n", ""))
    turns = (calling("worker_create", name="fresh", file=PLAIN), "Done.")
    [answer] = told(await run(shop_of(settings, *turns, approver=ui), "maker"), "worker_create")
    assert "not today" in answer and len(ui.requests) == 1
    assert not (tmp_path / "workers" / "fresh.yaml").exists()


async def test_a_text_nobody_would_read_to_the_end_cannot_be_approved(tmp_path: Path) -> None:
    answer, ui = await created(tmp_path, f"instructions: |\n  {'x ' * create.LONGEST_FILE}\n")
    assert "it is too long to be approved" in answer and ui.requests == []


async def test_nothing_else_is_lost(tmp_path: Path) -> None:
    """Every other key is written as it was asked for, zero and all."""
    text = """
description: Counts.
instructions: ["Count {{what}}.", "Then stop: é"]
toolsets: [reading]
retries: 0
end_strategy: early
tool_timeout: 2.5
capabilities: [{Thinking: low}]
creates: true
limits: {requests: 5, tokens: 100, cost: 1, time: 1m, depth: 0}
input: {type: object, properties: {what: {type: string}}}
output: {type: object, properties: {n: {type: integer}}}
attachments: [../notes/style.md]
metadata: {team: a}
"""
    await created(tmp_path, text)
    asked = yaml.safe_load(text)
    made = written(tmp_path)
    assert made.pop("policy") and made.pop("name") == "fresh" and made.pop("model") == "script:maker.turns"
    assert made.pop("metadata") == {"team": "a", "created_by": "maker"}
    assert made.pop("limits") == {**asked["limits"], "time": "60s"}
    assert made == {key: value for key, value in asked.items() if key not in ("metadata", "limits")}


async def test_a_shop_with_workers_of_its_own_knows_the_new_one(tmp_path: Path) -> None:
    creator = CREATOR.replace("approvers: [ops]\n", "").replace("cost: 2, ", "")
    settings = maker(tmp_path, creator=creator)
    (tmp_path / "workers" / "maker.turns").write_text("- say: fresh")
    workers = {name: load_worker(settings, name) for name in ("maker", "leaf")}
    turns = (
        calling("worker_create", name="fresh", file=PLAIN.replace("cost: 1, ", "")),
        calling("worker_call", worker="fresh", prompt="Go."),
        "Done.",
    )
    shop = Workers(settings, workers=workers, model=saying(*turns), approver=Asked())
    assert told(await run(shop, "maker"), "worker_call") == ["fresh"]


async def test_markdown_becomes_the_same_worker(tmp_path: Path) -> None:
    answer, _ = await created(tmp_path, "---\ndescription: Reads.\ntoolsets: [reading]\n---\nRead the notes.\n")
    assert "fresh.yaml was written" in answer
    assert (written(tmp_path)["instructions"], written(tmp_path)["toolsets"]) == ("Read the notes.", ["reading"])


@pytest.mark.mission("P9")
async def test_p9_an_edited_file_is_clipped_again(tmp_path: Path) -> None:
    edited = {"name": "fresh", "file": "instructions: Edited.\ntoolsets: [files, reading]\n"}
    ui = Asked(ApprovalDecision(approved=True, edited_args=edited))
    settings = maker(tmp_path, creator=CREATOR.replace("approvers: [ops]\n", ""))
    turns = (calling("worker_create", name="fresh", file=PLAIN), "Done.")
    [answer] = told(await run(shop_of(settings, *turns, approver=ui), "maker"), "worker_create")
    assert "without the toolsets `files`" in answer
    assert written(tmp_path)["instructions"] == "Edited." and written(tmp_path)["toolsets"] == ["reading"]


@pytest.mark.mission("P9")
async def test_p9_what_was_shown_is_what_is_written_or_it_is_asked_again(tmp_path: Path) -> None:
    """The creator loses a toolset between the card and the answer: the approval was for another file."""
    creator = CREATOR.replace("approvers: [ops]\n", "").replace("cost: 2, ", "")
    both = creator.replace("toolsets: [reading]", "toolsets: [reading, shell_readonly]")
    text = "instructions: Hi.\ntoolsets: [reading, shell_readonly]\n"
    store = f"sqlite:{tmp_path}/store.db"
    turns = (calling("worker_create", name="fresh", file=text), "Done.")
    first = Workers(maker(tmp_path, creator=both), model=saying(*turns), store=store, wait="suspend")
    assert isinstance((await run(first, "maker")).output, DeferredToolRequests)
    gate = first.worker("maker").gate
    [asked] = await gate.pending()
    await gate.answer(asked.id, ApprovalDecision(approved=True), by="ana")
    first.shared_store.close()

    second = Workers(maker(tmp_path, creator=creator), model=saying(*turns), store=store, wait="suspend")
    worker = second.worker("maker")
    assert isinstance((await resume_run(worker.agent, asked.run, **worker.run_options())).output, DeferredToolRequests)
    [again] = await worker.gate.pending()
    assert again.id != asked.id and again.changed
    assert "shell_readonly" in card_for(again).note
    assert not (tmp_path / "workers" / "fresh.yaml").exists()
    await worker.gate.answer(again.id, ApprovalDecision(approved=True), by="ana")
    assert (await resume_run(worker.agent, asked.run, **worker.run_options())).output == "Done."
    assert written(tmp_path)["toolsets"] == ["reading"]
    second.shared_store.close()


async def test_an_edit_that_is_wrong_is_told_to_the_person(tmp_path: Path) -> None:
    class Twice(Asked):
        def choose(self, request: ApprovalRequest, *, mode: ApprovalMode) -> ApprovalDecision:
            super().choose(request, mode=mode)
            if len(self.requests) == 1:
                wrong = {"name": "fresh", "file": "toolsts: [reading]"}
                return ApprovalDecision(approved=True, edited_args=wrong)
            return ApprovalDecision(approved=False)

    ui = Twice()
    settings = maker(tmp_path, creator=CREATOR.replace("approvers: [ops]\n", ""))
    turns = (calling("worker_create", name="fresh", file=PLAIN), "Done.")
    await run(shop_of(settings, *turns, approver=ui), "maker")
    assert "fresh.yaml:1:1: toolsts: unknown key `toolsts`" in ui.requests[1].problem
    assert not (tmp_path / "workers" / "fresh.yaml").exists()


async def test_a_file_that_is_there_exactly_so_counts_as_written(tmp_path: Path) -> None:
    """A process that died after it wrote: the call is made again, and told as done."""
    first, _ = await created(tmp_path, PLAIN)
    again, ui = await created(tmp_path, PLAIN)
    assert "fresh.yaml was written" in first and again == first and len(ui.requests) == 1
    other, ui = await created(tmp_path, PLAIN.replace("Read.", "Write."))
    assert "there is a worker `fresh` already" in other and ui.requests == []


def test_writing_replaces_nothing_and_leaves_nothing_behind(tmp_path: Path) -> None:
    from signoff.errors import WrongUse

    path = tmp_path / "workers" / "fresh.yaml"
    made = create.NewWorker("fresh", str(path), "instructions: Hi.\n", ())
    create.write(made)
    assert path.read_text() == "instructions: Hi.\n"
    with pytest.raises(WrongUse, match="nothing was written"):
        create.write(create.NewWorker("fresh", str(path), "instructions: Evil.\n", ()))
    assert path.read_text() == "instructions: Hi.\n"
    assert [one.name for one in path.parent.iterdir()] == ["fresh.yaml"]


def test_a_new_worker_cannot_open_what_its_creator_has_closed(tmp_path: Path) -> None:
    closed = CREATOR + "  - {ask: worker_create}\n  - {ask: list_files}\n  - {otherwise: deny}\n"
    settings = maker(tmp_path, creator=closed)
    text = "instructions: Hi.\npolicy: [{ask: read_file}, {otherwise: deny}]\n"
    made = create.draft(settings, load_worker(settings, "maker"), "fresh", text)
    rules = yaml.safe_load(made.text)["policy"]
    assert rules[-2:] == [{"otherwise": "deny"}, {"ask": "read_file"}], "below it, it names nothing"
    (tmp_path / "workers" / "fresh.yaml").write_text(made.text)
    policy = load_worker(settings, "fresh").policy
    assert policy is not None
    assert policy.judge(Call(tool="read_file", args={"path": "a"})).effect is Effect.DENY
    assert policy.judge(Call(tool="list_files")).effect is Effect.ASK


def test_a_name_that_a_whitelist_asks_about_is_taken(tmp_path: Path) -> None:
    file = FILE.replace("policy: [{allow: worker_create}]", "policy: [{ask: {worker: 'ops*'}}, {allow: worker_create}]")
    settings = project(tmp_path, {"maker": CREATOR, "leaf": "description: Reads."}, file=file)
    create.draft(settings, load_worker(settings, "maker"), "opsy", "instructions: Hi.\n")
    file = file.replace("{allow: worker_create}]", "{allow: worker_create}, {otherwise: deny}]")
    settings = project(tmp_path, {"maker": CREATOR, "leaf": "description: Reads."}, file=file)
    with pytest.raises(WrongUse, match="the name is not allowed"):
        create.draft(settings, load_worker(settings, "maker"), "opsy", "instructions: Hi.\n")
