"""Prompt health: what each part of a prompt costs, and what is wrong with that."""

from typing import Any

import pytest

from memory.prompt.components import context_use, prompt_health, recommended_action

LIMIT = 10_000


def problems(tokens: dict[str, int], **budgets: int | None) -> list[str]:
    return prompt_health(tokens, budgets, LIMIT)["problems"]


def test_each_part_is_shown_with_its_share_and_budget_in_the_prompts_order() -> None:
    health = prompt_health({"system_prompt": 400, "goals": 150}, {"goals": 2_000}, LIMIT)
    shown = [("system_prompt", 400, 4.0, None, False), ("goals", 150, 1.5, 2_000, False)]
    keys = ("key", "tokens", "share", "budget", "at_budget")
    wanted: Any = [dict(zip(keys, one, strict=True)) for one in shown]
    assert health == {"components": wanted, "problems": []}


@pytest.mark.parametrize(
    ("used", "full"), [(0, False), (1_799, False), (1_800, True), (2_000, True), (2_030, True)]
)
def test_a_component_that_fills_its_budget_is_said_to_leave_something_out(
    used: int, full: bool
) -> None:
    health = prompt_health({"goals": used}, {"goals": 2_000}, LIMIT)
    assert health["components"][0]["at_budget"] is full
    wanted = ["goals fills its budget of 2,000 tokens: what does not fit is left out."]
    assert health["problems"] == (wanted if full else [])


def test_a_component_without_a_budget_or_with_none_used_fills_nothing() -> None:
    assert problems({"goals": 0, "system_prompt": 900}, goals=0, system_prompt=None) == []


LARGE = "system_prompt takes 41.0 % of the context; shorten it or lower its budget."
LONG = "The prompt fills 60.0 % of the context: consider wrapping up."
FULL = "The prompt fills 80.0 % of the context: respond immediately."


@pytest.mark.parametrize(
    ("key", "used", "said"),
    [
        ("system_prompt", 4_000, None),
        ("system_prompt", 4_100, LARGE),
        ("tools", 2_000, None),
        ("tools", 4_500, "The tools' schemas take 45.0 % of the context; offer fewer tools."),
        # The history may be large: it is compacted.
        ("conversation_history", 5_990, None),
        ("conversation_history", 6_000, LONG),
        ("conversation_history", 8_000, FULL),
    ],
)
def test_what_takes_too_much_of_the_context_is_named(key: str, used: int, said: str | None) -> None:
    assert problems({key: used}) == ([said] if said else [])


@pytest.mark.parametrize(
    ("percentage", "action"),
    [
        (0.0, "Proceed normally"),
        (59.9, "Proceed normally"),
        (60.0, "Consider wrapping up"),
        (79.9, "Consider wrapping up"),
        (80.0, "Respond immediately"),
        (140.0, "Respond immediately"),
    ],
)
def test_the_recommended_action_is_the_pages(percentage: float, action: str) -> None:
    assert recommended_action(percentage) == action


def test_the_use_of_the_context_is_that_of_all_its_parts() -> None:
    assert context_use({"system_prompt": 1_000, "tools": 5_500}, LIMIT) == {
        "used": 6_500,
        "limit": LIMIT,
        "percentage": 65.0,
        "level": "warning",
    }
    assert context_use({}, LIMIT)["level"] == "normal"
