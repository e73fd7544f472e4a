"""What a text of SQL does: which statements it holds, which tables they touch, and whether it only reads."""

from __future__ import annotations

from signoff.policy.sql.facts import SqlFacts, Statement
from signoff.policy.sql.read import read_sql

__all__ = ["SqlFacts", "Statement", "read_sql"]
