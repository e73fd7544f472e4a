"""Config is checked before anything runs: the place, the key path, what was expected."""

from __future__ import annotations

from typing import Any

import pytest
from tests.toolsets.projects import Project, project

from signoff.errors import SignoffError, WrongFile
from signoff.toolsets.config_schema import config_schema

__all__ = ["project"]

TOOLSETS = """
    from __future__ import annotations

    from collections.abc import Iterable
    from typing import TYPE_CHECKING, Literal

    from pydantic import BaseModel, ConfigDict, Field
    from pydantic_ai.toolsets import FunctionToolset

    if TYPE_CHECKING:
        from nowhere import Unknown

    made = []

    class Pool(BaseModel):
        size: int = 1

    class Model(FunctionToolset):
        class Config(BaseModel):
            dsn: str
            pool: Pool = Pool()
            mode: Literal["ro", "rw"] = "ro"
            hosts: list[str] = []

        def __init__(self, config: Config) -> None:
            super().__init__([])
            made.append(config)

    class Loose(FunctionToolset):
        class Config(BaseModel):
            model_config = ConfigDict(extra="allow")
            dsn: str

        def __init__(self, config) -> None:
            super().__init__([])
            made.append(config)

    class Schema(FunctionToolset):
        config_schema = {
            "properties": {
                "dsn": {"type": "string"},
                "mode": {"enum": ["ro", "rw"]},
                "pool": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 1}}},
            },
            "required": ["dsn"],
        }

        def __init__(self, config) -> None:
            super().__init__([])
            made.append(config)

    def signature(
        dsn: str, size: int = 1, mode: Literal["ro", "rw"] = "ro", hosts: Iterable[str] = (), other: Unknown = None
    ) -> Unknown:
        made.append((dsn, size, mode, hosts, other))
        return FunctionToolset([])
"""
SHOW = "`signoff toolsets show db` says what it takes"
KINDS = {"model": "kinds:Model", "schema": "kinds:Schema", "signature": "kinds:signature"}


def problem(project: Project, use: str, config: str) -> WrongFile:
    """What is wrong with an entry, which stands on lines of its own."""
    project.package("kinds", TOOLSETS)
    lines = "".join(f"      {line}\n" for line in config.splitlines())
    text = f"toolsets:\n  db:\n    use: {use}\n    config:\n{lines}plugins: {{allow: [kinds]}}\npolicy: []\n"
    with pytest.raises(SignoffError) as refused:
        project.catalog(text).build("db")
    assert isinstance(refused.value, WrongFile)
    import kinds  # pyright: ignore[reportMissingImports]

    assert kinds.made == []  # pyright: ignore[reportUnknownMemberType]
    return refused.value


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("config", "at", "what", "fix"),
    [
        ("dns: x\ndsn: y", "5:7: toolsets.db.config.dns", "unknown key `dns`", "did you mean `dsn`?"),
        ("mode: rw", "5:7: toolsets.db.config", "`config.dsn` is missing", SHOW),
        ("dsn: 5", "5:12: toolsets.db.config.dsn", "this should be a v", SHOW),
        ("dsn: x\nmode: w", "6:13: toolsets.db.config.mode", "this should be ", SHOW),
    ],
)
@pytest.mark.mission("P4")
def test_p4_config_is_checked_with_file_key_path_and_what_was_expected(
    project: Project, kind: str, config: str, at: str, what: str, fix: str
) -> None:
    found = problem(project, KINDS[kind], config)
    assert str(found.place) == f"{project.directory}/signoff.yaml:{at}"
    assert what in found.what
    assert found.fix == fix


@pytest.mark.parametrize(
    ("kind", "config", "at", "what"),
    [
        ("model", "dsn: x\npool:\n  size: big", "7:15: toolsets.db.config.pool.size", "this should be a valid integer"),
        ("model", "dsn: x\npool: {siz: 3}", "6:14: toolsets.db.config.pool.siz", "unknown key `siz`"),
        ("model", "dsn: x\nhosts: [a, 3]", "6:18: toolsets.db.config.hosts[1]", "this should be a valid string"),
        ("model", "dsn: x\nmode: w", "6:13: toolsets.db.config.mode", "this should be 'ro' or 'rw'"),
        ("schema", "dsn: x\npool: {size: 0}", "6:20: toolsets.db.config.pool.size", "minimum: 1"),
        ("schema", "dsn: x\nmode: w", "6:13: toolsets.db.config.mode", "one of ['ro', 'rw']"),
        ("signature", "dsn: x\nsize: big", "6:13: toolsets.db.config.size", "this should be a valid integer"),
        ("signature", "dsn: x\nhosts: abc", "6:14: toolsets.db.config.hosts", "this should be a list, not a text"),
    ],
)
@pytest.mark.mission("P4")
def test_p4_also_below_the_first_level(project: Project, kind: str, config: str, at: str, what: str) -> None:
    found = problem(project, KINDS[kind], config)
    assert str(found.place) == f"{project.directory}/signoff.yaml:{at}"
    assert what in found.what


@pytest.mark.mission("P4")
def test_p4_the_place_is_where_the_value_was_written_also_through_extends(project: Project) -> None:
    project.package("kinds", TOOLSETS)
    catalog = project.catalog("""
        toolsets:
          base: {use: "kinds:Model", config: {dsn: x, pool: {size: big}}}
          below: {extends: base, config: {mode: rw}}
        plugins: {allow: [kinds]}
    """)
    with pytest.raises(WrongFile, match=r"signoff.yaml:3:\d+: toolsets.base.config.pool.size: this should be"):
        catalog.build("below")


def test_what_fits_is_handed_over_as_the_toolset_wants_it(project: Project) -> None:
    project.package("kinds", TOOLSETS)
    catalog = project.catalog("""
        toolsets:
          model: {use: "kinds:Model", config: {dsn: x, pool: {size: 2}}}
          loose: {use: "kinds:Loose", config: {dsn: x, more: 1}}
          schema: {use: "kinds:Schema", config: {dsn: x}}
          signature: {use: "kinds:signature", config: {dsn: x, size: "4", hosts: [a]}}
        plugins: {allow: [kinds]}
    """)
    for name in catalog.settings.toolsets:
        catalog.build(name)
    import kinds  # pyright: ignore[reportMissingImports]

    made: list[Any] = kinds.made  # pyright: ignore[reportUnknownMemberType]
    model, loose, schema, signature = made
    assert (model.dsn, model.pool.size) == ("x", 2)
    assert loose.more == 1
    assert schema == {"dsn": "x"}
    assert signature == ("x", 4, "ro", ["a"], None)


def test_a_toolset_that_needs_config_says_how_to_give_it_some(project: Project) -> None:
    with pytest.raises(WrongFile, match=r"`config\.url` is missing") as refused:
        project.catalog("").build("sql")
    assert refused.value.fix == "write an entry: toolsets: {sql: {use: sql, config: {…}}}"


def test_what_a_toolset_takes_can_be_shown(project: Project) -> None:
    project.package("kinds", TOOLSETS)
    catalog = project.catalog("""
        toolsets:
          model: {use: "kinds:Model"}
          schema: {use: "kinds:Schema"}
          signature: {use: "kinds:signature"}
          mcp_one: {use: mcp}
        plugins: {allow: [kinds]}
    """)

    def keys(name: str) -> list[str]:
        schema: dict[str, Any] = config_schema(catalog.target(name))
        return sorted(schema["properties"])

    assert keys("model") == ["dsn", "hosts", "mode", "pool"]
    assert keys("schema") == ["dsn", "mode", "pool"]
    assert keys("signature") == ["dsn", "hosts", "mode", "other", "size"]
    assert "trust_annotations" in keys("mcp_one")
    assert keys("filesystem_ro") == ["max_bytes", "max_chars", "max_results", "root"]
