"""P1, P2, P4, P6, P7, P9 and C1 to C3, C6, C8: the catalog of a project, by the command, in a fresh directory."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.proofs.outside import Done, Project

BELL = '''\
from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset

Path("imported.txt").write_text("imported")


class Bell(FunctionToolset):
    def __init__(self, name: str = "bell", times: int = 1):
        super().__init__([self.ring])
        self.name, self.times = name, times

    def ring(self) -> str:
        """Ring it."""
        with open(f"{self.name}.rung", "a") as log:
            log.write("rung\\n" * self.times)
        return f"{self.name} was rung"
'''
CALLS_RING = '- calls: [{tool: ring}]\n- say: "{{last}}"\n'


def rings(project: Project, toolset: str, *flags: str, turns: str = CALLS_RING, **environment: str) -> Done:
    """Run a worker with one toolset, which calls `ring`."""
    project.put({"workers/hand.yaml": f"toolsets: [{toolset}]\n", "workers/hand.turns": turns})
    return project.run("hand", *flags, **environment)


@pytest.mark.mission("P1")
def test_p1_a_class_path_an_alias_and_an_installed_package_name_a_toolset(project: Project) -> None:
    bells = "toolsets: {mine: {use: 'bells:Bell'}, same: {use: mine_too}, files: {use: filesystem_rw}}"
    project.write(signoff=f"{bells}\nplugins: {{allow: [bells, elsewhere]}}\npolicy: [{{allow: '*'}}]\n")
    other = BELL.replace('"bell"', '"other"')
    site = {
        "site/elsewhere.py": other,
        "site/elsewhere-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: elsewhere\nVersion: 1.0\n",
        "site/elsewhere-1.0.dist-info/entry_points.txt": "[signoff.toolsets]\ndistant = elsewhere:Bell\n",
    }
    for name, text in {**site, "bells.py": BELL}.items():
        (project.directory / name).parent.mkdir(parents=True, exist_ok=True)
        (project.directory / name).write_text(text)
    project.put({"toolsets.py": BELL.replace('"bell"', '"third"') + "\nTOOLSETS = {'mine_too': Bell}\n"})
    installed = {"PYTHONPATH": str(project.directory / "site")}
    for toolset, bell in (("mine", "bell"), ("same", "third"), ("distant", "other")):
        done = rings(project, toolset, **installed)
        assert (done.code, project.read(f"{bell}.rung")) == (0, "rung\n"), done.err
    writes = '- calls: [{tool: write_file, args: {path: a.txt, content: x}}]\n- say: "{{last}}"\n'
    assert rings(project, "files", turns=writes, **installed).code == 0 and project.read("a.txt") == "x"


SHAPES = '''\
from pathlib import Path

from pydantic_ai.toolsets import FunctionToolset

def bell(name, told=""):
    def ring() -> str:
        """Ring it."""
        Path(f"{name}.rung").write_text(told)
        return name
    return FunctionToolset([ring])

class Both(FunctionToolset):
    def __init__(self, config, context):
        super().__init__(bell("both", f"{config['times']} {context.worker}").tools.values())

class Nothing(FunctionToolset):
    def __init__(self):
        super().__init__(bell("nothing").tools.values())

class Inner(FunctionToolset):
    def __init__(self, times: int):
        super().__init__(bell("inner", str(times)).tools.values())

def factory(times: int):
    return bell("factory", str(times))

instance = bell("instance")
'''


@pytest.mark.mission("P2")
@pytest.mark.parametrize(
    ("entry", "bell", "told"),
    [
        ("{use: 'shapes:Both', config: {times: 2}}", "both", "2 hand"),
        ("{use: 'shapes:Nothing'}", "nothing", ""),
        ("{use: 'shapes:factory', config: {times: 3}}", "factory", "3"),
        ("{use: 'shapes:instance'}", "instance", ""),
        ("{use: 'shapes:Both', config: {times: 4, inner_class: 'shapes:Inner'}}", "inner", "4"),
    ],
)
def test_p2_whatever_a_toolset_takes_it_is_made_from_config_and_context(
    project: Project, entry: str, bell: str, told: str
) -> None:
    project.write(signoff=f"toolsets: {{it: {entry}}}\nplugins: {{allow: [shapes]}}\npolicy: [{{allow: ring}}]\n")
    project.put({"shapes.py": SHAPES})
    done = rings(project, "it")
    assert (done.code, project.has(f"{bell}.rung"), project.read(f"{bell}.rung")) == (0, True, told), done.err


@pytest.mark.mission("P4")
@pytest.mark.parametrize(
    ("config", "told"),
    [
        ("{times: often}", ["signoff.yaml:1:", "toolsets.it.config.times", "integer"]),
        ("{tiems: 2}", ["signoff.yaml:1:", "toolsets.it.config.tiems", "did you mean `times`?"]),
    ],
)
def test_p4_wrong_config_is_told_with_its_place_before_anything_runs(
    project: Project, config: str, told: list[str]
) -> None:
    entry = f"toolsets: {{it: {{use: 'bells:Bell', config: {config}}}}}\n"
    project.write(signoff=f"{entry}plugins: {{allow: [bells]}}\npolicy: [{{allow: ring}}]\n")
    project.put({"bells.py": BELL})
    refused = rings(project, "it")
    assert (refused.code, refused.out, project.has("bell.rung")) == (2, "", False)
    assert all(one in refused.err for one in told), refused.err


@pytest.mark.mission("P6")
def test_p6_what_no_pattern_allows_is_not_imported_and_the_refusal_says_how(project: Project) -> None:
    project.write(signoff="toolsets: {it: {use: 'bells:Bell'}}\npolicy: [{allow: ring}]\n")
    project.put({"bells.py": BELL})
    refused = rings(project, "it")
    assert (refused.code, refused.out) == (2, "")
    assert "plugins: {allow: [" in refused.err and "bells" in refused.err, refused.err
    assert not project.has("imported.txt"), "it was not imported"
    project.write(signoff="toolsets: {it: {use: 'bells:Bell'}}\nplugins: {allow: [bells]}\npolicy: [{allow: ring}]\n")
    assert rings(project, "it").code == 0 and project.has("bell.rung")


@pytest.mark.mission("P7")
def test_p7_entries_and_workers_extend_others_and_defaults_hold_for_all(project: Project) -> None:
    project.write(
        signoff="""\
            defaults: {toolset: {config: {times: 3}}, worker: {toolsets: [loud]}}
            toolsets:
              plain: {use: "bells:Bell", policy: [{allow: ring}]}
              loud: {extends: plain, config: {name: loud}}
            plugins: {allow: [bells]}
            policy: []
        """,
        workers__base="instructions: Ring.\n",
        workers__heir="extends: base\n",
    )
    project.put({"bells.py": BELL, "workers/heir.turns": CALLS_RING})
    done = project.run("heir")
    assert (done.code, project.read("loud.rung")) == (0, "rung\n" * 3), done.err
    project.write(signoff="toolsets: {a: {extends: b}, b: {extends: a}}\npolicy: []\n")
    refused = project.run("heir")
    assert refused.code == 2 and "cycle: a > b > a" in refused.err


@pytest.mark.mission("P9")
def test_p9_a_new_worker_is_shown_whole_and_written_exactly_so_and_can_be_called(project: Project) -> None:
    file = "instructions: Help.\ntoolsets: [filesystem_ro, filesystem_rw]\n"
    project.write(signoff="policy: []\n", workers__chief="toolsets: [filesystem_ro]\ncreates: true\n")
    turns: list[dict[str, Any]] = [
        {"calls": [{"tool": "worker_create", "args": {"name": "helper", "file": file}}]},
        {"calls": [{"tool": "worker_call", "args": {"worker": "helper", "prompt": "Help"}}]},
        {"say": "{{last}}"},
    ]
    project.put({"workers/chief.turns": json.dumps(turns)})
    paused = project.run("chief", "--suspend")
    card = project.signoff("show", paused.rows[-1]["waiting"][0]["request"]).out
    assert not project.has("workers/helper.yaml")
    done = project.answers(paused)
    written = project.read("workers/helper.yaml")
    # The new worker follows the same script, and cannot do what stands there: it only has what its creator has.
    assert "Available tools: 'list_files', 'read_file', 'search_files'" in done.rows[-1]["output"], done.out
    assert "filesystem_ro" in written and "filesystem_rw" not in written, "never more than its creator has"
    for line in written.splitlines():
        assert line in card, f"it was not shown: {line}"


@pytest.mark.mission("C1")
def test_c1_two_policies_are_two_names_for_one_toolset(project: Project) -> None:
    project.write(
        signoff="""\
            toolsets:
              free: {use: "bells:Bell", config: {name: free}, policy: [{allow: ring}]}
              held: {use: "bells:Bell", config: {name: held}, policy: [{deny: ring, reason: it is night}]}
              asked: {use: "bells:Bell", config: {name: asked}}
            plugins: {allow: [bells]}
            policy: []
        """
    )
    project.put({"bells.py": BELL})
    became = {name: rings(project, name, "--suspend").events("ring")[0] for name in ("free", "held", "asked")}
    assert became == {"free": "allowed", "held": "denied", "asked": "asked"}
    assert [project.has(f"{name}.rung") for name in became] == [True, False, False]


@pytest.mark.mission("C2")
def test_c2_configuration_in_a_worker_file_is_refused_with_the_place_where_it_belongs(project: Project) -> None:
    project.write(signoff="policy: [{allow: '*'}]\n")
    project.put(
        {
            "workers/hand.yaml": "toolsets:\n  filesystem_rw: {root: notes}\n",
            "workers/hand.turns": "- calls: [{tool: write_file, args: {path: a.txt, content: x}}]\n- say: Done.\n",
        }
    )
    refused = project.run("hand")
    assert (refused.code, refused.out, project.has("a.txt")) == (2, "", False)
    assert "workers/hand.yaml:" in refused.err and "signoff.yaml" in refused.err, refused.err


@pytest.mark.mission("C3")
def test_c3_built_ins_need_no_entry_root_makes_many_and_read_only_ones_cannot_write(project: Project) -> None:
    many = "toolsets: {a: {use: filesystem_rw, config: {root: a}}, b: {use: filesystem_ro, config: {root: b}}}"
    project.write(signoff=f"{many}\npolicy: [{{allow: '*'}}]\n", a__x="one\n", b__x="two\n")
    reads = '- calls: [{tool: read_file, args: {path: x.yaml}}]\n- say: "{{last}}"\n'
    writes = '- calls: [{tool: write_file, args: {path: new.txt, content: new}}]\n- say: "{{last}}"\n'
    for name, text in (("a", "one"), ("b", "two"), ("filesystem_ro", "")):
        assert text in rings(project, name, turns=reads).rows[-1]["output"]
    assert rings(project, "a", turns=writes).code == 0 and project.read("a/new.txt") == "new"
    for name in ("b", "filesystem_ro"):
        rings(project, name, turns=writes)
        assert not project.has("b/new.txt") and not project.has("new.txt")
    listed = {one["name"]: one for one in project.signoff("toolsets", "--json").data["toolsets"]}
    assert {"filesystem_rw", "filesystem_ro", "shell_readonly", "shell_file_ops"} <= set(listed)
    assert "write_file" in json.dumps(listed["a"]) and "write_file" not in json.dumps(listed["b"])


@pytest.mark.mission("C6")
def test_c6_a_projects_toolsets_py_exports_instances_factories_and_registrations(project: Project) -> None:
    more = """
from signoff.toolsets import Registration

TOOLSETS = {
    "made": Bell("made"),
    "factory": lambda context: Bell(f"for-{context.worker}"),
    "free": Registration(toolset=lambda: Bell("free"), policy=[{"allow": "ring"}]),
}
"""
    project.write(signoff="policy: []\n")
    project.put({"toolsets.py": BELL + more})
    became = {name: rings(project, name, "--suspend").events("ring")[0] for name in ("made", "factory", "free")}
    assert became == {"made": "asked", "factory": "asked", "free": "allowed"}
    assert project.has("free.rung") and not project.has("made.rung")
    done = rings(project, "factory", "--mode", "auto_approve")
    assert done.code == 0 and project.has("for-hand.rung")


@pytest.mark.mission("C8")
def test_c8_a_native_tool_is_offered_to_the_model_only_where_the_catalog_allows_it(project: Project) -> None:
    project.put({"workers/seeker.yaml": "toolsets: [web]\n"})
    for rule, is_offered in (("allow", True), ("ask", False), ("deny", False)):
        entry = f"{{use: native, config: {{kind: web_search}}, policy: [{{{rule}: web_search}}]}}"
        project.write(signoff=f"toolsets: {{web: {entry}}}\npolicy: []\n")
        # This model cannot search: it fails where it is offered the tool, and answers where it is not.
        done = project.signoff("run", "seeker", "Go on", "--model", "test", "--json")
        assert (done.code == 1) == is_offered, (rule, done.out, done.err)
        assert ("does not support built-in tools" in done.err) == is_offered


@pytest.mark.mission("P1")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("shell", "`shell_readonly`"),
        ("shel", "`shell_readonly`"),
        ("_shell", "`shell_readonly`"),
        ("delegation", "`delegates: [NAME]`"),
        ("worker:clerk", "`delegates: [clerk]`"),
        ("clerk", "`delegates: [clerk]`"),
        ("filesystem_read_only", "`filesystem_ro`"),
        ("filesystm_rw", "`filesystem_rw`"),
    ],
)
def test_p1_a_misspelt_or_foreign_name_gets_the_right_suggestion(project: Project, name: str, told: str) -> None:
    project.write(signoff="policy: []\n", workers__clerk="instructions: Note.\n")
    refused = rings(project, f'"{name}"')
    assert refused.code == 2 and told in refused.err, refused.err


@pytest.mark.mission("P13")
def test_p13_a_worker_adds_to_its_profile_or_drops_from_it(project: Project) -> None:
    bells = "toolsets: {one: {use: 'bells:Bell', config: {name: one}}, files: {use: filesystem_rw}}"
    project.write(signoff=f"{bells}\nplugins: {{allow: [bells]}}\npolicy: [{{allow: '*'}}]\n")
    turns = "- calls: [{tool: ring}, {tool: write_file, args: {path: a.txt, content: x}}]\n- say: done\n"
    project.put({"bells.py": BELL, "workers/base.yaml": "toolsets: [files]\n", "workers/hand.turns": turns})
    for toolsets, given in (
        ("{add: [one], drop: [files]}", ["one"]),
        ("{one: {}}", ["one"]),
        ("{add: [one]}", ["files", "one"]),
    ):
        project.put({"workers/hand.yaml": f"extends: base\ntoolsets: {toolsets}\n"})
        assert project.signoff("workers", "hand", "--json").data["toolsets"] == given
    assert project.run("hand").code == 0
    assert project.read("one.rung") == "rung\n" and project.read("a.txt") == "x"
