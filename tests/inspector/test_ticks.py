"""The pages of ticks and of the log, and the answer to a question."""

from pathlib import Path

from graph.agent import open_agent
from memory.events import inbox
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.visiting import Visitor, text_of, visiting

AT = "2026-03-02T09:00:00+00:00"


async def test_a_tick_tells_why_it_said_that(visitor: Visitor) -> None:
    listed = await visitor.get("/ticks")
    assert "Ben asked: “What is my dog Rex afraid of?” , 3 Mar 2026 09:00" in text_of(listed)
    assert "tick event" not in listed
    page = await visitor.get("/ticks/3")
    shown = text_of(page)
    for words in (
        "What set it off",
        "What is my dog Rex afraid of?",
        "What it was shown of its memory",
        "Rex is afraid of thunder",
        "How it was judged",
        "it judged how much work the message is",
        "Tools that cannot be taken back wait for a person.",
        "In its own terms",
        "What the prompt was made of",
        "conversation history",
        "Read the prompt",
        "You work for the people who write to you",
        "Now: ",
    ):
        assert words in shown
    # The memory that gave the answer is marked.
    [marked] = [one for one in page.split("<article")[1:] if "its words are in the answer" in one]
    assert "Rex is afraid of thunder" in marked


async def test_a_question_stands_in_words_with_the_message_it_is_about(
    tmp_path: Path, clock: Clock
) -> None:
    (tmp_path / "files").mkdir()
    opening = open_agent(
        tmp_path / "data", model=OfflineChatModel(), embedder="offline", folder=tmp_path / "files"
    )
    async with opening as agent:
        await agent.ainvoke(said("The boat is blue.", "Ben"))
        await agent.ainvoke(said("The yard has no brush.", "Tom"))
        await agent.ainvoke(said("Please write a file list.txt: paint, brush.", id="m1"))
    async with visiting(tmp_path / "data", clock) as visitor:
        page = await visitor.get("/today")
        shown = text_of(page)
        assert "May it use the tool “write file”?" in shown
        assert "file path list.txt text paint, brush" in shown
        assert "Please write a file list.txt: paint, brush. Ada wrote this" in shown
        assert "Words of Ben and Tom stood before the agent, too, and may have led to this" in shown
        assert "Refused, the tool does not run; the agent is told so, with your reason" in shown
        assert "/default/log?origin=m1" in page
        assert "question asked" in text_of(await visitor.get("/log", origin="m1"))


async def test_the_history_of_its_own_prompt_is_read_on_today(visitor: Visitor) -> None:
    assert "It has not written one." in text_of(await visitor.get("/today"))
    made = [("Be brief.", 1, "long"), ("Be brief. Name the source.", 2, "asked for it")]
    versions = [
        {"text": text, "version": number, "at": AT, "by": "Ada", "reason": why}
        for text, number, why in made
    ]
    prompt = {"text": made[1][0], "version": 2, "versions": versions}
    await visitor.agent.aupdate_state(None, {"assistant_prompt": prompt})
    shown = text_of(await visitor.get("/today"))
    assert "version 2. Be brief. Name the source." in shown
    assert "2 versions" in shown
    assert "version 1 by Ada: long Be brief." in shown
    assert "version 2 by Ada: asked for it" in shown


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
    await visitor.get(f"/ticks/{'9' * 5_000}", 404)


async def test_the_log_is_filtered(visitor: Visitor) -> None:
    assert "night of 2 Mar 2026 09:00" in text_of(await visitor.get("/log"))
    goals = text_of(await visitor.get("/log", what="goal_created"))
    assert "goal created: Paint the boat before June" in goals
    assert "slept" not in goals
    day = text_of(await visitor.get("/log", day="2026-03-02"))
    assert "3 Mar" not in day
    assert "Nothing is logged" in text_of(await visitor.get("/log", who="nobody"))
    await visitor.get("/log", 422, day="never")
    await visitor.get("/log", 422, page="0")


async def test_a_question_that_does_not_wait_is_not_answered(visitor: Visitor) -> None:
    await visitor.post("/questions/ask_none/approve", 404)
    await visitor.post("/questions/ask_none/eat", 404)
