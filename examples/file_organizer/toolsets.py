"""The project's own tools: Python does what has to be exact, so that the model only decides what goes where."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path

from pydantic import BaseModel, Field
from pydantic_ai.toolsets import FunctionToolset

from signoff.toolsets import approval_tool

DESK = Path(__file__).parent / "desk"
FOLDERS = ("invoices", "letters", "photos")

filing: FunctionToolset[None] = FunctionToolset(id="filing")


class Wish(BaseModel):
    """Where one file is to go."""

    file: str = Field(description="its name in inbox/")
    folder: str = Field(description=f"one of {', '.join(FOLDERS)}")
    about: str = Field(description="what it is, in a few words")
    day: str = Field("", description="the day it is from, as YYYY-MM-DD, if it says so")


def tidy(text: str) -> str:
    """Small letters, digits and dashes: `Café Möwe, 2nd!` becomes `cafe-mowe-2nd`."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return "-".join(re.findall(r"[a-z0-9]+", plain.lower()))


def target(wish: Wish) -> str:
    """Where a file goes, below the desk: its folder, the day, what it is about, and its own ending."""
    name = "-".join(filter(None, (tidy(wish.day), tidy(wish.about)))) or "unnamed"
    return f"filed/{wish.folder}/{name}{Path(wish.file).suffix.lower()}"


@approval_tool(filing, "allow")
def plan(wishes: list[Wish]) -> str:
    """Say where each file of the inbox is to go. Gives the moves to make, with clean names, or what is wrong.

    Args:
        wishes: one for each file.
    """
    there = {file.name for file in (DESK / "inbox").iterdir()}
    named = [wish.file for wish in wishes]
    targets = [target(wish) for wish in wishes]
    unknown = {wish.folder for wish in wishes} - {*FOLDERS}
    wrong = [
        *(f"there is no inbox/{name}" for name in sorted({*named} - there)),
        *(f"nothing is said about inbox/{name}" for name in sorted(there - {*named})),
        *(f"there is no folder {folder}: use {', '.join(FOLDERS)}" for folder in sorted(unknown)),
        *(f"two files would be {name}" for name in sorted({name for name in targets if targets.count(name) > 1})),
        *(f"{name} exists" for name in targets if (DESK / name).exists()),
    ]
    if wrong:
        return "Nothing is planned:\n" + "\n".join(wrong)
    return "\n".join(f"inbox/{wish.file} -> {name}" for wish, name in zip(wishes, targets, strict=True))


@approval_tool(filing, "allow")
def index(folder: str) -> str:
    """The text of a folder's list: a line for each file that is in it.

    Args:
        folder: one of the folders below filed/.
    """
    if folder not in FOLDERS:
        return f"there is no folder {folder}: use {', '.join(FOLDERS)}"
    files = sorted(file.name for file in (DESK / "filed" / folder).glob("*"))
    return "".join(f"- {name}\n" for name in files) or "- nothing yet\n"


TOOLSETS = {"filing": filing}
