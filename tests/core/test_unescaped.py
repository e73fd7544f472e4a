"""However a text was escaped, quoted and encoded, once or twice: the secret in it is masked, and nothing else."""

from __future__ import annotations

import ast
import html
import json
import re
import shlex
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from time import thread_time
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.steps import grows_linearly
from tests.tables import table

from signoff.core.redact import Redactor, redact, redact_text, restore
from signoff.core.unescaped import DEPTH, unescaped


def _as_bytes(text: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in text.encode())


def _backslashed(text: str) -> str:
    return "".join("'\n'" if char == "\n" else char if char.isalnum() or char == "_" else f"\\{char}" for char in text)


def _in_dollar_quotes(text: str) -> str:
    told = (f"\\{one}" if one in "\\'" else one if one.isascii() and one >= " " else _as_bytes(one) for one in text)
    return f"$'{''.join(told)}'"


Spelling = Callable[[str], str]
SPELLINGS: dict[str, tuple[Spelling, Spelling | None]] = {
    "JSON": (json.dumps, json.loads),
    "JSON, as written": (lambda one: json.dumps(one, ensure_ascii=False), json.loads),
    "JSON, slashes escaped": (lambda one: json.dumps(one).replace("/", "\\/"), json.loads),
    "repr": (repr, ast.literal_eval),
    "ascii": (ascii, ast.literal_eval),
    "repr of bytes": (lambda one: repr(one.encode()), None),
    "a shell word": (shlex.quote, lambda one: " ".join(shlex.split(one))),
    "a shell word by hand": (lambda one: "'" + one.replace("'", "'\\''") + "'", lambda one: " ".join(shlex.split(one))),
    "a shell word with backslashes": (_backslashed, lambda one: " ".join(shlex.split(one))),
    "dollar quotes": (_in_dollar_quotes, None),
    "double quotes": (lambda one: '"' + re.sub(r'[\\"$`]', r"\\\g<0>", one) + '"', None),
    "URL": (lambda one: quote(one, safe=""), unquote),
    "URL, slashes kept": (quote, unquote),
    "URL, lower case": (lambda one: re.sub("%..", lambda code: code[0].lower(), quote(one, safe="")), unquote),
    "URL, every character": (lambda one: "".join(f"%{byte:02X}" for byte in one.encode()), unquote),
    "form": (quote_plus, unquote_plus),
    "HTML": (html.escape, html.unescape),
    "HTML, every character": (lambda one: "".join(f"&#x{ord(char):x};" for char in one), html.unescape),
    "SQL": (lambda one: "'" + one.replace("'", "''") + "'", None),
    "CSV": (lambda one: '"' + one.replace('"', '""') + '"', None),
    "base64": (lambda one: b64encode(one.encode()).decode(), None),
    "base64 for URLs": (lambda one: urlsafe_b64encode(one.encode()).decode().rstrip("="), None),
}

signs = st.sampled_from("'\"\\%&+/$`;#=-_ \n\té😀ßn0x4u2")
texts = st.text(signs | st.characters(codec="utf-8", exclude_categories=["C"]), max_size=24)
secrets = st.text(signs | st.characters(codec="utf-8", exclude_categories=["C"]), min_size=6, max_size=24).filter(
    lambda one: len(one.strip()) >= 4
)
plain = st.text("ab ,.:(\n", max_size=8)
chains = st.lists(st.sampled_from(sorted(SPELLINGS)), max_size=DEPTH)


def spelled(text: str, chain: Sequence[str], around: Sequence[str]) -> str:
    for name, (before, after) in zip(chain, zip(around[::2], around[1::2], strict=True), strict=False):
        text = f"{before} {SPELLINGS[name][0](text)} {after}"
    return text


@examples(3_000, daily=60)
@given(secrets, texts, texts, chains, st.lists(plain, min_size=4, max_size=4))
@example("\"'abcd", "", "", ["a shell word"], ["", "", "", ""])
@example("p4ss ''\"word\\", "it's ", "\\", ["a shell word by hand", "JSON"], ["it's", "", "", ""])
@example("é\"'\\/+%41", "a", "b", ["repr of bytes", "form"], ["", "", "", ""])
@example("00000\n", "", "", ["a shell word with backslashes", "JSON"], ["", "", "", ""])
@example("000000", "", "", ["HTML, every character", "HTML"], ["", "", "", ""])
@example("00𐀀𫿀0ࠀ", "", "", ["base64", "JSON, slashes escaped"], ["", "", "", ""])
@example("secret", "", "", ["base64", "base64 for URLs"], ["", "", "", ""])
def test_a_secret_is_masked_in_every_spelling(
    secret: str, before: str, after: str, chain: list[str], around: list[str]
) -> None:
    text = spelled(f"{before}{secret}{after}", chain, around)
    masked = redact_text(text, secrets=[secret])
    assert "declared secret⟧" in masked, text
    assume(secret not in "⟦masked 1: declared secret⟧")
    assert not any(secret in one.text for one in unescaped(masked) if not one.packed), masked
    for name in reversed(chain):  # and by what others read
        undo = SPELLINGS[name][1]
        try:
            masked = undo(masked.strip(" ab,.:(\n")) if undo is not None else masked
        except (ValueError, SyntaxError):
            break
        assert secret not in masked


@table("outer", sorted(SPELLINGS))
def test_a_secret_is_masked_in_each_two_spellings(outer: str) -> None:
    secret = "p4ss'w\"x\\y&%41+/é"
    for inner in SPELLINGS:
        text = spelled(f"x {secret} y", [inner, outer], ["k:", "", "", ""])
        assert "declared secret⟧" in redact_text(text, secrets=[secret]), (inner, text)


@examples(3_000, daily=60)
@given(secrets, texts, chains, st.lists(plain, min_size=4, max_size=4))
def test_a_text_without_the_secret_is_unchanged(secret: str, text: str, chain: list[str], around: list[str]) -> None:
    assume("Ж" not in text)
    told, secret = spelled(text, chain, around), "".join(secret.split())
    assert Redactor([f"Ж{secret}Ж"]).found(told) == Redactor().found(told)


@examples(2_000, daily=60)
@given(secrets, st.sampled_from(sorted(SPELLINGS)), st.data())
def test_what_is_put_back_is_as_it_was_spelled(secret: str, name: str, data: st.DataObject) -> None:
    args = {"text": spelled(f"a{secret}b", [name], ["x", "y"])}
    redacted = redact(args, secrets=[secret])
    assert restore(redacted.args, args, redacted) == args


SECRET = 'p4ss"w\\ord/é+x and more'


@table("name", sorted(SPELLINGS))
def test_a_secret_that_is_cut_anywhere_does_not_leak_its_beginning(name: str) -> None:
    """However it is spelled: what is left of an escape at the cut does not hide that the secret is cut there."""
    whole = SPELLINGS[name][0](SECRET)
    for size in range(len(whole)):
        text = f"it was {whole[:size]}{'…' if size % 2 else '...'}"
        masked = redact_text(text, secrets=[SECRET])
        assert not any(SECRET[:10] in one.text for one in unescaped(masked)), (text, masked)


@pytest.mark.parametrize("text", ["the key is open-sesame-to-the-d", "en-sesame-to-the-door is the key"])
def test_most_of_a_secret_at_an_end_of_a_text_is_masked(text: str) -> None:
    assert "sesame" not in redact_text(text, secrets=["open-sesame-to-the-door"])


def test_a_path_above_a_declared_one_stays_in_sight() -> None:
    for path in ("/home/ana/projects", "/home/ana/projects/", "https://api.example.com"):
        assert redact_text(path, secrets=["/home/ana/projects/one", "https://api.example.com/v1/x"]) == path


OWN = "sot_" + "aB3-xY9_" * 5


@table("name", sorted(SPELLINGS))
def test_a_credential_of_signoff_is_masked_in_every_spelling(name: str) -> None:
    told = SPELLINGS[name][0](f"ana:{OWN}")
    masked = redact_text(f"it was {told}")
    assert "⟦masked 1: signoff credential⟧" in masked
    assert not any("sot_aB3" in one.text for one in unescaped(masked))
    assert "sot_aB3" not in redact_text(f"{OWN[:15]}…")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cDRzc3dv; rm -rf ~; cmQtYW5k", "cDRzc3dv; rm -rf ~; cmQtYW5k"),
        ('{"a": "p4\\"ss\\"; rm -rf ~"}', '{"a": "⟦masked 1: declared secret⟧; rm -rf ~"}'),
        ("'p4\"ss\"'; rm -rf ~", "'⟦masked 1: declared secret⟧'; rm -rf ~"),
        ("%20%3Bp4%22ss%22%3B%20", "%20%3B⟦masked 1: declared secret⟧%3B%20"),
    ],
)
def test_a_mask_covers_the_secret_alone(text: str, shown: str) -> None:
    assert redact_text(text, secrets=['p4"ss"', "p4ssword-and"]) == shown


def test_a_secret_that_base64_breaks_over_lines_is_found() -> None:
    lines = re.sub("(.{76})", r"\1\n", b64encode(b"x" * 50 + SECRET.encode() + b"y" * 50).decode())
    assert "declared secret" in redact_text(lines, secrets=[SECRET])


HOSTILE = (
    "\\", "\\\\", '\\"', "\\u00e9", "\\xc3\\xa9", "\\303", "%", "%25", "%C3%A9", "+", "&", "&amp;", "&#38;", "'", '"',
    "''", "'\\''", "'\"'\"'", "$'\\'", "'\\\"", "\"'", "YWJj", "YWJjZGVm\n", "é😀", 'p4ss\\"w', "p4ss%22w", "\\u007",
)  # fmt: skip


@table("piece", HOSTILE)
def test_the_work_grows_with_the_text_alone(piece: str) -> None:
    grows_linearly(
        lambda size: piece * (size // len(piece)), lambda text: redact_text(text, secrets=[SECRET, "\\" * 9]), 800
    )


@table("piece", (*HOSTILE, "ab+", "a/", "&#0", "\\u{0", "a'", "\\r", "a\\\n", "aaaaaaaa'", "\\\\r"))
def test_no_pattern_reads_a_long_text_twice(piece: str) -> None:
    """One search is one step to whoever counts steps, however long it takes: only the clock sees it."""
    text = "x" * 70 + piece * (200_000 // len(piece))
    began = thread_time()
    redact_text(text, secrets=["open-sesame-to-the-door"])
    assert thread_time() - began < 10  # a pattern that reads it twice takes half a minute
