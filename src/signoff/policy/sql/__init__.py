"""Analyse SQL text: its statements, the tables they touch, and whether it is read-only."""

from __future__ import annotations

from signoff.policy.sql.read import read_sql
from signoff.policy.sql.statement_facts import SqlFacts, Statement

__all__ = ["SqlFacts", "Statement", "read_sql"]
