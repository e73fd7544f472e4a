"""What people write in files: the project, its toolsets, its workers. Read strictly, each with its place."""

from __future__ import annotations

from signoff.config.settings import Person, Settings, load_policy, load_settings

__all__ = ["Person", "Settings", "load_policy", "load_settings"]
