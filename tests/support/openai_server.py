"""A small OpenAI-compatible server on loopback that answers as a test says."""

import json
import socket
import ssl
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self

import pytest

KEY = "sk-for-tests-only"
"""The key that clients of these servers are given."""

DIMENSION = 8
"""Of the vectors that `/embeddings` gives."""


@dataclass(frozen=True)
class Reply:
    """What one request for a chat completion gets."""

    kind: Literal["completion", "error", "drop", "malformed", "page"] = "completion"
    content: str | None = None
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    """`{"name", "arguments"}`, arguments as a string, valid JSON or not."""
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    refusal: str | None = None
    finish: str = "stop"
    """The `finish_reason`."""
    delay: float = 0.0
    """Seconds before the answer."""
    after: int = 0
    """For a drop while streaming: words that are sent first."""


def text(content: str, *, finish: str = "stop", delay: float = 0.0) -> Reply:
    return Reply(content=content, finish=finish, delay=delay)


def refusal(why: str) -> Reply:
    """An answer whose `refusal` says why, as OpenAI gives it."""
    return Reply(refusal=why)


def page() -> Reply:
    """Status 200 and a web page: the address is that of a site, and not of an API."""
    return Reply("page")


def tool_call(
    name: str, arguments: Mapping[str, Any] | str, *, finish: str = "tool_calls"
) -> Reply:
    """A call of one tool; a string stands as it is, valid JSON or not."""
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return Reply(tool_calls=({"name": name, "arguments": raw},), finish=finish)


def error(
    status: int,
    message: str = "scripted error",
    *,
    code: str | None = None,
    headers: Mapping[str, str] | None = None,
) -> Reply:
    body = {"message": message, "type": "scripted", "param": None, "code": code}
    return Reply("error", status=status, error=body, headers=headers or {})


def rate_limited(retry_after: str) -> Reply:
    return error(429, "slow down", code="rate_limit", headers={"retry-after": retry_after})


def context_overflow() -> Reply:
    message = "This model's maximum context length is 128 tokens. Please reduce the length."
    return error(400, message, code="context_length_exceeded")


def dropped(*, after: int = 0, content: str = "") -> Reply:
    """The connection breaks: at once, or after some words of a stream."""
    return Reply("drop", content=content, after=after)


def malformed() -> Reply:
    """Status 200 and a body that is cut off in the middle of its JSON."""
    return Reply("malformed")


class LoopbackServer:
    """Serves on a free port of loopback while its `with` block lasts."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._http = _Http(("127.0.0.1", 0), handler)
        self._http.script = self
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)

    @property
    def root_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class OpenAIServer(LoopbackServer):
    """`with OpenAIServer(text("hi"), ...) as server:` serves one reply a chat request, in order.

    `requests` holds the bodies of chat requests, `embedded` those of embedding requests. A request
    beyond the script gets a 418, which is never tried again.
    """

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.requests: list[dict[str, Any]] = []
        self.embedded: list[dict[str, Any]] = []
        self.embedding_errors: list[Reply] = []
        """Errors that the next embedding requests get."""
        self._lock = threading.Lock()
        super().__init__(_Handler)

    @property
    def base_url(self) -> str:
        """For OPENAI_BASE_URL."""
        return f"{self.root_url}/v1"

    def next_reply(self, body: dict[str, Any]) -> Reply:
        with self._lock:
            self.requests.append(body)
            at = len(self.requests) - 1
        if at >= len(self.replies):
            return error(418, f"the script has {len(self.replies)} replies, this is {at + 1}")
        return self.replies[at]


Serve = Callable[..., OpenAIServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Starts a server with a script and points the OpenAI client to it."""
    with ExitStack() as running:

        def start(*replies: Reply) -> OpenAIServer:
            server = running.enter_context(OpenAIServer(*replies))
            # No connection is encrypted: each client would read the certificates of all the world.
            monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *_, **__: None)
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            monkeypatch.setenv("OPENAI_API_KEY", KEY)
            return server

        yield start


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    script: Any
    """The server whose requests these are."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is part of some tests; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Http

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.endswith("/embeddings"):
            self.server.script.embedded.append(body)
            if self.server.script.embedding_errors:
                failed = self.server.script.embedding_errors.pop(0)
                if failed.kind == "page":
                    self._send_page()
                else:
                    self._send(failed.status, {"error": dict(failed.error)}, failed.headers)
            else:
                self._send(200, _embeddings(body))
            return
        reply = self.server.script.next_reply(body)
        time.sleep(reply.delay)
        if reply.kind == "page":
            self._send_page()
        elif reply.kind == "error":
            self._send(reply.status, {"error": dict(reply.error)}, reply.headers)
        elif reply.kind == "malformed":
            self._send_bytes(200, b'{"id": "chat", "choices": [{"mess', {})
        elif body.get("stream"):
            self._stream(body, reply)
        elif reply.kind == "drop":
            self._drop()
        else:
            self._send(200, _completion(body, reply), reply.headers)

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def _stream(self, body: dict[str, Any], reply: Reply) -> None:
        if reply.kind == "drop" and not reply.after:
            self._drop()
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for at, chunk in enumerate(_stream_chunks(body, reply)):
            if reply.kind == "drop" and at >= reply.after:
                self._drop()
                return
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _send(
        self, status: int, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> None:
        self._send_bytes(status, json.dumps(body).encode(), headers or {})

    def _send_page(self) -> None:
        page = b"<!DOCTYPE html><html><head><title>Welcome</title></head></html>"
        self._send_bytes(200, page, {}, kind="text/html")

    def _send_bytes(
        self, status: int, body: bytes, headers: Mapping[str, str], kind: str = "application/json"
    ) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def _drop(self) -> None:
        """Reset the connection: lingering for no time sends RST instead of FIN."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True


def _completion(body: Mapping[str, Any], reply: Reply) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.content, "tool_calls": _calls(reply) or None}
    message |= {"refusal": reply.refusal} if reply.refusal else {}
    choice = {"index": 0, "finish_reason": reply.finish, "message": message}
    head = {"id": "chat", "object": "chat.completion", "created": 1, "model": body["model"]}
    return {**head, "choices": [choice], "usage": _usage()}


def _stream_chunks(body: Mapping[str, Any], reply: Reply) -> Iterator[dict[str, Any]]:
    head = {"id": "chat", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
    words = (reply.content or "").split(" ") if reply.content else []
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": f" {word}" if at else word} for at, word in enumerate(words)]
    deltas += [{"refusal": reply.refusal}] if reply.refusal else []
    deltas += [{"tool_calls": [{"index": at, **one}]} for at, one in enumerate(_calls(reply))]
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reply.finish}]}
    if (body.get("stream_options") or {}).get("include_usage"):
        yield {**head, "choices": [], "usage": _usage()}


def _calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {"id": f"call_{at}", "type": "function", "function": dict(one)}
        for at, one in enumerate(reply.tool_calls)
    ]


def _usage() -> dict[str, int]:
    return {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}


def _embeddings(body: Mapping[str, Any]) -> dict[str, Any]:
    """A vector per text, told apart by its length."""
    length = 1536 if body["model"] == "text-embedding-3-small" else DIMENSION
    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
    data = [
        {"object": "embedding", "index": at, "embedding": [float(len(one))] + [1.0] * (length - 1)}
        for at, one in enumerate(texts)
    ]
    usage = {"prompt_tokens": 1, "total_tokens": 1}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}
