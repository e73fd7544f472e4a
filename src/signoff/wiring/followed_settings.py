"""`FollowedSettings`: the settings of a project for a long-running process, read again when a file has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from signoff.config.files import PROJECT_FILE, user_file
from signoff.file_stamp import file_stamp
from signoff.wiring.project import kept_settings

if TYPE_CHECKING:
    from signoff.config import Settings


class FollowedSettings:
    """The settings of the file that a process began with, and of the user's own rules, as they are now.

    An invalid file, or one that is gone, raises each time until it is fixed: nothing is decided meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._directory = settings.directory
        self._file = os.path.abspath(settings.file) if settings.file else ""
        self._stamps: object = self._now()

    async def now(self) -> Settings:
        """Return the settings. Files that changed are read in a thread."""
        if self._now() == self._stamps:
            return self._settings
        import asyncio  # a hook reads the settings without an event loop

        return await asyncio.to_thread(self.read)

    def read(self) -> Settings:
        """Return the settings. Files that changed are read in this thread."""
        stamps = self._now()
        if stamps != self._stamps:
            self._settings = kept_settings(self._file, self._directory)
            self._file = os.path.abspath(self._settings.file) if self._settings.file else ""
            self._stamps = stamps if stamps == self._now() else None
        return self._settings

    def _now(self) -> object:
        file = self._file or os.path.join(self._directory, PROJECT_FILE)
        return tuple(file_stamp(one) for one in (file, user_file()))
