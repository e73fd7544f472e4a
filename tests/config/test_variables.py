"""`${NAME}` in files: what is filled in, what is kept secret, and what a missing one says."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.config import Filled, filled, filled_config, load_settings
from signoff.config.variables import has_variables
from signoff.errors import WrongFile
from signoff.policy.document import document_of
from signoff.policy.placed_value import ConfigValue

SECRET = "correct-horse-battery"


def spot(value: object) -> ConfigValue:
    return ConfigValue.top(document_of(value, file="signoff.yaml"))


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DB_URL", SECRET)
    monkeypatch.setenv("DB_USER", "ana")
    monkeypatch.setenv("DB_EMPTY", "")
    monkeypatch.delenv("DB_MISSING", raising=False)


@pytest.mark.parametrize(
    ("text", "value", "secrets"),
    [
        ("plain $HOME $5", "plain $HOME $5", ()),
        ("${DB_URL}", SECRET, (SECRET,)),
        ("x://${DB_USER}@${DB_URL}/${DB_USER}", f"x://ana@{SECRET}/ana", ("ana", SECRET)),
        ("${DB_MISSING:-fallback: {1}", None, ()),
        ("${DB_MISSING:-fall back}", "fall back", ()),
        ("${DB_MISSING:-}", "", ()),
        ("${DB_EMPTY:-other}", "other", ()),
        ("[${DB_EMPTY}]", "[]", ()),
        ("${DB_URL:-other}", SECRET, (SECRET,)),
        ("$${DB_URL} costs $$5", "${DB_URL} costs $5", ()),
        ("$$${DB_USER}", "$ana", ("ana",)),
    ],
)
@pytest.mark.mission("P5")
def test_p5_a_text_is_filled(text: str, value: str | None, secrets: tuple[str, ...]) -> None:
    if value is None:
        with pytest.raises(WrongFile, match="this is not a variable"):
            filled(text, spot(text))
        return
    done = filled(text, spot(text))
    assert (done.value, done.secrets) == (value, secrets)
    assert SECRET not in repr(done)


@pytest.mark.mission("P5")
def test_p5_every_text_in_a_value_is_filled_and_nothing_else() -> None:
    value = {"a": ["${DB_USER}", 3, None, True], "${DB_USER}": {"b": "${DB_URL}"}}
    done = filled(value, spot(value))
    assert done.value == {"a": ["ana", 3, None, True], "${DB_USER}": {"b": SECRET}}
    assert done.secrets == ("ana", SECRET)
    assert value["a"] == ["${DB_USER}", 3, None, True]


@pytest.mark.parametrize("text", ["${}", "${1A}", "${A B}", "${A-b}", "${A", "${A:b}", "${A${B}}"])
def test_what_is_no_variable_is_refused(text: str) -> None:
    with pytest.raises(WrongFile, match=r"this is not a variable\n  write \$\{NAME\}"):
        filled(text, spot(text))


@pytest.mark.mission("P5")
def test_p5_a_missing_variable_is_named_with_its_place_and_no_value_is(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(
        "toolsets:\n"
        '  base: {use: sql, config: {url: "${DB_URL}", pool: {user: "${DB_MISSING}", size: 1}, hosts: [a]}}\n'
        '  other: {extends: base, config: {pool: {size: 2}, hosts: [a, "${DB_MISSING}"]}}\n'
        '  third: {extends: base, config: {pool: {user: "${DB_USER}"}}}\n'
    )
    toolsets = load_settings(file).toolsets
    with pytest.raises(WrongFile) as caught:
        filled_config(toolsets["base"])
    assert str(caught.value.place) == f"{file}:2:60: toolsets.base.config.pool.user"
    assert "the environment has no DB_MISSING" in str(caught.value)
    assert SECRET not in str(caught.value)
    with pytest.raises(WrongFile) as caught:
        filled_config(toolsets["other"])
    assert caught.value.place is not None
    assert caught.value.place.line == 2, "the place it was written at, not where it was inherited"
    done = filled_config(toolsets["third"])
    assert done.value == {"url": SECRET, "pool": {"user": "ana", "size": 1}, "hosts": ["a"]}
    assert done.secrets == (SECRET, "ana")


def test_a_missing_variable_in_an_overlaid_list(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text(
        "toolsets:\n"
        "  base: {use: sql, config: {hosts: [a]}}\n"
        '  other: {extends: base, config: {hosts: [a, "${DB_MISSING}"]}}\n'
    )
    with pytest.raises(WrongFile) as caught:
        filled_config(load_settings(file).toolsets["other"])
    assert str(caught.value.place) == f"{file}:3:46: toolsets.other.config.hosts[1]"


def test_the_store_takes_variables_too(tmp_path: Path) -> None:
    file = tmp_path / "signoff.yaml"
    file.write_text('policy: []\nstore: "postgresql://${DB_USER}@${DB_HOST:-localhost}/db"\n')
    assert load_settings(file).store == "postgresql://ana@localhost/db"


def test_whether_a_text_has_variables() -> None:
    assert has_variables("a ${B}")
    assert has_variables("a $$ b")
    assert not has_variables("a $B")


@given(st.text(alphabet="${}:-DB_URLx \n", max_size=24) | st.text(max_size=24))
def test_whatever_stands_in_a_text_it_is_filled_or_told(text: str) -> None:
    found = filled_or_told(text)
    if isinstance(found, WrongFile):
        assert "${" in text
        assert SECRET not in str(found)
    else:
        assert has_variables(text) or found.value == text
        assert (SECRET in found.value) == (SECRET in found.secrets)


def filled_or_told(text: str) -> Filled | WrongFile:
    try:
        return filled(text, spot(text))
    except WrongFile as error:
        return error


@given(st.text(max_size=24))
def test_a_dollar_written_twice_is_always_one(text: str) -> None:
    assert filled(text.replace("$", "$$"), spot(text)).value == text
