"""Hygiene: what was recalled, ruled, echoed or chatted never becomes a fact; what was said does."""

from __future__ import annotations

import pytest

from graph.api.async_agent import AsyncAgent
from memory.entities import entities
from memory.settings import Settings
from tests.support.agents import Opening, entries, said
from tests.support.clock import Clock
from tests.support.junk import REAL, Greedy
from tests.support.poisoned import sleep
from tests.support.scripted import scripted

SETTINGS = Settings(
    compact_preserve_window=4,
    compact_sleep_threshold=0.05,
    gate_facts=10_000,
    max_iterations_per_tick=10,
    min_observations=2,
    night_calls_per_100=500,
    probes_kept=0,
    reflection_threshold=20,
)
DAYS = 2
TEXTS = {text: (id_, who) for id_, who, text in REAL}


async def kept(agent: AsyncAgent) -> tuple[list[tuple[str, str | None]], list[str]]:
    """What is stored after all: facts with their speakers, and everything else that was made."""
    facts = [(f["text"], f["speaker"]) for f in await agent.resources.semantic.all(agent.scope)]
    notes = [one["content"] for one in await entries(agent) if "event" not in one["tags"]]
    notes = [one for one in notes if not one.startswith("[CONTEXT SYNTHESIS]")]
    profiles = await entities.everyone(agent.store, agent.scope)
    observed = [one["text"] for profile in profiles for one in profile["observations"]]
    made = [one["value"] for profile in profiles for one in profile["attributes"].values()]
    memory = (await agent.aget_state()).values["session_memory"]
    contexts = [f.get("context") for f in await agent.resources.semantic.all(agent.scope)]
    other = [*notes, *observed, *made, *memory["key_facts"], *(one for one in contexts if one)]
    return facts, other


async def test_of_a_stream_with_forty_percent_junk_at_most_five_percent_is_kept(
    opening: Opening, clock: Clock, request: pytest.FixtureRequest
) -> None:
    greedy = Greedy()
    async with opening(scripted(otherwise=greedy), settings=SETTINGS) as agent:
        for day in range(DAYS):
            for id_, who, text in REAL[day::DAYS]:
                clock.advance(minutes=5)
                await agent.ainvoke(said(text, who, id=id_))
            await sleep(agent, clock)
        facts, other = await kept(agent)
    real = {text: speaker for text, speaker in facts if text in TEXTS}
    junk = [text for text, _ in facts if text not in TEXTS] + other
    rightly = [text for text, who in real.items() if who == TEXTS[text][1]]
    told = (
        f"junk tried {len(greedy.wanted)}, of {len(greedy.wanted) + len(greedy.real)} writes; "
        f"kept {len(junk)} of {len(junk) + len(real)} memories "
        f"({len(junk) / max(1, len(junk) + len(real)):.1%}); "
        f"real {len(rightly)} of {len(REAL)} with their speakers"
    )
    if (reporter := request.config.pluginmanager.get_plugin("terminalreporter")) is not None:
        reporter.write(f"\n{told}\n")
    assert len(greedy.wanted) >= 0.4 * (len(greedy.wanted) + len(greedy.real)), told
    assert len(junk) <= 0.05 * (len(junk) + len(real)), "\n".join([told, *junk])
    assert len(rightly) >= 0.95 * len(REAL), told
