"""The audit log: what is told of what happened, how it is kept, and how it is read."""

import json
import logging
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from langgraph.store.base import BaseStore, PutOp

from graph.persistence import open_store
from memory import audit
from memory.audit import AuditEntry
from memory.planning.goals import add, update
from memory.records.records import AssistantPrompt, PromptVersion, Scope
from memory.records.tick import CallRecord, Decision, Question
from memory.storage.access import list_items
from tests.support.homes import folder_in

Patch = pytest.MonkeyPatch

AT = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
ADA = Scope("ada", "thread-1")
PLACE: dict[str, Any] = {"at": AT, "tick": 3, "origin": "e1"}
SECRET = "sk-proj-abcdefghijklmnop0123456789"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[BaseStore]:
    async with open_store(folder_in(tmp_path)) as found:
        yield found


def called(name: str = "add_goal", **changes: Any) -> CallRecord:
    record: CallRecord = {
        "name": name,
        "args": {"description": "mend the fence"},
        "reasoning": "Ada asked for it",
        "ok": True,
        "error": None,
        "duration_ms": 12,
        "cached": False,
    }
    return {**record, **changes}  # type: ignore[typeddict-item] # changes are fields


def question() -> Question:
    return {
        "id": "ask_1",
        "tool": "update_system_prompt",
        "args": {"text": "Be brief."},
        "reason": "Ada wants short answers",
        "what": "Run update_system_prompt",
        "difference": "+Be brief.",
        "event_id": "e1",
        "sender": "Ada",
        "asked_at": AT.isoformat(),
    }


def prompt(*texts: str) -> AssistantPrompt:
    versions: list[PromptVersion] = [
        {"version": at, "text": text, "at": AT.isoformat(), "reason": "asked", "by": "Ada"}
        for at, text in enumerate(texts, 1)
    ]
    return {"version": len(texts), "text": texts[-1] if texts else "", "versions": versions}


def briefly(entry: AuditEntry) -> tuple[str, str, str, str]:
    return entry["who"], entry["what"], entry["target"], entry["outcome"]


def test_a_tool_call_is_logged_with_arguments_reason_time_and_model() -> None:
    (entry,) = audit.of_calls([called()], **PLACE, model="openai:gpt-x")
    assert entry == {
        "id": entry["id"],
        "at": "2026-03-02T09:00:00+00:00",
        "who": "agent",
        "what": "tool_call",
        "target": "add_goal",
        "why": "Ada asked for it",
        "outcome": "ok",
        "detail": {"args": {"description": "mend the fence"}},
        "duration_ms": 12,
        "model": "openai:gpt-x",
        "tick": 3,
        "origin": "e1",
    }
    assert entry["id"].startswith("audit_20260302_")


def test_failed_and_cached_calls_have_their_own_outcome() -> None:
    failed = called(ok=False, error="Goal does not exist")
    told = audit.of_calls([called(), called(cached=True), failed], **PLACE)
    assert [entry["outcome"] for entry in told] == ["ok", "cached", "error"]
    assert told[2]["detail"]["error"] == "Goal does not exist"
    assert len({entry["id"] for entry in told}) == 3


def test_repeated_calls_make_the_same_entries() -> None:
    first = audit.of_calls([called(), called()], **PLACE)
    again = audit.of_calls([called(duration_ms=99), called()], **PLACE)
    assert [one["id"] for one in first] == [one["id"] for one in again]
    assert first[0]["id"] != first[1]["id"]


def test_no_secret_and_no_more_than_2000_characters_are_kept(monkeypatch: Patch) -> None:
    monkeypatch.setenv("SOME_TOKEN", "tr0ub4dor&3")
    args = {"text": f"use {SECRET} " * 500, "password": "walrus", "more": ["tr0ub4dor&3"] * 500}
    (entry,) = audit.of_calls(
        [called(args=args, reasoning=f"the key is {SECRET}\nsecond line", error=SECRET)], **PLACE
    )
    text = json.dumps(entry)
    for secret in ("abcdefghijklmnop", "walrus", "tr0ub4dor"):
        assert secret not in text
    assert entry["why"] == "the key is *** second line"
    assert len(json.dumps(entry["detail"], ensure_ascii=False)) <= audit.MOST_DETAIL


def test_created_changed_and_deleted_goals_are_logged() -> None:
    spare: dict[str, Any] = {"priority": "medium", "tick": 1, "now": AT}
    goals, fence = add({}, description="mend the fence", parent_id=None, index=0, **spare)
    alone = goals
    goals, wood = add(goals, description="buy wood", parent_id=fence, index=1, **spare)
    (made,) = audit.of_goals(alone, goals, **PLACE)
    assert briefly(made) == ("agent", "goal_created", wood, "ok")
    assert made["detail"]["parent_id"] == fence
    half = update(goals, wood, None, 50)
    moved = audit.of_goals(goals, half, **PLACE)
    assert [(one["what"], one["target"]) for one in moved] == [
        ("goal_updated", fence),
        ("goal_updated", wood),
    ]
    assert moved[1]["detail"] == {"progress": [0, 50]}
    done = audit.of_goals(half, update(half, wood, "completed", None), **PLACE)
    assert [one["what"] for one in done] == ["goal_completed", "goal_completed"]
    assert done[1]["detail"] == {"status": ["active", "completed"], "progress": [50, 100]}
    (gone,) = audit.of_goals(goals, alone, **PLACE, who="Ada")
    assert briefly(gone) == ("Ada", "goal_deleted", wood, "ok")
    assert audit.of_goals(goals, goals, **PLACE) == []


def test_a_new_prompt_and_a_rollback_are_logged() -> None:
    where: dict[str, Any] = {"tick": 3, "origin": "e1"}
    first, second = prompt("Be brief."), prompt("Be brief.", "Be kind.")
    (entry,) = audit.of_prompt(first, second, **where)
    assert briefly(entry) == ("Ada", "prompt_changed", "version 2", "ok")
    assert (entry["why"], entry["detail"]) == ("asked", {"from": 1, "text": "Be kind."})
    for earlier in ("Be brief.", ""):
        (back,) = audit.of_prompt(second, prompt("Be brief.", "Be kind.", earlier), **where)
        assert back["what"] == "prompt_rolled_back"
    assert audit.of_prompt(second, second, **where) == []


def test_stops_questions_and_answers_name_who_it_was() -> None:
    stop = audit.of_stop("5 failures in a row", at=AT, tick=3, who="agent")
    assert briefly(stop) == ("agent", "emergency_stop", "emergency stop", "ok")
    assert stop["why"] == "5 failures in a row"
    cleared = audit.of_clear(at=AT, tick=3, who="Ada")
    assert briefly(cleared) == ("Ada", "stop_cleared", "emergency stop", "ok")
    asked = audit.of_question(question())
    assert briefly(asked) == ("agent", "question_asked", "update_system_prompt", "ok")
    assert asked["detail"] == {
        "id": "ask_1",
        "args": {"text": "Be brief."},
        "difference": "+Be brief.",
    }
    decision: Decision = {
        "decision": "refuse",
        "args": None,
        "reason": "no",
        "by": "Ada",
        "at": AT.isoformat(),
    }
    refused = audit.of_answer(question(), decision, tick=3)
    assert briefly(refused) == ("Ada", "question_answered", "update_system_prompt", "refused")
    assert (refused["why"], refused["origin"]) == ("no", "e1")
    edited = audit.of_answer(
        question(), {**decision, "decision": "edit", "args": {"text": "Be calm."}}, tick=3
    )
    assert edited["outcome"] == "ok"
    assert edited["detail"]["args"] == {"text": "Be calm."}


async def test_writes_of_one_moment_keep_their_order(store: BaseStore) -> None:
    names = [f"tool_{n}" for n in range(12)]
    for visit, part in enumerate((names[:6], names[6:])):
        told = audit.of_calls([called(name) for name in part], **PLACE)
        await audit.write(store, ADA, told, visit=visit)
    await audit.write(store, ADA, audit.of_calls([called("later")], at=AT, tick=4, origin=None))
    assert [entry["target"] for entry in await audit.read(store, ADA)] == [*names, "later"]


async def test_the_same_write_twice_is_one_entry_and_in_nobody_elses_log(store: BaseStore) -> None:
    told = audit.of_calls([called(), called("noop")], **PLACE)
    for _ in range(2):
        await audit.write(store, ADA, told)
    assert await audit.read(store, ADA) == told
    assert await audit.read(store, Scope("ada", "thread-2")) == []
    assert await audit.read(store, Scope("ben", "thread-1")) == []


async def test_the_newest_are_read_and_those_since_a_time_oldest_first(store: BaseStore) -> None:
    hours = [AT + timedelta(hours=n) for n in range(48)]
    for at in reversed(hours):
        await audit.write(store, ADA, audit.of_calls([called()], at=at, tick=1, origin=None))

    async def times(**how: Any) -> list[str]:
        return [entry["at"] for entry in await audit.read(store, ADA, **how)]

    stamps = [at.isoformat() for at in hours]
    assert await times() == stamps
    assert await times(limit=20) == stamps[-20:]
    assert await times(since=hours[30]) == stamps[30:]
    assert await times(since=hours[10], limit=5) == stamps[-5:]
    assert await times(since=hours[47] + timedelta(seconds=1)) == []
    assert await times(limit=0) == []


async def test_only_the_days_that_are_needed_are_read(store: BaseStore, monkeypatch: Patch) -> None:
    for n in range(5):
        at = AT + timedelta(days=n)
        await audit.write(store, ADA, audit.of_calls([called()], at=at, tick=1, origin=None))
    asked: list[str] = []
    real = list_items

    async def listing(store: BaseStore, namespace: tuple[str, ...], **how: Any) -> Any:
        asked.append(namespace[-1])
        return await real(store, namespace, **how)

    monkeypatch.setattr(audit, "list_items", listing)
    await audit.read(store, ADA, since=AT + timedelta(days=3))
    assert asked == ["audit", "20260306", "20260305"]
    asked.clear()
    await audit.read(store, ADA, limit=1)
    assert asked == ["audit", "20260306"]


async def test_the_callers_writes_join_the_transaction(store: BaseStore) -> None:
    mark = PutOp(ADA.namespace("marks"), "done", {"at": "now"})
    bad = PutOp(ADA.namespace("marks"), "bad", {"no": object()})
    told = audit.of_calls([called()], **PLACE)
    with pytest.raises(TypeError):
        await audit.write(store, ADA, told, also=[mark, bad])
    assert await audit.read(store, ADA) == []
    await audit.write(store, ADA, told, also=[mark])
    assert await store.aget(ADA.namespace("marks"), "done") is not None


async def test_each_entry_is_logged_with_its_fields(
    store: BaseStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="circadian.audit")
    told = audit.of_calls([called()], **PLACE)
    await audit.write(store, ADA, told)
    (record,) = caplog.records
    assert record.getMessage() == "agent: tool_call add_goal: ok"
    # People's words stand in lines of the level DEBUG alone.
    words = {"why": "Ada asked for it", "detail": {"args": {"description": "mend the fence"}}}
    assert record.__dict__["circadian"] == {
        name: value for name, value in told[0].items() if name not in words
    }
    caplog.clear()
    caplog.set_level(logging.DEBUG, logger="circadian.audit")
    await audit.write(store, ADA, told)
    (record,) = caplog.records
    assert record.__dict__["circadian"] == told[0]
    assert words.items() <= told[0].items()
