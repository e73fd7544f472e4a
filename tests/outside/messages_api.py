"""A stand-in for the Messages API that a real Claude Code talks to: it plays scripted turns, over real HTTP.

Which script is played is found by the words of the first message, so that an agent inside the agent has one of its own;
which turn, by how many the model has had.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Turn = Mapping[str, Any]
"""`{"say": text}` or `{"calls": [(tool, input), …]}`."""


class MessagesApi:
    """Answers on a port of loopback until it is closed."""

    def __init__(self, scripts: Mapping[str, Sequence[Turn]]) -> None:
        self.scripts = scripts
        self.asked: list[dict[str, Any]] = []
        """Every request that was a turn of a script."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                if "count_tokens" in self.path:
                    self._reply(b'{"input_tokens": 10}', "application/json")
                    return
                turn = api.turn_for(body)
                if body.get("stream"):
                    self._reply(stream_of(turn, len(api.asked)), "text/event-stream")
                else:
                    self._reply(json.dumps(message_of(turn, len(api.asked))).encode(), "application/json")

            def do_GET(self) -> None:
                self._reply(b"{}", "application/json")

            def do_HEAD(self) -> None:
                self._reply(b"", "application/json")

            def _reply(self, body: bytes, kind: str) -> None:
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def turn_for(self, body: Mapping[str, Any]) -> Turn:
        """The turn that is next in the conversation."""
        messages: list[dict[str, Any]] = body.get("messages", [])
        first = json.dumps(messages[0]["content"]) if messages else ""
        for words, turns in self.scripts.items():
            if words in first and body.get("tools"):
                self.asked.append(dict(body))
                number = sum(one["role"] == "assistant" for one in messages)
                return turns[number] if number < len(turns) else {"say": "done"}
        return {"say": "ok"}

    def results(self) -> list[str]:
        """What the model was told about its calls, in order."""
        found: dict[str, str] = {}
        for body in self.asked:
            for message in body["messages"]:
                for block in message["content"] if isinstance(message["content"], list) else ():
                    if block.get("type") == "tool_result":
                        content = block.get("content", "")
                        text = content if isinstance(content, str) else json.dumps(content)
                        found[block["tool_use_id"]] = text
        return list(found.values())

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def blocks_of(turn: Turn, number: int) -> list[dict[str, Any]]:
    if "say" in turn:
        return [{"type": "text", "text": turn["say"]}]
    return [
        {"type": "tool_use", "id": f"toolu_{number:03}_{at}", "name": name, "input": given}
        for at, (name, given) in enumerate(turn["calls"])
    ]


def message_of(turn: Turn, number: int) -> dict[str, Any]:
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": "stand-in",
        "content": blocks_of(turn, number),
        "stop_reason": "end_turn" if "say" in turn else "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def stream_of(turn: Turn, number: int) -> bytes:
    """The same, as server-sent events."""
    whole = message_of(turn, number)
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
    ]
    for at, block in enumerate(whole["content"]):
        if block["type"] == "text":
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events += [
            {"type": "content_block_start", "index": at, "content_block": start},
            {"type": "content_block_delta", "index": at, "delta": delta},
            {"type": "content_block_stop", "index": at},
        ]
    ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events += [
        {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n".encode() for one in events)
