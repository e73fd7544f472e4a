"""The project that the stories of `test_flow*.py` are told in: one bot for all of them, one worker for each story.

No two stories have a worker, a file or a bell in common, so each is as if it were alone.
"""

from __future__ import annotations

from typing import Any

from tests.discord.scripts import Turns, calls, rings, says, writes

LONG = "".join(f"line {number} of what is to be written\n" for number in range(300))
TOKEN = "ghp_" + "Xk7Pq2" * 6


def two(name: str, *contents: str) -> list[dict[str, object]]:
    """A script that writes files in one step, and says what it was told of each."""
    files = [("write_file", {"path": f"{name}{at}.txt", "content": text}) for at, text in enumerate(contents, 1)]
    return [calls(*files), says(f"{name} was told: {{{{last}}}}")]


WORKERS: dict[str, Turns] = {
    # test_flow.py
    "clerk": [writes("clerk.txt", "eggs"), says("Noted: {{last}}"), says("Anything else?")],
    "chief": [
        calls(("worker_call", {"worker": "scribe", "prompt": "Write it down."})),
        says("The scribe said: {{last}}"),
    ],
    "scribe": [writes("scribe.txt", "two\nthree\n"), says("It is written")],
    "edited": [writes("edited.txt", "eggs"), says("I was told: {{last}}")],
    "refused": [writes("refused.txt", "eggs"), says("I leave it, since: {{last}}"), says("As you said before.")],
    "plain": [writes("plain.txt", "eggs"), says("No is no: {{last}}")],
    "failing": [calls(("edit_file", {"path": "none.txt", "old": "a", "new": "b"})), says("It failed: {{last}}")],
    "hasty": [writes("hasty.txt", "eggs"), says("Too late: {{last}}")],
    "elsewhere": [writes("elsewhere.txt", "eggs"), says("Answered elsewhere: {{last}}")],
    "cancelled": [writes("cancelled.txt", "eggs"), says("never said")],
    "outside": [writes("outside.txt", "eggs"), says("Begun elsewhere: {{last}}")],
    "talker": [says("What shall I note?"), writes("talker.txt", "milk"), says("First and second: {{last}}")],
    # test_flow_record.py
    "wordy": [rings("wordy"), says("wordy: {{last}}")],
    "secret": [writes("secret.txt", f"token {TOKEN}\nuser bob\n"), says(f"I used {TOKEN}: {{{{last}}}}")],
    "masked": [writes("masked.txt", f"token {TOKEN}\nuser bob\n"), says("masked: {{last}}")],
    "long": [writes("long.txt", LONG), says("long: {{last}}")],
    "denied": [writes("denied.txt", LONG), says("denied: {{last}}")],
    "remembered": [rings("remembered"), rings("remembered"), says("remembered: {{last}}")],
    "listed": [rings("listed"), says("listed: {{last}}")],
    # test_flow_several.py
    "pair": two("pair", "one", "two"),
    "all": two("all", "one", "two", "three"),
    "none": two("none", "one", "two"),
    "opened": two("opened", "one", LONG),
    "late": [rings("late"), says("late: {{last}}")],
    "forged": [rings("forged"), says("forged: {{last}}")],
    "ops": [rings("ops"), says("ops: {{last}}")],
    "here": [rings("here"), says("here: {{last}}")],
    "quorum": [rings("quorum"), says("quorum: {{last}}")],
    "eyes": [rings("eyes"), says("eyes: {{last}}")],
    "race": [rings("race"), says("race: {{last}}")],
    "twice": [rings("twice"), says("twice: {{last}}")],
}
RULES: list[dict[str, Any]] = [
    # test_flow.py
    {"deny": {"path": "**/.env"}, "reason": "secrets stay where they are"},
    {"allow": {"tool": "worker_call"}},
    {
        "ask": {"tool": "write_file", "worker": "scribe"},
        "id": "nothing-unread",
        "reason": "what is written is read before",
    },
    {"ask": {"worker": "hasty"}, "timeout": "1s"},
    # test_flow_record.py
    {"ask": {"worker": "wordy"}, "message": "Is the @everyone deploy through?", "reason": "deploys wake people"},
    # test_flow_several.py
    {"ask": {"worker": "ops"}, "by": "ops"},
    {"ask": {"worker": "quorum"}, "by": "ops", "quorum": 2},
    {"ask": {"worker": "eyes"}, "not_by": "requester"},
]
DELEGATES = {"chief": {"delegates": ["scribe"]}}
