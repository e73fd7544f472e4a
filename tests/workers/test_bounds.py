"""Whatever the rules are, and whoever they name: a worker that another one writes may never do more than that one."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as some
from tests.workers.project import project

from signoff.config import Settings, WorkerFile, load_settings, load_worker
from signoff.config.worker_files import parse_worker
from signoff.core.call import Call
from signoff.core.verdict import Effect, OnTimeout, Verdict
from signoff.errors import WrongUse
from signoff.policy.strictest_verdict import strictest
from signoff.workers import create

CREATOR, NEW, OTHERS = "maker", "fresh", ("boss", "mako", "f1")
NAMES = ("*", "m*", "*r", "f*", "ma?er", "?????", "[mf]*", "boss", "maker", "fresh", "mak*r", "*h")
ENDS = ("*", "maker", "fresh", "m*", "*r", "f*", "m???????", "m*r", "[mf]*")

names = some.sampled_from(NAMES)
chains = some.builds(" > ".join, some.tuples(names, some.sampled_from(ENDS)))
longer = some.builds(" > ".join, some.tuples(names, names, some.sampled_from(ENDS)))
odd = some.sampled_from(["boss*fresh", "*maker > *", "boss > maker > *", "b* > *", "** > fresh", "[bm]* > [fm]*"])
workers = some.one_of(names, chains, chains, longer, odd)
matches = some.builds(
    lambda tool, who: {"tool": tool, "worker": who},
    some.sampled_from(["read_file", "*"]),
    some.one_of(workers, some.lists(workers, min_size=2, max_size=2)),
)
asks = some.sampled_from(
    [{}, {}, {"by": "ops"}, {"by": "ops", "quorum": 2}, {"timeout": "1m", "on_timeout": "allow"}, {"timeout": "1m"}]
)
loose = some.builds(lambda match: {"allow": match}, some.one_of(matches, some.just({"tool": "*"})))
asking = some.builds(lambda match, how: {"ask": match, **how}, some.one_of(matches, some.just({"tool": "*"})), asks)
strict = some.builds(lambda match: {"deny": match}, matches)
rules = some.lists(some.one_of(loose, asking, strict), max_size=4)
own_rules = some.lists(some.one_of(strict, asking.filter(lambda one: one.get("on_timeout") != "allow")), max_size=2)


def verdict(found: Settings, file: WorkerFile, chain: tuple[str, ...]) -> Verdict:
    """The verdict on a call that the worker of this file makes at the end of a chain."""
    call = Call(tool="read_file", args={"path": "a"}, worker=chain, toolset="reading", labels=frozenset({"fs.read"}))
    layers = [*found.layers, *([file.policy] if file.policy is not None else ())]
    found_toolset = found.toolsets["reading"].policy
    layers += [found_toolset] if found_toolset is not None else []
    judged = [one for layer in layers if (one := layer.judge_layer(call)) is not None]
    return strictest(judged) or Verdict(effect=Effect.ASK)


def looser(new: Verdict, old: Verdict) -> bool:
    if new.effect is not old.effect:
        return new.effect.strictness < old.effect.strictness
    if new.effect is not Effect.ASK:
        return False
    mine, wanted = new.requirement, old.requirement
    by_silence = mine.on_timeout is OnTimeout.ALLOW and wanted.on_timeout is not OnTimeout.ALLOW
    return by_silence or (wanted.role is not None and mine.role != wanted.role) or mine.quorum < wanted.quorum


def more_than_its_creator(directory: Path, project_rules: Any, toolset_rules: Any, own: Any) -> list[Any]:
    """The chains in which a new worker may do more than its creator in its place; none if it is refused."""
    (directory / "signoff.yaml").write_text(
        "people: {ana: {roles: [ops]}}\n"
        f"policy: {json.dumps(project_rules)}\n"
        "toolsets:\n"
        f"  reading: {{use: filesystem_ro, config: {{root: notes}}, policy: {json.dumps(toolset_rules)}}}\n"
    )
    (directory / "workers" / f"{CREATOR}.yaml").write_text(
        f"instructions: Hi.\ntoolsets: [reading]\ncreates: true\npolicy: {json.dumps(own)}\n"
    )
    found = load_settings(directory / "signoff.yaml")
    creator = load_worker(found, CREATOR)
    try:
        made = create.draft(found, creator, NEW, "instructions: Hi.\ntoolsets: [reading]\n")
    except WrongUse:
        return []
    new = parse_worker(made.text, made.path, found)
    wrong: list[Any] = []
    for before in (*product(OTHERS, repeat=0), *product(OTHERS, repeat=1), *product((*OTHERS, CREATOR), repeat=2)):
        of_creator = verdict(found, creator, (*before, CREATOR))
        for chain in ((*before, NEW), (*before, CREATOR, NEW)):
            if before[-1:] == (CREATOR,) and chain == (*before, NEW):
                continue  # called by its creator: compared with that one below
            if looser(now := verdict(found, new, chain), of_creator):
                wrong.append((chain, now, of_creator))
    return wrong


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bounds")
    project(made, {})
    return made


@given(project_rules=rules, toolset_rules=rules, own=own_rules)
@example(
    project_rules=[{"allow": {"tool": "read_file", "worker": "maker > *"}}, {"ask": "*"}], toolset_rules=[], own=[]
)
@example(project_rules=[{"allow": {"tool": "*", "worker": "* > *"}}], toolset_rules=[], own=[])
@example(project_rules=[{"allow": {"tool": "*", "worker": "mak* > m????????"}}], toolset_rules=[], own=[])
@example(project_rules=[{"deny": {"tool": "*", "worker": "boss > f*r"}}, {"allow": "*"}], toolset_rules=[], own=[])
@example(project_rules=[], toolset_rules=[{"allow": {"tool": "*", "worker": "maker > *"}}], own=[])
@example(project_rules=[], toolset_rules=[{"ask": {"worker": "m*"}, "by": "ops"}], own=[{"ask": "*"}])
@example(project_rules=[], toolset_rules=[], own=[{"ask": {"worker": "*maker > *"}}, {"ask": "*", "by": "ops"}])
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_new_worker_may_never_do_more_than_its_creator(
    directory: Path, project_rules: Any, toolset_rules: Any, own: Any
) -> None:
    assert more_than_its_creator(directory, project_rules, toolset_rules, own) == []


def refusal(directory: Path, rule: Any, own: Any = ()) -> str:
    (directory / "workers" / f"{CREATOR}.yaml").write_text(
        f"instructions: Hi.\ntoolsets: [reading]\ncreates: true\npolicy: {json.dumps([*own])}\n"
    )
    (directory / "signoff.yaml").write_text(
        "people: {ana: {roles: [ops, dev]}}\ntoolsets: {reading: {use: filesystem_ro, config: {root: notes}}}\n"
        f"policy: {json.dumps([rule])}\n"
    )
    found = load_settings(directory / "signoff.yaml")
    with pytest.raises(WrongUse) as refused:
        create.draft(found, load_worker(found, CREATOR), NEW, "instructions: Hi.\ntoolsets: [reading]\n")
    return str(refused.value)


def test_a_refusal_says_whether_another_name_would_do(directory: Path) -> None:
    assert "choose a name that no rule names" in refusal(directory, {"allow": {"tool": "*", "worker": "maker > fresh"}})
    said = refusal(directory, {"allow": {"tool": "read_file", "worker": "maker > *"}})
    assert "no other name is, either: let the rule name the workers that maker may call" in said
    by_ops, by_dev = ({"ask": {"tool": "*", "worker": CREATOR}, "by": role} for role in ("ops", "dev"))
    assert "want different people to agree" in refusal(directory, by_ops, [by_dev])
