"""Turn errors of Discord and discord.py into `ChannelFailed`: what went wrong, whether to retry, and when."""

from __future__ import annotations

import asyncio
import sys
import traceback
from collections.abc import Generator
from contextlib import contextmanager

import aiohttp
import discord

from signoff.errors import ChannelFailed, WrongUse

UNKNOWN_MESSAGE = 10008
UNKNOWN_INTERACTION = 10062
"""Acknowledged too late, or twice."""
MISSING_ACCESS = 50001
MISSING_PERMISSIONS = 50013
THREAD_ARCHIVED = 50083
"""Posting a message unarchives the thread unless it is locked too; editing one does not."""
ALREADY_ACKNOWLEDGED = 40060
TOKEN_EXPIRED = 50027
"""The token of an interaction, valid for fifteen minutes; not the bot's token."""
THREAD_EXISTS = 160004
THREAD_LOCKED = 160005

OUTSIDE = (discord.DiscordException, aiohttp.ClientError, OSError, asyncio.TimeoutError)
"""Everything that discord.py raises for problems outside this program."""

_PATIENCE = 60.0
"""Seconds until the retry if Discord rate-limits us without a Retry-After."""
_LONGEST = 200


def code_of(error: BaseException) -> int:
    """Return Discord's error code; 0 if there is none."""
    return error.code if isinstance(error, discord.HTTPException) else 0


def is_closed_thread(error: BaseException) -> bool:
    """Whether we can no longer post in a thread: it was deleted or locked, or we lost access."""
    shut = (MISSING_ACCESS, MISSING_PERMISSIONS, THREAD_ARCHIVED, THREAD_LOCKED)
    return isinstance(error, discord.NotFound) or code_of(error) in shut


def failed(error: BaseException, doing: str, *, at: str = "") -> ChannelFailed:
    """Return what could not be done, and whether to retry. `doing` completes the sentence after `cannot`."""
    match error:
        case ChannelFailed():
            error.at = error.at or at
            return error
        case discord.RateLimited():
            return ChannelFailed(f"Discord is rate-limiting the bot; cannot {doing}", after=error.retry_after, at=at)
        case discord.HTTPException():
            return _refused(error, doing, at)
        case asyncio.TimeoutError():
            return ChannelFailed(f"Discord does not answer in time; cannot {doing}", whole=True, at=at)
        case OSError() | aiohttp.ClientError() | discord.GatewayNotFound() | discord.ConnectionClosed():
            return ChannelFailed(f"Discord cannot be reached{_reason(error)}; cannot {doing}", whole=True, at=at)
        case _:
            return ChannelFailed(f"discord.py refuses to {doing}: {_short(str(error))}", again=False, at=at)


def _refused(error: discord.HTTPException, doing: str, at: str) -> ChannelFailed:
    said = f": {_short(error.text)}" if error.text else ""
    if error.status == 429:
        return ChannelFailed(f"Discord is rate-limiting the bot; cannot {doing}", whole=True, after=_wait(error), at=at)
    if error.status >= 500:
        text = f"Discord has a server error (HTTP {error.status}); cannot {doing}"
        return ChannelFailed(text, whole=True, at=at)
    if code_of(error) == TOKEN_EXPIRED:
        return ChannelFailed(f"the interaction has expired; cannot {doing}", again=False, at=at)
    if error.status == 401:
        return ChannelFailed(f"Discord no longer accepts the token; cannot {doing}", again=False, whole=True, at=at)
    if error.status == 403:
        return ChannelFailed(f"Discord does not let the bot {doing}{said}", again=False, at=at)
    return ChannelFailed(f"cannot {doing}{said or f' (HTTP {error.status})'}", again=False, at=at)


def _wait(error: discord.HTTPException) -> float:
    try:
        return float(error.response.headers["Retry-After"])
    except (KeyError, ValueError):
        return _PATIENCE


def _reason(error: BaseException) -> str:
    if isinstance(error, discord.ConnectionClosed):
        return f" (closed with code {error.code})"
    said = error.strerror if isinstance(error, OSError) else None
    return f" ({_short(said)})" if said else ""


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


@contextmanager
def told(doing: str, *, at: str = "") -> Generator[None]:
    """Raise errors from outside as `ChannelFailed`."""
    try:
        yield
    except (ChannelFailed, *OUTSIDE) as error:
        raise failed(error, doing, at=at) from error


def refused_token(secret: str = "") -> WrongUse:
    """Return the error for a refused token. `secret` is the name of the variable it comes from, if known."""
    where = f" in {secret}" if secret else ""
    return WrongUse(
        f"Discord refused the token{where}. Copy it from https://discord.com/developers/applications, "
        "your application, Bot, Reset Token"
    )


def place_of(error: BaseException) -> str:
    """Return an exception's type and location for a log, without its text, which may hold content of a call."""
    frames = traceback.extract_tb(error.__traceback__ or sys.exc_info()[2])
    where = f" at {frames[-1].filename.rpartition('/')[2]}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + where
