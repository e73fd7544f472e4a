"""What a notice is of, and the text by which channels find their messages again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signoff.core.subject import Occasion, Subject, SubjectKind

IDS = st.text("abcdefghjkmnpqrstuvwxyz23456789-", min_size=1)


@pytest.mark.parametrize(
    ("subject", "text"),
    [
        (Subject(SubjectKind.REQUEST, "k2m"), "k2m"),
        (Subject(SubjectKind.BATCH, "k2m"), "all:k2m"),
        (Subject(SubjectKind.RESULT, "run1"), "said:run1"),
        (Subject(SubjectKind.REMINDER, "k2m", Occasion.ESCALATED), "remind:k2m:escalated"),
    ],
)
def test_its_text_is_the_one_that_0_1_left_in_messages(subject: Subject, text: str) -> None:
    assert str(subject) == text
    assert Subject.parse(text) == subject


@given(kind=st.sampled_from(SubjectKind), about=IDS, occasion=st.sampled_from(Occasion))
def test_what_is_told_to_a_channel_comes_back_as_it_was(kind: SubjectKind, about: str, occasion: Occasion) -> None:
    subject = Subject(kind, about, occasion if kind is SubjectKind.REMINDER else None)
    assert Subject.parse(str(subject)) == subject


@given(st.text())
def test_any_text_is_a_subject(text: str) -> None:
    assert str(Subject.parse(text)) == text


def test_a_result_is_about_no_request() -> None:
    assert Subject(SubjectKind.RESULT, "run1").request == ""
    assert Subject(SubjectKind.MESSAGE, "run1/3").request == "" and Subject(SubjectKind.MESSAGE, "run1/3").run == "run1"
    others = [kind for kind in SubjectKind if kind not in (SubjectKind.RESULT, SubjectKind.MESSAGE)]
    assert {Subject(kind, "k2m").request for kind in others} == {"k2m"}
