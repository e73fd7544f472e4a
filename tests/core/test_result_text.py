"""What a call returned, in words."""

from __future__ import annotations

import pytest

from signoff.core.result_text import EXIT_LINE, STOPPED_LINE, exit_code, exit_text, in_short, without_exit


@pytest.mark.parametrize(
    ("result", "ended", "code", "short"),
    [
        ("", "", None, ""),
        ("done", "", None, "done"),
        ("one\n\ntwo\nthree", "", None, "one …"),
        ("[exit code 1]", "exit code 1", 1, "exit code 1"),
        ("out\n[stderr]\nno such file\n[exit code 127]", "exit code 127", 127, "exit code 127: no such file"),
        ("out\n[stopped: it took longer than 5 s]", "stopped: it took longer than 5 s", None, None),
        ("out\n[exit code 1]\nand more", "", None, "out …"),
        ("out [exit code 1]", "", None, "out [exit code 1]"),
        ("x" * 5_000 + "\n[exit code -9]\n", "exit code -9", -9, None),
    ],
)
def test_what_a_result_says(result: str, ended: str, code: int | None, short: str | None) -> None:
    assert (exit_text(result), exit_code(result)) == (ended, code)
    assert short is None or in_short(result) == short
    assert exit_text(without_exit(result)) == ""
    assert without_exit(result) == result if not ended else result.startswith(without_exit(result))


def test_it_reads_what_the_shell_toolset_writes() -> None:
    assert exit_code(EXIT_LINE.format(3)) == 3
    assert exit_text(STOPPED_LINE.format("cancelled")) == "stopped: cancelled"
