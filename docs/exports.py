"""Which names a module offers where its `__all__` is worked out on import: those that it imports from ours."""

from __future__ import annotations

from typing import Any

from griffe import Extension, Module


class LazyExports(Extension):
    """Names that are imported for type checkers only, and loaded when they are used, are documented like any others."""

    def on_package(self, *, pkg: Module, **_: Any) -> None:
        for module in (pkg, *pkg.modules.values()):
            if module.exports == []:  # there is an `__all__`, and it is no list of names
                module.exports = sorted(name for name, member in module.members.items() if _is_ours(name, member))


def _is_ours(name: str, member: Any) -> bool:
    return member.is_alias and member.target_path.startswith("signoff.") and member.target_path.endswith(f".{name}")
