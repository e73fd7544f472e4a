"""The real coding agents in a project whose hook is installed, with a stand-in for their model.

Claude Code is in the wheel `claude-agent-sdk`; all three are npm packages, which are installed once into a directory of
caches. Where a program can neither be found nor installed, its tests are skipped and say so.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests import start
from tests.outside.model_api import GenerateContent, Messages, ModelApi, Responses, Script, Turn, Wire

from signoff.outside import hook_trust

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "signoff-tests" / "npm"
POLICY = """\
policy:
  - allow: {label: proc.exec, command: read-only}
  - deny: {command: sudo}
    reason: nobody is root here
  - allow: {tool: [Agent, Task, spawn_agent, invoke_agent]}
  - ask: "*"
"""
KNOWN = "what is in the file"


@dataclass(frozen=True, eq=False, kw_only=True)
class Real:
    """How a real agent is started."""

    name: str
    package: str
    """Its npm package."""
    program: str
    wire: Callable[[], Wire]
    words: tuple[str, ...]
    """Its command line for one prompt, in which nothing but a hook stands in the way of a call."""
    shell: Callable[[str], tuple[str, dict[str, Any]]]
    """A call that runs a command line."""
    prepare: Callable[[Session], None]
    """Writes its settings, once the hook is installed."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    address: str = ""
    """The environment variable for the address of the model."""
    oldest: tuple[int, ...] = ()
    """What was found out holds from this version on: an older one in the directory of caches is replaced."""


@dataclass
class Session:
    """An agent in a project whose hook is installed."""

    real: Real
    directory: Path
    home: Path
    api: ModelApi
    environment: dict[str, str] = field(default_factory=dict[str, str])
    trusts: bool = True
    """Whether its user has trusted hook and directory."""

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": f"{Path(program(self.real)).parent}:{os.environ['PATH']}",
            "HOME": str(self.home),
            "SIGNOFF_AS": "ana",
            **self.real.environment,
            **({self.real.address: self.api.url} if self.real.address else {}),
            **self.environment,
        }

    def signoff(self, *words: str, code: int = 0) -> str:
        done = start.run([*start.SIGNOFF, *words], cwd=self.directory, env=self.env, capture_output=True, text=True)
        assert done.returncode == code, (words, done.stdout, done.stderr)
        return done.stdout

    def begin(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [program(self.real), *self.real.words, *words],
            cwd=self.directory,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str) -> list[str]:
        """What the model was told about its calls."""
        return self.ended(self.begin(*words))

    def ended(self, process: subprocess.Popen[str]) -> list[str]:
        with process:
            out, err = process.communicate(timeout=start.PATIENCE)
        assert process.returncode == 0, (out, err)
        return self.api.results()

    def waits(self) -> list[dict[str, Any]]:
        return json.loads(self.signoff("inbox", "--json"))["requests"]

    def made(self, name: str = "made.txt") -> bool:
        return (self.directory / name).exists()


@lru_cache
def program(real: Real) -> str:
    """Where the program is; "" where it is not."""
    if named := os.environ.get(f"SIGNOFF_TEST_{real.program.upper()}", ""):
        return named
    found = importlib.util.find_spec("claude_agent_sdk") if real.program == "claude" else None
    bundled = Path(found.origin).parent / "_bundled" / "claude" if found is not None and found.origin else None
    if bundled is not None and bundled.is_file():
        return str(bundled)
    return str(there) if (there := CACHE / real.program / "node_modules" / ".bin" / real.program).exists() else ""


def installed(real: Real) -> str:
    """The program, installed by npm if need be; "" with no npm or no registry."""
    directory = CACHE / real.program
    if shutil.which("npm") is None or (program(real) and not _is_outdated(real, directory)):
        return program(real)
    directory.mkdir(parents=True, exist_ok=True)
    words = ["npm", "install", "--prefix", str(directory), "--no-audit", "--no-fund", f"{real.package}@latest"]
    subprocess.run(words, capture_output=True, timeout=600, check=False)
    program.cache_clear()
    return program(real)


def _is_outdated(real: Real, directory: Path) -> bool:
    """Whether it is our own copy, and too old."""
    file = directory / "node_modules" / real.package / "package.json"
    if not program(real).startswith(str(directory)) or not file.is_file():
        return False
    version = json.loads(file.read_text())["version"].partition("-")[0]
    return tuple(map(int, version.split("."))) < real.oldest


@contextmanager
def session(
    real: Real, place: Path, scripts: Mapping[str, Script], *words: str, trusts: bool = True
) -> Iterator[Session]:
    """A project with the hook installed, with more options for `signoff hook install`."""
    if not installed(real):
        pytest.skip(f"no {real.name} here, and npm cannot install {real.package}")
    made = Session(real, place / "project", place / "home", ModelApi(real.wire(), scripts), trusts=trusts)
    try:
        made.directory.mkdir()
        made.home.mkdir()
        (made.directory / "signoff.yaml").write_text(POLICY)
        (made.directory / "known.txt").write_text(KNOWN)
        made.signoff("hook", "install", real.name, "--project", "--yes", *words)
        real.prepare(made)
        yield made
    finally:
        made.api.close()


def calls(*made: tuple[str, Any], say: str = "") -> Turn:
    return {"calls": list(made), **({"say": say} if say else {})}


def _nothing(session: Session) -> None:
    """Claude Code needs no settings."""


def _codex_settings(session: Session) -> None:
    """A provider of models, and the trust that Codex's user gives at its start: by the hash of each hook."""
    settings = session.home / ".codex" / "config.toml"
    settings.parent.mkdir()
    settings.write_text(
        f'model = "gpt-5.5"\nmodel_provider = "here"\n[model_providers.here]\nname = "here"\nwire_api = "responses"\n'
        f'base_url = "{session.api.url}/v1"\n[projects."{session.directory}"]\ntrust_level = "trusted"\n'
    )
    if not session.trusts:
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(session.home))
        hooks = hook_trust.codex_hooks(str(session.directory), program(session.real))
    assert hooks, "Codex finds the hooks that were installed"
    states = [f'[hooks.state."{one["key"]}"]\ntrusted_hash = "{one["currentHash"]}"\n' for one in hooks]
    settings.write_text("\n".join([settings.read_text(), *states]))


def _gemini_settings(session: Session) -> None:
    directory = session.home / ".gemini"
    directory.mkdir()
    security = {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": True}}
    plain = {"privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
    (directory / "settings.json").write_text(json.dumps({"security": security, **plain}))
    trusted = {str(session.directory): "TRUST_FOLDER"} if session.trusts else {}
    (directory / "trustedFolders.json").write_text(json.dumps(trusted))


CLAUDE = Real(
    name="claude-code",
    package="@anthropic-ai/claude-code",
    program="claude",
    wire=Messages,
    words=("-p", "DO IT", "--output-format", "json"),
    shell=lambda line: ("Bash", {"command": line, "description": "Do it"}),
    prepare=_nothing,
    environment={
        "ANTHROPIC_API_KEY": "none",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "IS_SANDBOX": "1",
    },
    address="ANTHROPIC_BASE_URL",
    oldest=(2, 1, 327),  # those before it ask no PermissionRequest hook with `-p`
)
BYPASS = ("--permission-mode", "bypassPermissions")
CODEX = Real(
    name="codex",
    package="@openai/codex",
    program="codex",
    wire=Responses,
    words=("exec", "--skip-git-repo-check", "-s", "danger-full-access", "DO IT"),
    shell=lambda line: ("exec_command", {"cmd": line}),
    prepare=_codex_settings,
)
GEMINI = Real(
    name="gemini",
    package="@google/gemini-cli",
    program="gemini",
    wire=GenerateContent,
    words=("-m", "gemini-2.5-pro", "--approval-mode", "yolo", "-p", "DO IT"),
    shell=lambda line: ("run_shell_command", {"command": line, "description": "Do it"}),
    prepare=_gemini_settings,
    environment={"GEMINI_API_KEY": "none", "GEMINI_CLI_NO_RELAUNCH": "1"},
    address="GOOGLE_GEMINI_BASE_URL",
)
REAL = {one.name: one for one in (CLAUDE, CODEX, GEMINI)}
