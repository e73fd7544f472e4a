"""Regular expressions that are compiled when they are first used: most starts need few of those that modules define."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from re import compile as lazy_pattern
else:
    import re

    class lazy_pattern:
        """As `re.compile`, with the methods of what that returns; it is no `re.Pattern` itself."""

        def __init__(self, pattern, flags=0):
            self._given = pattern, flags

        def __getattr__(self, name):
            compiled = self.__dict__.setdefault("_compiled", None) or re.compile(*self._given)
            self._compiled = compiled
            found = getattr(compiled, name)
            setattr(self, name, found)  # from now on it is found without coming here
            return found


__all__ = ["lazy_pattern"]
