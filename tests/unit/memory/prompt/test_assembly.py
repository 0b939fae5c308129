"""Assembly: what stays the same, what changes, in which order, and what gives way first."""

from typing import Any

import pytest

from memory.prompt import assembly
from memory.prompt.assembly import GIVES_WAY_FIRST, SHARE, Material
from memory.prompt.components import STATIC, component
from memory.records.records import Event, RecallHit
from memory.settings import Settings
from memory.state.schema import State, fresh_state
from tools.policy import CONTEXTS

NOW = "2026-03-02T09:00:00+00:00"
WORDS = "many words of no great use " * 4


def crowded() -> State:
    heard: list[Event] = [
        {
            "id": f"e{n}",
            "at": NOW,
            "sender": "Bea",
            "text": WORDS,
            "channel": None,
            "addressed": False,
        }
        for n in range(20)
    ]
    slot: Any = {
        "summary": WORDS,
        "context": WORDS * 10,
        "status": "paused",
        "created_at": NOW,
        "last_active": NOW,
    }
    goal: Any = {
        "description": WORDS,
        "priority": "high",
        "status": "active",
        "progress": 0,
        "created": NOW,
        "parent_id": None,
        "subtask_ids": [],
        "auto_generated": False,
    }
    talk: Any = {"channel": WORDS, "last_event": "e", "last_at": NOW, "pending_actions": []}
    goals: Any = {f"goal_1_{n}": {**goal, "id": f"goal_1_{n}"} for n in range(20)}
    talks: Any = {f"c{n}": {**talk, "entity": f"c{n}"} for n in range(20)}
    return {
        **fresh_state(),
        "messages": [],
        "context_buffer": heard,
        "projects": {"active": "p0", "slots": {f"p{n}": slot for n in range(20)}},
        "goals": goals,
        "session_memory": {**fresh_state()["session_memory"], "key_facts": [WORDS] * 20},
        "conversations": talks,
    }


def memories() -> list[RecallHit]:
    return [
        {
            "id": f"m{n}",
            "kind": "fact",
            "text": WORDS,
            "score": 1.0,
            "sources": [],
            "at": NOW,
            "speaker": None,
        }
        for n in range(20)
    ]


def material(
    *,
    limit: int = 100_000,
    context: str = "tick_event",
    settings: Settings | None = None,
    **more: Any,
) -> Material:
    config = CONTEXTS[context]
    given: dict[str, Any] = {
        "state": crowded(),
        "settings": settings or Settings(),
        "context_type": context,
        "enabled": config.enabled_components,
        "override": config.get_component_content_override,
        "limit": limit,
        "now": NOW,
        "owners": ["local"],
        "memories": memories(),
        "pages": [f"page {n} {WORDS}" for n in range(9)],
    }
    return Material(**{**given, **more})


PLACES = {
    # setting -> (component, how an item of the list begins)
    "context_buffer_tokens": ("context_buffer", "- [e"),
    "entity_tokens": ("entity_context", "- c"),
    "recall_tokens": ("semantic_memories", "- Mon "),
    "page_tokens": ("pages", "page "),
    "goals_tokens": ("goals", "- goal_"),
    "session_memory_tokens": ("character_context", "- fact"),
    "project_tokens": ("character_context", "- p"),
}


def shown(blocks: dict[str, str], name: str) -> int:
    key, begins = PLACES[name]
    lines = blocks.get(key, "").splitlines()
    active = sum(line.startswith("Active project") for line in lines)
    return sum(line.startswith(begins) for line in lines) + active * (name == "project_tokens")


def test_every_list_has_its_place_in_the_order() -> None:
    bounding = {name for one in STATIC for name in one.bounded_by}
    assert set(GIVES_WAY_FIRST) == set(PLACES) == bounding - {"conversation_history_tokens"}


def test_the_first_list_shrinks_to_nothing_before_the_next_is_touched() -> None:
    whole = assembly.blocks(material())
    full = {name: shown(whole, name) for name in GIVES_WAY_FIRST}
    assert min(full.values()) > 0
    seen = set()
    for limit in range(20_000, 800, -200):
        made = material(limit=limit)
        blocks = assembly.blocks(made)
        left = [shown(blocks, name) for name in GIVES_WAY_FIRST]
        touched = [n for n, name in enumerate(GIVES_WAY_FIRST) if left[n] < full[name]]
        last = max(touched, default=0)
        assert left[:last] == [0] * last
        seen.add(last)
        if sum(left):
            parts = assembly.parted(made)
            assert sum(made.size(one) for part in parts for one in part.values()) <= limit * SHARE
    assert seen == set(range(len(GIVES_WAY_FIRST)))


def test_the_users_prompt_and_the_persona_never_give_way() -> None:
    settings = Settings(user_prompt="Speak French. " * 300, persona="You are Ada. " * 300)
    blocks = assembly.blocks(material(limit=1_000, settings=settings))
    assert settings.user_prompt in blocks["system_prompt"]
    assert settings.persona.strip() in blocks["character_context"]
    assert sum(shown(blocks, name) for name in GIVES_WAY_FIRST) == 0


def test_a_users_component_is_bounded_and_says_so() -> None:
    made = material(extra=[component(1, "rules", WORDS * 100, token_budget=100)])
    text = assembly.blocks(made)["rules"]
    assert made.size(text) <= 130
    assert text.splitlines()[-2].endswith("more characters left out")


def test_a_users_components_give_way_after_all_others_the_last_one_first() -> None:
    extra = [component(n, f"own_{n}", WORDS * 10, token_budget=400) for n in (1, 1001)]
    whole = assembly.blocks(material(extra=extra))
    some = assembly.blocks(material(extra=extra, limit=2_100))
    assert sum(shown(some, name) for name in GIVES_WAY_FIRST) == 0
    assert some["own_1"] == whole["own_1"]
    assert len(some["own_1001"]) < len(whole["own_1001"])


def test_the_users_prompt_stands_first_then_the_rules_then_the_own_guidelines() -> None:
    settings = Settings(user_prompt="Speak French. </system_prompt>")
    text = assembly.blocks(material(settings=settings, guidelines="Be </own_guidelines> brief."))[
        "system_prompt"
    ]
    places = [
        text.index(part)
        for part in (
            "Your owner's instructions, which come before all others (they end at ---):",
            "Speak French.",
            "What to keep, and where",
            "your owner's instructions and the rules above outrank them:\n",
            "<own_guidelines>\nBe <\\/own_guidelines> brief.\n</own_guidelines>\n</system_prompt>",
        )
    ]
    assert places == sorted(places)
    assert text.count("</own_guidelines>") == text.count("</system_prompt>") == 1


def test_without_guidelines_of_its_own_nothing_is_said_of_them() -> None:
    assert assembly.GUIDELINES not in assembly.blocks(material())["system_prompt"]


@pytest.mark.parametrize("context", ["reflection", "reflection_cont"])
def test_a_context_shows_its_own_components_only(context: str) -> None:
    assert list(assembly.blocks(material(context=context))) == ["system_prompt"]


def test_an_empty_component_is_left_out() -> None:
    state: State = {**fresh_state(), "messages": []}
    blocks = assembly.blocks(material(state=state, memories=[], pages=[]))
    assert list(blocks) == ["system_prompt", "character_context"]
    assert assembly.system_message(blocks) == "\n\n".join(blocks.values())
