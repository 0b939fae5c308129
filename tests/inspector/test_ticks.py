"""The pages of ticks and of the log, and the answer to a question."""

from __future__ import annotations

from memory.events import inbox
from tests.support.visiting import Visitor, text_of


async def test_a_tick_tells_why_it_said_that(visitor: Visitor) -> None:
    listed = await visitor.get("/ticks")
    assert "Ticks" in text_of(listed)
    shown = text_of(await visitor.get("/ticks/3"))
    for words in (
        "What set it off",
        "What is my dog Rex afraid of?",
        "What it was shown of its memory",
        "Rex is afraid of thunder",
        "How it was judged",
        "What the prompt was made of",
        "conversation history",
        "Read the prompt",
        "You work for the people who write to you",
        "Now: ",
    ):
        assert words in shown


async def test_what_nights_and_other_ticks_did_is_not_the_ticks_own(visitor: Visitor) -> None:
    page = text_of(await visitor.get("/ticks/2"))  # A night followed, with the number of this tick.
    assert "It used no tools" in page
    assert "fell asleep" not in page
    assert "fell asleep" in text_of(await visitor.get("/log"))


async def test_a_forget_drops_the_prompts_that_are_kept(visitor: Visitor) -> None:
    context = visitor.agent.context
    assert await inbox.prompt_of(context.store, context.scope, 1) is not None
    await visitor.agent.forget("Ben")
    assert await inbox.prompt_of(context.store, context.scope, 1) is None
    assert "The prompt itself is not kept, or no longer" in text_of(await visitor.get("/ticks/1"))


async def test_ticks_stay_when_their_checkpoints_are_gone(visitor: Visitor) -> None:
    context = visitor.agent.context
    assert context.graph.checkpointer
    await context.graph.checkpointer.adelete_thread(context.scope.thread)  # type: ignore[union-attr]
    assert "thunder" in text_of(await visitor.get("/ticks/3"))
    assert "of its own accord" not in text_of(await visitor.get("/ticks"))


async def test_a_tick_that_is_not_kept_is_said(visitor: Visitor) -> None:
    await visitor.get("/ticks/999", 404)
    await visitor.get("/ticks/first", 404)


async def test_the_log_is_filtered(visitor: Visitor) -> None:
    assert "night" in text_of(await visitor.get("/log"))
    goals = text_of(await visitor.get("/log", what="goal_created"))
    assert "goal created" in goals
    assert "slept" not in goals
    day = text_of(await visitor.get("/log", day="2026-03-02"))
    assert "3 Mar" not in day
    assert "Nothing is logged" in text_of(await visitor.get("/log", who="nobody"))
    await visitor.get("/log", 422, day="never")
    await visitor.get("/log", 422, page="0")


async def test_a_question_that_does_not_wait_is_not_answered(visitor: Visitor) -> None:
    await visitor.post("/questions/ask_none/approve", 404)
    await visitor.post("/questions/ask_none/eat", 404)
