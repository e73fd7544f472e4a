"""YAML text to values with places: what is read, what is refused, and where an error points."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.tables import table

from signoff.errors import PolicyError
from signoff.policy import composer
from signoff.policy.composer import MOST_NODES, read_document
from signoff.policy.document import DEEPEST, Document, document_of, key_text


@pytest.fixture(params=["CSafeLoader", "SafeLoader"])
def loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both of the library's parsers: the fast one is not there on every machine."""
    if not hasattr(yaml, request.param):
        pytest.skip(f"PyYAML was built without {request.param}")
    monkeypatch.setattr(composer, "_loader", getattr(yaml, request.param))


@pytest.mark.usefixtures("loader")
@table(
    ("text", "value"),
    [
        ("", None),
        ("# only a comment", None),
        ("a: 1", {"a": 1}),
        ("a: -1.5e3", {"a": -1500.0}),
        ("a: 1e3", {"a": 1000.0}),
        ("a: .5", {"a": 0.5}),
        ("a: [true, False, null, ~, ]", {"a": [True, False, None, None]}),
        ("a: 'no'", {"a": "no"}),
        ('a: "0755"', {"a": "0755"}),
        ("a: !!str 12", {"a": "12"}),
        ("a: 2026-11-01", {"a": "2026-11-01"}),
        ("a: 2026-11-01T10:00:00Z", {"a": "2026-11-01T10:00:00Z"}),
        ("a: |\n  x\n  y\n", {"a": "x\ny\n"}),
        ("a: &here {b: 1}\nc: *here", {"a": {"b": 1}, "c": {"b": 1}}),
        ("'quoted key': 1", {"quoted key": 1}),
        ("- {}\n- []", [{}, []]),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_reads(text: str, value: Any) -> None:
    assert read_document(text, file="f.yaml").value == value


@pytest.mark.usefixtures("loader")
@table(
    ("text", "place", "says", "fix"),
    [
        ("a: 1\nb: 2\na: 3", "f.yaml:3:1", "the key `a` is already there on line 1", "keep one"),
        ("x:\n  a: 1\n  a: 2", "f.yaml:3:3: x", "already there on line 2", "keep one"),
        ("1: x", "f.yaml:1:1", "the key `1` is not a text", "quotes"),
        ("null: x", "f.yaml:1:1", "the key `null` is not a text", "quotes"),
        ("no: x", "f.yaml:1:1", "`no` is false for some", '"no" in quotes'),
        ("? [a]\n: 1", "f.yaml:1:3", "a key must be a text", ""),
        ("a: yes", "f.yaml:1:4: a", "`yes` is true for some", "`true`"),
        ("a: Off", "f.yaml:1:4: a", "`Off` is false for some", "`false`"),
        ("a: [1, 0755]", "f.yaml:1:8: a[1]", "`0755` is a number for some", "plain decimal"),
        ("a: 0x1f", "f.yaml:1:4", "is a number for some", "quotes"),
        ("a: 1_000", "f.yaml:1:4", "is a number for some", "quotes"),
        ("a: 1:30", "f.yaml:1:4", "is a number for some", "quotes"),
        ("a: .inf", "f.yaml:1:4", "is a number for some", "quotes"),
        ("a: .nan", "f.yaml:1:4", "is a number for some", "quotes"),
        ("a: 1e999", "f.yaml:1:4", "too large", "quotes"),
        ("a: " + "9" * 5000, "f.yaml:1:4", "too long", "quotes"),
        ("a: {b: 1}\nc: {<<: 1}", "f.yaml:2:5: c", "merging", "write the keys out"),
        ("a: !!python/name:os.system x", "f.yaml:1:4: a", "the tag `tag:yaml.org,2002:python/name:os.system`", "plain"),
        ("a: !!set {b}", "f.yaml:1:4: a", "the tag", "plain"),
        ("a: !mine [1]", "f.yaml:1:4: a", "the tag `!mine`", "plain"),
        ("a: 1\n---\nb: 2", "f.yaml:2:1", "a second document", "one document"),
        ("a: *nope", "f.yaml:1:4: a", "`*nope` refers to nothing", "`&nope`"),
        ("a: &a [*a]", "f.yaml:1:8: a[0]", "`*a` refers to nothing", ""),
        ("a:\n\t- b", "f.yaml:2:1", "this is not YAML", "tabs"),
        ("a: b: c", "f.yaml:1:5", "this is not YAML", ""),
        ("a: 1\nb: [1, 2", "f.yaml:", "this is not YAML", ""),
        ("a: 'open", "f.yaml:1:9", "this is not YAML", ""),
        ("a: 1\nb: \x07", "f.yaml:2:4", "U+0007", ""),
        ("a: \ud800", "f.yaml:1:4", "U+D800", ""),
        ("[" * (DEEPEST + 1), "f.yaml:1:65", "nested more than 64 deep", ""),
    ],
)
def test_refuses_with_the_place(text: str, place: str, says: str, fix: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_document(text, file="f.yaml")
    assert str(caught.value.place).startswith(place)
    assert says in caught.value.what
    assert fix in caught.value.fix
    assert "\n" not in caught.value.what


@pytest.mark.usefixtures("loader")
def test_aliases_cannot_multiply() -> None:
    bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 9)
    )
    with pytest.raises(PolicyError, match=f"more than {MOST_NODES:,} values"):
        read_document(bomb, file="f.yaml")


def test_too_many_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert composer.MOST_NODES == 200_000
    monkeypatch.setattr(composer, "MOST_NODES", 2_000)
    assert len(read_document("[" + "[]," * 1_999 + "]", file="f.yaml").value) == 1_999
    with pytest.raises(PolicyError, match="more than 2,000 values"):
        read_document("[" + "[]," * 2_000 + "]", file="f.yaml")


@pytest.mark.nightly
def test_far_too_many_values() -> None:
    with pytest.raises(PolicyError, match="more than 200,000 values"):
        read_document("[" + "[]," * 200_001 + "]", file="f.yaml")


def test_too_much_text() -> None:
    with pytest.raises(PolicyError, match="larger than 5 MB"):
        read_document("#" * 5_000_001, file="f.yaml")


@pytest.mark.usefixtures("loader")
def test_every_key_path_has_a_place() -> None:
    document = read_document("policy:\n  - allow: x\n  - ask: {tool: a, args: {user.name: [1, 2]}}\n", file="f.yaml")
    trail = ("policy", 1, "ask", "args", "user.name")
    assert str(document.place_of(("policy", 0, "allow"))) == "f.yaml:2:12: policy[0].allow"
    assert str(document.place_of_key(("policy", 0, "allow"))) == "f.yaml:2:5: policy[0].allow"
    assert str(document.place_of((*trail, 1))) == 'f.yaml:3:42: policy[1].ask.args["user.name"][1]'
    assert str(document.place_of_key(trail)) == 'f.yaml:3:27: policy[1].ask.args["user.name"]'
    # What is not in the file is placed at the nearest thing above it.
    assert str(document.place_of(("policy", 1, "ask", "nope"))) == "f.yaml:3:10: policy[1].ask.nope"
    assert str(document.place_of(("policy", 7))) == "f.yaml:2:3: policy[7]"


def test_an_alias_is_placed_where_it_is_used() -> None:
    document = read_document("a: &here {b: 1}\nc: *here", file="f.yaml")
    assert str(document.place_of(("c",))) == "f.yaml:2:4: c"
    assert str(document.place_of(("c", "b"))) == "f.yaml:1:14: c.b"


def test_key_text_shows_odd_keys_in_quotes() -> None:
    assert key_text(("policy", 0, "args", "a.b", "c\nd")) == 'policy[0].args["a.b"]["c\\nd"]'


def test_values_made_in_python() -> None:
    assert document_of({"a": (1, {"b": None})}, file="<rules>").value == {"a": [1, {"b": None}]}
    with pytest.raises(PolicyError, match=r"<rules>: a\[0\]: set is not a JSON type"):
        document_of({"a": [{1}]}, file="<rules>")
    with pytest.raises(PolicyError, match="<rules>: a: the key 1 is not a text"):
        document_of({"a": {1: 2}}, file="<rules>")
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(PolicyError, match="nested more than 64 deep"):
        document_of(loop, file="<rules>")


yamlish = st.text(alphabet=st.sampled_from("ab01 \n\t:-?[]{},&*!|>'\"%@`#~<=./_\\\x85\u2028é\ufeff\0"), max_size=60)


@given(yamlish | st.text(max_size=60))
@example("- - - a\n  ? b\n: *c")
@example("%YAML 9.9\n---\na")
@example("!<tag:x,y> &a b")
def test_arbitrary_text_is_read_or_refused(text: str) -> None:
    result = read_or_error(text)
    if isinstance(result, PolicyError):
        assert result.place is not None
    else:
        assert document_of(result.value, file="x").value == result.value


def read_or_error(text: str) -> Document | PolicyError:
    try:
        return read_document(text, file="f.yaml")
    except PolicyError as error:
        return error
