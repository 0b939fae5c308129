from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.events.approvals import deed_key
from memory.forgetting.erasure import Acts, Erasure, ForgetTarget, KnownMemory, decide, start_of
from memory.forgetting.store_changes import ForgetContext, row_after
from memory.forgetting.working import dropped, history_after, state_after, ticks_of
from memory.messages.convert import EVENT_KEY
from memory.records.records import Event
from memory.state.schema import at_rest, fresh_state
from memory.state.validation import state_problem
from tests.support.tool_calls import goal_of
from tests.unit.memory.forgetting.test_forgetting_lineage import NOTHING, SAID, erasure, fact

FACT = fact("0f", "A parrot lives there.", ["event_20260302_z1"], ["z1"])


def mark(tick: int, event: str | None = None) -> dict[str, Any]:
    return {EVENT_KEY: {"tick": tick, "event": event, "at": "2026-03-02T09:00:00+00:00"}}


def human(tick: int, event: str | None, text: str, name: str | None = "Ben") -> HumanMessage:
    id_ = event or f"auto-{tick}"
    return HumanMessage(text, id=id_, name=name, additional_kwargs=mark(tick, event))


def ai(tick: int, text: str = "", *calls: tuple[str, dict[str, Any]]) -> AIMessage:
    made = [
        {"name": name, "args": args, "id": f"c{tick}{at}", "type": "tool_call"}
        for at, (name, args) in enumerate(calls)
    ]
    return AIMessage(text, id=f"a{tick}-{len(text)}", tool_calls=made, additional_kwargs=mark(tick))


def tool(tick: int, at: int, content: str) -> ToolMessage:
    return ToolMessage(
        content, tool_call_id=f"c{tick}{at}", id=f"t{tick}{at}", additional_kwargs=mark(tick)
    )


HISTORY: list[AnyMessage] = [
    SystemMessage(
        "[CONTEXT SUMMARY]\nZora sings.\nBeans grow.",
        id="s",
        additional_kwargs={"metadata": {"sources": ["b0"]}},
    ),
    ai(2, "I said so."),
    human(3, "z1", "I keep a parrot in my kitchen.", "Zora"),
    ai(3, "", ("add_goal", {"description": "Feed it"})),
    tool(3, 0, '{"success": true}'),
    ai(3, "Done."),
    human(4, "b1", "I grow beans on the roof."),
    ai(4, "", ("send_message", {"to": "Zora", "text": "Beans grow.\nZora, come."})),
    tool(4, 0, '{"success": true, "to": "Zora"}'),
    ai(4, "Zora knows.\nBeans are fine."),
    human(5, None, "Goals: ask Zora", None),
    ai(5, "I asked Zora."),
    human(6, "b2", "What lives there?"),
    ai(6, "", ("recall_memories", {"query": "who lives there"})),
    tool(6, 0, '{"memories": [{"id": "0f", "text": "A parrot lives there."}]}'),
    ai(6, "The parrot. Only the parrot."),
]


def history() -> list[AnyMessage]:
    return history_after(HISTORY, erasure(facts=(FACT,)), {"z1": 3, "b1": 4, "z0": 2})


def test_a_tick_of_an_erased_event_goes_whole_and_others_lose_lines() -> None:
    assert [(one.type, str(one.text)) for one in history()] == [
        ("system", "[CONTEXT SUMMARY]\nBeans grow."),
        ("ai", "[forgotten]"),
        ("human", "I grow beans on the roof."),
        ("ai", ""),
        ("tool", '{"success": true, "to": "[forgotten]"}'),
        ("ai", "Beans are fine."),
        ("human", "[forgotten]"),
        ("ai", "[forgotten]"),
        ("human", "What lives there?"),
        ("ai", ""),
        ("tool", '{"memories": [{"id": "0f", "text": "[forgotten]"}]}'),
        ("ai", "[forgotten]"),
    ]


def test_a_summary_that_covers_an_erased_event_goes_whole() -> None:
    covers = {"metadata": {"sources": ["b0", "z1"]}}
    summary = SystemMessage("[CONTEXT SUMMARY]\nBeans.", id="s", additional_kwargs=covers)
    assert history_after([summary], erasure(), {}) == []


def test_tool_calls_keep_their_answers_and_messages_their_ids() -> None:
    after = history()
    asked = [call["id"] for one in after if isinstance(one, AIMessage) for call in one.tool_calls]
    assert asked == [one.tool_call_id for one in after if isinstance(one, ToolMessage)]
    (said,) = [c for one in after if isinstance(one, AIMessage) for c in one.tool_calls][:1]
    assert said["args"] == {"to": "[forgotten]", "text": "Beans grow."}
    assert [one.id for one in after] == [
        one.id for one in HISTORY if one.additional_kwargs.get(EVENT_KEY, {}).get("tick") != 3
    ]
    assert after[2] is HISTORY[6]


def test_a_compacted_events_tick_is_found_by_its_mark() -> None:
    assert ticks_of(HISTORY, {"z0"}, {"z0": 2, "b0": 1}) == {2}
    assert ticks_of(HISTORY, {"z0"}, {"z0": 2, "b0": 2}) == set()
    assert ticks_of(HISTORY, {"z9"}, {"z9": 4}) == set()


def goal(id_: str, text: str, parent: str | None = None, *below: str) -> Any:
    made = {"progress": 40, "parent_id": parent, "subtask_ids": [*below]}
    return goal_of(id_, description=text, public=text.splitlines(), **made)


def event(id_: str, sender: str, text: str) -> dict[str, Any]:
    fields = {"at": "2026-03-02T10:00Z", "channel": None, "addressed": False}
    return {"id": id_, "sender": sender, "text": text, **fields}


def values(**more: Any) -> dict[str, Any]:
    talk = {"channel": None, "last_event": "b1", "last_at": "", "pending_actions": ["Ask Zora."]}
    slot = {"summary": "Zora's birthday", "context": "Beans.\nZora pays.", "status": "active"}
    version = {"version": 1, "at": "", "reason": "Zora asked", "by": "Zora", "text": "Be kind."}
    return {
        **fresh_state(),
        "messages": HISTORY,
        "tick": 6,
        "goals": {
            "goal_3_1": goal("goal_3_1", "Feed it", None, "goal_5_2"),
            "goal_5_2": goal("goal_5_2", "Buy seeds", "goal_3_1"),
            "goal_4_3": goal("goal_4_3", "Beans grow.\nAsk Zora."),
        },
        "projects": {
            "active": "zora-party",
            "slots": {"zora-party": {**slot, "created_at": "", "last_active": ""}},
        },
        "session_memory": {
            "key_facts": ["Zora sings.", "Beans grow.\nZora knows.", "Birds sing."],
            "learned_patterns": ["Feed it", "Feed it now, twice a day."],
            "said_by": {"Beans grow.\nZora knows.": "Ben", "Birds sing.": "zora"},
            "completed_tasks": [{"description": "Thank Zora", "timestamp": "2026"}],
            "last_compacted": None,
        },
        "conversations": {"zora": {**talk, "entity": "zora"}, "Ben": {**talk, "entity": "Ben"}},
        "context_buffer": [event("z1", "Zora", "Hi"), event("b1", "Ben", "I grow beans.")],
        "assistant_prompt": {"version": 1, "text": "Be kind.", "versions": [version]},
        "tool_cache": {"k": {"content": "Zora", "scope": "session", "tick": 1, "expires": None}},
        **more,
    }


def known(**more: Any) -> Erasure:
    acts = Acts(frozenset(("goal_3_1",)), frozenset(("Feed it now, twice a day.",)))
    state = values()
    all_ = KnownMemory(SAID, [FACT], [], [], list(state["projects"]["slots"]))
    return decide(all_, start_of(ForgetTarget("entity", "Zora"), all_), acts)


def test_working_memory_keeps_its_form_and_loses_the_person() -> None:
    before = values()
    after = state_after(before, known(), {"z1": 3})
    assert state_problem(after) is None
    assert {id_: one["description"] for id_, one in after["goals"].items()} == {
        "goal_3_1": "[forgotten]",
        "goal_5_2": "[forgotten]",
        "goal_4_3": "Beans grow.",
    }
    told = [one["public"] for one in after["goals"].values()]
    assert told == [[], [], ["Beans grow.", "[forgotten]"]]
    texts = {"description", "public"}
    for id_, one in after["goals"].items():
        old = before["goals"][id_]
        assert {k: v for k, v in one.items() if k not in texts} == {
            k: v for k, v in old.items() if k not in texts
        }
    assert after["projects"]["active"] == "forgotten_1"
    slot = after["projects"]["slots"]["forgotten_1"]
    assert (slot["summary"], slot["context"]) == ("[forgotten]", "Beans.")
    assert after["session_memory"]["key_facts"] == ["Beans grow."]
    assert after["session_memory"]["learned_patterns"] == ["Feed it"]
    assert after["session_memory"]["said_by"] == {"Beans grow.": "Ben"}
    assert after["session_memory"]["completed_tasks"][0]["description"] == "[forgotten]"
    assert list(after["conversations"]) == ["Ben"]
    assert after["conversations"]["Ben"]["pending_actions"] == ["[forgotten]"]
    assert [one["id"] for one in after["context_buffer"]] == ["b1"]
    assert after["assistant_prompt"]["versions"][0] == {
        **before["assistant_prompt"]["versions"][0],
        "reason": "[forgotten]",
        "by": "[forgotten]",
    }
    assert (after["tool_cache"], after["tick"], after["mode"]) == ({}, 6, "awake")
    assert "Zora" not in str(after)


def parked(id_: str, event_id: str, text: str) -> dict[str, Any]:
    question = {"id": id_, "tool": "launch", "args": {"target": text}, "sender": "Ben"}
    context = {"context_type": "tick_event", "now": "", "system": "", "front": "", "tokens": {}}
    event_ = event(event_id, "Ben", "Go")
    return {"question": question, "event": event_, "messages": [], "context": context}


def test_a_question_goes_with_its_event_or_if_its_arguments_name_the_person() -> None:
    waiting = [parked("q1", "z1", "up"), parked("q2", "b1", "Zora"), parked("q3", "b1", "the moon")]
    state = {**values(), "parked": waiting}
    assert [one["question"]["id"] for one in dropped(state, known())] == ["q1", "q2"]
    assert state_after(state, known(), {})["parked"] == waiting[2:]


def test_an_agent_that_has_never_run_has_no_state_to_scrub() -> None:
    assert state_after({}, known(), {}) == {}
    assert at_rest({"messages": []}) == {}


DEED = deed_key(cast(Event, {"id": "z1"}), None)
ROWS: list[tuple[str, str, dict[str, Any], dict[str, Any] | None]] = [
    ("pending", "t event_20260302_z1", {"id": "event_20260302_z1"}, None),
    ("unindexed", "t event_20260302_b1", {"id": "event_20260302_b1"}, {"id": "event_20260302_b1"}),
    ("links", "0f", {"linked_to": ["event_20260302_z1"], "relations": {}}, None),
    ("links", "x", {"linked_to": ["0f"], "relations": {}}, None),
    (
        "links",
        "x",
        {"linked_to": ["0f", "y"], "relations": {"0f": {"reason": "a"}, "y": {"reason": "Zora."}}},
        {"linked_to": ["y"], "relations": {"y": {"reason": "[forgotten]"}}},
    ),
    ("handled", "z1", {"id": "z1", "tick": 3}, {"id": "z1", "tick": 3}),
    ("handled", "from-zora-1", {"id": "from-zora-1", "tick": 3}, None),
    ("runs", "r", {"h1": "z1", "h2": "b1"}, {"h2": "b1"}),
    ("runs", "r", {"h1": "z1"}, None),
    ("answers", "q1", {"decision": "approve", "by": "local"}, None),
    ("deeds", DEED, {"tool": "launch", "args": {"target": "the roof"}}, None),
    ("controls", "stop", {"at": "2026", "by": "Zora"}, {"at": "2026", "by": "[forgotten]"}),
    ("summaries", "s", {"text": "Beans grow.", "at": ""}, None),
    ("entity_names", "zora", {"id": "e9"}, None),
    ("of a later kind", "k", {"note": ["Beans.\nZora sings."]}, {"note": ["Beans."]}),
    ("of a later kind", "Zora", {"note": "Beans."}, None),
]


@pytest.mark.parametrize(("kind", "key", "value", "after"), ROWS)
def test_a_record_of_the_store_is_scrubbed_by_its_kind(
    kind: str, key: str, value: dict[str, Any], after: dict[str, Any] | None
) -> None:
    one = known()
    context = ForgetContext(one, frozenset(("q1",)), "now")
    assert row_after(kind, key, value, context) == after


def test_forgetting_nobody_changes_nothing() -> None:
    memory = KnownMemory(SAID, [], [], [], [])
    nobody = decide(memory, start_of(ForgetTarget("entity", "Carl"), memory), NOTHING)
    state = values(tool_cache={})
    assert state_after(state, nobody, {}) == state
