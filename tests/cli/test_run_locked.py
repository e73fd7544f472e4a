"""What a locked project holds against: the environment, the user's own rules, and standing elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.cli.desk import Desk, Said

PROJECT = "toolsets:\n  files: {use: filesystem_rw, config: {root: .}}\npolicy:\n  - {deny: {path: '**/.env'}}\n"
WRITES = '- calls: [{tool: write_file, args: {path: out.txt, content: "x"}}]\n- say: "{{last}}"\n'
LOOSE = PROJECT.replace("{root: .}", "{root: ../project}") + "  - {allow: '*'}\n"

pytestmark = pytest.mark.mission("C9")


@pytest.fixture
def shop(desk: Desk) -> Desk:
    """A locked project in `project`, and a directory beside it in which one stands."""
    (desk.directory / "signoff.yaml").unlink()
    project = desk.directory / "project"
    (project / "workers").mkdir(parents=True)
    (project / "signoff.yaml").write_text(PROJECT + "locked: true\n")
    (project / "workers" / "writer.yaml").write_text("instructions: Write.\ntoolsets: [files]\n")
    (desk.directory / "writes.yaml").write_text(WRITES)
    (desk.directory / "elsewhere").mkdir()
    (desk.directory / "elsewhere" / "loose.yaml").write_text(LOOSE)
    desk.types("")
    desk.monkeypatch.setenv("XDG_CONFIG_HOME", str(desk.directory / "config"))
    for name in ("SIGNOFF_MODEL", "SIGNOFF_ASK", "SIGNOFF_DENY", "SIGNOFF_POLICY"):
        desk.monkeypatch.delenv(name, raising=False)
    desk.monkeypatch.chdir(project)
    return desk


def run(shop: Desk, worker: str, *flags: str) -> Said:
    return shop.run("run", worker, "Write it", "--model", f"script:{shop.directory / 'writes.yaml'}", *flags)


def written(shop: Desk) -> bool:
    return (shop.directory / "project" / "out.txt").exists()


@pytest.mark.parametrize("locked", ["", "locked: true\n"])
@pytest.mark.parametrize("rule", ["{allow: '*'}", "{ask: '*', timeout: 1s, on_timeout: allow}"])
def test_c9_no_rule_that_the_environment_names_lets_more_run(shop: Desk, rule: str, locked: str) -> None:
    Path("signoff.yaml").write_text(PROJECT + locked)
    file = shop.directory / "elsewhere" / "rules.yaml"
    file.write_text(f"policy: [{{deny: delete_file}}, {rule}]\n")
    shop.monkeypatch.setenv("SIGNOFF_POLICY", str(file))
    for said in (run(shop, "writer"), shop.run("doctor"), shop.run("policy", "show")):
        assert (said.code, said.out) == (2, "")
        assert "../elsewhere/rules.yaml:1:" in said.err
        assert "can only tighten" in said.err
    assert not written(shop)


def test_c9_what_the_environment_adds_is_shown(shop: Desk) -> None:
    Path("signoff.yaml").write_text(PROJECT + "  - {allow: write_file}\n")
    [before] = [one for one in shop.run("doctor", "--json").data["workers"][0]["tools"] if one["tool"] == "write_file"]
    assert before["effect"] != "deny"
    (shop.directory / "rules.yaml").write_text("policy: [{deny: write_file}]\n")
    shop.monkeypatch.setenv("SIGNOFF_POLICY", str(shop.directory / "rules.yaml"))
    shop.monkeypatch.setenv("SIGNOFF_ASK", "read_file")
    told = shop.run("doctor", "--json").data
    effects = {one["tool"]: one["effect"] for one in told["workers"][0]["tools"]}
    assert (effects["write_file"], effects["read_file"]) == ("deny", "ask")
    assert told["environment"] == "ask read_file; rules of ../rules.yaml"
    assert "environment ask read_file; rules of ../rules.yaml" in shop.run("doctor").out
    layers = shop.run("policy", "show", "--worker", "writer", "--json").data["layers"]
    assert [(one["layer"], [rule["id"] for rule in one["rules"]]) for one in layers[-2:]] == [
        ("environment", ["caller/rule-1"]),
        ("environment", ["environment/rule-1"]),
    ]
    assert re.search(r"environment/rule-1 +\{deny: write_file\}\n", shop.run("policy", "show").out)


def test_c9_the_users_own_rules_let_nothing_more_run(shop: Desk) -> None:
    own = shop.directory / "config" / "signoff" / "policy.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("policy: [{allow: write_file}, {deny: delete_file}]\n")
    said = run(shop, "writer")
    assert "no terminal to ask at" in said.err, said.err
    assert not written(shop)
    layers = shop.run("policy", "show", "--json").data["layers"]
    assert [(one["holds"], [rule["id"] for rule in one["rules"]]) for one in layers[:2]] == [
        (True, ["user/rule-2"]),
        (False, ["user/rule-1"]),
    ]
    shown = shop.run("policy", "show").out
    assert "(these are ignored: the project is locked, and they would loosen it)" in shown
    found = shop.run("doctor", "--json").data
    [note] = [one for one in found["findings"] if one["check"] == "locked"]
    assert note["what"].startswith("user/rule-1 is ignored here")
    [tool] = [one for one in found["workers"][0]["tools"] if one["tool"] == "write_file"]
    assert tool["effect"] == "ask"
    Path("signoff.yaml").write_text(PROJECT)
    run(shop, "writer")
    assert written(shop), "where the project is not locked, one's own rules count"


def test_c9_standing_elsewhere_opens_no_lock(shop: Desk) -> None:
    project, elsewhere = shop.directory / "project", shop.directory / "elsewhere"
    shop.monkeypatch.chdir(elsewhere)
    worker = str(project / "workers" / "writer.yaml")
    (elsewhere / "linked.yaml").symlink_to(worker)
    for one in (worker, "../project/workers/writer.yaml", "linked.yaml"):
        said = run(shop, one, "--policy", "loose.yaml")
        assert said.code == 2
        assert "the policy of this project is locked (../project/signoff.yaml:5:" in said.err
        auto = run(shop, one, "--mode", "auto_approve")
        assert "locked" in auto.err
        assert auto.code == 2
    (project / "other.yaml").write_text(PROJECT + "  - {allow: '*'}\n")
    beside = run(shop, "writer", "--policy", "../project/other.yaml")
    assert (beside.code, "locked" in beside.err) == (2, True), "a file beside the project's own"
    assert not written(shop)


def test_c9_a_worker_by_its_path_is_under_its_own_project(shop: Desk) -> None:
    """Wherever it is started; and the commands that are printed find it."""
    project = shop.directory / "project"
    (shop.directory / "elsewhere" / "signoff.yaml").write_text("policy: [{allow: '*'}]\nlocked: true\n")
    shop.monkeypatch.delenv("SIGNOFF_STORE")
    shop.monkeypatch.chdir(shop.directory / "elsewhere")
    begun = run(shop, "../project/workers/writer.yaml", "--suspend")
    assert begun.code == 3, begun.err
    commands = {line.partition(":")[0]: line.partition("signoff ")[2] for line in begun.err.splitlines()}
    approve, resume = commands["Answer"].partition(", or ")[0], commands["Resume"]
    assert shop.run(*approve.split()).code == 0
    assert not written(shop)
    went_on = shop.run(*resume.split())
    assert went_on.code == 0, went_on.err
    assert written(shop)
    shop.monkeypatch.chdir(project)
    [kept] = shop.run("runs", "--all", "--json").data["runs"]
    assert kept["id"] in resume, "it is kept with its project"


def test_c9_a_policy_that_is_named_when_resuming_is_read_from_here(shop: Desk) -> None:
    Path("signoff.yaml").write_text(PROJECT)
    begun = run(shop, "writer", "--suspend", "--json")
    shop.run("approve", begun.rows[-1]["waiting"][0]["request"])
    Path("strict.yaml").write_text(PROJECT + "  - {deny: write_file, reason: not any more}\n")
    Path("workers/says.turns").write_text('- say: "never"\n- say: "it says {{last}}"\n')
    shop.monkeypatch.chdir("workers")
    said = shop.run("resume", begun.rows[-1]["run"], "--policy", "../strict.yaml", "--model", "script:says.turns")
    assert "it says" in said.out, said.err
    assert "not any more" in said.out
    assert not written(shop)
