"""`FollowedSettings`: the settings of a project for a long-running process, read again when a file has changed."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from signoff.config.files import PROJECT_FILE, user_file
from signoff.file_stamp import Followed, file_stamp
from signoff.wiring.project import kept_settings

if TYPE_CHECKING:
    from signoff.config import Settings


class FollowedSettings:
    """The settings of the file that a process began with, and of the user's own rules, as they are now.

    An invalid file, or one that is gone, raises each time until it is fixed: nothing is decided meanwhile.
    """

    def __init__(self, settings: Settings) -> None:
        self._directory = settings.directory
        self._file = os.path.abspath(settings.file) if settings.file else ""
        self._followed = Followed(self._stamp, self._read, known=settings)

    async def now(self) -> Settings:
        """Return the settings. Files that changed are read in a thread."""
        return await self._followed.soon()

    def read(self) -> Settings:
        """Return the settings. Files that changed are read in this thread."""
        return self._followed.now()

    def _read(self) -> Settings:
        settings = kept_settings(self._file, self._directory)
        self._file = os.path.abspath(settings.file) if settings.file else ""
        return settings

    def _stamp(self) -> object:
        file = self._file or os.path.join(self._directory, PROJECT_FILE)
        return tuple(file_stamp(one) for one in (file, user_file()))
