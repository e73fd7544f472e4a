"""The only place that assembles parts: from what a command was given to an agent that runs under a policy."""

from __future__ import annotations

from signoff.wiring.caller import Caller
from signoff.wiring.demo_agent import run_demo
from signoff.wiring.job import Job, RunOptions, Task, job_for, job_of
from signoff.wiring.project import POLICY_FILE, roles_of, settings_for, whoami
from signoff.wiring.stores import absolute_store, chosen_store, open_broker, store_for

__all__ = [
    "POLICY_FILE",
    "Caller",
    "Job",
    "RunOptions",
    "Task",
    "absolute_store",
    "chosen_store",
    "job_for",
    "job_of",
    "open_broker",
    "roles_of",
    "run_demo",
    "settings_for",
    "store_for",
    "whoami",
]
