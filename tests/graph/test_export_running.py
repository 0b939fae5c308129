"""An export while its agent runs."""

from pathlib import Path

from graph.use_cases import import_memory
from memory import transfer
from memory.transfer.transfer import line_of
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.scripted import scripted
from tests.unit.memory.transfer.test_transfer import exported, records


async def test_a_running_tick_is_exported_whole_or_not_at_all(tmp_path: Path, clock: Clock) -> None:
    seen: list[list[str]] = []

    async with opened(
        tmp_path / "data", scripted("First.", otherwise=lambda *_: "Later."), clock
    ) as agent:
        await agent.ainvoke(said("One.", id="e1"))
        await agent.post({"id": "e2", "sender": "Ada", "text": "Two."})
        async for _ in agent.astream(None, stream_mode="updates", subgraphs=True):
            seen.append(await exported(agent))
    assert len(seen) > 5
    for some in seen:
        (state,) = records(some, "state")
        assert (state["values"]["turn"], state["values"]["context"]) == ("rest", None)
        told = [one["data"]["content"] for one in state["values"]["messages"]]
        waits = {one["key"] for one in records(some, "inbox")}
        handled = {one["key"] for one in records(some, "handled")}
        handled |= {mark["id"] for mark in state["values"]["handled"]}
        assert ("Two." in told) == ("Later." in told) == ("e2" in handled) == ("e2" not in waits)
    async with opened(tmp_path / "new", scripted(), clock) as empty:
        await import_memory(empty.context, seen[2])
        assert (await exported(empty))[1:] == seen[2][1:]


async def test_an_export_keeps_events_in_the_inbox_that_the_state_does_not_contain(
    opening: Opening,
) -> None:
    async def read(taken: transfer.Taken) -> tuple[set[str], set[str]]:
        found = [line_of(one) async for one in transfer.records(source, taken)]
        lines = ["", *found]
        inbox, handled = records(lines, "inbox"), records(lines, "handled")
        return {one["key"] for one in inbox}, {one["key"] for one in handled}

    async with opening(scripted("One.", "Two.", "Three.")) as agent:
        source = transfer.AgentMemory(agent.store, agent.resources.semantic, agent.scope)
        await agent.ainvoke(said("One.", id="e1"))
        await agent.post({"id": "e2", "sender": "Ada", "text": "Two."})
        waiting, aside = await transfer.waiting_in(source)
        before = dict((await agent.aget_state()).values)
        await agent.ainvoke(None)
        await agent.ainvoke(said("Three.", id="e3"))
        after = dict((await agent.aget_state()).values)
        assert await read(transfer.Taken(waiting, aside, before)) == ({"e2"}, {"e1"})
        assert await read(transfer.Taken(waiting, aside, after)) == (set(), {"e1", "e2", "e3"})
