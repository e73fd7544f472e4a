"""The coding agents whose hooks are supported."""

from __future__ import annotations

from collections.abc import Mapping

from signoff.outside.claude_code import ClaudeCode
from signoff.outside.codex import Codex
from signoff.outside.gemini import Gemini
from signoff.outside.hook_event import HookHost

HOSTS: Mapping[str, HookHost] = {one.name: one for one in (ClaudeCode(), Codex(), Gemini())}
"""By their names in commands."""
