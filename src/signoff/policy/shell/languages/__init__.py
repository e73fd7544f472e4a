"""Check scripts inside read-only commands: whether a script, or words that are a language, do harm.

Each check reads the whole script and returns None only if every piece of it is understood and none of it writes, runs,
sends or discloses a secret. A script with an endless loop passes: the caller sets a timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from signoff.policy.phrases import cut
from signoff.policy.shell.languages.find import read_find
from signoff.policy.shell.languages.sed import sed_trouble
from signoff.policy.shell.languages.trouble import FindResult, Trouble
from signoff.policy.shell.line import Word

LIMIT = 16_384
"""The limit in characters. A longer script is not understood."""


def check_awk(script: str) -> Trouble | None:
    """Return what keeps an awk program from running unasked, or None. The caller checks options, `-v` and operands."""
    from signoff.policy.shell.languages.awk import awk_trouble

    return _guarded(awk_trouble, script)


def check_sed(script: str, *, separate: bool = False) -> Trouble | None:
    """Return what keeps a sed script from running unasked, or None.

    Several `-e` parts are joined with newlines, or each is checked alone with `separate`: then braces may be opened in
    one part and closed in another, and a part that continues in the next is not understood.
    """
    return _guarded(lambda text: sed_trouble(text, separate=separate), script)


def check_jq(script: str) -> Trouble | None:
    """Return what keeps a jq filter from running unasked, or None. The caller checks variables of options (`--arg`)."""
    from signoff.policy.shell.languages.jq import jq_trouble

    return _guarded(jq_trouble, script)


def check_find(words: Sequence[Word]) -> FindResult | Trouble:
    """Return what find would look at, from the words after `find`, or what keeps it from running unasked."""
    try:
        for word in words:
            if odd := _odd(word.text):
                return odd
        if sum(len(word.text) for word in words) > LIMIT:
            return Trouble("", f"unknown: is longer than {LIMIT} characters")
        return read_find(words)
    except Exception as error:
        return _broken(error)


def check_ps(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps ps from running unasked, from the words after `ps`, or None."""
    from signoff.policy.shell.languages.ps import ps_trouble

    for word in words:
        if word.glob or word.tilde or not word.text or not word.text.isprintable() or " " in word.text:
            return Trouble(word.text, "unknown: is not a plain word")
    return _guarded(ps_trouble, " ".join(word.text for word in words))


def check_test(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps `test` or `[` from running unasked, from the words after it, or None."""
    from signoff.policy.shell.languages.conditions import test_trouble

    return _guarded_words(test_trouble, words)


def check_condition(words: Sequence[Word]) -> Trouble | None:
    """Check the words of `[[`."""
    from signoff.policy.shell.languages.conditions import condition_trouble

    return _guarded_words(condition_trouble, words)


def check_printf(words: Sequence[Word]) -> Trouble | None:
    """Return what keeps `printf` from running unasked, from the words after it, or None."""
    from signoff.policy.shell.languages.conditions import printf_trouble

    return _guarded_words(printf_trouble, words)


OF_TEXT: Mapping[str, Callable[[str], Trouble | None]] = {"awk": check_awk, "sed": check_sed, "jq": check_jq}
"""The checks of scripts, as the table of programs names their languages."""

OF_WORDS: Mapping[str, Callable[[Sequence[Word]], FindResult | Trouble | None]] = {
    "find": check_find,
    "ps": check_ps,
    "test": check_test,
    "condition": check_condition,
    "printf": check_printf,
}
"""The checks of programs whose words are a language, as the table of programs names them."""


def _guarded_words(check: Callable[[Sequence[Word]], Trouble | None], words: Sequence[Word]) -> Trouble | None:
    try:
        return next(filter(None, (_odd(word.text) for word in words)), None) or check(words)
    except Exception as error:
        return _broken(error)


def _guarded(check: Callable[[str], Trouble | None], script: str) -> Trouble | None:
    try:
        return _odd(script) or check(script)
    except Exception as error:
        return _broken(error)


def _broken(error: Exception) -> Trouble:
    """Return trouble for an exception: a check that fails must never let a script through."""
    return Trouble("", f"unknown: could not be checked: {type(error).__name__}")


def _odd(text: str) -> Trouble | None:
    """Return trouble with the text itself: too long, or characters that programs disagree about."""
    if len(text) > LIMIT:
        return Trouble(cut(text, 40), f"unknown: is longer than {LIMIT} characters")
    if text.isascii() and text.isprintable():
        return None
    for char in text:
        if (char < " " and char not in "\t\n") or "\x7f" <= char < "\xa0" or "\ud800" <= char <= "\udfff":
            return Trouble(ascii(char)[1:-1], "unknown: holds a control character")
    return None
