"""The machine and the versions that numbers were measured with."""

from __future__ import annotations

import os
import platform
import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = ("pydantic-ai-slim", "pydantic", "click", "psycopg")


def machine() -> dict[str, str]:
    cores = f"{os.cpu_count()} cores"
    facts = {
        "Machine": f"{cores}, {_processor()}, {platform.system()} {platform.machine()}",
        "Load before the run": ", ".join(f"{load:.2f}" for load in os.getloadavg()),
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
    }
    return facts | {name: _version(name) for name in PACKAGES}


def _processor() -> str:
    """The processor's name; on ARM only its maker is told."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    pairs = (line.partition(":") for line in lines)
    facts = {key.strip(): value.strip() for key, _, value in pairs}
    return facts.get("model name") or f"processor of implementer {facts.get('CPU implementer', 'unknown')}"


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
