"""The example of an agent in Python, through the program, offline. tests/examples has those of workers in files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.start import signoff

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize(("mode", "sent"), [("auto_deny", ["ben"]), ("auto_approve", ["ben", "eve"])])
def test_mail_is_sent_as_the_policy_says(tmp_path: Path, mode: str, sent: list[str]) -> None:
    here = tmp_path / "mail"
    shutil.copytree(EXAMPLES / "mail", here)
    tools = "list_mail,read_mail,send_mail"
    assert signoff("policy", "check", "signoff.yaml", "--tools", tools, cwd=here).returncode == 0
    done = signoff("run", "assistant:agent", "go", "--model", "script:turns.yaml", "--mode", mode, cwd=here)
    assert done.returncode == 0, done.stderr
    outbox = sorted((here / "outbox").glob("*.json"))
    assert sorted(json.loads(mail.read_text())["to"][0].partition("@")[0] for mail in outbox) == sent
    assert "no mail to more than three people at once" in done.stdout
