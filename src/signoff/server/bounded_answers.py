"""Limits for answers of servers that may be broken or taken over: none grows without an end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any, cast

from signoff.http_exchange import AnswerTooLarge

MOST_BYTES = 1024 * 1024


class _Bounded:
    def __init__(self, whole: Any) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = MOST_BYTES
        async for part in self._whole:
            left -= len(part)
            if left < 0:
                raise AnswerTooLarge(f"the answer has more than {MOST_BYTES:,} bytes")
            yield part

    async def aclose(self) -> None:
        await self._whole.aclose()


@cache
def _like(stream: type[Any]) -> type[_Bounded]:
    """The same as a stream of the library that made one: authlib takes httpx2 where it is installed, else httpx."""
    base: type[Any] = next(one for one in stream.__mro__ if one.__name__ == "AsyncByteStream")
    return type("_BoundedStream", (_Bounded, base), {})


async def bound(response: Any) -> None:
    """A hook of a client for each response: raises `AnswerTooLarge`, at the latest when one is read."""
    if (packed := response.headers.get("content-encoding", "identity").strip().lower()) != "identity":
        raise AnswerTooLarge(f"the answer is packed ({packed[:40]}), although that was not asked for")
    response.stream = _like(cast("type[Any]", type(response.stream)))(response.stream)


LIMITS: dict[str, Any] = {"event_hooks": {"response": [bound]}, "headers": {"Accept-Encoding": "identity"}}
"""Arguments for a client of `httpx` or `httpx2`."""
