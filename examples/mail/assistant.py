"""An assistant for one mailbox. Mail is files, so that you can look at what it did."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset

INBOX = Path(__file__).parent / "inbox"
OUTBOX = Path("outbox")


class Mailbox(FunctionToolset[Any]):
    """Tools for mail, which say what kind of thing they do and what is about to happen."""

    def __init__(self) -> None:
        super().__init__([self.list_mail, self.read_mail, self.send_mail], id="mailbox")

    def capability_labels(self, name: str, args: Mapping[str, Any], ctx: Any) -> list[str]:
        return ["net.egress"] if name == "send_mail" else ["data.read"]

    def describe_approval(self, name: str, args: Mapping[str, Any], ctx: Any) -> Mapping[str, Any]:
        if name != "send_mail":
            return {}
        return {"summary": f"Send “{args['subject']}” to {', '.join(args['to'])}", "preview": args["text"]}

    def list_mail(self) -> list[str]:
        """List the mail in the inbox."""
        return sorted(file.stem for file in INBOX.glob("*.txt"))

    def read_mail(self, name: str) -> str:
        """Read one mail."""
        return (INBOX / f"{Path(name).name}.txt").read_text("utf-8")

    def send_mail(self, to: list[str], subject: str, text: str) -> str:
        """Send a mail."""
        OUTBOX.mkdir(exist_ok=True)
        (OUTBOX / f"{uuid4()}.json").write_text(json.dumps({"to": to, "subject": subject, "text": text}), "utf-8")
        return f"sent to {', '.join(to)}"


agent = Agent(name="assistant", instructions="Answer the user's mail, briefly.", toolsets=[Mailbox()])
