"""Which failed calls a circuit breaker counts, and who goes through one."""

from __future__ import annotations

import json
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelNotFoundError,
)
from langchain_core.messages import AIMessage

from memory.errors import (
    CircuitOpen,
    ConfigurationError,
    MemoryStoreError,
    ModelError,
    ServiceDown,
)
from memory.facts.semantic import SemanticMemory
from memory.models.breaker import Breaker, Breakers
from memory.models.client import ask, ask_for
from memory.models.embed import embed_query, embed_texts
from memory.models.retry import retrying
from memory.settings import Settings
from tests.support.facts import ANA, WordEmbeddings, draft, memory_at, nearest_facts
from tests.support.scripted import Step, Waits, call, scripted
from tests.unit.memory.models.test_ask import PROMPT, Status
from tests.unit.memory.models.test_ask_for import Facts
from tests.unit.memory.models.test_breaker import state_of


async def _asked(*steps: Step, breaker: Breaker | None = None) -> Any:
    return await ask(scripted(*steps), PROMPT, Settings(), sleep=Waits(), breaker=breaker)


@pytest.mark.parametrize(
    "failure",
    [
        Status(429),
        Status(408),
        Status(500),
        Status(503),
        Status(402, "pay first"),
        Status(429, "wait an hour", retry_after="3600"),
        ConnectionResetError("reset"),
        TimeoutError(),
        ModelAPIError("down"),
        ModelConnectionError("unreachable"),
        ValueError({"message": "upstream is down", "code": 502}),
    ],
    ids=repr,
)
async def test_a_service_that_gives_no_answer_counts_as_a_failure(failure: Exception) -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(ServiceDown):
        await _asked(*[failure] * 4, breaker=breaker)
    assert state_of(breaker) == "open"


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (Status(401, "bad key"), "refuses the key of the model"),
        (Status(403, "not yours"), "refuses the key of the model"),
        (Status(404, "no such model"), "does not know the model"),
        (ModelAuthenticationError("bad key"), "refuses the key of the model"),
        (ModelNotFoundError("no such model"), "does not know the model"),
        (ConnectionRefusedError(111, "refused"), "cannot be reached"),
        (socket.gaierror(-2, "no such host"), "cannot be reached"),
        (ValueError("got <!DOCTYPE html><html>"), "is no API for the model"),
    ],
    ids=repr,
)
async def test_a_wrong_configuration_does_not_count(failure: Exception, told: str) -> None:
    breaker = Breaker("model", failures=1)
    for _ in range(3):
        with pytest.raises(ConfigurationError, match=told):
            await _asked(failure, failure, breaker=breaker)
    assert state_of(breaker) == "closed"
    assert (await _asked("noon", breaker=breaker)).message.text == "noon"


async def test_a_wrong_configuration_does_not_close_an_open_breaker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaker = Breaker("model", failures=2)
    with pytest.raises(ServiceDown):
        await _asked(*[Status(503)] * 4, breaker=breaker)
    with pytest.raises(ConfigurationError):
        await _asked(Status(401), breaker=breaker)
    with pytest.raises(ServiceDown):
        await _asked(*[Status(503)] * 4, breaker=breaker)
    assert state_of(breaker) == "open"


@pytest.mark.parametrize(
    "step",
    [
        "",
        AIMessage("", additional_kwargs={"refusal": "no"}),
        json.JSONDecodeError("cut off", "{", 1),
        ValueError("no choices"),
        Status(400, "unknown parameter"),
        Status(413, "the body is too large"),
        Status(422, "not processable"),
        ModelInvalidRequestError("no"),
        Status(400, "prompt is too long: 210000 tokens > 200000 maximum"),
        ModelError("said by a call inside"),
    ],
    ids=repr,
)
async def test_a_bad_answer_or_a_bad_request_does_not_count(step: Step) -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(ModelError) as raised:
        await _asked(*[step] * 4, breaker=breaker)
    assert not isinstance(raised.value, ServiceDown)
    assert state_of(breaker) == "closed"


async def test_a_bug_neither_counts_nor_is_hidden() -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(AttributeError, match="oops"):
        await _asked(AttributeError("oops"), breaker=breaker)
    assert state_of(breaker) == "closed"


async def test_all_tries_of_one_call_count_once() -> None:
    breaker = Breaker("model", failures=2)
    with pytest.raises(ServiceDown, match="after 4 tries"):
        await _asked(*[Status(503)] * 4, breaker=breaker)
    assert state_of(breaker) == "closed"
    with pytest.raises(ServiceDown):
        await _asked(*[Status(503)] * 4, breaker=breaker)
    assert state_of(breaker) == "open"


async def test_a_call_that_is_answered_at_the_last_try_is_a_good_one() -> None:
    breaker = Breaker("model", failures=1)
    assert (await _asked(*[Status(503)] * 3, "noon", breaker=breaker)).message.text == "noon"
    assert state_of(breaker) == "closed"


async def test_the_last_try_says_what_kind_of_failure_it_was() -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(ModelError, match="an empty answer"):
        await _asked(Status(503), Status(503), Status(503), "", "", breaker=breaker)
    assert state_of(breaker) == "closed"


async def test_while_it_is_open_the_model_is_not_asked() -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(ServiceDown):
        await _asked(Status(402, "pay first"), breaker=breaker)
    model = scripted()
    with pytest.raises(CircuitOpen, match="the last failure: the model call failed: HTTP 402"):
        await ask(model, PROMPT, Settings(), breaker=breaker)
    with pytest.raises(CircuitOpen):
        await ask_for(model, PROMPT, Facts, Settings(), breaker=breaker)
    assert model.calls == []


async def test_a_structured_answer_that_never_fits_does_not_count() -> None:
    breaker = Breaker("model", failures=1)
    with pytest.raises(ModelError, match="does not fit"):
        await ask_for(scripted(*[call("Facts")] * 3), PROMPT, Facts, Settings(), breaker=breaker)
    assert state_of(breaker) == "closed"


class Broken(Embeddings):
    """Gives nothing."""

    def __init__(self) -> None:
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        raise Status(402, "pay first")

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def test_the_embedder_has_a_breaker_of_its_own() -> None:
    broken, breaker = Broken(), Breaker("embedder", failures=2)
    policy = retrying(1)
    with pytest.raises(ServiceDown):
        await embed_query(broken, "beans", policy, breaker=breaker)
    with pytest.raises(ServiceDown):
        await embed_texts(broken, ["beans"], policy, breaker=breaker)
    with pytest.raises(CircuitOpen, match="the embedder failed 2 times in a row"):
        await embed_query(broken, "beans", policy, breaker=breaker)
    assert broken.calls == 2


def _guarded(tmp_path: Path, embeddings: Embeddings | None = None) -> SemanticMemory:
    memory = memory_at(tmp_path, embeddings)
    memory.breakers = Breakers.of(failures=2, seconds=30)
    return memory


async def test_facts_are_embedded_through_the_embedders_breaker(tmp_path: Path) -> None:
    broken = Broken()
    memory = _guarded(tmp_path, broken)
    for _ in range(2):
        with pytest.raises(ServiceDown):
            await memory.add(ANA, [draft("a", "red fox")])
    with pytest.raises(CircuitOpen):
        await nearest_facts(memory, ANA, "fox", 1)
    assert broken.calls == 2
    assert memory.breakers is not None
    assert state_of(memory.breakers.memory) == "closed"
    assert await memory.count(ANA) == 0
    memory.close()


async def test_a_file_that_keeps_failing_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = _guarded(tmp_path, WordEmbeddings())
    await memory.add(ANA, [draft("a", "red fox")])
    tried: list[int] = []

    def broken(*_: object) -> int:
        tried.append(1)
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr("memory.facts.sqlite.table.SqliteTable.count", broken)
    for _ in range(2):
        with pytest.raises(MemoryStoreError, match="disk I/O error"):
            await memory.count(ANA)
    with pytest.raises(MemoryStoreError, match="the memory failed 2 times in a row"):
        await memory.all(ANA)
    with pytest.raises(MemoryStoreError, match="is left alone"):
        await memory.count(ANA)
    assert len(tried) == 2
    memory.close()


async def test_a_fact_that_is_not_there_is_no_failure_of_the_file(tmp_path: Path) -> None:
    memory = _guarded(tmp_path)
    for _ in range(3):
        with pytest.raises(Exception, match="there is no fact"):
            await memory.delete(ANA, "none")
    assert memory.breakers is not None
    assert state_of(memory.breakers.memory) == "closed"
    memory.close()
