"""How many of signoff's files one press on Discord walks through, until the message says who approved.

python -m tests.discord.walk
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from benchmarks.files import Walk, print_walks, walked
from tests.discord.house import House
from tests.discord.service import Service
from tests.discord.service.pointed import point_at

from signoff.core.request import State


async def of_second_press(house: House) -> Walk:
    """The walk of a press that does nothing for the first time."""
    with walked() as walk:
        async with house.running():
            for _ in range(2):
                request, message = await house.shown()
                walk.begin()
                await house.ana.press(message, "Approve")
                await house.becomes(request, State.APPROVED)
                await house.message(request, lambda one: "by `ana`" in one.text and not one.buttons)
            return Walk(dict(walk.last), set(walk.files), walk.changes)


def main() -> None:
    service = Service().start()
    back = point_at(service.url)
    try:
        with tempfile.TemporaryDirectory() as directory:
            house = House(service, Path(directory))
            try:
                walk = asyncio.run(of_second_press(house))
            finally:
                house.close()
    finally:
        back()
        service.stop()
    print_walks({"approved by a press, SQLite": walk}, "one press on Discord")


if __name__ == "__main__":
    main()
