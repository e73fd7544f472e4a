"""What is known about SQL text and its statements."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: what it does, to which tables, and why it is not read-only."""

    operation: str
    """In lower case: `select`, `insert`, `pragma` … A query that writes is named after the write."""
    read_only: bool
    tables: tuple[str, ...] = ()
    """Every table named, as `schema.table` if written so; in lower case unless quotes keep the case."""
    columns: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """The tables that are written, created, changed or removed."""
    functions: tuple[str, ...] = ()
    why: str = ""
    """Why it is not read-only, starting with an effect: "writes: `DELETE` removes rows of `t`"."""
    word: str = ""
    """The keyword, function or table that decided."""

    @property
    def sentence(self) -> str:
        """`why` as shown to people; "" if it is read-only."""
        return _sentence(self.why)


@dataclass(frozen=True, slots=True)
class SqlFacts:
    """Everything that is known about a text of SQL."""

    statements: tuple[Statement, ...]
    opaque: str = ""
    """Why the text is not fully understood. Then `statements` is incomplete."""
    opaque_word: str = ""

    @property
    def read_only(self) -> bool:
        return not self.opaque and bool(self.statements) and all(one.read_only for one in self.statements)

    @property
    def why(self) -> str:
        """Why it is not read-only, starting with an effect; "" if it is."""
        said = next((one.why for one in self.statements if not one.read_only), "")
        if said and not (self.opaque and said.startswith("unknown:")):
            return said
        if self.opaque:
            return f"unknown: {self.opaque}"
        return said or ("" if self.statements else "unknown: holds no statement")

    @property
    def sentence(self) -> str:
        """`why` as shown to people: "`DELETE` removes rows of `t`", "the SQL cannot be parsed"; "" if read-only."""
        return _sentence(self.why)

    @property
    def word(self) -> str:
        """The keyword, function or table that decided."""
        return next((one.word for one in self.statements if not one.read_only), self.opaque_word)


def _sentence(why: str) -> str:
    effect, _, what = why.partition(": ")
    return f"the SQL {what}" if effect == "unknown" and not what.startswith("`") else what


class NotUnderstood(Exception):
    """The SQL, or a part of it, cannot be understood with certainty."""

    def __init__(self, why: str, word: str = "") -> None:
        self.why = why
        self.word = word
        super().__init__(why)
