"""MCP servers as toolsets: a local program over stdio, or a server at a URL.

A server's tool annotations become claimed labels. They make the policy stricter, never more lenient, unless the project
trusts the server with `trust_annotations`.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, Any, Self, cast

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_ai import RunContext
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool, WrapperToolset

from signoff.core.declared_secrets import in_headers
from signoff.core.redact import redact_text
from signoff.core.request_context import shortened
from signoff.errors import MissingExtra, WrongUse
from signoff.policy.phrases import did_you_mean, shown
from signoff.toolsets.context import ToolsetContext
from signoff.toolsets.mcp_claims import labels_claimed


class McpConfig(BaseModel):
    """What `use: mcp` takes: `command` for a program of this machine, or `url`."""

    # Descriptions as arguments: pydantic reads docstrings of fields from the source, which would slow down every start.
    model_config = ConfigDict(extra="forbid")

    command: str | list[str] | None = Field(
        default=None, description="The program and its arguments. `python` is the Python that runs signoff."
    )
    env: dict[str, str] = Field(
        default_factory=dict,
        description="Variables for the program, which otherwise gets little more than PATH and HOME.",
    )
    cwd: str | None = Field(
        default=None, description="Where the program is started; by default, in the project's directory."
    )
    url: str | None = None
    headers: dict[str, str] = Field(default_factory=dict, description="Sent with every request to `url`.")
    timeout: float = Field(
        default=60, gt=0, description="Seconds to wait for the server: to start, and for each answer."
    )
    tools: list[str] | None = Field(default=None, description="The only tools that are offered; by default, all.")
    trust_annotations: bool = Field(
        default=False, description="Whether what the server says about its tools may let calls run without a question."
    )

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("an MCP server has either a `command` or a `url`")
        if self.command is not None and not self.words:
            raise ValueError("`command` is empty")
        if self.command is not None and self.headers:
            raise ValueError("`headers` go with a `url`; a program gets `env`")
        if self.url is not None and (self.env or self.cwd):
            raise ValueError("`env` and `cwd` go with a `command`; a server at an address gets `headers`")
        if self.url is not None and not self.url.startswith(("http://", "https://")):
            raise ValueError("`url` begins with http:// or https://")
        return self

    @property
    def words(self) -> list[str]:
        """The command as a list of words."""
        if self.command is None:
            return []
        words = shlex.split(self.command) if isinstance(self.command, str) else list(self.command)
        return [sys.executable, *words[1:]] if words[:1] == ["python"] else words


def mcp_server(config: McpConfig, context: ToolsetContext | None, id: str = "mcp") -> McpServer:
    """The toolset of an MCP server. The server is started, or connected to, when a run begins."""
    try:
        from pydantic_ai.mcp import MCPToolset
    except ImportError as error:
        raise MissingExtra("An MCP server", "mcp") from error
    directory = (context.workspace if context is not None else None) or os.getcwd()
    said = ServerStderr()
    # A failed tool call is returned to the model. Counted as a retry, it would soon end the run.
    options: dict[str, Any] = {"id": id, "tool_error_behavior": "failed"}
    options |= {"init_timeout": config.timeout, "read_timeout": config.timeout}
    if config.url is not None:
        source: Any = config.url
        options["headers"] = dict(config.headers) or None
    else:
        from fastmcp.client.transports import StdioTransport

        program, *arguments = config.words
        cwd = os.path.join(directory, config.cwd or "")
        log: Any = said
        source = StdioTransport(program, arguments, env=dict(config.env), cwd=cwd, keep_alive=False, log_file=log)
    server: AbstractToolset[Any] = MCPToolset(source, **options)
    return McpServer(server, name=id, config=config, said=said)


class ServerStderr:
    """Captures the standard error of a server's program, which would otherwise appear on the terminal amid the card."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None

    def fileno(self) -> int:
        """A new temporary file for a program that is about to start. The program has its own copy of the descriptor."""
        self.close()
        self._file = TemporaryFile()  # noqa: SIM115 - open until the program runs or has failed to
        return self._file.fileno()

    def last_line(self) -> str:
        """The last line that was written; of a traceback, the one that says what went wrong."""
        if self._file is None:
            return ""
        start = max(0, self._file.seek(0, os.SEEK_END) - 65_536)
        self._file.seek(start)
        lines = self._file.read().decode(errors="replace").splitlines()[1 if start else 0 :]  # without a cut first line
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@dataclass
class McpServer(WrapperToolset[Any]):
    """The tools of an MCP server, with the labels that it claims for them."""

    name: str
    config: McpConfig = field(repr=False)
    labelled: tuple[str, ...] = ()
    """The tools, by name or glob, that the project itself has labelled."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Values that must be masked in errors."""
    said: ServerStderr = field(default_factory=ServerStderr, repr=False, compare=False)
    claims: dict[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"], repr=False, compare=False)

    @property
    def id(self) -> str | None:
        return self.name

    @property
    def label(self) -> str:
        return f"MCP server {self.name!r}"

    async def __aenter__(self) -> Self:
        try:
            await self.wrapped.__aenter__()
        except Exception as error:
            raise WrongUse(f"the MCP server of toolset {shown(self.name)} {self._unreachable(error)}") from error
        finally:
            self.said.close()
        return self

    def _unreachable(self, error: Exception) -> str:
        inner: BaseException = error
        while isinstance(inner, BaseExceptionGroup):
            inner = cast("BaseExceptionGroup[BaseException]", inner).exceptions[0]
        hidden = (*self.secrets, *in_headers(self.config.headers), *self.config.env.values())
        why = redact_text(f"{type(inner).__name__}: {inner}", secrets=hidden)
        if self.config.url is not None:
            return f"cannot be reached: {why}"
        if last := redact_text(
            self.said.last_line(), secrets=hidden
        ):  # mask before cutting: half a secret is not recognised
            why = f"it said: {shortened(last, 300)}"
        command = redact_text(shlex.join(self.config.words), secrets=hidden)
        return f"did not start: {why}\n  try its command yourself, in its directory: {command}"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        tools = await self.wrapped.get_tools(ctx)
        if (only := self.config.tools) is not None:
            for name in only:
                if name not in tools:
                    hint = did_you_mean(name, tools)
                    raise WrongUse(f"the MCP server of toolset {shown(self.name)} has no tool {shown(name)}\n  {hint}")
            tools = {name: tool for name, tool in tools.items() if name in only}
        for name, tool in tools.items():
            said = (tool.tool_def.metadata or {}).get("annotations")
            self.claims[name] = labels_claimed(name, said, self.labelled)
        return tools

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        if self.config.tools is not None and name not in self.config.tools:
            raise WrongUse(f"{shown(name)} is not among the `tools` of toolset {shown(self.name)}")
        return await self.wrapped.call_tool(name, tool_args, ctx, tool)

    def claimed_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> frozenset[str]:
        """The labels that the server claims for a tool."""
        return self.claims.get(name, frozenset())

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> frozenset[str]:
        """The claimed labels as trusted ones, which allow rules may use, if the project trusts the server."""
        return self.claims.get(name, frozenset()) if self.config.trust_annotations else frozenset()
