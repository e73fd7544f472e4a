"""What people search for is found: every link of the search page leads to a heading, and the page there says it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.docs.test_snippets import ROOT

SEARCH = ROOT / "docs" / "search.md"
LINK = re.compile(r"\]\(([^)#\s]+)(?:#([^)]*))?\)")
ROWS = [
    (cells[1], cells[2])
    for line in SEARCH.read_text("utf-8").splitlines()
    if line.startswith("| ") and (cells := [cell.strip() for cell in line.split("|", 3)])[1] != "word"
]

SAID = {
    "retry": ["runs once", "unknown"],
    "webhook": ["answer", "POST"],
    "audit log": ["signoff audit verify", "signoff audit export"],
    "four eyes": ["quorum: 2", "not_by: requester"],
    "human in the loop": ["approver=", "resume("],
    "timeout": ["timeout:", "on_timeout:", "escalate_to:"],
    "resume after crash": ["resume(", "kill -9"],
    "Slack": ["inbox.answer"],
    "RBAC": ["roles: [", "by: ops"],
    "approve from phone": ["signoff channels run discord"],
    "mobile push": ["notif"],
    "Microsoft Teams": ["inbox.answer"],
    "custom UI": ["/api/v1", "mounted"],
    "expire": ["never by itself", "`until`", "--expires"],
    "Docker": ["Containerfile"],
    "Kubernetes": ["/healthz", "/readyz", "replicas: 1"],
    "multi tenant": ["no tenants"],
    "streaming": ["run_stream_events", "tests/gate/test_signoff.py::test_streamed_and_stepped_runs_are_gated_too"],
    "CI": ["--unattended", "signoff policy check", "doctor --strict"],
    "rate limit": ["max_uses", "budget", "per hour", "sign-in attempts"],
    "redaction": ["secrets=", "unmasked", "${NAME}"],
}
"""What people search for, and what has to stand on the pages that answer it besides those words."""


def anchors(page: Path) -> set[str]:
    """The headings of a page, as links name them."""
    outside = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", outside, re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"[\s-]+", "-", heading) for heading in plain}


def row(word: str) -> str:
    """What the search page answers to a word."""
    return next(answer for words, answer in ROWS if word in words)


@pytest.mark.parametrize(("word", "said"), SAID.items(), ids=SAID)
def test_a_word_leads_to_its_answer(word: str, said: list[str]) -> None:
    found = "\n".join((SEARCH.parent / page).read_text("utf-8") for page, _ in LINK.findall(row(word)))
    words = [one for one in word.split() if not re.search(rf"\b{one}", found, re.IGNORECASE)]
    assert (words, [one for one in said if one not in found]) == ([], [])


def test_what_does_not_exist_is_said_with_what_to_do() -> None:
    for word in ("Slack", "webhook"):
        assert "not exist yet" in row(word) and LINK.search(row(word)), word


def test_every_link_leads_to_a_heading() -> None:
    assert len(ROWS) >= 40
    lost = [
        f"{words}: {page}#{anchor}"
        for words, answer in ROWS
        for page, anchor in LINK.findall(answer)
        if not (SEARCH.parent / page).is_file() or (anchor and anchor not in anchors(SEARCH.parent / page))
    ]
    assert lost == []
