"""The only place that assembles parts: from what a command was given to an agent that runs under a policy.

Names are imported lazily: most commands need the project and its store, and nothing that runs agents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from signoff.lazy_names import lazy_names

if TYPE_CHECKING:
    from signoff.wiring.caller import Caller as Caller
    from signoff.wiring.demo_agent import run_demo as run_demo
    from signoff.wiring.job import Job as Job
    from signoff.wiring.job import RunOptions as RunOptions
    from signoff.wiring.job import Task as Task
    from signoff.wiring.job import job_for as job_for
    from signoff.wiring.job import job_of as job_of
    from signoff.wiring.project import POLICY_FILE as POLICY_FILE
    from signoff.wiring.project import reader_of as reader_of
    from signoff.wiring.project import roles_of as roles_of
    from signoff.wiring.project import settings_for as settings_for
    from signoff.wiring.project import whoami as whoami
    from signoff.wiring.stores import absolute_store as absolute_store
    from signoff.wiring.stores import chosen_store as chosen_store
    from signoff.wiring.stores import open_broker as open_broker
    from signoff.wiring.stores import store_for as store_for

_HOMES = {
    **dict.fromkeys(("Caller",), "wiring.caller"),
    **dict.fromkeys(("run_demo",), "wiring.demo_agent"),
    **dict.fromkeys(("Job", "RunOptions", "Task", "job_for", "job_of"), "wiring.job"),
    **dict.fromkeys(("POLICY_FILE", "reader_of", "roles_of", "settings_for", "whoami"), "wiring.project"),
    **dict.fromkeys(("absolute_store", "chosen_store", "open_broker", "store_for"), "wiring.stores"),
}
__getattr__ = lazy_names(__name__, _HOMES)
