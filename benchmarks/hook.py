"""What a hook adds to a tool call of a coding agent: one judged `git status`, from its start to its end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.measure import Effort, Figure, pooled, sync_sampler, take_pairs
from benchmarks.report import Report, Row, Table, Target
from signoff.wiring import hook_launcher

BARE, COLD, WARM, NAH = "python -I -c pass", "signoff hook, cold", "signoff hook, resident helper", "nah, its own hook"
MOST_COLD, MOST_WARM = 150.0, 30.0
"""Milliseconds more than a bare Python."""
PEER = "SIGNOFF_BENCH_NAH"
"""Names a Python that has `nah`, which is measured beside it then."""
POLICY = "policy: [{allow: {label: proc.exec, command: read-only}}]\n"


def measure(effort: Effort, bench: Bench) -> Report:
    with tempfile.TemporaryDirectory(prefix="hook-") as name:
        place = Path(name)
        (place / "signoff.yaml").write_text(POLICY, encoding="utf-8")
        return _measured(effort, place)


def _measured(effort: Effort, place: Path) -> Report:
    event = {
        "session_id": "bench",
        "cwd": str(place),
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "git status"},
        "tool_use_id": "t",
        "transcript_path": "",
    }
    plain = {"PATH": os.environ["PATH"], "HOME": str(place), "XDG_RUNTIME_DIR": str(place)}
    hook = [sys.executable, "-I", hook_launcher.__file__, "claude-code", "--project", str(place)]
    commands: dict[str, tuple[list[str], Mapping[str, str]]] = {
        BARE: ([sys.executable, "-I", "-c", "pass"], plain),
        COLD: (hook, {**plain, "SIGNOFF_HOOK_RESIDENT": "0"}),
        WARM: (hook, plain),
    }
    if peer := os.environ.get(PEER):
        commands[NAH] = ([peer, "-I", "-c", "from nah.hook import main; main()"], plain)
    run = {name: partial(_run, command, env, event) for name, (command, env) in commands.items()}
    helper = subprocess.Popen([sys.executable, "-I", "-m", "signoff.wiring.hook_resident"], env=plain)
    try:
        while not (place / "signoff" / "hook" / "socket").exists():
            time.sleep(0.01)
        samplers = {name: sync_sampler(one) for name, one in run.items()}
        base_of = {name: BARE for name in commands if name != BARE}
        pairs = take_pairs(samplers, base_of, effort)
    finally:
        helper.kill()
        helper.wait()
    bare = Figure.of(pooled(pairs, base_of, BARE)).times(1e3)
    rows = [Row(BARE, (bare, None))]
    rows += [Row(name, (Figure.of(pair.values).times(1e3), pair.ratio)) for name, pair in pairs.items()]
    more = {name: Figure.of(pairs[name].values).times(1e3).median - bare.median for name in (COLD, WARM)}
    return Report(
        name="hook",
        title="A hook of a coding agent",
        about="One allowed `git status`, from the start of the hook's process to its end; it is written down.",
        tables=(Table("hook", ("ms", "ratio to a bare Python"), tuple(rows)),),
        targets=(
            Target("cold, ms more than a bare Python", more[COLD], MOST_COLD),
            Target("resident helper, ms more than a bare Python", more[WARM], MOST_WARM),
        ),
    )


def _run(command: list[str], environment: Mapping[str, str], event: Mapping[str, object]) -> None:
    text = json.dumps({**event, "tool_use_id": str(time.monotonic_ns())}).encode()
    subprocess.run(command, input=text, stdout=subprocess.DEVNULL, check=True, env=dict(environment))
