"""What the model is shown of the tools, what is known of each, and which a call is given."""

import functools
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import BaseModel

from memory.errors import InputError
from memory.settings import Settings
from tools.origins import OWN_TOOLS
from tools.policy import CONTEXTS, select_execution_pattern
from tools.registry import (
    BUILT_IN,
    ToolCategory,
    ToolKind,
    checked_tools,
    kind_of,
    registered,
    tools_for,
)

ARGUMENTS = {
    # tool: (required, optional beside reasoning)
    "create_project": ({"project_key", "summary"}, {"initial_context"}),
    "list_projects": (set(), set()),
    "swap_project": ({"project_key"}, {"current_project_update", "replace"}),
    "update_project": (set(), {"context_update", "status", "replace"}),
    "add_goal": ({"description"}, {"priority", "parent_id"}),
    "update_goal": ({"goal_id"}, {"description", "status", "progress"}),
    "decompose_goal": ({"goal_id"}, set()),
    "add_session_memory": ({"memory_type", "content"}, set()),
    "compact_session_memory": ({"new_facts", "new_patterns", "summary"}, set()),
    "add_journal_entry": ({"content"}, {"importance", "tags", "source_entity"}),
    "update_entity_observation": ({"entity", "observation"}, {"aliases"}),
    "review_journal": (set(), {"query", "tags", "limit"}),
    "recall_memories": ({"query"}, {"limit", "include_superseded"}),
    "store_memory": ({"facts"}, set()),
    "get_system_status": (set(), set()),
    "noop": (set(), {"reasoning"}),
    "send_message": ({"to", "text"}, {"channel"}),
    "settle_dispute": ({"holds", "falls"}, set()),
    "forget_memory": ({"memory_id"}, set()),
    "go_to_sleep": ({"reasoning"}, set()),
    "update_system_prompt": ({"new_prompt"}, {"reasoning"}),
    "use_tool": ({"name"}, {"arguments"}),
    "delegate_task": ({"task"}, {"context"}),
}


def schema(name: str) -> dict[str, Any]:
    shown: dict[str, Any] = convert_to_openai_tool(BUILT_IN[name][0])["function"]["parameters"]
    return shown


@pytest.mark.parametrize("name", ARGUMENTS)
def test_a_tool_shows_the_model_its_arguments_and_nothing_else(name: str) -> None:
    required, optional = ARGUMENTS[name]
    shown = schema(name)
    assert set(shown["properties"]) == required | optional
    assert set(shown.get("required", ())) == required
    assert BUILT_IN[name][0].description


def test_these_are_all_the_tools() -> None:
    assert set(BUILT_IN) == set(ARGUMENTS)


def test_categories_are_those_of_the_pages() -> None:
    others = {
        "decompose_goal": "async_required",
        "store_memory": "async_required",
        "delegate_task": "async_required",
        "send_message": "terminal",
        "go_to_sleep": "terminal",
        "forget_memory": "dangerous",
        "update_system_prompt": "dangerous",
    }
    for name, (shown, category) in BUILT_IN.items():
        assert category == kind_of(shown).category == others.get(name, "safe_chain"), name


def test_two_built_in_tools_always_ask_and_one_is_cached() -> None:
    kinds = {name: kind_of(shown) for name, (shown, _) in BUILT_IN.items()}
    asking = {name for name, kind in kinds.items() if kind.always_ask}
    caching = {name: (kind.cache, kind.reads) for name, kind in kinds.items() if kind.cache}
    assert asking == {"forget_memory", "update_system_prompt"}
    assert caching == {"list_projects": ("session", ("projects", "event", "shared_channels"))}
    assert all(kind.timeout is None for kind in kinds.values())


def names_for(context_type: str, *extra: Any, **changes: Any) -> set[str]:
    context = CONTEXTS[context_type]
    pattern = select_execution_pattern(Settings(), context)
    return {one.name for one in tools_for(context, {**pattern, **changes}, extra)}  # type: ignore[typeddict-item]


def test_a_context_gets_the_tools_that_its_filter_names() -> None:
    alone = set(BUILT_IN) - {"delegate_task"}
    assert names_for("tick_event") == names_for("tick_autonomous") == alone
    assert names_for("goal_decompose") == set()
    for context in ("pre_compaction", "sleep_consolidate"):
        assert names_for(context) == set(CONTEXTS[context].tool_filter or ())


def test_the_pattern_narrows_by_category() -> None:
    names = names_for("tick_event", allowed_categories=["async_required"])
    assert names == {"decompose_goal", "store_memory"}


def test_delegation_is_offered_only_where_the_pattern_allows_it() -> None:
    assert "delegate_task" in names_for("tick_event", sub_agents_enabled=True)
    assert "delegate_task" not in names_for("tick_event", sub_agents_enabled=False)


@tool
def ring_bell(times: int) -> str:
    """Ring the bell."""
    return "ding" * times


def test_a_users_tool_joins_the_ticks_and_not_the_filtered_contexts() -> None:
    assert "ring_bell" in names_for("tick_event", ring_bell)
    assert "ring_bell" not in names_for("sleep_consolidate", ring_bell)
    assert kind_of(ring_bell).category is ToolCategory.SAFE_CHAIN


def test_a_users_tool_names_its_category_in_its_metadata() -> None:
    loud = ring_bell.model_copy(update={"metadata": {"category": "terminal"}})
    assert kind_of(loud).category is ToolCategory.TERMINAL
    assert "ring_bell" not in names_for("tick_event", loud, allowed_categories=["safe_chain"])
    odd = ring_bell.model_copy(update={"metadata": {"category": "harmless"}})
    with pytest.raises(InputError, match=r"ring_bell.*harmless"):
        kind_of(odd)


def test_a_users_tool_cannot_take_the_place_of_a_built_in_one() -> None:
    with pytest.raises(InputError, match="noop"):
        names_for("tick_event", ring_bell.model_copy(update={"name": "noop"}))


def test_registering_gives_a_copy_that_says_what_the_tool_is() -> None:
    mine = ring_bell.model_copy(update={"metadata": {"mine": 1, "category": "safe_chain"}})
    made = registered(
        mine,
        "async_required",
        cache="session",
        ttl=60,
        reads=["goals"],
        timeout=2,
        always_ask=False,
    )
    assert kind_of(made) == ToolKind(
        category=ToolCategory.ASYNC_REQUIRED,
        cache="session",
        ttl=60.0,
        reads=("goals",),
        timeout=2.0,
    )
    assert mine.metadata == {"mine": 1, "category": "safe_chain"}
    assert made.metadata is not None
    assert made.metadata["mine"] == 1
    assert ring_bell.metadata is None
    assert (made.name, made.invoke({"times": 2})) == ("ring_bell", "dingding")


def test_registering_again_replaces_all_that_was_said() -> None:
    first = registered(ring_bell, "safe_chain", cache="tick", ttl=5)
    assert kind_of(registered(first, "dangerous")) == ToolKind(category=ToolCategory.DANGEROUS)


async def test_a_plain_function_becomes_a_tool_in_one_line() -> None:
    def add(a: int, b: int = 1) -> int:
        """Add two numbers."""
        return a + b

    async def ask(question: str) -> str:
        """Ask somebody."""
        return f"{question}?"

    made, asking = registered(add, "safe_chain"), registered(ask, ToolCategory.TERMINAL)
    assert (made.name, made.description, set(made.args)) == ("add", "Add two numbers.", {"a", "b"})
    assert made.invoke({"a": 2}) == 3
    assert await asking.ainvoke({"question": "Why"}) == "Why?"
    assert {"add", "ask"} <= names_for("tick_event", made, asking)


def undocumented(a: int) -> int:
    return a


def documented(a: int) -> int:
    """Has what it takes."""
    return a


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (undocumented, "undocumented: .*docstring"),
        (lambda: None, "<lambda>"),
        (functools.partial(documented, a=1), "partial"),
        (BaseTool, "BaseTool is neither a tool nor a function"),
        (3, "3 is neither a tool nor a function"),
    ],
)
def test_an_object_that_cannot_be_a_tool_is_one_clear_error(given: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        registered(given, "safe_chain")


@pytest.mark.parametrize(
    ("said", "says"),
    [
        ({"category": "harmless"}, r"'ring_bell' has the category 'harmless': one of safe_chain"),
        ({"cache": "day"}, "the cache 'day'"),
        ({"cache": "tick", "ttl": 0}, "the ttl 0: .*greater than 0"),
        ({"timeout": -1}, "the timeout -1"),
        ({"timeout": float("inf")}, "the timeout inf"),
        ({"cache": "tick", "reads": ["projcts"]}, "reads 'projcts', which is no state key"),
        ({"cache": "tick", "reads": "messages"}, "reads 'messages'"),
        ({"ttl": 5}, "has `ttl` or `reads`"),
        ({"reads": ["goals"]}, "has `ttl` or `reads`"),
        ({"category": "dangerous", "cache": "tick"}, "is dangerous and cannot be cached"),
        ({"category": "terminal", "cache": "tick"}, "is terminal and cannot be cached"),
        ({"always_ask": True, "cache": "tick"}, "cannot be cached"),
    ],
)
def test_an_invalid_registration_is_named(said: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        registered(ring_bell, **{"category": "safe_chain", **said})
    with pytest.raises(InputError, match=says):
        kind_of(ring_bell.model_copy(update={"metadata": {"category": "safe_chain", **said}}))


def renamed(name: str) -> BaseTool:
    return ring_bell.model_copy(update={"name": name})


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([renamed("ring bell")], "'ring bell' will not do"),
        ([renamed("")], "'' will not do"),
        ([renamed("r" * 65)], "will not do"),
        ([renamed("glöckchen")], "will not do"),
        ([ring_bell, registered(ring_bell, "dangerous")], "two tools are named 'ring_bell'"),
        ([documented], r"documented.* is no LangChain tool; wrap it: registered"),
    ],
)
def test_a_name_that_is_taken_or_refused_by_providers_is_an_error(
    given: list[Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        checked_tools(given)


@pytest.mark.parametrize("name", ["r" * 64, "ring-bell_2", "R"])
def test_a_name_that_providers_take_is_taken(name: str) -> None:
    assert list(checked_tools([renamed(name)])) == [name]


def test_no_argument_that_is_dumped_holds_the_state() -> None:
    for built, _ in BUILT_IN.values():
        schema = built.get_input_schema()
        assert issubclass(schema, BaseModel)
        assert schema.model_construct(runtime={"state": 1}).model_dump()["runtime"] is None


def test_every_built_in_tool_answers_from_the_assistants_own_state_or_is_said_not_to() -> None:
    assert set(BUILT_IN) == OWN_TOOLS
