"""Failed calls: which are tried again, which a circuit breaker counts, who goes through one."""

import json
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from httpx import UnsupportedProtocol
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import (
    ContextOverflowError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelInvalidRequestError,
    ModelNotFoundError,
    ModelRateLimitError,
)
from langchain_core.messages import AIMessage

from memory.errors import (
    CircuitOpen,
    ConfigurationError,
    ContextOverflow,
    MemoryStoreError,
    ModelError,
    ModelRefused,
    ServiceDown,
)
from memory.facts.semantic import SemanticMemory
from memory.models.client import ask, ask_for
from memory.models.registry import embed_query, embed_texts
from memory.models.retry import Breaker, Breakers, RetryPolicy
from memory.settings import Settings
from tests.support.facts import ANA, WordEmbeddings, draft, memory_at, nearest_facts
from tests.support.scripted import Step, Waits, call, scripted
from tests.unit.memory.models.test_ask import PROMPT, Facts, Status
from tests.unit.memory.models.test_breaker import state_of


async def _asked(*steps: Step, breaker: Breaker | None = None) -> Any:
    return await ask(scripted(*steps), PROMPT, Settings(), sleep=Waits(), breaker=breaker)


def wrapped(failure: Exception) -> Exception:
    error = RuntimeError("the client failed")
    error.__cause__ = failure
    return error


SPENT = Status(429, "you exceeded your current quota")
SPENT.code = "insufficient_quota"  # type: ignore[attr-defined]
PAGE = ValueError("got <!DOCTYPE html><html>")
UPSTREAM = ValueError({"message": "upstream is down", "code": 502})
REFUSED = AIMessage("", additional_kwargs={"refusal": "no"})
KEY, NAME = "refuses the key of the model", "does not know the model"

FAILURES: list[tuple[Step, type[ModelError], int, str]] = [
    # (what each try gives, how the call fails, waits between tries, what is said)
    *((Status(one), ServiceDown, 3, f"4 tries: HTTP {one}: no") for one in (408, 429, 500, 503)),
    (ConnectionResetError("reset"), ServiceDown, 3, "reset"),
    (wrapped(ConnectionResetError("reset")), ServiceDown, 3, "reset"),
    (TimeoutError(), ServiceDown, 3, "TimeoutError"),
    (ModelAPIError("down"), ServiceDown, 3, "down"),
    (ModelConnectionError("unreachable"), ServiceDown, 3, "unreachable"),
    (ModelRateLimitError("slow down"), ServiceDown, 3, "slow down"),
    (UPSTREAM, ServiceDown, 3, "upstream is down"),
    (Status(429, "Request too large for tokens per minute"), ServiceDown, 3, "too large"),
    (Status(402, "pay first"), ServiceDown, 0, "HTTP 402: pay first"),
    (Status(429, retry_after="3600"), ServiceDown, 0, "asks to wait 3600 s"),
    (SPENT, ServiceDown, 0, "quota"),
    (Status(401, "bad key"), ConfigurationError, 0, KEY),
    (Status(403, "not yours"), ConfigurationError, 0, KEY),
    (Status(404, "no such model"), ConfigurationError, 0, NAME),
    (ModelAuthenticationError("bad key"), ConfigurationError, 0, KEY),
    (ModelNotFoundError("no such model"), ConfigurationError, 0, NAME),
    (PAGE, ConfigurationError, 0, "is no API for the model"),
    (ConnectionRefusedError(111, "refused"), ConfigurationError, 1, "cannot be reached"),
    (socket.gaierror(-2, "no such host"), ConfigurationError, 1, "cannot be reached"),
    (UnsupportedProtocol("no 'http://'"), ConfigurationError, 1, "cannot be reached.*http://"),
    (json.JSONDecodeError("cut off", "{", 1), ModelError, 3, "cut off"),
    ("", ModelError, 0, "an empty answer"),
    (REFUSED, ModelRefused, 0, "no"),
    (ValueError("no choices"), ModelError, 0, "ValueError: no choices"),
    (IndexError("out of range"), ModelError, 0, "IndexError: out of range"),
    (Status(400, "unknown parameter: context"), ModelError, 0, "HTTP 400: unknown parameter"),
    (Status(400, "max_tokens is too large: 99999"), ModelError, 0, "max_tokens is too large"),
    (Status(413, "the body is too large"), ModelError, 0, "HTTP 413"),
    (Status(422, "not processable"), ModelError, 0, "HTTP 422"),
    (ModelInvalidRequestError("no"), ModelError, 0, "no"),
    (ModelError("a nested call failed: the prompt is too long"), ModelError, 0, "a nested call"),
    (ContextOverflowError("too long"), ContextOverflow, 0, "longer than the model takes"),
    *(
        (Status(status, said), ContextOverflow, 0, "longer than the model takes")
        for status, said in (
            (400, "This model's maximum context length is 4096 tokens."),
            (400, "the request exceeds the available context size, try increasing it"),
            (400, "prompt is too long: 210000 tokens > 200000 maximum"),
            (413, "Request too large: reduce the length of the messages"),
            (400, "Input tokens exceed the configured limit of 272000 tokens."),
            (500, "Context size has been exceeded."),
        )
    ),
    (ValueError("maximum context length is 4096 tokens"), ContextOverflow, 0, "longer than"),
]


@pytest.mark.parametrize(("given", "kind", "waits", "told"), FAILURES, ids=repr)
async def test_a_failure_has_its_kind_and_only_a_service_that_is_down_counts(
    given: Step, kind: type[ModelError], waits: int, told: str
) -> None:
    breaker, slept = Breaker("model", failures=1), Waits()
    with pytest.raises(ModelError, match=told) as raised:
        await ask(scripted(*[given] * 4), PROMPT, Settings(), sleep=slept, breaker=breaker)
    assert type(raised.value) is kind
    assert len(slept.seconds) == waits
    assert state_of(breaker) == ("open" if kind is ServiceDown else "closed")


async def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(AttributeError, match="oops"):
        await _asked(AttributeError("oops"))


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
    answer = await _asked(*[Status(503)] * 3, "noon", breaker=breaker)
    assert (answer.message.text, answer.usage["llm_calls"]) == ("noon", 1)
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
    def __init__(self) -> None:
        self.calls = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls += 1
        raise Status(402, "pay first")

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


async def test_the_embedder_has_a_breaker_of_its_own() -> None:
    broken, breaker = Broken(), Breaker("embedder", failures=2)
    policy = RetryPolicy(1)
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
