"""A small server on loopback that speaks Anthropic's Messages API and gives a test's answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, cast

from tests.support.openai_server import LoopbackServer

Content = list[dict[str, Any]]


class AnthropicServer(LoopbackServer):
    """Serves one list of content blocks a request, in order; the last one for ever.

    `requests` holds the bodies.
    """

    def __init__(self, *answers: Content, stop: str = "end_turn", status: int = 200) -> None:
        self.answers, self.stop, self.status = list(answers), stop, status
        self.requests: list[dict[str, Any]] = []
        super().__init__(_Handler)

    @property
    def base_url(self) -> str:
        """For ANTHROPIC_BASE_URL."""
        return self.root_url

    def next_answer(self, body: dict[str, Any]) -> Content:
        """Record a request and take its answer."""
        self.requests.append(body)
        return self.answers[min(len(self.requests), len(self.answers)) - 1]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        script: AnthropicServer = cast(Any, self.server).script
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        answer = script.next_answer(body)
        if script.status != 200:
            kinds = {401: "authentication_error", 404: "not_found_error"}
            error = {"type": kinds.get(script.status, "api_error"), "message": "scripted"}
            self._send(script.status, {"type": "error", "error": error})
        elif body.get("stream"):
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for event in _events(body, answer, script.stop):
                self.wfile.write(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
        else:
            self._send(200, _message(body, answer, script.stop))

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _send(self, status: int, body: Mapping[str, Any]) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


def _message(body: Mapping[str, Any], content: Content, stop: str | None) -> dict[str, Any]:
    usage = {"input_tokens": 20, "output_tokens": 5}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"]}
    return {**head, "content": content, "stop_reason": stop, "stop_sequence": None, "usage": usage}


def _events(body: Mapping[str, Any], content: Content, stop: str) -> Iterator[dict[str, Any]]:
    yield {"type": "message_start", "message": _message(body, [], None)}
    for at, block in enumerate(content):
        empty = {"tool_use": {**block, "input": {}}, "text": {**block, "text": ""}}[block["type"]]
        yield {"type": "content_block_start", "index": at, "content_block": empty}
        if block["type"] == "text":
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_delta", "index": at, "delta": delta}
        yield {"type": "content_block_stop", "index": at}
    ended = {"stop_reason": stop, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
    yield {"type": "message_stop"}
