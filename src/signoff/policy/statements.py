"""Conditions on SQL: read-only, certain operations, certain tables, certain effects."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from signoff.policy.call_paths import Facts
from signoff.policy.glob import Glob, any_glob
from signoff.policy.match import text_argument
from signoff.policy.match_result import YES, MatchResult, Truth
from signoff.policy.phrases import listed, shown

if TYPE_CHECKING:
    from signoff.policy.sql import SqlFacts, Statement

ARGUMENT = "sql"


@dataclass(frozen=True, slots=True)
class SqlCondition:
    """What the SQL in an argument does: in allow rules, all its statements; otherwise any of them."""

    read_only: bool = False
    operations: frozenset[str] = frozenset()
    tables: tuple[Glob, ...] = ()
    does: frozenset[str] = frozenset()
    dialect: str = ""
    """The SQL dialect; if none is given, the call's own `dialect` argument, otherwise any."""
    argument: str = ARGUMENT
    every: bool = False
    text: str = field(init=False, compare=False)

    def __post_init__(self) -> None:
        words = ["that only reads"] if self.read_only else []
        words += [f"with {' or '.join(sorted(self.operations))}"] if self.operations else []
        words += [f"on {listed(glob.pattern for glob in self.tables)}"] if self.tables else []
        words += [f"that {' or '.join(sorted(self.does))}"] if self.does else []
        object.__setattr__(self, "text", f"with SQL {' '.join(words)}")

    @property
    def stands_for(self) -> str:
        """The argument whose value a plain text in a rule's examples is."""
        return self.argument

    def find(self, facts: Facts) -> MatchResult:
        value = text_argument(facts, self.argument, "SQL")
        if isinstance(value, MatchResult):
            return value
        own = facts.call.args.get("dialect", "")
        sql = facts.sql(value, self.dialect or (own if isinstance(own, str) else "?"))
        return self._every(sql, facts) if self.every else self._some(sql, facts)

    def _every(self, sql: SqlFacts, facts: Facts) -> MatchResult:
        if sql.opaque or not sql.statements or (self.read_only and not sql.read_only):
            why = sql.sentence
            facts.note(why)
            return MatchResult.no(why)
        for statement in sql.statements:
            if self.operations and statement.operation not in self.operations:
                return MatchResult.no(f"{shown(statement.operation)} is not {' or '.join(sorted(self.operations))}")
            if self.tables and not self._only_these(statement):
                return MatchResult.no(f"it uses other tables than {listed(glob.pattern for glob in self.tables)}")
        return YES

    def _only_these(self, statement: Statement) -> bool:
        return bool(statement.tables) and all(any_glob(self.tables, name) is Truth.YES for name in statement.tables)

    def _some(self, sql: SqlFacts, facts: Facts) -> MatchResult:
        for statement in sql.statements:
            if self._holds(statement):
                if not statement.read_only:
                    facts.note(statement.sentence)
                return YES
        if sql.opaque:
            facts.note(sql.sentence)
            return MatchResult.unknown(sql.sentence)
        if self.does and any(statement.why.startswith("unknown:") for statement in sql.statements):
            return MatchResult.unknown(sql.sentence)
        return MatchResult.no(f"it has no {self.text.removeprefix('with ')}")

    def _holds(self, statement: Statement) -> bool:
        """Whether everything that the rule names holds for one statement."""
        if self.read_only and not statement.read_only:
            return False
        if self.operations and statement.operation not in self.operations:
            return False
        if self.does and statement.why.partition(":")[0] not in self.does:
            return False
        touched = (*statement.tables, *statement.writes)
        return not self.tables or any(any_glob(self.tables, name) is not Truth.NO for name in touched)
