"""SQL as one database takes it: everything that SQLite and PostgreSQL write differently, apart from the tables."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import count
from typing import Literal

_VALUE = re.compile(re.escape("?"))


class Dialect(dict[str, str]):
    """The SQL of a database, by the SQL that is written for all of them.

    There `?` is a value, and a word in braces is what the databases write differently: `{s}` is the schema with a dot,
    `{c}` compares texts by their bytes, `{find}` is the function that finds a text in another, `{votes}` the votes of
    the request `r` as a JSON array, and `{noted}` is set with every change of the table `chain`.
    """

    def __init__(self, name: Literal["sqlite", "postgres"], words: Mapping[str, str], *, numbers: bool = False) -> None:
        """With `numbers` the values are written as `$1`, `$2` …"""
        super().__init__()
        self.name = name
        self._words = words
        self._numbers = numbers

    def __missing__(self, sql: str) -> str:
        text = sql
        for word, meaning in self._words.items():
            text = text.replace(f"{{{word}}}", meaning)
        if self._numbers:
            number = count(1)
            text = _VALUE.sub(lambda _: f"${next(number)}", text)
        self[sql] = text
        return text


SQLITE = Dialect(
    "sqlite",
    {
        "s": "",
        "c": "",
        "find": "instr",
        "votes": "select '[' || group_concat(v.vote, ',') || ']' "
        "from (select vote from votes where request = r.id order by place) v",
        "noted": "",
    },
)


def postgres(schema: str) -> Dialect:
    """The dialect of PostgreSQL, for the tables in a schema. Its name is quoted already."""
    return Dialect(
        "postgres",
        {
            "s": f"{schema}.",
            "c": ' collate "C"',
            "find": "strpos",
            "votes": "select '[' || string_agg(v.vote, ',' order by v.place) || ']' "
            f"from {schema}.votes v where v.request = r.id",
            "noted": ", writes = writes + 1",
        },
        numbers=True,
    )
