"""An answer that could not be taken is not dropped: whoever gave it hears of it, and is asked again."""

from __future__ import annotations

from typing import Any

import pytest
from tests.channels.test_approver_channel import Plain, asked, open_again, started

from signoff.core.decision import ApprovalDecision
from signoff.core.request import ApprovalRequest, State
from signoff.errors import ChannelFailed, StoreError
from signoff.testing import Office
from signoff.testing.office import ANA, soon


class Telling(Plain):
    """An approver that can be told something."""

    def __init__(self, *answers: ApprovalDecision | Exception) -> None:
        super().__init__(*answers)
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.fixture
def office() -> Office:
    return Office()


def failing(office: Office, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """The store does not work for the next answers."""
    answer = office.broker.answer

    async def fails(*args: Any, **more: Any) -> ApprovalRequest:
        nonlocal times
        if times:
            times -= 1
            raise StoreError("database is locked")
        return await answer(*args, **more)

    monkeypatch.setattr(office.broker, "answer", fails)


async def test_what_the_store_could_not_take_is_asked_again(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ui = Plain(*[ApprovalDecision(approved=True)] * 2)
    channel, inbox = await started(office, ui, by=ANA)
    failing(office, monkeypatch, 1)
    notice = await asked(office, channel)
    await soon(lambda: len(inbox.taken) == 1, "it is not asked again")
    assert [one.problem for one in ui.asked] == ["", "database is locked"]
    assert (await office.now(notice)).request.state is State.APPROVED
    await channel.stop()


async def test_where_no_answer_can_be_taken_that_is_said(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    ui = Telling(*[ApprovalDecision(approved=True)] * 3)
    channel, inbox = await started(office, ui, by=ANA)
    failing(office, monkeypatch, 10)
    notice = await asked(office, channel)
    await open_again(office, channel, notice)
    told = f"your answer to send_mail (request {notice.request.id}) was not accepted: database is locked"
    assert ui.said == [told]
    assert len(ui.asked) == 3 and inbox.taken == []
    with pytest.raises(ChannelFailed, match="database is locked"):
        await channel.show(notice)
    await channel.stop()
