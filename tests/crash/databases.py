"""Which cases are played every day on which database.

On SQLite all of them. On PostgreSQL one of each kind, the others at night: what differs there is the store, which the
store's own contract covers every day, and the way a kill or a race reaches it, of which one of each kind is a sample.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import product
from typing import Any

import pytest
from tests.pairwise import cases

DATABASES = ("sqlite", "postgres")


def on_both(names: str, *axes: Iterable[Any], postgres: Collection[Any], at_night: bool = True) -> pytest.MarkDecorator:
    """Parametrize with these choices and a `database`; with `postgres`, which of them are daily on that one.

    `at_night=False`: the others are not played on it at all, as another test plays more of the same at night.
    """
    every = list(product(DATABASES, *axes))
    daily = {(database, *rest) for database, *rest in every if database == "sqlite" or _only(rest) in postgres}
    played = every if at_night else [one for one in every if one in daily]
    return pytest.mark.parametrize(("database", *names.split()), cases(played, daily))


def _only(rest: list[Any]) -> Any:
    return rest[0] if len(rest) == 1 else tuple(rest)


AT_NIGHT_ON_POSTGRES = on_both("", postgres=())
