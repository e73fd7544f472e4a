"""A number of things in words."""

from __future__ import annotations

from signoff.core.counted import counted


def test_one_and_many() -> None:
    assert [counted(n, "byte") for n in (0, 1, 2, 1_234)] == ["0 bytes", "1 byte", "2 bytes", "1,234 bytes"]
    assert counted(2, "entry is", "entries are") == "2 entries are"
