"""Failures are seen from Python, and no answer is handed out as another's."""

import logging
import math
from collections.abc import AsyncIterator
from importlib import import_module
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from graph.agent import open_agent
from memory.errors import (
    CircuitOpen,
    ConfigurationError,
    InputError,
    MemoryStoreError,
    ModelError,
    ServiceDown,
    failed,
)
from memory.events import inbox
from memory.models import CUT_OFF, ask, client
from memory.settings import Settings
from nodes.tick.begin_tick import describe
from tests.support.agents import Opening, entries, night_model, overheard, said
from tests.support.clock import Clock
from tests.support.lives import holding
from tests.support.scripted import call, scripted


def counted(read: Any, written: Any, total: Any) -> dict[str, Any]:
    return {"input_tokens": read, "output_tokens": written, "total_tokens": total}


DOWN = ModelError("no usable answer from the model after 4 tries: HTTP 503: no")
WRONG_KEY = ConfigurationError("http://x/v1 refuses the key of the model m: set OPENAI_API_KEY")


@pytest.mark.parametrize("broken", [DOWN, ValueError("no such thing")])
async def test_what_a_failed_tick_has_paid_counts(broken: Exception, opening: Opening) -> None:
    goal = call("add_goal", description="Water the beans")
    settings = Settings(max_failed_ticks=9)
    async with opening(scripted(goal, broken), settings=settings) as agent:
        with pytest.raises(Exception, match="e1"):
            await agent.ainvoke(said("Please water the beans.", id="e1"))
        spending = (await agent.aget_state()).values["spending"]
    assert spending["tokens"] > 1_000  # the prompt of the call that was answered


def test_in_a_blocking_call_what_a_failed_tick_has_paid_counts(tmp_path: Path) -> None:
    goal = call("add_goal", description="Water the beans")
    with open_agent(tmp_path, model=scripted(goal, DOWN), embedder="offline") as agent:
        with pytest.raises(ModelError):
            agent.invoke(said("Please water the beans.", id="e1"))
        assert agent.get_state().values["spending"]["tokens"] > 1_000


def test_an_error_without_a_text_is_told_by_its_type() -> None:
    assert describe(NotImplementedError()) == "NotImplementedError"


async def test_a_stored_error_has_no_secrets_and_no_lone_surrogates(
    opening: Opening, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = [RuntimeError("no sk-proj-abcdef123456"), ModelError("half \ud800")]
    async with opening(scripted(*broken, "Here.")) as agent:
        for attempt, told in enumerate(("RuntimeError: no ***", "half \ufffd"), 1):
            out = await agent.ainvoke(said("Hi", id="e1"), raise_on_failure=False)
            [failure] = out["report"]["failures"]
            assert (failure["error"], failure["attempts"]) == (told, attempt)
        assert (await agent.ainvoke(said("Hi", id="e1")))["reply"] == "Here."
    assert holding(tmp_path, ["abcdef123456"]) == []
    told = "".join(map(logging.Formatter().format, caplog.records))
    assert ("RuntimeError: no ***" in told, "abcdef123456" in told) == (True, False)


async def test_a_caller_is_shown_no_secret_of_a_provider() -> None:
    model = scripted(ConnectionError("no answer for sk-proj-abcdef123456"))
    with pytest.raises(ModelError) as raised:
        await ask(model, [HumanMessage("Hi")], Settings(), attempts=1)
    told = "".join(format_exception(raised.value))
    assert ("ConnectionError: no answer for ***" in told, "abcdef" in told) == (True, False)


@pytest.mark.parametrize(
    ("usage", "taken"),
    [
        *((counted(one, 1, one), None) for one in (-5, 10**30, 12.5, math.nan, math.inf, "many")),
        *((one, None) for one in (counted(3, 9, 5), {"input_tokens": 3}, {}, "many", 7, [1])),
        *(
            (counted(*three), 57)
            for three in ((40, 17, 57), (40.0, 17.0, 57.0), ("40", "17", "57"))
        ),
        ({**counted(40, 17, 57), "input_token_details": "none"}, 57),
        ({**counted(40, 17, 57), "input_token_details": {"cache_read": "x"}}, 57),
    ],
)
async def test_a_count_of_tokens_that_cannot_be_true_is_not_taken(
    opening: Opening, caplog: pytest.LogCaptureFixture, usage: Any, taken: int | None
) -> None:
    client._say_once.cache_clear()
    answer, again = AIMessage("Hi."), AIMessage("Ho.")
    answer.usage_metadata = again.usage_metadata = usage
    async with opening(scripted(answer, again)) as agent:
        for said_back in ("Hi.", "Ho."):
            (tick,) = (await agent.ainvoke(said("Hello")))["report"]["ticks"]
            assert tick["reply"] == said_back
            assert tick["tokens"] == taken if taken else 57 < tick["tokens"] < 10_000
    told = [one for one in caplog.messages if "counts of tokens" in one]
    assert len(told) == (taken is None and bool(usage))


async def test_a_failed_run_hands_out_no_older_answer(opening: Opening) -> None:
    async with opening(scripted("Hello.", DOWN)) as agent:
        first = await agent.ainvoke({"messages": "Hello"})
        assert (first["reply"], first["messages"][-1].text) == ("Hello.", "Hello.")
        out = await agent.ainvoke({"messages": "Are you there?"}, raise_on_failure=False)
    assert out["reply"] is None
    assert isinstance(out["messages"][-1], HumanMessage)
    assert out["messages"][-1].text == "Are you there?"
    assert out["report"]["failures"][0]["kind"] == "ModelError"


async def test_the_error_carries_the_report_of_the_whole_run(opening: Opening) -> None:
    async with opening(scripted(DOWN, "Hello Ben.")) as agent:
        events = [{"id": "e1", "text": "One", "sender": "Ada"}]
        events += [{"id": "e2", "text": "Two", "sender": "Ben"}]
        with pytest.raises(ModelError) as raised:
            await agent.ainvoke({"events": events})
    assert raised.value.report is not None
    assert [tick["reply"] for tick in raised.value.report["ticks"]] == ["Hello Ben."]


def test_a_failure_of_memory_is_told_as_such() -> None:
    assert type(failed("MemoryStoreError", "the disk is full")) is MemoryStoreError
    assert type(failed("IndexError", "a bug")) is ModelError


async def test_a_stream_gives_everything_and_raises_at_its_end(opening: Opening) -> None:
    parts: list[Any] = []
    async with opening(scripted(DOWN, DOWN)) as agent:
        failing = agent.astream({"messages": "Hello"}, stream_mode="values")
        with pytest.raises(ModelError, match="HTTP 503"):
            await _gathered(failing, parts)
        assert parts[-1]["report"]["failures"]
        async for part in agent.astream({}, stream_mode="values", raise_on_failure=False):
            parts.append(part)
        assert parts[-1]["report"]["failures"][0]["attempts"] == 2


async def _gathered(source: AsyncIterator[Any], parts: list[Any]) -> None:
    async for part in source:
        parts.append(part)


def test_the_blocking_agent_raises_and_streams_alike(tmp_path: Path, clock: Clock) -> None:
    model = scripted(DOWN, DOWN, DOWN, "Hello.")
    settings = Settings(max_failed_ticks=9)
    opening = open_agent(tmp_path, model=model, embedder="offline", clock=clock, settings=settings)
    with opening as agent:
        with pytest.raises(ModelError, match="HTTP 503"):
            agent.invoke({"messages": "Hello"})
        with pytest.raises(ModelError, match="HTTP 503"):
            list(agent.stream({}))
        out = agent.invoke({}, raise_on_failure=False)
        assert out["report"]["failures"]
        assert agent.invoke({"messages": "Hi"}, raise_on_failure=False)["messages"]


async def test_a_wrong_key_counts_against_nothing_and_the_message_waits(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_FAILURES", "1")
    model = scripted(*[WRONG_KEY] * 7, "Now I hear you.")
    async with opening(model) as agent:
        for message in ({"messages": [HumanMessage("Hello", id="m1")]}, *[{}] * 5):
            with pytest.raises(ConfigurationError, match="set OPENAI_API_KEY"):
                await agent.ainvoke(message)
        with pytest.raises(ConfigurationError, match="event m1 waits in the inbox"):
            await agent.sleep()
        [item] = await inbox.waiting(agent.store, agent.scope)
        assert (item["event"]["id"], item["attempts"]) == ("m1", 0)
        state = (await agent.aget_state()).values
        assert (state["emergency_stop"], state["consecutive_errors"]) == (False, 0)
        assert agent.resources.breakers.model.state == "closed"
        out = await agent.ainvoke({})
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Now I hear you."]


async def test_with_a_wrong_key_a_run_does_not_try_every_message_that_waits(
    opening: Opening,
) -> None:
    model = scripted(*[WRONG_KEY] * 2)
    async with opening(model) as agent:
        events = [{"id": f"e{n}", "text": "Hello", "sender": "Ada"} for n in range(9)]
        with pytest.raises(ConfigurationError):
            await agent.ainvoke({"events": events})
        assert len(await inbox.waiting(agent.store, agent.scope)) == 9
    assert len(model.calls) == 2


async def test_the_log_has_a_line_for_a_failure_and_a_traceback_for_a_bug(
    opening: Opening, caplog: pytest.LogCaptureFixture
) -> None:
    model = scripted(WRONG_KEY, ZeroDivisionError("a bug"))
    with caplog.at_level(logging.ERROR, logger="circadian.tick"):
        async with opening(model) as agent:
            with pytest.raises(ModelError):
                await agent.ainvoke({"messages": "Hello"})
            with pytest.raises(ModelError):
                await agent.ainvoke({})
    logged = [record for record in caplog.records if record.name == "circadian.tick"]
    assert [bool(record.exc_info) for record in logged] == [False, True]


async def test_a_refusal_is_the_reply_and_the_event_is_done(opening: Opening) -> None:
    no = AIMessage("", additional_kwargs={"refusal": "I do not do that."})
    async with opening(model := scripted(no)) as agent:
        out = await agent.ainvoke({"messages": "Do it"})
        assert await inbox.waiting(agent.store, agent.scope) == []
    assert out["reply"] == "The model refused: I do not do that."
    assert out["messages"][-1].text == out["reply"]
    assert out["report"]["ticks"][0]["llm_calls"] == 1
    assert len(model.calls) == 1


async def test_a_reply_that_was_cut_off_says_so(opening: Opening) -> None:
    half = AIMessage("Once upon a", response_metadata={"finish_reason": "length"})
    async with opening(scripted(half, "The end.")) as agent:
        out = await agent.ainvoke({"messages": "Tell me a story"})
        whole = await agent.ainvoke({"messages": "And the end?"})
    assert out["reply"] == f"Once upon a {CUT_OFF}"
    assert out["messages"][-1].text == out["reply"]
    assert out["report"]["ticks"][0]["truncated"] is True
    assert "truncated" not in whole["report"]["ticks"][0]


async def test_a_call_that_cannot_be_read_is_answered_in_the_loop(opening: Opening) -> None:
    cut = call("add_goal", description="Mend the")
    cut.response_metadata = {"finish_reason": "length"}
    model = scripted(cut, call("add_goal", description="Mend the fence"), "It is noted.")
    async with opening(model) as agent:
        out = await agent.ainvoke({"messages": "Please mend the fence"})
        goals = (await agent.aget_state()).values["goals"]
    assert [goal["description"] for goal in goals.values()] == ["Mend the fence"]
    assert [tool["ok"] for tool in out["report"]["ticks"][0]["tools"]] == [False, True]
    assert "cut this call off" in str(model.calls[1].messages[-1].text)


async def test_a_call_printed_as_text_is_never_run_and_never_the_reply(opening: Opening) -> None:
    printed = (
        'Sure!\n<tool_call>{"name": "add_goal", "arguments": {"description": "x"}}</tool_call>'
    )
    model = scripted(printed, "I cannot set that goal.", printed, printed)
    async with opening(model) as agent:
        out = await agent.ainvoke({"messages": "Please add a goal"})
        assert out["reply"] == "I cannot set that goal."
        with pytest.raises(ModelError, match="prints a call of add_goal as text"):
            await agent.ainvoke({"messages": "Please add a goal"})
        state = (await agent.aget_state()).values
    assert state["goals"] == {}
    assert not any("tool_call>" in str(message.text) for message in state["messages"])


class Toolless(BaseChatModel):
    @property
    def _llm_type(self) -> str:
        return "toolless"

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage("Hello"))])


@pytest.mark.parametrize(
    ("model", "told"),
    [
        (Toolless(), "Toolless cannot call tools: it has no bind_tools"),
        (object(), "must be a name or a LangChain chat model; got object"),
    ],
)
async def test_a_model_that_cannot_work_is_told_at_opening(
    tmp_path: Path, model: Any, told: str
) -> None:
    with pytest.raises(InputError, match=told):
        async with open_agent(tmp_path / "data", model=model, embedder="offline"):
            pass
    with pytest.raises(InputError, match=told), open_agent(tmp_path / "data", model=model):
        pass
    with pytest.raises(InputError, match="embedder must be a name"):
        async with open_agent(tmp_path / "data", model="offline", embedder=model):
            pass
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("error", "attempts"), [(ModelError("no answer"), 1), (CircuitOpen("left alone"), 0)]
)
async def test_a_failure_is_noted_though_the_process_died_meanwhile(
    opening: Opening, monkeypatch: pytest.MonkeyPatch, error: Exception, attempts: int
) -> None:
    """LangGraph gives the error again as its `repr`."""

    async with opening(scripted(error)) as agent:
        with monkeypatch.context() as patched:
            patched.setattr(import_module("nodes.tick.begin_tick"), "describe", dies_at_once)
            with pytest.raises(RuntimeError, match="killed"):
                await agent.ainvoke(said("Hello", id="e1"))
    async with opening(scripted("Hi.")) as agent:
        output = await agent.ainvoke({}, raise_on_failure=False)
        [failure] = output["report"]["failures"]
        assert (failure["event_id"], failure["attempts"]) == ("e1", attempts)
        assert failure["error"] == f"{type(error).__name__}('{error}')"
        output = await agent.ainvoke({})
    assert [one["reply"] for one in output["report"]["ticks"]] == ["Hi."]


def dies_at_once(error: Any) -> str:
    raise RuntimeError("killed")


ALONE = ServiceDown("no usable answer from the model after 4 tries: HTTP 503: no")


HEARD = overheard(*(f"Ada grows bean number {n}" for n in range(9)))["events"]


@pytest.fixture
def soon_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_FAILURES", "1")


@pytest.mark.usefixtures("soon_open")
async def test_an_event_waits_and_nothing_counts_against_it(opening: Opening) -> None:
    model = scripted(ALONE, "Now I am well.")
    async with opening(model) as agent:
        await agent.ainvoke(said("Are you there?", id="first"), raise_on_failure=False)
        for _ in range(4):
            out = await agent.ainvoke({}, raise_on_failure=False)
            (failure,) = out["report"]["failures"]
            assert "the model failed and is left alone" in failure["error"]
        (item,) = await inbox.waiting(agent.store, agent.scope)
        assert (item["event"]["id"], item["attempts"]) == ("first", 1)
        state = (await agent.aget_state()).values
        assert (state["emergency_stop"], state["consecutive_errors"]) == (False, 1)
    assert len(model.calls) == 1


@pytest.mark.usefixtures("soon_open")
@pytest.mark.parametrize("error", [ALONE, WRONG_KEY])
async def test_a_night_ends_at_once_and_keeps_its_entries(
    opening: Opening, error: Exception
) -> None:
    model = scripted(error)
    async with opening(model, settings=Settings(score_batch_size=2)) as agent:
        await agent.ainvoke({"events": HEARD})
        out = await agent.ainvoke({"request": "sleep"}, raise_on_failure=False)
        assert {one["consolidation"] for one in await entries(agent)} == {"pending"}
    night = out["report"]["night"]
    assert len(model.calls) == 1
    assert (night["complete"], len(night["held"])) == (False, 9)
    assert night["errors"][0] == f"score_importance: {error}"


@pytest.mark.usefixtures("soon_open")
async def test_the_next_night_does_what_was_left(opening: Opening) -> None:
    model = scripted(ALONE, otherwise=night_model)
    async with opening(model) as agent:
        await agent.ainvoke({"events": HEARD})
        await agent.ainvoke({"request": "sleep"})
    async with opening(model) as agent:
        out = await agent.ainvoke({"request": "sleep"})
    assert (out["report"]["night"]["complete"], out["report"]["night"]["held"]) == (True, [])


@pytest.mark.usefixtures("soon_open")
async def test_after_its_time_the_waiting_event_is_answered(
    opening: Opening, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_SECONDS", "0.001")
    model = scripted(ALONE, "Now I am well.")
    async with opening(model) as agent:
        with pytest.raises(ServiceDown):
            await agent.ainvoke(said("Are you there?", id="first"))
        out = await agent.ainvoke({})
    assert [tick["reply"] for tick in out["report"]["ticks"]] == ["Now I am well."]
