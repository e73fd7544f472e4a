"""After an edit a card shows the call that runs, and nothing that was said about the one that was asked."""

from __future__ import annotations

from tests.discord.house import House

from signoff.core.decision import ApprovalDecision
from signoff.core.people import Actor
from signoff.core.request import State

SAID = {"summary": "Pay ACME 250", "note": "by tonight", "preview": "the balance would be 0"}


async def test_a_card_says_nothing_of_the_call_as_it_was_asked(house: House) -> None:
    async with house.running():
        request, message = await house.shown(metadata=SAID)
        assert all(text in message.text for text in SAID.values())
        edited = ApprovalDecision(approved=True, edited_args={"to": "ACME", "amount": 20})
        await house.broker.answer(request.id, edited, by=Actor(name="ana"))
        await house.becomes(request, State.APPROVED)
        await house.message(request, lambda one: "was approved" in one.text)
    assert "`amount` = `20`" in message.text and "**Edited:**" in message.text
    assert not [text for text in SAID.values() if text in message.text]
    assert "the tool's description of the original call is left out" in message.text
