"""Configuration files: the project, its toolsets, its workers. Read strictly; errors name the file and the line."""

from __future__ import annotations

from signoff.config.channel_entries import ChannelEntry
from signoff.config.entries import EVERY_WORKER, Limits, ToolsetEntry, WorkerFile
from signoff.config.files import PROJECT_FILE, find_project, user_file
from signoff.config.server_entry import OidcEntry, ServerEntry
from signoff.config.settings import Person, Settings, load_people, load_policy, load_settings, no_settings
from signoff.config.variables import Filled, filled, filled_config
from signoff.config.worker_files import (
    load_worker,
    load_workers,
    parse_worker,
    worker_names,
    worker_text,
    workers_directory,
)

__all__ = [
    "EVERY_WORKER",
    "PROJECT_FILE",
    "ChannelEntry",
    "Filled",
    "Limits",
    "OidcEntry",
    "Person",
    "ServerEntry",
    "Settings",
    "ToolsetEntry",
    "WorkerFile",
    "filled",
    "filled_config",
    "find_project",
    "load_people",
    "load_policy",
    "load_settings",
    "load_worker",
    "load_workers",
    "no_settings",
    "parse_worker",
    "user_file",
    "worker_names",
    "worker_text",
    "workers_directory",
]
