"""What is known about a piece of SQL."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: what it does, to what, and why it does not only read."""

    operation: str
    """In lower case: `select`, `insert`, `pragma` … A query that writes is named after the write."""
    read_only: bool
    tables: tuple[str, ...] = ()
    """Every table that is named, `schema.table` where it was written so; in lower case unless quoting tells case."""
    columns: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """The tables that are written, made, changed or removed."""
    functions: tuple[str, ...] = ()
    why: str = ""
    """Why it is not read-only, led by an effect: "writes: `DELETE` removes rows of `t`"."""
    word: str = ""
    """The keyword, function or table that decided."""

    @property
    def sentence(self) -> str:
        """`why` for people; empty where it is read-only."""
        return _sentence(self.why)


@dataclass(frozen=True, slots=True)
class SqlFacts:
    """Everything that is known about a text of SQL."""

    statements: tuple[Statement, ...]
    opaque: str = ""
    """Why the text is not understood; then the statements are not all there is to know."""
    opaque_word: str = ""

    @property
    def read_only(self) -> bool:
        return not self.opaque and bool(self.statements) and all(one.read_only for one in self.statements)

    @property
    def why(self) -> str:
        """Why it is not read-only, led by an effect; empty where it is."""
        said = next((one.why for one in self.statements if not one.read_only), "")
        if said and not (self.opaque and said.startswith("unknown:")):
            return said
        if self.opaque:
            return f"unknown: {self.opaque}"
        return said or ("" if self.statements else "unknown: holds no statement")

    @property
    def sentence(self) -> str:
        """`why` for people: "`DELETE` removes rows of `t`", "the SQL cannot be parsed"; empty where it is read-only."""
        return _sentence(self.why)

    @property
    def word(self) -> str:
        """The keyword, function or table that decided."""
        return next((one.word for one in self.statements if not one.read_only), self.opaque_word)


def _sentence(why: str) -> str:
    effect, _, what = why.partition(": ")
    return f"the SQL {what}" if effect == "unknown" and not what.startswith("`") else what


class NotUnderstood(Exception):
    """The text, or a part of it, cannot be told for sure."""

    def __init__(self, why: str, word: str = "") -> None:
        self.why = why
        self.word = word
        super().__init__(why)
