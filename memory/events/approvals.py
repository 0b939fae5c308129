"""Approvals: questions to a person about dangerous tools, the answers, and the calls carried out.

Store namespaces (below `(user, thread)`): `answers` question id -> Decision, written before the
call, so that a crash asks nobody twice · `deeds` key -> Deed, so that an approved call runs once ·
`answered` a server's run id -> the question that it answered · `passed_over` question id -> number
of answers that were for another question. The waiting tick itself is in the state, under `parked`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, cast

from langgraph.store.base import BaseStore, PutOp
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator
from typing_extensions import TypedDict

from memory.records import Decision, Event, ParkedTick, Question, Scope
from memory.storage import list_items, write_batch, write_new

ANSWERS, DEEDS, ANSWERED, PASSED_OVER = "answers", "deeds", "answered", "passed_over"

HOW = (
    'answer {"decision": "approve"}, {"decision": "edit", "args": {...}} or '
    '{"decision": "refuse", "reason": "..."}'
)

_WORDS: Mapping[str, str] = {
    **dict.fromkeys(("approve", "approved", "accept", "yes", "y"), "approve"),
    **dict.fromkeys(("refuse", "refused", "reject", "no", "n"), "refuse"),
}


class Deed(TypedDict):
    """A dangerous call: begun, and its outcome."""

    tool: str
    args: dict[str, Any]
    begun: str
    outcome: str | None
    """The tool's answer, JSON; None: begun, outcome unknown."""
    ok: bool


class AnswerInput(BaseModel):
    """A person's answer from Studio, the SDK or the command line."""

    model_config = ConfigDict(extra="ignore", strict=True)

    decision: Literal["approve", "edit", "refuse"]
    args: dict[str, Any] | None = None
    reason: str | None = None
    id: str | None = None
    """The question that it answers; it answers no other."""

    @field_validator("decision", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def question_id(event: Event | None, now: str, tool: str, args: Mapping[str, Any]) -> str:
    """`ask_<10 hex digits>`, from the event (or an autonomous tick's time), tool and arguments."""
    what = [event["id"] if event else now, tool, dict(args)]
    return f"ask_{_digest(what)}"


def deed_key(event: Event | None, question: str | None, tick: int = 0) -> str:
    """Key of a tick's one dangerous call: from its event, else its question, else its number."""
    return _event_key(event["id"]) if event else question or f"tick_{tick:08d}"


def decision_of(
    given: Any, *, by: str, at: datetime, question: str | None = None
) -> Decision | str:
    """A person's answer to `question` as a decision, or a sentence on what is wrong with it.

    Accepts a word, true and false, an object as in HOW, and LangChain's human-in-the-loop form.
    """
    if isinstance(given, bool):
        given = "approve" if given else "refuse"
    if isinstance(given, str):
        given = {"decision": given}
    if isinstance(given, Mapping) and isinstance(given.get("decisions"), list):
        decisions = given["decisions"]
        first = decisions[0] if decisions and isinstance(decisions[0], Mapping) else {}
        edited = first.get("edited_action") or {}
        given = {
            "decision": first.get("type"),
            "args": edited.get("args") if isinstance(edited, Mapping) else None,
            "reason": first.get("message"),
        }
    try:
        answer = AnswerInput.model_validate(given)
    except ValidationError:
        return f"not an answer: {HOW}"
    if answer.decision == "edit" and answer.args is None:
        return f"an edit needs args: {HOW}"
    if answer.id is not None and question is not None and answer.id != question:
        return f"that answers {answer.id:.80}, but the question is {question}"
    return {
        "decision": answer.decision,
        "args": answer.args if answer.decision == "edit" else None,
        "reason": answer.reason,
        "by": by,
        "at": at.isoformat(),
    }


def form(question: Question, problem: str | None = None) -> dict[str, Any]:
    """Value of an interrupt: the question, also in the form that LangChain's agent inboxes read."""
    shown: dict[str, Any] = {
        **question,
        "how": HOW,
        "action_requests": [
            {
                "name": question["tool"],
                "args": question["args"],
                "description": question["difference"] or question["what"],
            }
        ],
        "review_configs": [
            {"action_name": question["tool"], "allowed_decisions": ["approve", "edit", "reject"]}
        ],
    }
    return shown | ({"problem": problem} if problem else {})


async def answers(
    store: BaseStore, scope: Scope, parked: Iterable[ParkedTick]
) -> dict[str, Decision]:
    """Answers to parked ticks, by question id."""
    waiting = {tick["question"]["id"] for tick in parked}
    if not waiting:
        return {}
    items = await list_items(store, scope.namespace(ANSWERS))
    return {item.key: cast(Decision, item.value) for item in items if item.key in waiting}


async def keep(
    store: BaseStore, scope: Scope, question: str, decision: Decision, *, run: str | None = None
) -> Decision:
    """Store an answer that a server's `run` brought; return the first of several, which counts."""
    puts = [PutOp(scope.namespace(ANSWERS), question, dict(decision))]
    if run is not None:
        puts.append(PutOp(scope.namespace(ANSWERED), run, {"question": question}))
    return cast(Decision, (await write_new(store, puts))[0])


async def answered(store: BaseStore, scope: Scope, run: str | None) -> str | None:
    """The question that a server's run has answered, if any."""
    item = await store.aget(scope.namespace(ANSWERED), run) if run is not None else None
    return str(item.value["question"]) if item else None


async def passed_over(store: BaseStore, scope: Scope, question: str, place: str) -> int:
    """Number of answers given at `place` (a task of the graph) for other questions."""
    item = await store.aget(scope.namespace(PASSED_OVER), question)
    return int(item.value["number"]) if item and item.value["place"] == place else 0


async def pass_over(store: BaseStore, scope: Scope, question: str, place: str, number: int) -> None:
    """Store the number of `passed_over`."""
    value = {"place": place, "number": number}
    await store.aput(scope.namespace(PASSED_OVER), question, value)


async def deed(store: BaseStore, scope: Scope, key: str) -> Deed | None:
    """The call that an earlier attempt of the tick began, if any."""
    item = await store.aget(scope.namespace(DEEDS), key)
    return cast(Deed, item.value) if item else None


async def write_deed(store: BaseStore, scope: Scope, key: str, value: Deed) -> None:
    """Write the call before it runs, without an outcome."""
    await write_batch(store, [put_deed(scope, key, value)])


async def drop_deed(store: BaseStore, scope: Scope, key: str) -> None:
    """Drop a call that ended in the tool's own question; after the answer it runs from its top."""
    await store.adelete(scope.namespace(DEEDS), key)


def put_deed(scope: Scope, key: str, value: Deed) -> PutOp:
    """The write after the call, with its outcome, for a batch."""
    return PutOp(scope.namespace(DEEDS), key, dict(value))


def drop_calls(scope: Scope, event_id: str) -> PutOp:
    """The store write that drops the calls of an event whose tick is on disk."""
    return PutOp(scope.namespace(DEEDS), _event_key(event_id), None)


async def tidy(store: BaseStore, scope: Scope, parked: Iterable[ParkedTick]) -> None:
    """Drop records of ticks that are not parked.

    Calls keyed by their event stay until `drop_calls`; of those keyed by tick number the newest.
    """
    items = [
        item
        for kind in (ANSWERS, DEEDS, PASSED_OVER)
        for item in await list_items(store, scope.namespace(kind))
    ]
    keys = {item.key for item in items}
    kept = {key for key in keys if key.startswith("event_")}
    kept |= {max((key for key in keys if key.startswith("tick_")), default="")}
    kept |= {tick["question"]["id"] for tick in parked}
    puts = [PutOp(item.namespace, item.key, None) for item in items if item.key not in kept]
    if puts:
        await write_batch(store, puts)


def _event_key(event_id: str) -> str:
    return f"event_{_digest(event_id)}"


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
