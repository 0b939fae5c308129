"""The status for people: questions, what the prompt costs, what was spent, which services rest."""

from pathlib import Path
from typing import Any

import pytest
from rich.console import RenderableType

from graph.cli.status_view import _session_memory, prompt_gauge, spending_gauge, status_view
from graph.use_cases.status import status
from memory.models.offline.model import OfflineChatModel
from memory.prompt.components import prompt_health
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.commandline import Run
from tests.support.screens import plain

TOKENS = {"system_prompt": 400, "goals": 0, "entity_context": 90, "history": 2_000, "tools": 1_900}
BUDGETS = {"goals": 2_000, "entity_context": 1_000}
SPENT = {
    "tokens": 12_040,
    "tokens_per_day": 1_000_000,
    "autonomous_ticks": 3,
    "autonomous_ticks_per_hour": 60,
    "over": None,
    "next_look": None,
}


def lines_of(part: RenderableType, width: int = 80) -> list[str]:
    return plain(part, width).splitlines()


def gauge(budgets: dict[str, Any] = BUDGETS, version: int = 0, *, verbose: bool = False) -> Any:
    return prompt_gauge(prompt_health(TOKENS, budgets, 100_000), version, verbose=verbose)


def test_a_healthy_prompt_is_one_line() -> None:
    line = "history 2,000, tools 1,900, system_prompt 400 tokens, ..."
    assert lines_of(gauge()) == [line]
    assert lines_of(gauge(version=3), width=120) == [f"{line} · its own guidelines in version 3"]


def test_verbose_shows_each_part_that_has_tokens() -> None:
    lines = lines_of(gauge(verbose=True))
    assert lines[1].split() == ["part", "tokens", "share", "budget"]
    assert [line.split() for line in lines[3:]] == [
        ["system_prompt", "400", "0.4", "%", "-"],
        ["entity_context", "90", "0.1", "%", "1,000"],
        ["history", "2,000", "2", "%", "-"],
        ["tools", "1,900", "1.9", "%", "-"],
    ]


def test_a_problem_is_a_sentence_above_the_parts() -> None:
    lines = lines_of(gauge({"entity_context": 95}))
    assert lines[1] == (
        "entity_context fills its budget of 95 tokens: what does not fit is left out."
    )
    assert lines[2].split() == ["part", "tokens", "share", "budget"]


def test_spending_is_shown_with_its_limits() -> None:
    line = "12,040 of 1,000,000 tokens today · 3 of 60 ticks of its own this hour"
    look = "next look at the goals 2 Mar 2026 12:07 UTC, or when something happens"
    for more, told in (
        ({}, []),
        ({"over": "Only events are answered."}, ["Only events are answered."]),
        ({"next_look": "2026-03-02T12:07:00+00:00"}, [look]),
    ):
        assert lines_of(spending_gauge({**SPENT, **more})) == [line, *told]


@pytest.fixture
async def now(tmp_path: Path, clock: Clock) -> dict[str, Any]:
    async with opened(tmp_path, OfflineChatModel(), clock) as agent:
        return dict(await status(agent.context))


def question(number: int, sender: str | None) -> dict[str, Any]:
    return {
        "id": f"ask_{number}",
        "tool": "launch",
        "what": f"Run launch(target='{'far ' * 100}')",
        "event_id": f"e{number}" if sender else None,
        "sender": sender,
        "asked_at": "2026-03-02T09:00:00+00:00",
    }


async def test_questions_come_first_and_are_short(now: dict[str, Any]) -> None:
    now["approvals"] = [question(1, "Ada"), question(2, None)]
    now["inbox"]["waiting"] = 3
    lines = lines_of(status_view(now, "default", []))
    told = "\n".join(lines)
    assert lines[1].startswith("Asks     Run launch(target='far far")
    assert "ask_1, for Ada, 2 Mar 2026 09:00" in told
    assert "ask_2, for its own goals, 2 Mar 2026 09:00" in told
    assert "circadian approve ID, or circadian refuse ID" in told
    assert "Inbox    3 waiting, 1 of them for an answer" in told
    assert max(map(len, lines)) <= 80
    assert lines.index(next(line for line in lines if line.startswith("Context"))) < 11


async def test_status_gives_advice_when_the_context_fills(now: dict[str, Any]) -> None:
    assert "Proceed normally" not in plain(status_view(now, "default", []), 80)
    now["context"] |= {"level": "warning", "percentage": 70.0, "advice": "Consider wrapping up"}
    lines = lines_of(status_view(now, "default", []))
    assert lines[2] == "         Consider wrapping up"


async def test_status_says_why_it_stopped_and_how_to_clear_it(now: dict[str, Any]) -> None:
    now["emergency_stop"] = True
    lines = lines_of(status_view(now, "default", [], stop="5 failures in a row, the last: down"))
    assert lines[0].endswith("EMERGENCY STOP (circadian clear-stop)")
    assert lines[1] == "Stopped  5 failures in a row, the last: down"


async def test_status_shows_spending_and_services_that_are_left_alone(now: dict[str, Any]) -> None:
    told = plain(status_view(now, "default", []), 80)
    assert "Spent    0 of 1,000,000 tokens today · 0 of 60 ticks of its own this hour" in told
    assert "Services" not in told
    now |= {"spending": SPENT, "breakers": {"model": "open", "memory": "half_open"}}
    told = plain(status_view(now, "default", []), 80)
    assert "Spent     12,040 of 1,000,000 tokens today" in told
    assert "Services  model: left alone after too many failures" in told
    assert "memory: to be tried again" in told


def test_verbose_shows_the_parts_and_the_document_always_has_them(run: Run) -> None:
    run("send", "Hello")
    short = run("status").out
    long = run("status", "-v").out
    document = run("status", "--json").document
    assert ("budget" in short, "budget" in long) == (False, True)
    assert {"key", "tokens", "share", "budget"} <= set(document["prompt"]["components"][0])


def test_session_memory_says_whose_words_it_holds() -> None:
    held = {"key_facts": ["All scrap goes to Ben.", "The hall is blue."], "learned_patterns": []}
    memory = {**held, "completed_tasks": [], "said_by": {"All scrap goes to Ben.": "Ben"}}
    assert _session_memory(memory) == ["All scrap goes to Ben. (Ben said)", "The hall is blue."]
