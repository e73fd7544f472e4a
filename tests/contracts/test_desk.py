"""What people may do is the same whatever they do it with: each face plays the table of `desk.toml`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.contracts.desk.cases import Case, Face, Place, table
from tests.contracts.desk.faces import Api, Commands, Gate, Presses, Program
from tests.discord.conftest import service as service
from tests.discord.service import Service

IN_PROCESS = ("cli", "api", "program", "gate")
PLAYED = [(face, case) for face in IN_PROCESS for case in table().cases if case.has(face)]


async def played(face: Face, case: Case, place: Place) -> tuple[str, str]:
    """What came of a case at a face, and what was said."""
    request = await place.asked(case)
    if isinstance(face, Presses) and request is not None:
        await face.house.message(request)  # what is settled before it was shown is never shown
    for act in case.before:
        if act.act == "open" and not isinstance(face, Gate):  # each face has its way to show all of a call
            await face.do(act, request, place)
        else:
            await place.happened(act, request)
    before = await place.broker.get(request.id) if request is not None else None
    accepted, said = await face.do(case.does, before, place)
    outcome = await place.outcome(case.does, request, before)
    if outcome:
        assert accepted, f"{outcome}, but whoever did it was told: {said}"
    return outcome or ("done" if accepted else "refused"), said


def expect(face: str, case: Case, got: tuple[str, str]) -> None:
    outcome, said = got
    expected = case.answer_of(face)
    assert outcome == expected, said
    if outcome == "refused" and face not in case.stays:
        assert case.says in said


@pytest.mark.parametrize(("face", "case"), PLAYED, ids=[f"{face}: {case.name}" for face, case in PLAYED])
async def test_a_face_does_as_the_table_says(
    face: str, case: Case, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    faces = {"cli": Commands(capsys, monkeypatch), "api": Api(), "program": Program(), "gate": Gate()}
    place = Place(tmp_path)
    try:
        expect(face, case, await played(faces[face], case, place))
    finally:
        await place.close()


async def test_presses_do_as_the_table_says(tmp_path: Path, service: Service) -> None:
    """At one bot for all cases, as starting one takes longer than all of them."""
    place, failed = Place(tmp_path), list[str]()
    async with Presses(service, place) as presses:
        for case in [one for one in table().cases if one.has("discord")]:
            try:
                async with asyncio.timeout(8):
                    expect("discord", case, await played(presses, case, place))
            except (AssertionError, TimeoutError) as error:
                failed.append(f"{case.name}: {error!r:.200}")
            await place.cleared()
    await place.close()
    assert not failed, "\n".join(failed)
