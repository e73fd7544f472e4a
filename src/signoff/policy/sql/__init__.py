"""What a text of SQL does: which statements it holds, which tables they touch, and whether it only reads."""

from __future__ import annotations

from signoff.policy.sql.read import read_sql
from signoff.policy.sql.statement_facts import SqlFacts, Statement

__all__ = ["SqlFacts", "Statement", "read_sql"]
