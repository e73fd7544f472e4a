"""P5: variables in config, by the command: the value reaches the toolset, and nothing that is shown or kept."""

from __future__ import annotations

import pytest
from tests.proofs.outside import Project

SECRET = "hv7-quiet-otter-91"
PROJECT = """\
toolsets:
  vault: {use: "vault:Vault", config: {key: "${VAULT_KEY}", place: "${VAULT_PLACE:-attic}"}}
plugins: {allow: [vault]}
policy: []
"""
VAULT = '''\
from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset


class Vault(FunctionToolset):
    def __init__(self, key: str, place: str, context):
        super().__init__([self.open, self.break_open])
        self.key, self.place, self.context = key, place, context

    def open(self, why: str) -> str:
        """Open it."""
        Path("opened.txt").write_text(f"{len(self.key)} {self.place} {why}")
        self.context.message(f"opened with {self.key}")
        return "open"

    def break_open(self) -> str:
        """Break it open."""
        raise ValueError(f"{self.key} does not fit")
'''


@pytest.fixture
def vault(project: Project) -> Project:
    project.write(signoff=PROJECT, workers__keeper="toolsets: [vault]\n")
    project.put({"vault.py": VAULT})
    return project


@pytest.mark.mission("P5")
def test_p5_a_value_from_a_variable_is_used_and_reaches_no_card_log_record_store_or_json(vault: Project) -> None:
    calls = f"calls: [{{tool: open, args: {{why: 'for {SECRET}, please'}}}}]"
    vault.put({"workers/keeper.turns": f"- {calls}\n- say: 'It is {SECRET}.'\n"})
    paused = vault.run("keeper", "--suspend", VAULT_KEY=SECRET)
    request = paused.rows[-1]["waiting"][0]["request"]
    card = vault.signoff("show", request)
    assert "for ⟦masked" in card.out, "it is there, and masked"
    done = vault.answers(paused, VAULT_KEY=SECRET)
    assert (done.code, vault.read("opened.txt")) == (0, f"{len(SECRET)} attic for {SECRET}, please"), done.err
    assert done.rows[-1]["output"].startswith("It is ⟦masked")
    [told] = [row["text"] for row in done.rows if row.get("event") == "message"]
    assert told.startswith("opened with ⟦masked")
    log, inbox = vault.signoff("audit", "log", "--json"), vault.signoff("inbox", "--json")
    for said in (paused, card, done, log, inbox, vault.signoff("toolsets", "show", "vault", VAULT_KEY=SECRET)):
        assert said.code in (0, 3) and SECRET not in said.out + said.err
    assert "ran" in log.out, "the log tells of it"


@pytest.mark.mission("P5")
def test_p5_nothing_that_is_kept_holds_a_value_that_only_the_toolset_knows(vault: Project) -> None:
    vault.put({"workers/keeper.turns": "- calls: [{tool: open, args: {why: rain}}]\n- say: Done.\n"})
    done = vault.answers(vault.run("keeper", "--suspend", VAULT_KEY=SECRET), VAULT_KEY=SECRET)
    assert done.code == 0, done.err
    vault.put({"workers/keeper.turns": "- calls: [{tool: break_open}]\n- say: Done.\n"})
    failed = vault.run("keeper", "--mode", "auto_approve", VAULT_KEY=SECRET)
    assert failed.code == 1 and "does not fit" in failed.err and SECRET not in failed.out + failed.err
    holding = [name for name, held in vault.everything_kept() if SECRET.encode() in held]
    assert holding == []


@pytest.mark.mission("P5")
def test_p5_a_missing_variable_is_an_error_that_names_it_and_its_place_before_anything_runs(vault: Project) -> None:
    vault.put({"workers/keeper.turns": "- calls: [{tool: open, args: {why: rain}}]\n- say: Done.\n"})
    refused = vault.run("keeper", "--mode", "auto_approve")
    assert (refused.code, refused.out) == (2, "")
    assert "signoff.yaml:2:" in refused.err and "VAULT_KEY" in refused.err
    assert not vault.has("opened.txt")
    given = vault.run("keeper", "--mode", "auto_approve", VAULT_KEY=SECRET, VAULT_PLACE="cellar")
    assert given.code == 0 and vault.read("opened.txt") == f"{len(SECRET)} cellar rain"
