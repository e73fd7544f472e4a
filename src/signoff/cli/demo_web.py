"""`signoff demo --web`: the demo's agent asks in the web inbox of a temporary server."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from signoff.cli.serve_command import need_web, serve_projects
from signoff.wiring.served_projects import served_projects

if TYPE_CHECKING:
    from signoff.wiring.service import Service

PROMPT = "Get the release notes ready."
_PROJECT = """\
toolsets:
  files: {use: filesystem_rw, config: {root: work}}
  shell: {use: shell_file_ops, config: {root: work}}
"""
_WORKER = """\
description: Gets release notes ready.
instructions: Get the release notes ready.
model: script:writer.turns
toolsets: [files, shell]
"""


def serve_demo(directory: Path) -> None:
    """Create a project in an empty directory and serve it until Ctrl-C, with a run that asks."""
    from signoff.wiring.service import ServiceOptions

    need_web()
    _lay_out(directory)
    click.echo(f"A scripted agent prepares release notes in {directory / 'work'}.")
    click.echo("Open the link, answer its questions, and watch. Ctrl-C stops the demo.\n")
    directory = directory.resolve()
    os.chdir(directory)
    projects = served_projects([str(directory)], f"sqlite:{directory / 'approvals.db'}")

    async def begin(service: Service) -> None:
        me = service.local or "you"
        await service.runs.start("writer", PROMPT, input=None, requester=me)

    serve_projects(projects, "127.0.0.1", 0, ServiceOptions(), as_json=False, begun=begin)
    click.echo(f"rm -r {shlex.quote(str(directory))}  removes these files")


def _lay_out(directory: Path) -> None:
    from signoff.workers.demo.agent import POLICY, SCRIPT, lay_out

    lay_out(directory / "work")
    (directory / "workers").mkdir()
    (directory / "signoff.yaml").write_text(POLICY.read_text("utf-8") + _PROJECT, "utf-8")
    (directory / "workers" / "writer.yaml").write_text(_WORKER, "utf-8")
    (directory / "workers" / "writer.turns").write_text(SCRIPT.read_text("utf-8"), "utf-8")
