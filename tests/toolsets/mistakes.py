"""Mistakes that people make when they name, configure and write toolsets. `docs/reference/mistakes.md` lists them."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Mistake:
    """Files, and the toolsets that a worker uses."""

    title: str
    files: dict[str, str] = field(default_factory=dict)
    uses: str = "[db]"


def entry(title: str, text: str, **files: str) -> Mistake:
    """A mistake in the entry `db` of the project's file."""
    whole = f"toolsets: {{db: {text}}}\nplugins: {{allow: [plugin]}}\npolicy: []\n"
    return Mistake(title, {"signoff.yaml": whole, **{f"{name}.py": code for name, code in files.items()}})


def worker(title: str, uses: str, **files: str) -> Mistake:
    """A mistake in what a worker uses."""
    return Mistake(
        title, {"signoff.yaml": "policy: []\n", **{f"{name}.py": code for name, code in files.items()}}, uses
    )


CLASS = "from pydantic_ai.toolsets import FunctionToolset\n\n\nclass Db(FunctionToolset):\n    pass\n"

MISTAKES = (
    worker("a misspelt toolset in a worker", "[filesystm_ro]"),
    worker("a class path in a worker", '["plugin:Db"]'),
    worker("`mcp` in a worker", "[mcp]"),
    worker("a toolset that cannot do without config", "[sql]"),
    Mistake(
        "two tools with one name",
        {"signoff.yaml": "policy: []\n"},
        "[filesystem_rw, filesystem_ro]",
    ),
    entry("a misspelt built-in", "{use: filesystm_rw}"),
    entry("code that may not be imported", '{use: "mycompany.db:Database"}'),
    entry("a module that is not there", '{use: "plugin:Db"}'),
    entry("a misspelt class", '{use: "plugin:DB"}', plugin=CLASS),
    entry("a class that is no toolset", '{use: "plugin:Db"}', plugin="class Db:\n    pass\n"),
    entry("a function that makes no toolset", '{use: "plugin:make"}', plugin="def make():\n    return 5\n"),
    entry(
        "a plugin that raises when it is imported", '{use: "plugin:Db"}', plugin="raise RuntimeError('no licence')\n"
    ),
    entry("a plugin that needs another package", '{use: "plugin:Db"}', plugin="import no_such_package\n"),
    entry(
        "a plugin that raises when it is made",
        '{use: "plugin:make"}',
        plugin="def make():\n    raise OSError('no disk')\n",
    ),
    entry("an `inner_class` that is no toolset", '{use: sql, config: {inner_class: "plugin:Db"}}', plugin="Db = 5\n"),
    entry("a misspelt key of config", "{use: filesystem_rw, config: {rot: .}}"),
    entry("a value of the wrong kind", "{use: filesystem_rw, config: {max_bytes: lots}}"),
    entry("a value that is missing", "{use: sql, config: {readonly: true}}"),
    entry("a directory that is not there", "{use: filesystem_rw, config: {root: nowhere}}"),
    entry("a database of no known kind", "{use: sql, config: {url: orders.db}}"),
    entry("an MCP server without an address", "{use: mcp}"),
    entry("an MCP server with two", '{use: mcp, config: {command: server, url: "https://mcp.example"}}'),
    entry("headers for a program", "{use: mcp, config: {command: server, headers: {X-Key: k}}}"),
    entry("an unknown native tool", "{use: native, config: {kind: websearch}}"),
    entry("a native tool without its kind", "{use: native}"),
    worker("`toolsets.py` that raises", "[mine]", toolsets="import os\nos.environ['NO_SUCH_KEY']\n"),
    worker("`toolsets.py` without TOOLSETS", "[mine]", toolsets="toolset = {}\n"),
    worker("a built-in's name in TOOLSETS", "[mine]", toolsets="TOOLSETS = {'sql': None, 'mine': None}\n"),
    worker("something else in TOOLSETS", "[mine]", toolsets="TOOLSETS = {'mine': 5}\n"),
    Mistake(
        "config for a toolset that is made already",
        {
            "signoff.yaml": "toolsets: {db: {use: mine, config: {size: 3}}}\npolicy: []\n",
            "toolsets.py": CLASS + "\n\nTOOLSETS = {'mine': Db()}\n",
        },
    ),
)
