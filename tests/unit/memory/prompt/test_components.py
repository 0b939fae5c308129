"""Prompt components: the nine built-in ones, and a user's own between them."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from memory.errors import InputError
from memory.messages.trust import OWN_TAGS
from memory.prompt import assembly
from memory.prompt.assembly import Material
from memory.prompt.components import (
    COMPONENTS,
    DATA,
    PLACEHOLDERS,
    STATIC,
    PromptComponent,
    check_template,
    component,
    registered,
)
from memory.settings import Settings
from memory.state.schema import State, fresh_state
from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.scripted import call, scripted

NOW = "2026-03-02T09:00:00+00:00"


def test_the_built_in_components_stand_in_id_order_with_their_keys_and_roles() -> None:
    assert [(one.id, one.key, one.role) for one in STATIC] == [
        (0, "system_prompt", "system"),
        (1000, "character_context", "system"),
        (1500, "entity_context", "user"),
        (1750, "pages", "user"),
        (2000, "semantic_memories", "user"),
        (3000, "context_buffer", "user"),
        (4000, "goals", "user"),
        (4500, "open_questions", "user"),
        (5000, "conversation_history", "mixed"),
        (6000, "pending_event", "user"),
        (7000, "tool_result", "tool"),
    ]
    assert all(one.is_static and one.enabled and one.name and one.description for one in STATIC)
    assert [COMPONENTS[one.id] for one in STATIC] == list(STATIC)


def test_every_built_in_template_holds_its_own_data_and_no_unknown_placeholder() -> None:
    for one in STATIC:
        text = str(one.content)
        check_template(text, [*PLACEHOLDERS, *DATA[one.key]], one.key)
        assert all(f"{{{name}}}" in text for name in DATA[one.key])


def test_nothing_in_a_block_can_begin_a_built_in_one() -> None:
    assert {one.key for one in STATIC} < set(OWN_TAGS)


def test_the_budgets_of_the_built_in_components_are_settings() -> None:
    settings = Settings(project_tokens=300, session_memory_tokens=20, goals_tokens=7)
    budgets = {one.key: one.budget(settings) for one in STATIC}
    assert (budgets["character_context"], budgets["goals"]) == (320, 7)
    assert (budgets["system_prompt"], budgets["conversation_history"]) == (None, None)
    assert COMPONENTS[5000].budget(Settings(conversation_history_tokens=500)) == 500


def made(
    *extra: PromptComponent, settings: Settings | None = None, **more: Any
) -> tuple[Material, dict[str, str]]:
    state: State = {**fresh_state(), "messages": [], "tick": 7}
    state["event"] = {
        "id": "e1",
        "at": NOW,
        "sender": "Ada",
        "text": "Hi",
        "channel": None,
        "addressed": True,
    }
    settings = settings or Settings()
    given: dict[str, Any] = {
        "state": state,
        "settings": settings,
        "context_type": "tick_event",
        "enabled": [one.id for one in STATIC],
        "limit": settings.max_context_tokens,
        "now": NOW,
        "owners": ["local"],
        "extra": extra,
    }
    material = Material(**{**given, **more})
    return material, assembly.blocks(material)


def test_a_component_is_made_in_one_line_and_stands_in_its_place() -> None:
    rules = component(1001, "house_rules", "It is {now_date}, tick {tick}. Be kind to {sender}.")
    _, blocks = made(rules)
    assert list(blocks) == ["system_prompt", "character_context", "house_rules"]
    assert blocks["house_rules"] == (
        '<component name="house_rules">\nIt is 2026-03-02, tick 7. Be kind to Ada.\n</component>'
    )
    assert (rules.name, rules.role, rules.is_static, rules.token_budget) == (
        "House rules",
        "system",
        False,
        500,
    )


async def test_a_registered_component_is_in_the_prompt_of_a_tick(
    tmp_path: Path, clock: Clock
) -> None:
    model = scripted(call("add_goal", description="Mend the fence"), "Added.", "Nothing.")
    extra = [component(1, "rules", "Never shout."), *only_in("tick_autonomous")]
    opening = open_agent(tmp_path, model=model, embedder="offline", clock=clock, components=extra)
    async with opening as agent:
        await agent.ainvoke(said("Hi"))
        await agent.ainvoke({"request": "tick"})
    first, _, second = (str(one.messages[0].text) for one in model.calls)
    assert first.index("</system_prompt>") < first.index("Never shout.")
    assert first.index("Never shout.") < first.index("<persona>")
    assert ("Alone." in first, "Alone." in second) == (False, True)


def only_in(*contexts: str) -> list[PromptComponent]:
    return [component(2, "alone", "Alone.", contexts=contexts)]


def test_a_component_shows_in_the_contexts_that_it_names_and_in_no_other() -> None:
    alone = only_in("reflection")
    assert "alone" not in made(*alone)[1]
    assert "alone" in made(*alone, context_type="reflection")[1]


def test_a_disabled_component_is_left_out() -> None:
    rules = replace(component(1, "rules", "Never shout."), enabled=False)
    assert "rules" not in made(rules)[1]


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ([(1001, "a"), (1001, "b")], ["'a'", "'b'", "both have the id 1001", "1002"]),
        ([(4000, "a")], ["'goals'", "'a'", "both have the id 4000", "3999, 4001"]),
        ([(1001, "goals")], ["4000 and 1001", "'goals'", "rename"]),
        ([(1001, "a"), (1002, "a")], ["1001 and 1002", "'a'", "rename"]),
        ([(0, "a")], ["'a'", "1..7999"]),
        ([(8000, "a")], ["'a'", "1..7999", "7999, 7998"]),
        ([(-1, "a")], ["1..7999", "1, 2, 3"]),
        ([(1001, "No Key")], ["'No Key'", "a-z"]),
        ([(1001, "tools")], ["'tools'", "reports use this key"]),
        ([("1001", "a")], ["'a'", "the id '1001'", "whole number"]),
        ([(None, "a")], ["the id None", "whole number"]),
        ([(1.5, "a")], ["the id 1.5", "whole number"]),
        ([(True, "a")], ["the id True", "whole number"]),
        ([(1001, 5)], ["component 5", "a-z"]),
        ([(1001, None)], ["component None", "a-z"]),
    ],
)
def test_a_clash_names_both_and_what_is_free(
    extra: list[tuple[Any, Any]], words: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        registered([component(id_, key, "text") for id_, key in extra])
    assert [word for word in words if word not in str(caught.value)] == []
    assert "\n" not in str(caught.value)


def test_a_component_made_without_the_helper_is_held_to_the_same() -> None:
    rules = component(1001, "rules", "text")
    for wrong in ({"id": "1001"}, {"id": True}, {"key": 5}, {"key": "tools"}):
        changed: dict[str, Any] = dict(wrong)
        with pytest.raises(InputError, match="the prompt component"):
            registered([replace(rules, **changed)])


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{nobody}", ["'rules'", "{nobody}", "{now_date}"]),
        ("{tick", ["'rules'", "{{ or }}"]),
        ("a } b", ["'rules'", "{{ or }}"]),
        ("{tick.__class__}", ["{tick.__class__}", "is not a placeholder"]),
        ("{tick:>9}", ["is not a placeholder"]),
        ("{tick!r}", ["is not a placeholder"]),
        ("{}", ["is not a placeholder"]),
        (7, ["a text or a function"]),
    ],
)
def test_a_wrong_template_is_refused_when_it_is_registered(content: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        component(1001, "rules", content)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"token_budget": 0},
        {"token_budget": True},
        {"contexts": ("sleep_consolidate",)},
        {"contexts": ()},
    ],
)
def test_a_budget_or_context_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="'rules'"):
        component(1001, "rules", "text", **wrong)


def test_doubled_braces_are_braces_and_a_value_brings_in_no_placeholder() -> None:
    state: State = {**fresh_state(), "messages": []}
    state["event"] = {
        "id": "e1",
        "at": NOW,
        "sender": "{owners}",
        "text": "Hi",
        "channel": None,
        "addressed": True,
    }
    _, blocks = made(component(1, "rules", "{{tick}} {sender}"), state=state)
    assert "{tick} {owners}" in blocks["rules"]


def test_a_line_whose_placeholders_are_empty_is_left_out() -> None:
    state: State = {**fresh_state(), "messages": []}
    _, blocks = made(component(1, "rules", "Always.\nBe kind to {sender}."), state=state)
    assert blocks["rules"] == '<component name="rules">\nAlways.\n</component>'


def test_an_override_stands_in_place_of_any_components_template() -> None:
    state: State = {**fresh_state(), "messages": [], "tick": 7}
    state["session_memory"]["key_facts"] = ["The gate is locked"]
    own = {"character_context": "At tick {tick}:\n{session_memory}"}
    _, blocks = made(state=state, override=own.get)
    assert blocks["character_context"] == (
        "<character_context>\nAt tick 7:\n- fact: The gate is locked\n</character_context>"
    )


def test_a_function_gives_live_data_of_the_state() -> None:
    def mood(state: Mapping[str, Any]) -> str:
        return f"Tick {state['tick']} {{tick}}"

    _, blocks = made(component(1, "mood", mood))
    assert "Tick 7 {tick}" in blocks["mood"]


def test_a_function_is_asked_once_for_a_prompt_however_much_is_cut() -> None:
    asked: list[int] = []

    def much(state: Mapping[str, Any]) -> str:
        asked.append(1)
        return "much " * 5_000

    made(component(1, "much", much, token_budget=900), settings=Settings(max_context_tokens=1_000))
    assert asked == [1]


def test_a_function_that_fails_fails_the_tick_and_is_named() -> None:
    def broken(state: Mapping[str, Any]) -> str:
        raise KeyError("weather")

    with pytest.raises(InputError, match=r"'broken' could not be rendered: KeyError: 'weather'"):
        made(component(1, "broken", broken))
    with pytest.raises(InputError, match="'odd' gave int"):
        made(component(1, "odd", lambda state: 7))  # type: ignore[arg-type, return-value]


def test_a_component_beyond_the_history_is_a_block_behind_the_others() -> None:
    material, _ = made(component(7999, "last", "{tick}"), component(5001, "a", "A"), guidelines="")
    same, changing = assembly.parted(material)
    assert [*same] == ["system_prompt", "character_context", "a"]
    assert [*changing] == ["last"]
