"""How much Hypothesis tries. `SIGNOFF_TEST_PROFILE` says which profile: `daily`, the default, or `nightly`.

`daily` draws the same 50 examples each time, derived from the test itself: a suite that fails by chance on a change
that has nothing to do with it is soon run again instead of read. What chance has found before is therefore kept as an
`@example` or a case of its own and is tried every day. For the same reason it does not draw the constants that stand in
the sources; to look for them takes seconds in every test worker of a fresh clone.

`nightly` draws other examples each time, as many as the test says. What it finds is printed with the
`@reproduce_failure` line that replays it, and kept in `.hypothesis`, where the next nightly run looks first.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

PROFILE = os.environ.get("SIGNOFF_TEST_PROFILE") or "daily"
NIGHTLY = PROFILE == "nightly"
SLOW = [HealthCheck.too_slow]
"""It measures the machine: one that is busy would fail a test."""

settings.register_profile(
    "daily", max_examples=50, derandomize=True, deadline=None, print_blob=True, suppress_health_check=SLOW
)
settings.register_profile("nightly", max_examples=1_000, deadline=None, print_blob=True, suppress_health_check=SLOW)


def load() -> None:
    """Once, before any module with tests is imported: settings take from the profile what they do not say."""
    if PROFILE not in ("daily", "nightly"):
        raise pytest.UsageError(f"SIGNOFF_TEST_PROFILE is daily or nightly, not {PROFILE!r}")
    settings.load_profile(PROFILE)
    if not NIGHTLY and hasattr(providers, "_get_local_constants"):
        none = providers.Constants()
        providers._get_local_constants = lambda: none


def examples(nightly: int, daily: int = 50, *, suppress: Iterable[HealthCheck] = (), **others: Any) -> settings:
    """Settings with this many examples by night; by day `daily` of them, or all if they are fewer.

    `suppress` is for checks of Hypothesis that a test cannot meet; `others` are settings as Hypothesis knows them.
    """
    return settings(
        max_examples=nightly if NIGHTLY else min(nightly, daily), suppress_health_check=[*SLOW, *suppress], **others
    )
