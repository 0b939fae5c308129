"""The recipes of docs/models.md are run against servers on loopback; its figures are true."""

import json
import re
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from memory.settings import Settings
from tests.support.openai_server import LoopbackServer, OpenAIServer, text
from tests.support.pages import Page, printed, run_shell
from tests.support.source_files import ROOT

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
        return self.root_url

    def next_answer(self, body: dict[str, Any]) -> Content:
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


PAGE = Page("docs/models.md")
HELLO = "Hello Ada."
NEAR = 0.5
"""How far a figure on the page may be from what is counted: prompts change."""


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "CIRCADIAN_MODEL", "CIRCADIAN_OFFLINE"):
        monkeypatch.delenv(name, raising=False)


def block(heading: str) -> list[str]:
    section = PAGE.text.partition(f"### {heading}")[2]
    found = re.search(r"```console\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return [line.removeprefix("$ ") for line in found[1].splitlines()]


def recipe(lines: list[str], folder: Path) -> str:
    done = run_shell(lines, folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert HELLO in done.stdout
    return done.stdout


@pytest.mark.parametrize(
    ("heading", "address", "model", "embedder"),
    [
        ("OpenAI\n", None, "gpt-4o-mini", "text-embedding-3-small"),
        ("Ollama", "http://localhost:11434", "qwen3", "nomic-embed-text"),
        ("Azure OpenAI", "https://my-resource.openai.azure.com", "my-deployment", None),
    ],
)
def test_a_recipe_reaches_the_server_with_the_models_that_it_names(
    heading: str,
    address: str | None,
    model: str,
    embedder: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = block(heading)
    with OpenAIServer(text("ready"), text(HELLO)) as server:
        if address is None:
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        else:
            assert any(address in line for line in lines)
            lines = [line.replace(address, server.root_url) for line in lines]
        recipe(lines, tmp_path)
    assert {sent["model"] for sent in server.requests} == {model}
    assert embedder is None or {sent["model"] for sent in server.embedded} == {embedder}


def test_anthropic(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [{"type": "text", "text": HELLO}]
    with AnthropicServer(said) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.base_url)
        recipe(block("Anthropic"), tmp_path)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-for-tests")
        [code, _] = PAGE.of_kind("python")
        assert printed([code], tmp_path) == [f"{HELLO}\n"]
    assert {sent["model"] for sent in server.requests} == {"claude-sonnet-4-5"}
    assert "add_goal" in {tool["name"] for tool in server.requests[-1]["tools"]}


def test_a_day_costs_about_what_the_page_says(tmp_path: Path) -> None:
    [line] = [line for line in PAGE.commands() if "replay" in line]
    line = line.replace("graph/cli/", f"{ROOT}/graph/cli/")
    done = run_shell([f"{line} --model offline --embedder offline"], tmp_path)
    counted = re.search(
        r"([\d,]+) model calls: ([\d,]+) tokens read, ([\d,]+) written", done.stdout
    )
    assert counted, done.stdout + done.stderr
    told = re.search(r"about ([\d,]+) calls, reads about ([\d,]+) .* about ([\d,]+)", PAGE.text)
    assert told
    for shown, true in zip(told.groups(), counted.groups(), strict=True):
        one, other = (int(figure.replace(",", "")) for figure in (shown, true))
        assert abs(one - other) <= NEAR * max(one, other)
    assert printed([PAGE.of_kind("python")[-1]], tmp_path) == ["0.0000 a day\n"]


def test_the_limits_are_the_defaults() -> None:
    rows = {name: float(default.removesuffix(" s")) for name, default, _ in PAGE.rows("setting")}
    settings = dict(Settings())
    assert rows == {name: settings[name] for name in rows}
    assert len(rows) == 2
