"""On a server, the operator's settings reach every call of a model."""

import re
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore

from graph.agent import builder
from memory.runtime import process_resources
from tests.support.openai_server import Serve, text

LATE = r"after 1 try: no answer within 0\.8 s \(model_timeout\)"

HEARD = {"id": "e1", "at": "2026-05-04T09:00:00+00:00", "sender": "Ana", "text": "I sold the harp."}


@pytest.mark.parametrize("place", ["file", "environment"])
async def test_time_and_tries_of_a_call_are_the_operator_s_in_ticks_and_nights(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, serve: Serve
) -> None:
    server = serve(*[text("Sold.", delay=2.0)] * 20)
    monkeypatch.setenv("CIRCADIAN_DATA", str(tmp_path))
    monkeypatch.setenv("CIRCADIAN_MODEL", "openai:gpt-test")
    monkeypatch.setenv("CIRCADIAN_EMBEDDER", "offline")
    if place == "file":
        lines = "model_timeout = 0.8\nmodel_attempts = 1\n"
        (tmp_path / "circadian.toml").write_text(lines)
    else:
        monkeypatch.setenv("CIRCADIAN_MODEL_TIMEOUT", "0.8")
        monkeypatch.setenv("CIRCADIAN_MODEL_ATTEMPTS", "1")
    graph: Any = builder.compile(InMemorySaver(), store=InMemoryStore())
    config: Any = {"configurable": {"thread_id": "a"}}
    async with process_resources():
        await graph.ainvoke({"events": [{**HEARD, "addressed": False}]}, config)
        night = (await graph.ainvoke({"request": "sleep"}, config))["report"]["night"]
        asked = len(server.requests)
        out = await graph.ainvoke({"events": [{**HEARD, "id": "e2"}]}, config)
    # On a busy machine a call may end before its request has come to the server.
    assert 0 < len(night["errors"]) >= asked
    assert all(re.search(LATE, error) for error in night["errors"])
    [failed] = out["report"]["failures"]
    assert re.search(LATE, failed["error"])
    assert len(server.requests) <= asked + 1
