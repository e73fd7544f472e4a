"""Requests in this process's memory: for tests, scripts, and agents whose questions need not outlive them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from signoff.core.request import ApprovalRequest, State


class MemoryRequests:
    """A `RequestStore` in a dict. Safe to share between threads and event loops of one process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: dict[str, ApprovalRequest] = {}
        self._newest: dict[str, str] = {}
        self._by_conversation: dict[str, list[str]] = {}

    async def add(self, requests: Sequence[ApprovalRequest]) -> list[ApprovalRequest]:
        with self._lock:
            for request in requests:
                if request.id in self._requests:
                    raise ValueError(f"request {request.id} is already stored")
            return [self._open(request) or self._keep(request) for request in requests]

    def _open(self, request: ApprovalRequest) -> ApprovalRequest | None:
        """The newest request about the very same call, unless it was withdrawn."""
        newest = self._newest.get(request.call.key) if request.call is not None else None
        if newest is None or self._requests[newest].state is State.CANCELLED:
            return None
        return self._requests[newest]

    def _keep(self, request: ApprovalRequest) -> ApprovalRequest:
        self._requests[request.id] = request
        if request.call is not None:
            self._newest[request.call.key] = request.id
            self._by_conversation.setdefault(request.call.conversation_id, []).append(request.id)
        return request

    async def about(self, call_key: str) -> ApprovalRequest | None:
        newest = self._newest.get(call_key)
        return self._requests[newest] if newest is not None else None

    async def get(self, request_id: str) -> ApprovalRequest | None:
        return self._requests.get(request_id)

    async def swap(self, old: ApprovalRequest, new: ApprovalRequest) -> bool:
        with self._lock:
            stored = self._requests.get(old.id)
            if stored is None or stored.version != old.version:
                return False
            self._requests[old.id] = new
            return True

    async def pending(self) -> Sequence[ApprovalRequest]:
        with self._lock:
            return [request for request in self._requests.values() if request.state is State.PENDING]

    async def of_conversation(self, conversation_id: str) -> Sequence[ApprovalRequest]:
        with self._lock:
            return [self._requests[request_id] for request_id in self._by_conversation.get(conversation_id, ())]
