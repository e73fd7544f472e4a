"""The chain: what it says about a record in which something is wrong, and lines that have one spelling only."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.profiles import examples
from tests.records import KEY, NOON, chain, checkpoint, drafts, exported, is_sealed, linked, rewritten
from tests.tables import table

from signoff.core.audit_text import account_of
from signoff.core.canonical import canonical
from signoff.core.export import COLUMNS, csv_header, csv_row, event_line, event_of, verify_export
from signoff.core.record import (
    START,
    Checkpoint,
    Entry,
    EventDraft,
    Trust,
    Verified,
    Vouched,
    Walk,
    erased,
    hash_of,
    is_link,
    timestamp,
    vouched,
)
from signoff.core.visible_text import is_clean
from signoff.errors import CannotCanonicalise, RecordBroken, WrongFile

CHAIN = chain(40)
SALTS = {"a": random.Random(7).randbytes(32).hex()[:32], "b": random.Random(7).randbytes(32).hex()[32:]}
FILE = exported(CHAIN, every=10)


def walked(entries: Iterable[Entry], *checkpoints: Checkpoint) -> Verified:
    walk = Walk(is_sealed)
    for one in checkpoints:
        walk.checkpoint(one)
    for entry in entries:
        walk.event(entry)
    return walk.end()


def broken(entries: Iterable[Entry], *checkpoints: Checkpoint) -> tuple[int, str]:
    with pytest.raises(RecordBroken) as raised:
        walked(entries, *checkpoints)
    return raised.value.seq, str(raised.value)


# --- links ---


def test_a_link_is_over_canonical_json() -> None:
    entry = linked(EventDraft(kind="asked", at=NOON, request="r", run="x", body={"b": 1.0, "a": "é"}), 7, START)
    assert (entry.body, *map(json.loads, (entry.body, entry.salts))) == ('{"a":"é","b":1}', {"a": "é", "b": 1}, SALTS)
    assert entry.at == "2026-01-01T12:00:00.000000Z"
    assert is_link(entry)
    head = canonical({"at": entry.at, "kind": "asked", "prev": START, "request": "r", "run": "x", "seq": 7})
    from hashlib import sha256

    digests = {name: sha256(f"{SALTS[name]}\n{text}".encode()).hexdigest() for name, text in (("a", '"é"'), ("b", "1"))}
    assert entry.digests == canonical(digests)
    assert entry.hash == sha256(f"{head}\n{entry.digests}".encode()).hexdigest()


def test_times_are_utc_to_the_microsecond_and_sort_as_texts() -> None:
    east = timezone(timedelta(hours=2))
    assert timestamp(datetime(2026, 1, 1, 14, tzinfo=east)) == timestamp(NOON)
    moments = [NOON + timedelta(microseconds=step * 333_333) for step in range(9)]
    assert sorted(map(timestamp, moments)) == [timestamp(moment) for moment in moments]
    assert datetime.fromisoformat(timestamp(NOON)) == NOON.astimezone(UTC)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@examples(1_000, daily=25)
@given(st.dictionaries(st.text(max_size=8), values, max_size=6), st.text(), st.text(), st.integers(1, 2**53))
def test_the_fast_path_gives_the_very_same_bytes(body: dict[str, Any], kind: str, request: str, seq: int) -> None:
    from hashlib import sha256

    entry = linked(EventDraft(kind=kind, at=NOON, request=request, body=body), seq, START)
    assert json.loads(entry.body) == json.loads(canonical(_with_texts(body)))
    fields = {"at": entry.at, "kind": kind, "prev": START, "request": request, "run": "", "seq": seq}
    digests = json.loads(entry.digests)
    assert canonical(digests) == entry.digests and digests.keys() == body.keys() == json.loads(entry.salts).keys()
    assert entry.hash == sha256(f"{canonical(fields)}\n{entry.digests}".encode()).hexdigest()
    assert is_link(entry) and event_of(event_line(entry)) == entry


def _with_texts(value: Any) -> Any:
    """Integers that no double holds are written as texts."""
    if isinstance(value, dict):
        return {name: _with_texts(one) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_with_texts(one) for one in cast("list[Any]", value)]
    return str(value) if type(value) is int and abs(value) > 2**53 else value


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("half \ud800", "half \\ud800"),
        (float("nan"), "(float without a JSON form)"),
        ({1, 2}, "(set without a JSON form)"),
        ({1: "a"}, {"1": "a"}),
        ((1, b"x"), [1, "(bytes without a JSON form)"]),
    ],
    ids=["surrogate", "nan", "set", "number as key", "bytes"],
)
def test_an_event_is_never_lost_for_what_it_holds(value: Any, written: Any) -> None:
    entry = linked(EventDraft(kind="allowed", at=NOON, body={"value": value, "tool": "pay"}), 1, START)
    assert json.loads(entry.body) == {"tool": "pay", "value": written}
    assert walked([entry]).events == 1


def test_nor_for_being_deep() -> None:
    deep: Any = "bottom"
    for _ in range(3_000):
        deep = [deep]
    entry = linked(EventDraft(kind="allowed", at=NOON, body={"value": deep, "tool": "pay"}), 1, START)
    assert json.loads(entry.body)["tool"] == "pay"
    assert walked([entry]).events == 1


def test_a_hash_over_what_is_no_unicode_is_refused() -> None:
    with pytest.raises(CannotCanonicalise):
        hash_of(1, "", "\ud800", "", "", "{}", START)


# --- a walk ---


def test_a_sound_record() -> None:
    assert walked(CHAIN) == Verified(events=40, head=CHAIN[-1].hash, signed={})
    assert walked([]) == Verified(events=0, head=START, signed={})


def test_checkpoints_may_come_before_or_right_after_their_event() -> None:
    walk = Walk(is_sealed)
    walk.checkpoint(checkpoint(CHAIN[29], "cd" * 32))
    for entry in CHAIN:
        walk.event(entry)
        if entry.seq == 10:
            walk.checkpoint(checkpoint(entry))
    assert walk.end().signed == {KEY: 10, "cd" * 32: 30}


def test_a_walk_may_begin_in_the_middle() -> None:
    walk = Walk(is_sealed, after=10, link=CHAIN[9].hash)
    for entry in CHAIN[10:]:
        walk.event(entry)
    assert walk.end().events == 40


@pytest.mark.parametrize("field", ["at", "kind", "request", "run", "body", "salts", "digests", "prev", "hash"])
def test_a_changed_field(field: str) -> None:
    changed = [*CHAIN]
    changed[6] = CHAIN[6]._replace(**{field: getattr(CHAIN[6], field)[:-1] + "~"})
    seq, text = broken(changed)
    assert seq == 7
    assert "event 7 was changed" in text


@pytest.mark.parametrize("value", [None, b"blob", 5], ids=repr)
def test_a_field_that_is_no_text_any_longer(value: Any) -> None:
    changed = [*CHAIN]
    changed[6] = CHAIN[6]._replace(kind=value)
    assert broken(changed)[0] == 7


@pytest.mark.parametrize("field", ["args", "by", "rules", "tool", "value", "why"])
def test_an_erased_field_is_told_and_the_chain_holds(field: str) -> None:
    changed = [*CHAIN]
    body, salts = (json.loads(text) for text in (CHAIN[6].body, CHAIN[6].salts))
    del body[field], salts[field]
    changed[6] = gone = CHAIN[6]._replace(body=canonical(body), salts=canonical(salts))
    assert walked(changed) == Verified(events=40, head=CHAIN[-1].hash, erased=1)
    assert erased(gone) == (field,)
    assert f"(erased: {field})" in account_of(gone).what
    assert verify_export(exported(changed).splitlines(keepends=True), is_sealed).record.erased == 1
    changed[6] = gone._replace(salts=CHAIN[6].salts)
    assert broken(changed)[0] == 7, "a salt without its field would let people guess it"
    changed[6] = gone._replace(body=canonical(body | {field: "another"}), salts=CHAIN[6].salts)
    assert broken(changed)[0] == 7
    changed[6] = gone._replace(body=canonical(body | {"more": 1}), salts=canonical(salts | {"more": "0" * 32}))
    assert broken(changed)[0] == 7


def test_removed() -> None:
    assert broken([*CHAIN[:6], *CHAIN[7:]]) == (7, "event 7 is missing: event 8 is there instead")
    assert broken([*CHAIN[:6], *CHAIN[9:]]) == (7, "events 7 to 9 are missing: event 10 is there instead")
    assert broken(CHAIN[1:]) == (1, "event 1 is missing: event 2 is there instead")


def test_repeated() -> None:
    assert broken([*CHAIN[:7], *CHAIN[6:]]) == (7, "event 7 is repeated: it appears again after event 7")
    assert broken([*CHAIN[:9], CHAIN[2]]) == (3, "event 3 is repeated: it appears again after event 9")


def test_changed_with_a_fresh_hash() -> None:
    forged = [*CHAIN]
    forged[6] = rewritten(CHAIN[:7], {7: {"kind": "ran"}})[6]
    assert broken(forged) == (7, "event 7 was changed or replaced: event 8 was written after another one")


def test_an_event_that_was_signed_is_not_blamed_for_the_next() -> None:
    forged = [*CHAIN]
    forged[7] = CHAIN[7]._replace(prev="f" * 64)
    forged[7] = forged[7]._replace(hash=hash_of(8, *_fields(forged[7])))
    seq, text = broken(forged, checkpoint(CHAIN[6]))
    assert seq == 8
    assert "event 8 was changed or inserted" in text


def _fields(entry: Entry) -> tuple[str, str, str, str, str, str]:
    return entry.at, entry.kind, entry.request, entry.run, entry.digests, entry.prev


def test_all_written_anew_is_found_by_a_signature() -> None:
    forged = rewritten(CHAIN, {13: {"kind": "ran"}})
    assert walked(forged).events == 40, "without a checkpoint nobody can tell"
    seq, text = broken(forged, checkpoint(CHAIN[9]), checkpoint(CHAIN[29]))
    assert seq == 11, "the first of those that the bad checkpoint covers and no good one does"
    assert "something in events 11 to 30 is not what was signed" in text


def test_cut_off_at_the_end() -> None:
    seq, text = broken(CHAIN[:30], checkpoint(CHAIN[39]))
    assert seq == 31
    assert text == "the log is truncated after event 30: the checkpoint at event 40 signs 40 events"
    walk = Walk(is_sealed)
    walk.checkpoint(checkpoint(CHAIN[0]), "a drawer")
    with pytest.raises(RecordBroken, match=r"truncated whole: .* at event 1 that is kept in a drawer signs 1 event"):
        walk.end()


def test_a_checkpoint_of_another_record() -> None:
    other = chain(40, seed=2)
    seq, text = broken(CHAIN, checkpoint(other[19]))
    assert seq == 1
    assert "belongs to another log" in text


def test_a_wrong_signature_is_told_where_it_stands() -> None:
    bad = checkpoint(CHAIN[19])._replace(signature="0" * 128)
    assert broken(CHAIN, bad) == (
        20,
        "the checkpoint at event 20 has a wrong signature: it was changed or forged",
    )
    assert broken(CHAIN[:5], bad)[0] == 20
    spoiled = [*CHAIN]
    spoiled[4] = CHAIN[4]._replace(kind="~")
    assert broken(spoiled, bad)[0] == 5, "the first bad event is named, not the first bad checkpoint"


def test_a_checkpoint_that_comes_too_late() -> None:
    walk = Walk(is_sealed)
    for entry in CHAIN:
        walk.event(entry)
    with pytest.raises(RecordBroken, match="out of order"):
        walk.checkpoint(checkpoint(CHAIN[9]))


@pytest.mark.parametrize("change", [{"seq": "20"}, {"key": b"blob"}, {"signature": None}, {"hash": 5}], ids=str)
def test_a_checkpoint_that_is_none(change: dict[str, Any]) -> None:
    assert "a checkpoint was changed" in broken(CHAIN, checkpoint(CHAIN[19])._replace(**change))[1]


# --- who vouches ---


def test_who_vouches() -> None:
    signed = {"a": 10, "b": 30, "c": 20}
    assert vouched(signed, pinned=["a", "c", "x"], own="b") == Vouched(Trust.PINNED, "c", 20)
    assert vouched(signed, own="a") == Vouched(Trust.OWN, "a", 10)
    assert vouched(signed, own="x") == Vouched(Trust.CARRIED, "b", 30)
    assert vouched({}, own="x") == Vouched(Trust.NOBODY)
    assert vouched(signed, pinned=["x"], own="a") == Vouched(Trust.NOBODY), "where keys are pinned, no other counts"


# --- the file ---


def lines(file: bytes = FILE) -> list[bytes]:
    return file.splitlines(keepends=True)


def told(file: bytes) -> tuple[int, str]:
    with pytest.raises(RecordBroken) as raised:
        verify_export(lines(file), is_sealed)
    return raised.value.seq, str(raised.value)


def test_a_sound_file() -> None:
    checked = verify_export(lines(), is_sealed)
    assert checked.record == Verified(events=40, head=CHAIN[-1].hash, signed={KEY: 40})
    assert checked.key == KEY
    assert checked.header.store == CHAIN[0].hash[:16]
    assert verify_export(lines(exported([])), is_sealed).record.events == 0


def test_every_line_is_canonical_json() -> None:
    for line in lines():
        value = json.loads(line)
        assert canonical(value) == line.decode().rstrip("\n")


def test_an_event_survives_as_a_line() -> None:
    for entry in CHAIN:
        assert event_of(event_line(entry)) == entry


@table(
    ("line", "what"),
    [
        (b'{"seq": 1}\n', "not an event"),
        (b"[1]\n", "not an object"),
        (b"\n", "not JSON"),
        (b'{"a": NaN}\n', "not JSON"),
        (b'{"a": 1e5}\n', "not JSON"),
        (b'{"a": 10000000000000001}\n', "not JSON"),
        (b"[" * 100_000 + b"\n", "not JSON"),
        (b'{"a": "\xff"}\n', "not UTF-8"),
        (b"{}", "breaks off"),
    ],
)
def test_what_is_no_event(line: bytes, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        event_of(line)


SPELLINGS = {
    "a blank": lambda line: line.replace(b'"kind":', b'"kind": '),
    "key order": lambda line: line.replace(b'"args":', b'"zrgs":'),
    "a key twice": lambda line: line.replace(b'"body":{', b'"body":{"by":"eve",'),
    "an escape": lambda line: line.replace(b"pay", b"p\\u0061y"),
    "a number": lambda line: line.replace(b'"seq":1}', b'"seq":1.0}'),
    "minus zero": lambda line: line.replace(b'"seq":1}', b'"seq":-0}'),
    "half a pair": lambda line: line.replace(b"pay", b"\\ud800"),
    "a text for an object": lambda line: line.replace(b'"body":{', b'"body":"{').replace(b'},"hash"', b'}","hash"'),
}


@table("spelling", SPELLINGS)
def test_there_is_one_spelling(spelling: str) -> None:
    line = event_line(
        linked(EventDraft(kind="asked", at=NOON, body={"args": {}, "by": "ana", "tool": "pay"}), 1, START)
    )
    spoiled = SPELLINGS[spelling](line)
    assert spoiled != line
    with pytest.raises(ValueError, match=r"its spelling was changed|not JSON|not an event|surrogate"):
        event_of(spoiled)


@table("depth", [90, 120, 300, 480, 700, 900, 990, 2_000, 50_000])
def test_a_bottomless_body_is_read_or_refused(depth: int) -> None:
    line = event_line(CHAIN[0]._replace(body='{"a":' + "[" * depth + "]" * depth + "}"))
    try:
        assert event_of(line).seq == 1
    except ValueError:
        assert depth > 100


@table("field", ["at", "hash", "kind", "prev", "request", "run"])
@table("value", [b"5", b"null", b"[]", b"{}"])
def test_a_field_that_should_be_a_text(field: str, value: bytes) -> None:
    entry = CHAIN[0]
    text = canonical(getattr(entry, field)).encode()
    name = f'"{field}":'.encode()
    with pytest.raises(ValueError, match="not an event"):
        event_of(event_line(entry).replace(name + text, name + value))


def test_a_text_that_is_json_is_no_body() -> None:
    """What fits in a line as an object stands there as one: a second spelling would be a second file."""
    entry = CHAIN[3]
    quoted = event_line(entry).replace(entry.body.encode(), canonical(entry.body).encode())
    with pytest.raises(ValueError, match="not an event"):
        event_of(quoted)


def test_where_a_file_is_wrong() -> None:
    rows = lines()
    assert rows[11].startswith(b'{"checkpoint":')
    assert told(b"".join(rows[:-1])) == (41, "the log is truncated after event 40: its last line is not there")
    assert told(b"".join(rows[:5])) == (5, "the log is truncated after event 4: its last line is not there")
    assert told(FILE[:-1]) == (41, "the log is truncated after event 40: line 46 breaks off")
    assert told(b"".join([*rows[:3], *rows[4:]])) == (3, "event 3 is missing: event 4 is there instead")
    assert told(b"".join([*rows[:3], rows[4], rows[3], *rows[5:]])) == (
        3,
        "event 3 is out of order: event 4 is in its place",
    )
    assert told(b"".join([*rows[:4], rows[3], *rows[4:]]))[1].startswith("event 3 is repeated")
    assert told(FILE + b"\n") == (41, "something was added after the last line")
    assert told(b"".join([*rows[:11], *rows[12:]]))[1].startswith("the events are intact, but")
    assert told(b"".join([rows[0], *rows[11:]]))[0] == 1
    cut = b"".join([*rows[:39], rows[-1]])
    assert told(cut) == (36, "the log is truncated after event 35: the last line says that there were 40")
    assert told(FILE.replace(b"\n", b"\r\n"))[1] == "the first line was changed"
    assert "line endings were converted" in told(rows[0] + b"".join(rows[1:]).replace(b"\n", b"\r\n"))[1]


def test_a_file_with_more_than_was_signed() -> None:
    short = lines(exported(CHAIN[:20], every=50))
    long = lines(exported(CHAIN[:25], every=50))
    assert told(b"".join([*long[:-1], short[-1]])) == (21, "event 21 was added: the last line signs 20")


def test_a_first_line_of_another_file() -> None:
    other = lines(exported(CHAIN, every=10, key="cd" * 32))
    assert told(b"".join([other[0], *lines()[1:]]))[1] == "the first and the last line are from different files"


@pytest.mark.parametrize(
    ("file", "what"),
    [
        (b"", "the file is empty"),
        (b"hello\n", "not an exported record"),
        (b'{"format":"signoff record"}\n', "not an exported record"),
        (b"\x00\xff\x1f\x8b binary", "not an exported record"),
        (FILE.replace(b'"version":1}', b'"version":2}'), "newer than this program knows"),
        (csv_header().encode(), "CSV export cannot be verified"),
    ],
)
def test_what_is_no_export(file: bytes, what: str) -> None:
    with pytest.raises(WrongFile, match=what):
        verify_export(lines(file), is_sealed)


OF_A_KEY = {"key": "k1", "by": "ana", "permissions": ["answer", "read"]}


@pytest.mark.parametrize("change", [(b'"version":1', b'"version":0'), (b'"store":', b'"spore":')], ids=str)
def test_a_changed_first_line(change: tuple[bytes, bytes]) -> None:
    assert told(FILE.replace(*change, 1))[1] == "the first line was changed"


# --- in words, and for spreadsheets ---


@table(
    ("body", "who", "what"),
    [
        ({"title": "Delete a.txt", "reason": "rule"}, "", "Delete a.txt: rule"),
        ({"title": "Delete", "reason": "rule", "changed": ["a", "b"]}, "", "Delete: asked again: a; b"),
        ({"approved": True, "by": "ana", "note": "fine"}, "ana", "approves: fine"),
        ({"approved": False, "by": "ana", "stands_for": "ben"}, "ana", "denies, standing in for ben"),
        ({"approved": True, "edited_args": {"to": "é"}}, "", 'approves, with other arguments {"to": "é"}'),
        ({"state": "approved", "ending": "approved", "by": "ana"}, "ana", "approved"),
        ({"tool": "pay", "args": {"to": "é"}, "why": "no"}, "", 'pay {"to": "é"}: no'),
        ({"tool": "look", "args": {}}, "", "look"),
        ({"to": "ben", "by": "ana"}, "ana", "to ben"),
        ({"to": "", "by": "ana"}, "ana", "to nobody"),
        ({"happened": False, "by": "ana"}, "ana", "says that it did not happen"),
        ({"process": "37pj373neq"}, "", ""),  # of an older version: it tells a person nothing
        ({"process": "aap:37pj373neq"}, "", "by the agent that asked"),
        ({"process": "vm/2c98c095/4026531836/547/1307925"}, "", "by process 547 on vm"),
        (
            {"absent": "ana", "deputy": "ben", "until": "Monday", "by": "eve"},
            "eve",
            "ben stands in for ana until Monday",
        ),
        ({"agent": "a:b", "requester": "ana"}, "ana", "a:b"),
        ({"agent": "", "name": "shop", "requester": ""}, "", "shop"),
        ({"text": "refunds up to 200", "by": "ana"}, "ana", "refunds up to 200"),
        (
            {"tool": "pay", "args": {"a": 10**20 + 1, "b": "10n, \\"}},
            "",
            'pay {"a": "100000000000000000001", "b": "10n, \\\\"}',
        ),
        (OF_A_KEY | {"kind": "link", "holder": "ben"}, "ana", "a sign-in link for ben"),
        (OF_A_KEY | {"kind": "session", "holder": "ben", "label": "Firefox"}, "ana", "a session of ben, Firefox"),
        (OF_A_KEY | {"kind": "token", "holder": "bot", "label": "ci"}, "ana", "a token for bot: answer, read (ci)"),
        (OF_A_KEY | {"kind": "instance", "holder": "3f9a", "label": "support"}, "ana", "the instance support"),
        ({"by": 5, "title": []}, "", ""),
        ({}, "", ""),
    ],
    ids=str,
)
def test_an_event_in_words(body: dict[str, Any], who: str, what: str) -> None:
    told = account_of(linked(EventDraft(kind="x", at=NOON, body=body), 1, START))
    assert (told.who, told.what) == (who, what)


@pytest.mark.parametrize("body", ["[1]", "{", "nonsense"])
def test_an_event_that_cannot_be_read_is_shown_as_it_is(body: str) -> None:
    assert account_of(CHAIN[0]._replace(body=body)).what == body


def cells(row: str) -> list[str]:
    import csv

    [read] = csv.reader([row])
    return read


@table("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "'=1", "|x", "%x", "=cmd|' /C calc'!A0"])
def test_a_spreadsheet_computes_nothing(text: str) -> None:
    entry = linked(EventDraft(kind=text, at=NOON, request=text, run=text, body={"by": text, "title": text}), 1, START)
    read = cells(csv_row(entry))
    assert len(read) == len(COLUMNS)
    assert not [cell for cell in read if cell.lstrip(" '")[:1] in "=+-@|%" and not cell.startswith("'")]


def test_a_row_holds_the_event() -> None:
    for entry in CHAIN:
        row = dict(zip(COLUMNS, cells(csv_row(entry)), strict=True))
        assert (row["seq"], row["at"], row["kind"]) == (str(entry.seq), entry.at, entry.kind)
        assert (row["request"], row["run"], row["prev"], row["hash"]) == (
            entry.request,
            entry.run,
            entry.prev,
            entry.hash,
        )
    assert cells(csv_header()) == list(COLUMNS)


def test_a_row_is_one_line() -> None:
    entry = linked(EventDraft(kind="a\r\nb", at=NOON, body={"title": 'x\n"y"'}), 1, START)
    assert csv_row(entry).count("\n") == 1
    assert cells(csv_row(entry))[4] == 'x⟦LF⟧"y"'


def test_drafts_are_repeatable() -> None:
    assert drafts(5) == drafts(5)


HIDDEN = "\u180b\uffa0\u2800\u3164\u115f\u1160\u17b4\u17b5\ufe0f\u200b\u202e\u00ad\U000e0100\x1b\n\t"


@table("hidden", HIDDEN, ids=[f"U+{ord(one):04X}" for one in HIDDEN])
def test_nothing_hidden_is_left_in_a_spreadsheet(hidden: str) -> None:
    told = f"a{hidden}b"
    entry = linked(EventDraft(kind="asked", at=NOON, request=told, body={"title": told, "by": told}), 1, START)
    row = csv_row(entry).removesuffix("\r\n")
    assert hidden not in row
    assert is_clean(row.replace("⟦", "").replace("⟧", ""))


def test_what_was_masked_before_is_not_marked_again() -> None:
    title = "pay ⟦secret sha256:abcd⟧ \u200b now"
    entry = linked(EventDraft(kind="asked", at=NOON, body={"title": title}), 1, START)
    assert cells(csv_row(entry))[4] == "pay ⟦secret sha256:abcd⟧ ⟦U+200B⟧ now"
