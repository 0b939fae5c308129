"""The pages of nights: the difference, undo, and a preview that is applied or let go."""

import asyncio
import json

import pytest

from graph.inspector.visits import Tell
from graph.use_cases.nights import list_nights
from memory.records import Fact
from tests.support.visiting import Visitor, text_of


async def last_night(visitor: Visitor) -> tuple[str, str]:
    line = (await list_nights(visitor.agent.context))[-1]
    return line["id"], line["status"]


async def facts_of(visitor: Visitor) -> list[Fact]:
    return await visitor.agent.resources.semantic.all(visitor.agent.scope)


async def facts(visitor: Visitor) -> list[str]:
    return [one["text"] for one in await facts_of(visitor)]


async def test_the_list_names_every_night_with_its_outcome_and_cost(visitor: Visitor) -> None:
    shown = text_of(await visitor.get("/nights"))
    assert shown.count("applied") == 2
    assert "Preview a night" in shown


async def test_a_night_is_a_difference_that_one_can_read(visitor: Visitor) -> None:
    first = (await list_nights(visitor.agent.context))[0]["id"]
    page = await visitor.get(f"/nights/{first}")
    shown = text_of(page)
    assert "Learned 2 facts" in shown
    assert "Rex is afraid of thunder" in shown
    assert "Its steps" in shown
    assert "make facts" in shown
    assert "A later night built on this night" in shown
    assert "Undo this night" not in shown
    assert "/default/memory/" in page


async def test_taking_a_night_back_says_first_what_goes(visitor: Visitor) -> None:
    name, _ = await last_night(visitor)
    before = await facts(visitor)
    form = text_of(await visitor.get(f"/nights/{name}/undo"))
    assert "Undo this night?" in form
    assert await facts(visitor) == before
    page = text_of(await visitor.after(await visitor.post(f"/nights/{name}/undo")))
    for told in ("What people corrected since then stays.", "Taken back: learned 1 fact"):
        assert told in page
    assert "undone Preview a night" in page
    assert await last_night(visitor) == (name, "undone")
    today = text_of(await visitor.get("/today"))
    assert "was taken back: its entries wait for the next night. Preview a night" in today


async def test_a_night_that_a_later_one_built_on_is_not_taken_back(visitor: Visitor) -> None:
    await visitor.get("/nights/night_none", 404)
    name, _ = await last_night(visitor)
    await visitor.post(f"/nights/{name}/discard", 422)
    await visitor.post(f"/nights/{name}/eat", 404)
    assert await last_night(visitor) == (name, "complete")


async def test_what_cannot_be_undone_says_why_and_offers_nothing(visitor: Visitor) -> None:
    first, last = [line["id"] for line in await list_nights(visitor.agent.context)]
    assert "Undo this night" in text_of(await visitor.get(f"/nights/{last}"))
    assert "Undo that one first." in text_of(await visitor.get(f"/nights/{first}"))
    thunder = next(one["id"] for one in await facts_of(visitor) if "thunder" in one["text"])
    asked = text_of(await visitor.get(f"/forget/{thunder}"))
    assert "The night of 2 Mar 2026 09:00 can no longer be undone then." in asked
    await visitor.agent.forget_fact(thunder)
    for page in (f"/nights/{first}", f"/nights/{first}/undo"):
        shown = text_of(await visitor.get(page))
        assert "This night can no longer be undone: a forget took something out of it." in shown
        assert "Undo it" not in shown
    assert f"/nights/{last}/undo" not in await visitor.get("/today")
    log = text_of(await visitor.get("/log", what="forgotten"))
    assert "you · ok" in log
    assert "forgotten: a fact" in log
    assert '"facts": 1' in log
    assert "thunder" not in log


async def test_a_long_night_shows_the_first_changes_of_a_kind(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.inspector.activity.MOST_CHANGES", 1)
    name = (await list_nights(visitor.agent.context))[0]["id"]
    page = await visitor.get(f"/nights/{name}")
    whole = await visitor.get(f"/nights/{name}", whole="1")
    learned, all_learned = (
        one.partition("</section>")[0].count("side-plus") for one in (page, whole)
    )
    assert (learned, all_learned) == (1, 2)
    assert "?whole=1#learned" in page


async def test_a_preview_shows_its_progress_and_changes_nothing(visitor: Visitor) -> None:
    before = await facts(visitor)
    assert "No language model is used, and nothing is paid." in await visitor.get("/preview")
    going = await visitor.after(await visitor.post("/preview"))
    assert "A preview of the night" in going
    assert 'http-equiv="refresh"' in going
    await visitor.wait()
    done = await visitor.get("/progress")
    name, status = await last_night(visitor)
    assert status == "preview"
    assert f"/default/nights/{name}" in done
    assert "make facts: 1 of 1, 1 call" in text_of(done)
    assert ": 0 of 1" not in done
    assert await facts(visitor) == before
    shown = text_of(await visitor.get(f"/nights/{name}"))
    assert "nothing of it is in memory. Applied, it costs nothing more." in shown
    assert "Apply this night Discard this night" in shown
    assert "of 4 Mar 2026 09:00 : apply or discard it" in text_of(await visitor.get("/today"))
    entry = (await visitor.agent.recall("dentist"))[0]["id"]
    asked = text_of(await visitor.get(f"/forget/{entry}"))
    told = "The preview of 4 Mar 2026 09:00 , which waits, can no longer be applied then."
    assert told in asked
    await visitor.agent.forget_entry(entry)
    shown = text_of(await visitor.get(f"/nights/{name}"))
    told = "A forget took something out of this night. It can no longer be applied: discard it and"
    assert f"{told} preview again. Discard this night Preview a night" in shown
    assert "costs nothing more" not in shown
    assert "it can no longer be applied; discard it" in text_of(await visitor.get("/today"))


async def test_a_preview_is_let_go_or_applied_without_a_further_call(visitor: Visitor) -> None:
    before = await facts(visitor)
    for action, status, told in (
        ("discard", "discarded", "it is never applied"),
        ("apply", "complete", "Applying a night"),
    ):
        await visitor.post("/preview")
        await visitor.wait()
        name, _ = await last_night(visitor)
        assert "this night" in text_of(await visitor.get(f"/nights/{name}/{action}"))
        done = await visitor.post(f"/nights/{name}/{action}")
        assert told in text_of(await visitor.after(done))
        await visitor.wait()
        assert await last_night(visitor) == (name, status)
        assert (len(await facts(visitor)) > len(before)) == (action == "apply")


async def test_the_progress_comes_as_server_sent_events(visitor: Visitor) -> None:
    await visitor.post("/preview")
    answer = await visitor.client.get("/default/progress/events")
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [line for line in answer.text.splitlines() if line.startswith("data: ")]
    told = [json.loads(line.removeprefix("data: ")) for line in events]
    assert told[-1] == "/default/progress"
    assert told[-2][0] == "looking for what is new"
    assert len(told[-2]) > 3


async def test_a_busy_agent_says_so_in_the_work_s_page(visitor: Visitor) -> None:
    async with visitor.home.agent_lock(visitor.agent.scope.thread):
        await visitor.post("/preview")
        await visitor.wait()
    assert "The agent is busy" in text_of(await visitor.get("/progress"))


async def test_while_a_job_holds_the_agent_a_change_is_told_so_at_once(visitor: Visitor) -> None:
    fact = (await visitor.agent.resources.semantic.all(visitor.agent.scope))[0]["id"]
    told, go_on = asyncio.Event(), asyncio.Event()

    async def work(tell: Tell) -> tuple[str, ...]:
        async with visitor.agent.context.lock():
            told.set()
            await go_on.wait()
        return ("today",)

    visitor.host.jobs.start(visitor.agent.scope, "A long night", work)
    await told.wait()
    for path in (f"/forget/{fact}", f"/correct/{fact}", "/preview", "/questions/ask_x/approve"):
        answer = await asyncio.wait_for(visitor.post(path, 409, text="Other."), 20)
        assert "A long night is still going on" in text_of(answer.text)
        assert "/default/progress" in answer.text
    assert "A long night is going on" in text_of(await visitor.get(f"/memory/{fact}"))
    go_on.set()
    await visitor.wait()
    await visitor.post(f"/forget/{fact}")
