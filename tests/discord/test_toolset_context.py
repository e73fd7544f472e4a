"""P11 in a channel: what a toolset says and asks reaches the thread that its run was begun in, and goes on there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from tests.discord.flow import Flow, on_record, project
from tests.discord.scripts import calls, says

TELLER = '''\
from pathlib import Path

from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset


class Teller(FunctionToolset):
    def __init__(self, key, context):
        super().__init__([self.invite])
        self.key, self.context = key, context

    async def invite(self, ctx: RunContext, who: str) -> str:
        """Invite somebody."""
        self.context.message(f"@everyone {who} may come, with {self.key}")
        answer = await self.context.approvals.ask(ctx, "confirm_invitation", {"who": who})
        if answer.approved:
            Path(f"{who}.invited").write_text(f"{answer.by} {self.context.worker} {list(self.context.attachments)}")
        return f"{who}: {answer.approved}, {self.context.delegation}, {self.context.create}"
'''


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Flow]:
    """The bot of a project whose worker has a toolset that talks."""
    with project(tmp_path) as flow:
        _write(flow)
        asyncio.run(flow.start())
        with on_record(flow):
            yield flow
        flow.stop()


@pytest.mark.mission("P11")
async def test_p11_in_a_channel_lines_and_questions_of_a_toolset_stand_in_the_thread(hosted: Flow) -> None:
    thread = await hosted.mention("host: invite bob")
    line = await hosted.sees(thread, "**host** says:", "bob may come, with ⟦masked")
    assert "\\@everyone" in line.text and not line.buttons, "it notifies nobody, and asks nothing"
    question = await hosted.asked(thread, "confirm_invitation", "`bob`")
    assert not (hosted.directory / "bob.invited").exists()
    await hosted.ana.press(question, "Approve")
    answer = await hosted.sees(thread, "**host** answered:", "bob: True, None, None")
    assert (hosted.directory / "bob.invited").read_text() == "ana host []"
    assert sorted(hosted.by_bot(thread), key=id) == sorted([line, question, answer], key=id), (
        "each once, though the tool was called again"
    )


def _write(flow: Flow) -> None:
    turns = [calls(("invite", {"who": "bob"})), says("{{last}}")]
    flow.write({"host": turns}, [{"allow": "invite"}], host={"toolsets": ["teller"]})
    (flow.directory / "teller.py").write_text(TELLER)
    file = flow.directory / "signoff.yaml"
    written = yaml.safe_load(file.read_text())
    written["toolsets"]["teller"] = {"use": "teller:Teller", "config": {"key": "${DISCORD_TOKEN}"}}
    written["plugins"] = {"allow": ["teller"]}
    file.write_text(yaml.safe_dump(written, sort_keys=False))
