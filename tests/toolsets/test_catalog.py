"""The catalog: what a name stands for, how it becomes a toolset, and what keeps code from being loaded."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import NativeTool
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.toolsets import AbstractToolset, FunctionToolset
from tests.gate.agents import calls, returns
from tests.toolsets.projects import Project, project, run

from signoff import ApprovalMemory, Signoff
from signoff.errors import SignoffError, WrongFile, WrongUse
from signoff.testing import ScriptedApprover, ScriptedModel
from signoff.toolsets.builtin.files.file_toolset import FilesToolset
from signoff.toolsets.catalog import BuiltToolset, Catalog, known_tools
from signoff.toolsets.context import Context
from signoff.toolsets.distinct_toolsets import name_of, together

__all__ = ["project"]

TOOLSET = """
    from pydantic_ai.toolsets import FunctionToolset

    class Shop(FunctionToolset):
        made = []

        def __init__(self, currency="EUR", *, id=None):
            super().__init__([self.price, self.buy], id=id)
            self.currency = currency
            self.made.append(self)

        def price(self) -> str:
            "What it costs."
            return f"5 {self.currency}"

        def buy(self) -> str:
            "Buy it."
            return "bought"
"""


def inner(built: BuiltToolset) -> Any:
    """The toolset itself, below everything that is put around it."""
    found: Any = built.toolset
    while hasattr(found, "wrapped"):
        found = found.wrapped
    return found


# --- names ---


@pytest.mark.mission("C3")
async def test_c3_built_ins_are_there_without_an_entry_and_start_from_the_projects_directory(project: Project) -> None:
    catalog = project.catalog("")
    assert {"filesystem_rw", "filesystem_ro", "shell_readonly", "shell_file_ops", "sql"} <= set(catalog.names())
    project.write("notes.txt", "hello\n")
    for name in ("filesystem_rw", "filesystem_ro", "shell_readonly", "shell_file_ops"):
        built = catalog.build(name)
        tool = ("read_file", {"path": "notes.txt"}) if "files" in name else ("shell", {"command": "cat notes.txt"})
        ui, told = await run(built, [tool])
        assert "hello" in told[0][1], name
        assert ui.asked == []
    assert known_tools(catalog.build("filesystem_ro")) == ("list_files", "read_file", "search_files")
    assert catalog.origin("filesystem_ro") == "built in"


@pytest.mark.mission("C3")
async def test_c3_root_in_config_makes_many_named_instances(project: Project) -> None:
    project.write("drafts/a.txt", "a draft")
    project.write("final/a.txt", "final")
    catalog = project.catalog("""
        toolsets:
          drafts: {use: filesystem_rw, config: {root: drafts}, policy: [{allow: write_file}], prefix: drafts}
          final: {use: filesystem, config: {root: final, read_only: true}, prefix: final}
    """)
    drafts, final = catalog.build_all(["drafts", "final"])
    assert known_tools(final) == ("final_list_files", "final_read_file", "final_search_files")
    assert drafts.toolset is not None
    assert final.toolset is not None
    ui = ScriptedApprover([])
    turns = [
        calls(("drafts_read_file", {"path": "a.txt"})),
        calls(("final_read_file", {"path": "a.txt"})),
        calls(("drafts_write_file", {"path": "b.txt", "content": "b"})),
        {"say": "done"},
    ]
    gate = Signoff([], approver=ui, memory=ApprovalMemory(file=None))
    agent = Agent(ScriptedModel(turns), toolsets=[drafts.toolset, final.toolset], capabilities=[gate])
    told = returns((await agent.run("go")).all_messages())
    assert "a draft" in told[0][1]
    assert "final" in told[1][1]
    assert (project.directory / "drafts/b.txt").read_text() == "b"
    assert not (project.directory / "final/b.txt").exists()


@pytest.mark.mission("C1")
async def test_c1_a_name_is_a_plain_toolset_and_one_policy_and_two_policies_are_two_names(project: Project) -> None:
    project.package("shops", TOOLSET)
    catalog = project.catalog("""
        toolsets:
          window: {use: "shops:Shop", policy: [{allow: price}, {deny: buy}]}
          counter: {use: "shops:Shop", policy: [{ask: price}, {allow: buy}]}
        plugins: {allow: [shops]}
    """)
    made = [("price", {}), ("buy", {})]
    window, counter = catalog.build("window"), catalog.build("counter")
    assert isinstance(window.toolset, AbstractToolset)
    assert isinstance(inner(window), FunctionToolset)
    ui, told = await run(window, made)
    assert ui.asked == []
    assert [outcome for outcome, _ in told] == ["success", "denied"]
    ui, told = await run(counter, made, "deny")
    assert [(one.tool_name, one.call.toolset) for one in ui.asked] == [("price", "counter")]
    assert [outcome for outcome, _ in told] == ["denied", "success"]


async def test_an_entry_may_have_the_name_of_a_built_in(project: Project) -> None:
    project.write("below/a.txt", "a")
    catalog = project.catalog("toolsets: {filesystem_ro: {use: filesystem_ro, config: {root: below}}}")
    assert inner(catalog.build("filesystem_ro")).root.path == str((project.directory / "below").resolve())
    assert "signoff.yaml:1, use: filesystem_ro" in catalog.origin("filesystem_ro")


# --- where code comes from ---


@pytest.mark.mission("P1")
def test_p1_a_class_path_an_alias_and_an_entry_point_name_a_toolset(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.package("shops", TOOLSET)
    offers(project, monkeypatch, "corner_shop = shops:Shop")
    catalog = project.catalog("""
        toolsets:
          path: {use: "shops:Shop", config: {currency: USD}}
          point: {use: corner_shop, config: {currency: ISK}}
          alias: {use: filesystem_ro}
        plugins: {allow: ["shops"]}
    """)
    assert inner(catalog.build("path")).currency == "USD"
    assert inner(catalog.build("point")).currency == "ISK"
    assert inner(catalog.build("corner_shop")).currency == "EUR"
    assert isinstance(inner(catalog.build("alias")), FilesToolset)
    assert catalog.origin("corner_shop") == "package corner 1.2, shops:Shop"
    assert "corner_shop" in catalog.names()


@pytest.mark.mission("P6")
def test_p6_of_two_packages_that_offer_one_name_only_the_allowed_one_counts(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.package("shops", TOOLSET)
    project.package("impostor", "raise RuntimeError('it was imported')")
    offers(project, monkeypatch, "corner_shop = impostor:Shop", package="aaa")
    offers(project, monkeypatch, "corner_shop = shops:Shop")
    assert inner(project.catalog("plugins: {allow: [shops]}").build("corner_shop")).currency == "EUR"
    both = project.catalog("toolsets: {shop: {use: corner_shop}}\nplugins: {allow: ['*']}")
    with pytest.raises(WrongFile, match="several packages offer `corner_shop`"):
        both.build("shop")


def test_a_package_that_is_installed_later_is_found_too(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.package("shops", TOOLSET)
    offers(project, monkeypatch, "corner_shop = shops:Shop", package="first")
    catalog = project.catalog("plugins: {allow: [shops]}")
    assert "corner_shop" in catalog.names() and "later_shop" not in catalog.names()
    offers(project, monkeypatch, "later_shop = shops:Shop", package="second")
    assert "later_shop" in project.catalog("plugins: {allow: [shops]}").names()


def offers(project: Project, monkeypatch: pytest.MonkeyPatch, *lines: str, package: str = "corner") -> None:
    """An installed package, as far as its metadata goes, that offers toolsets."""
    info = project.directory / f"{package}-1.2.dist-info"
    project.write(f"{info.name}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
    (info / "entry_points.txt").write_text("[signoff.toolsets]\n" + "".join(f"{line}\n" for line in lines))
    monkeypatch.syspath_prepend(str(project.directory))


@pytest.mark.parametrize(
    ("allow", "loads"),
    [
        ([], False),
        (["other"], False),
        (["mycompany"], False),
        (["mycompany.shop"], False),
        (["mycompany.shops"], True),
        (["mycompany.*"], True),
        (["mycompany.shops:Shop"], True),
        (["mycompany.shops:Other"], False),
        (["*"], True),
    ],
)
@pytest.mark.parametrize("use", ["mycompany.shops:Shop", "corner_shop"])
@pytest.mark.mission("P6")
def test_p6_only_allowed_import_patterns_load(
    project: Project, monkeypatch: pytest.MonkeyPatch, use: str, allow: list[str], loads: bool
) -> None:
    project.package("mycompany.shops", TOOLSET + '\n    open(__file__ + ".imported", "w").close()\n')
    offers(project, monkeypatch, "corner_shop = mycompany.shops:Shop")
    catalog = project.catalog(f"toolsets: {{shop: {{use: '{use}'}}}}\nplugins: {{allow: {allow}}}")
    if loads:
        assert catalog.build("shop").toolset is not None
        return
    with pytest.raises(WrongFile) as refused:
        catalog.build("shop")
    line = ", ".join(f'"{one}"' for one in [*allow, "mycompany.shops"])
    assert f"plugins: {{allow: [{line}]}}" in str(refused.value)
    assert str(refused.value).startswith(f"{project.directory}/signoff.yaml:1:")
    assert "mycompany.shops" not in sys.modules
    assert not list(project.directory.rglob("*.imported"))


@pytest.mark.mission("P6")
def test_p6_the_line_that_the_refusal_names_is_enough(project: Project) -> None:
    project.package("mycompany.shops", TOOLSET)
    entry = "toolsets: {shop: {use: 'mycompany.shops:Shop'}}"
    with pytest.raises(WrongFile) as refused:
        project.catalog(entry).build("shop")
    line = refused.value.fix.partition("write: ")[2]
    assert project.catalog(f"{entry}\n{line}").build("shop").toolset is not None


@pytest.mark.mission("C6")
async def test_c6_a_projects_toolsets_py_exports_instances_factories_and_registrations(project: Project) -> None:
    project.write(
        "toolsets.py",
        """
        from pydantic_ai.toolsets import FunctionToolset
        from signoff.toolsets import Registration
        import sibling

        made = []

        def look() -> str:
            "Look."
            return sibling.WORD

        def factory(context, word="w"):
            made.append((context.worker, word))
            return FunctionToolset([look], id="mine")

        TOOLSETS = {
            "instance": FunctionToolset([look]),
            "factory": factory,
            "klass": FunctionToolset,
            "record": Registration(toolset=factory, policy=[{"allow": "look"}], config={"word": "recorded"}),
            "broken": 5,
        }
        """,
    )
    project.write("sibling.py", 'WORD = "seen"\n')
    catalog = project.catalog("toolsets: {again: {use: record, config: {word: mine}, policy: [{ask: look}]}}")
    assert {"instance", "factory", "klass", "record", "again"} <= set(catalog.names())
    assert catalog.origin("instance") == "toolsets.py"
    for name, asks in {"instance": 1, "factory": 1, "record": 0, "again": 1}.items():
        ui, told = await run(catalog.build(name, Context(worker=f"for-{name}")), [("look", {})], *["approve"] * asks)
        assert told == [("success", "seen")], name
        assert [one.call.toolset for one in ui.asked] == [name] * asks
    made = sys.modules[inner(catalog.build("instance")).tools["look"].function.__module__].made
    assert made == [("for-factory", "w"), ("for-record", "recorded"), ("for-again", "mine")]
    assert known_tools(catalog.build("klass")) == ()


@pytest.mark.mission("C6")
def test_c6_toolsets_py_is_run_only_when_it_is_needed(project: Project) -> None:
    project.write("toolsets.py", "raise RuntimeError('not needed')")
    catalog = project.catalog("toolsets: {files: {use: filesystem_ro}}")
    assert catalog.build("files").toolset is not None
    assert catalog.build("filesystem_ro").toolset is not None
    with pytest.raises(WrongFile, match=r"toolsets.py:1: running it failed with RuntimeError: not needed"):
        catalog.names()


# --- creation ---

SHAPES = """
    from dataclasses import dataclass
    from pydantic import BaseModel
    from pydantic_ai.toolsets import FunctionToolset
    from signoff.toolsets.context import ToolsetContext

    class Base(FunctionToolset):
        def __init__(self, **got):
            super().__init__([])
            self.got = got

    class Both(Base):
        def __init__(self, config, context):
            super().__init__(config=config, context=context)

    class ConfigOnly(Base):
        def __init__(self, config):
            super().__init__(config=config)

    class ContextOnly(Base):
        def __init__(self, context):
            super().__init__(context=context)

    class Keywords(Base):
        def __init__(self, size: int = 1, *, word: str = "w", id: str = "own"):
            super().__init__(size=size, word=word, id=id)

    class Neither(Base):
        def __init__(self):
            super().__init__()

    class Modelled(Base):
        class Config(BaseModel):
            size: int
            word: str = "w"

        def __init__(self, settings: Config, where: ToolsetContext):
            super().__init__(config=settings, context=where)

    class Mixed(Base):
        def __init__(self, context, size: int, **rest):
            super().__init__(context=context, size=size, rest=rest)

    def factory(config, context):
        return Both(config, context)

    def positional(config, context, /):
        return Both(config, context)

    instance = Neither()
    Base.Nested = Neither
"""


@pytest.mark.parametrize(
    ("name", "config", "got"),
    [
        ("Both", {"size": 2}, {"config": {"size": 2}, "context": "clerk"}),
        ("ConfigOnly", {"size": 2}, {"config": {"size": 2}}),
        ("ContextOnly", {}, {"context": "clerk"}),
        ("Keywords", {"size": "3"}, {"size": 3, "word": "w", "id": "it"}),
        ("Keywords", {"id": "given"}, {"size": 1, "word": "w", "id": "given"}),
        ("Neither", {}, {}),
        ("Base.Nested", {}, {}),
        ("Modelled", {"size": 2}, {"config": ("Config", 2), "context": "clerk"}),
        ("Mixed", {"size": 2, "more": 1}, {"size": 2, "rest": {"more": 1}, "context": "clerk"}),
        ("factory", {"a": 1}, {"config": {"a": 1}, "context": "clerk"}),
        ("positional", {"a": 1}, {"config": {"a": 1}, "context": "clerk"}),
        ("instance", {}, {}),
    ],
)
@pytest.mark.mission("P2")
def test_p2_every_shape_of_class_factory_and_instance_is_made_from_config_and_context(
    project: Project, name: str, config: dict[str, Any], got: dict[str, Any]
) -> None:
    project.package("shapes", SHAPES)
    catalog = project.catalog(
        f"toolsets: {{it: {{use: 'shapes:{name}', config: {config}}}}}\nplugins: {{allow: [shapes]}}"
    )
    made = dict(inner(catalog.build("it", Context(worker="clerk"))).got)
    if "context" in made:
        made["context"] = made["context"].worker
    if not isinstance(made.get("config", {}), dict):
        made["config"] = (type(made["config"]).__name__, made["config"].size)
    assert made == got


@pytest.mark.mission("P2")
def test_p2_inner_class_swaps_the_implementation(project: Project) -> None:
    project.package("shapes", SHAPES + "\n    def wrapping(inner_class, word='w'):\n        return inner_class()\n")
    project.package("others", TOOLSET + "\n    class NoToolset: pass\n")
    catalog = project.catalog("""
        toolsets:
          shop: {use: "shapes:Both", config: {inner_class: "others:Shop", currency: USD}}
          handed: {use: "shapes:wrapping", config: {inner_class: "others:Shop"}}
          files: {use: filesystem_rw, config: {inner_class: "others:Shop", currency: NOK}}
          wrong: {use: "shapes:Both", config: {inner_class: "others:NoToolset"}}
          denied: {use: "shapes:Both", config: {inner_class: "os:system"}}
          nothing: {use: "shapes:Both", config: {inner_class: Shop}}
        plugins: {allow: [shapes, others]}
    """)
    assert inner(catalog.build("shop")).currency == "USD"
    assert type(inner(catalog.build("handed"))).__name__ == "Shop"
    assert inner(catalog.build("files")).currency == "NOK"
    for name, what in {
        "wrong": "not a toolset class",
        "denied": "`os` is not allowed",
        "nothing": "a class path",
    }.items():
        with pytest.raises(WrongFile, match=what) as refused:
            catalog.build(name)
        assert f"toolsets.{name}.config.inner_class" in str(refused.value)


@pytest.mark.mission("P3")
def test_p3_a_toolset_is_given_a_context_whose_parts_may_be_absent(project: Project) -> None:
    project.package("shapes", SHAPES)
    catalog = project.catalog("toolsets: {it: {use: 'shapes:ContextOnly'}}\nplugins: {allow: [shapes]}")
    bare = inner(catalog.build("it")).got["context"]
    assert (bare.worker, bare.approvals, bare.delegation, bare.model, bare.message) == (None,) * 5
    assert bare.catalog is catalog
    assert bare.workspace == str(project.directory.resolve())
    told: list[str] = []

    async def delegate(worker: str, prompt: str) -> str:
        return f"{worker}: {prompt}"

    gate = Signoff([])
    full = Context(worker="clerk", approvals=gate, delegation=delegate, model="test", message=told.append)
    given = inner(catalog.build("it", full)).got["context"]
    given.message("hello")
    assert told == ["hello"]
    assert (given.worker, given.approvals, given.delegation, given.model) == ("clerk", gate, delegate, "test")


# --- profiles, native tools, clashes ---


@pytest.mark.mission("P7")
def test_p7_extends_and_defaults_make_profiles(project: Project) -> None:
    with sqlite3.connect(project.directory / "shop.db") as database:
        database.execute("CREATE TABLE t (a)")
    catalog = project.catalog("""
        defaults: {toolset: {config: {max_rows: 7}}}
        toolsets:
          orders: {use: sql, config: {url: "sqlite:shop.db"}, policy: [{allow: data.read}]}
          reports: {extends: orders, config: {readonly: true}}
    """)
    orders, reports = inner(catalog.build("orders")), inner(catalog.build("reports"))
    assert (orders.readonly, orders.max_rows) == (False, 7)
    assert (reports.readonly, reports.max_rows) == (True, 7)
    assert known_tools(catalog.build("reports")) == ("query",)
    with pytest.raises(SignoffError, match="forms a cycle: a > b > a"):
        project.catalog("toolsets: {a: {extends: b}, b: {extends: a}}")


@pytest.mark.mission("C8")
def test_c8_a_native_tool_has_its_policy_in_the_catalog(project: Project) -> None:
    catalog = project.catalog("""
        toolsets:
          web: {use: native, config: {kind: web_search, max_uses: 3}, policy: [{allow: web_search}]}
    """)
    built = catalog.build("web")
    assert built.toolset is None
    assert built.native == (WebSearchTool(max_uses=3),)
    assert built.policy is not None
    assert [rule.id for rule in built.policy.rules] == ["web/rule-1"]


@pytest.mark.parametrize(
    ("entry", "rules", "offered"),
    [
        ("policy: [{allow: web_search}]", [], True),
        ("policy: [{allow: web_search}]", [{"deny": "web_search"}], False),
        ("policy: [{ask: web_search}]", [{"allow": "*"}], False),
        ("policy: [{deny: web_search}]", [{"allow": "*"}], False),
        ("labels: {}", [{"allow": {"tool": "web_search"}}], True),
        ("labels: {}", [], False),
    ],
)
@pytest.mark.mission("C8")
async def test_c8_what_is_not_allowed_is_not_offered_to_the_model(
    project: Project, entry: str, rules: Any, offered: bool
) -> None:
    built = project.catalog(f"toolsets: {{web: {{use: native, config: {{kind: web_search}}, {entry}}}}}").build("web")
    native = {tool.kind: built.policy for tool in built.native if built.policy is not None}
    seen: list[list[str]] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append([tool.kind for tool in info.model_request_parameters.native_tools])
        return ModelResponse(parts=[TextPart("done")])

    model = FunctionModel(answer, profile=ModelProfile(supported_native_tools=frozenset({WebSearchTool})))
    gate = Signoff(rules, native=native, memory=ApprovalMemory(file=None))
    await Agent(model, capabilities=[*(NativeTool(tool) for tool in built.native), gate]).run("go")
    assert seen == [["web_search"] if offered else []]


@pytest.mark.mission("P5")
def test_p5_variables_are_filled_in_and_their_values_are_told_as_secrets(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.package("shops", TOOLSET)
    monkeypatch.setenv("SHOP_CURRENCY", "hush-hush")
    catalog = project.catalog("""
        toolsets:
          shop: {use: "shops:Shop", config: {currency: "${SHOP_CURRENCY}"}}
          plain: {use: "shops:Shop", config: {currency: "${NO_SUCH_VARIABLE:-SEK}"}}
          lacking: {use: "shops:Shop", config: {currency: "${NO_SUCH_VARIABLE}"}}
        plugins: {allow: [shops]}
    """)
    built = catalog.build("shop")
    assert inner(built).currency == "hush-hush"
    assert built.secrets == ("hush-hush",)
    assert "hush-hush" not in repr(built) + repr(catalog)
    assert inner(catalog.build("plain")).currency == "SEK"
    assert catalog.build("plain").secrets == ()
    with pytest.raises(SignoffError, match="the environment has no NO_SUCH_VARIABLE") as missing:
        catalog.build("lacking")
    assert "signoff.yaml:5" in str(missing.value)


@pytest.mark.mission("P5")
def test_p5_an_error_never_shows_the_value_of_a_variable(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.package(
        "shops",
        """
        from pydantic import BaseModel, field_validator
        from pydantic_ai.toolsets import FunctionToolset

        def raises(dsn):
            raise ValueError(f"cannot use {dsn}")

        class Model(FunctionToolset):
            class Config(BaseModel):
                dsn: str

                @field_validator("dsn")
                def check(cls, value):
                    raise ValueError(f"cannot use {value}")
        """,
    )
    monkeypatch.setenv("DSN", "postgresql://ana:hush-hush@db")
    catalog = project.catalog("""
        toolsets:
          raises: {use: "shops:raises", config: {dsn: "${DSN}"}}
          model: {use: "shops:Model", config: {dsn: "${DSN}"}}
          number: {use: filesystem_ro, config: {max_bytes: "${DSN}"}}
          unknown: {use: filesystem_ro, config: {max_byte: "${DSN}"}}
        plugins: {allow: [shops]}
    """)
    for name in catalog.settings.toolsets:
        with pytest.raises(SignoffError) as refused:
            catalog.build(name)
        error: BaseException | None = refused.value
        while error is not None:  # a traceback prints the causes too
            assert "hush" not in str(error), name
            error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def test_two_tools_with_one_name_are_refused_with_both_toolsets_and_the_fix(project: Project) -> None:
    text = "toolsets: {one: {use: filesystem_ro}, two-b: {use: filesystem_rw%s}}"
    catalog = project.catalog(text % "")
    with pytest.raises(WrongUse, match="`one` and `two-b` both have a tool `list_files`") as refused:
        catalog.build_all(["one", "two-b"])
    assert "toolsets: {two-b: {prefix: …}}" in str(refused.value)
    assert len(project.catalog(text % ", prefix: two_b").build_all(["one", "two-b"])) == 2


async def test_two_tools_with_one_name_that_show_only_in_a_run_are_refused_there(project: Project) -> None:
    project.write(
        "toolsets.py",
        """
        from pydantic_ai.toolsets import FunctionToolset

        def look() -> str:
            return ""

        TOOLSETS = {name: FunctionToolset([look]).filtered(lambda ctx, tool: True) for name in ("one", "two")}
        """,
    )
    built = project.catalog("").build_all(["one", "two"])
    toolsets = together([one.toolset for one in built if one.toolset is not None])
    agent = Agent(ScriptedModel([{"say": "hi"}]), toolsets=toolsets)
    with pytest.raises(WrongUse, match=r"(?s)`one` and `two` both have a tool `look`.*prefix"):
        await agent.run("go")


def test_a_toolset_of_the_catalog_is_known_by_its_name_there(project: Project) -> None:
    built = project.catalog("toolsets: {files: {use: filesystem_ro}}").build("files")
    assert isinstance(built.toolset, FilesToolset)
    assert name_of(built.toolset) == built.toolset.id == "files"


def test_names_are_known_without_importing_any_plugin(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    offers(project, monkeypatch, "corner_shop = mycompany.shops:Shop")
    catalog = project.catalog("toolsets: {shop: {use: 'mycompany.shops:Shop'}}\nplugins: {allow: ['*']}")
    assert {"corner_shop", "shop"} <= set(catalog.names())
    assert isinstance(catalog, Catalog)
    assert "mycompany.shops" not in sys.modules
    assert Path(project.directory).exists()
