"""Stand-ins for the APIs of models that real coding agents talk to: they play scripted turns, over real HTTP.

Which script is played is found by the words of the user's messages, so that an agent inside the agent has one of its
own; which turn, by how many the model has had.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

Turn = Mapping[str, Any]
"""`{"say": text}`, `{"calls": [(tool, input), …]}` or both; a text as input is no JSON, as that of `apply_patch`."""
Script = Sequence[Turn | Callable[[list[str]], Turn]]
"""Turns, or what makes one of what the model was told about its calls so far."""
Body = Mapping[str, Any]


class Wire(Protocol):
    """How one company's API puts a conversation into JSON."""

    def prompt(self, body: Body) -> str:
        """What its user said."""
        ...

    def taken(self, body: Body) -> int:
        """How many turns the model has had."""
        ...

    def tools(self, body: Body) -> list[str]:
        """The names of the tools that the model is offered."""
        ...

    def results(self, body: Body) -> Iterator[tuple[str, str]]:
        """What the model was told about its calls, by their ids."""
        ...

    def reply(self, body: Body, turn: Turn, number: int) -> tuple[bytes, str]:
        """A turn and its content type."""
        ...


class ModelApi:
    """Answers on a port of loopback until it is closed."""

    def __init__(self, wire: Wire, scripts: Mapping[str, Script]) -> None:
        self.wire = wire
        self.scripts = scripts
        self.asked: list[dict[str, Any]] = []
        """Every request that was a turn of a script."""
        api = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
                if "count_tokens" in self.path or "countTokens" in self.path:
                    self._send(b'{"input_tokens": 10, "totalTokens": 10}', "application/json")
                    return
                body["stream"] = body.get("stream", "stream" in self.path)
                turn = api.turn_for(body)
                self._send(*api.wire.reply(body, turn, len(api.asked)))

            def do_GET(self) -> None:
                self._send(b"{}", "application/json")

            def do_HEAD(self) -> None:
                self._send(b"", "application/json")

            def _send(self, body: bytes, kind: str) -> None:
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

    def turn_for(self, body: Body) -> Turn:
        """The turn that is next in the conversation."""
        said = self.wire.prompt(body)
        for words, turns in self.scripts.items():
            if words in said and self.wire.tools(body):
                self.asked.append(dict(body))
                number = self.wire.taken(body)
                turn = turns[number] if number < len(turns) else {"say": "done"}
                return turn(self.results()) if callable(turn) else turn
        return {"say": "ok"}

    def results(self) -> list[str]:
        """What the model was told about its calls, in order."""
        return list({name: text for body in self.asked for name, text in self.wire.results(body)}.values())

    def tools(self) -> set[str]:
        """The names of all tools that the model was offered."""
        return {name for body in self.asked for name in self.wire.tools(body)}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content)


def _events(events: Sequence[tuple[str, Any]]) -> tuple[bytes, str]:
    lines = (f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in events)
    return "".join(lines).encode(), "text/event-stream"


def _said(turn: Turn) -> Iterator[str]:
    if "say" in turn:
        yield turn["say"]


def _calls(turn: Turn, number: int) -> Iterator[tuple[str, str, Any]]:
    for at, (name, given) in enumerate(turn.get("calls", ())):
        yield f"call_{number:03}_{at}", name, given


class Messages:
    """Anthropic's."""

    def prompt(self, body: Body) -> str:
        messages = body.get("messages", [])
        return json.dumps(messages[0]["content"]) if messages else ""

    def taken(self, body: Body) -> int:
        return sum(one["role"] == "assistant" for one in body["messages"])

    def tools(self, body: Body) -> list[str]:
        return [one["name"] for one in body.get("tools") or ()]

    def results(self, body: Body) -> Iterator[tuple[str, str]]:
        for message in body["messages"]:
            for block in message["content"] if isinstance(message["content"], list) else ():
                if block.get("type") == "tool_result":
                    yield block["tool_use_id"], _text(block.get("content", ""))

    def reply(self, body: Body, turn: Turn, number: int) -> tuple[bytes, str]:
        content: list[dict[str, Any]] = [
            *({"type": "text", "text": text} for text in _said(turn)),
            *(
                {"type": "tool_use", "id": made, "name": name, "input": given}
                for made, name, given in _calls(turn, number)
            ),
        ]
        whole = {
            "id": f"msg_{number}",
            "type": "message",
            "role": "assistant",
            "model": "stand-in",
            "content": content,
            "stop_reason": "tool_use" if "calls" in turn else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if not body["stream"]:
            return json.dumps(whole).encode(), "application/json"
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}},
        ]
        for at, block in enumerate(content):
            if block["type"] == "text":
                start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events.append({"type": "content_block_start", "index": at, "content_block": start})
            events.append({"type": "content_block_delta", "index": at, "delta": delta})
            events.append({"type": "content_block_stop", "index": at})
        ended = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
        events.append({"type": "message_delta", "delta": ended, "usage": {"output_tokens": 1}})
        events.append({"type": "message_stop"})
        return _events([(one["type"], one) for one in events])


class Responses:
    """OpenAI's."""

    def prompt(self, body: Body) -> str:
        said = [one["content"] for one in body.get("input", ()) if one.get("role") == "user"]
        return json.dumps(said)

    def taken(self, body: Body) -> int:
        outputs = [one for one in body["input"] if one.get("type", "").endswith("_output")]
        # Several calls of one turn have ids with the same number.
        return len({str(one.get("call_id")).rpartition("_")[0] for one in outputs})

    def tools(self, body: Body) -> list[str]:
        added = [tool for one in body.get("input", ()) for tool in one.get("tools", ())]
        return list(_names([*(body.get("tools") or ()), *added]))

    def results(self, body: Body) -> Iterator[tuple[str, str]]:
        for one in body["input"]:
            if one.get("type", "").endswith("_output"):
                yield str(one.get("call_id")), _text(one.get("output") or one)

    def reply(self, body: Body, turn: Turn, number: int) -> tuple[bytes, str]:
        items: list[dict[str, Any]] = [
            {"type": "custom_tool_call", "name": name, "input": given, "call_id": made}
            if isinstance(given, str)
            else {"type": "function_call", "name": name, "arguments": json.dumps(given), "call_id": made}
            for made, name, given in _calls(turn, number)
        ]
        for one in items:
            if "::" in one["name"]:
                one["namespace"], _, one["name"] = one["name"].partition("::")
        for text in _said(turn):
            said = {"type": "output_text", "text": text}
            items.insert(0, {"type": "message", "role": "assistant", "id": f"m{number}", "content": [said]})
        ended = {
            "id": f"r{number}",
            "usage": {
                "input_tokens": 1,
                "output_tokens": 1,
                "total_tokens": 2,
                "input_tokens_details": None,
                "output_tokens_details": None,
            },
        }
        return _events(
            [
                ("response.created", {"type": "response.created", "response": {"id": f"r{number}"}}),
                *(("response.output_item.done", {"type": "response.output_item.done", "item": one}) for one in items),
                ("response.completed", {"type": "response.completed", "response": ended}),
            ]
        )


def _names(tools: Any) -> Iterator[str]:
    for one in tools:
        if one.get("type") == "namespace":
            yield from (f"{one['name']}::{name}" for name in _names(one.get("tools") or ()))
        else:
            yield one.get("name") or one["type"]


class GenerateContent:
    """Google's."""

    def prompt(self, body: Body) -> str:
        return json.dumps(
            [
                one
                for one in body.get("contents", ())
                if one.get("role") == "user" and "functionResponse" not in json.dumps(one)
            ]
        )

    def taken(self, body: Body) -> int:
        return sum(
            any("functionCall" in part for part in one["parts"]) for one in body["contents"] if one["role"] == "model"
        )

    def tools(self, body: Body) -> list[str]:
        declared = [one for tool in body.get("tools") or () for one in tool.get("functionDeclarations", ())]
        return [one["name"] for one in declared]

    def results(self, body: Body) -> Iterator[tuple[str, str]]:
        for number, one in enumerate(body["contents"]):
            for at, part in enumerate(one["parts"]):
                if "functionResponse" in part:
                    answer = part["functionResponse"]
                    yield answer.get("id") or f"{number}.{at}", json.dumps(answer["response"])

    def reply(self, body: Body, turn: Turn, number: int) -> tuple[bytes, str]:
        parts = [
            *({"text": text} for text in _said(turn)),
            *(
                {"functionCall": {"id": made, "name": name, "args": given}}
                for made, name, given in _calls(turn, number)
            ),
        ]
        whole = {
            "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
            "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        }
        text = json.dumps(whole)
        return (
            (f"data: {text}\n\n".encode(), "text/event-stream")
            if body["stream"]
            else (text.encode(), "application/json")
        )
