"""The names that `WITH` gives to queries (CTEs), and where each is in scope."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sqlglot import exp


class _Scope(NamedTuple):
    """The names of one `WITH` that are in scope, and those of the queries around it."""

    numbers: Mapping[str, int]
    """The names, in lower case, with the place of each in the `WITH`."""
    before: int | None
    """Inside a query of the `WITH` itself, only names before this place are in scope. None: all are."""
    outer: _Scope | None


class CteScopes:
    """The scopes of one syntax tree. Each is worked out once, however many tables are looked up in it."""

    def __init__(self) -> None:
        self._scopes: dict[int, _Scope | None] = {}
        """By the `id` of each node that stands in the scope."""
        self._numbers: dict[int, Mapping[str, int]] = {}
        self._places: dict[int, int] = {}

    def names(self, node: exp.Expr, name: str) -> bool:
        """Whether a bare name, in lower case, refers to a CTE where a node stands."""
        scope = self._scope(node)
        while scope is not None:
            number = scope.numbers.get(name)
            if number is not None and (scope.before is None or number < scope.before):
                return True
            scope = scope.outer
        return False

    def _scope(self, node: exp.Expr) -> _Scope | None:
        path: list[exp.Expr] = []
        above: exp.Expr | None = node
        while above is not None and id(above) not in self._scopes:
            path.append(above)
            above = above.parent
        scope = self._scopes[id(above)] if above is not None else None
        for below in reversed(path):
            scope = self._scopes[id(below)] = self._within(below, scope)
        return scope

    def _within(self, below: exp.Expr, outer: _Scope | None) -> _Scope | None:
        from sqlglot import exp

        above = below.parent
        if above is None:
            return outer
        given = above if isinstance(above, exp.With) else above.args.get("with_") or above.args.get("with")
        if not isinstance(given, exp.With) or given is below:
            return outer
        numbers = self._named(given)
        limited = above is given and not given.args.get("recursive")
        return _Scope(numbers, self._places.get(id(below), 0) if limited else None, outer)

    def _named(self, given: exp.With) -> Mapping[str, int]:
        if id(given) not in self._numbers:
            numbers: dict[str, int] = {}
            for place, one in enumerate(given.expressions):
                numbers.setdefault(one.alias.lower(), place)
                self._places[id(one)] = place
            self._numbers[id(given)] = numbers
        return self._numbers[id(given)]
