"""Questions to a person about dangerous tools, their answers, and what was carried out.

Store namespaces (below `(user, thread)`): `answers` question id -> Decision, written before it is
acted on, so that a crash asks nobody twice · `deeds` key -> Deed, so that what a person approved
once is carried out once · `answered` a server's run id -> the question that it answered ·
`passed_over` question id -> how many answers were not to it. The tick that waits stands in the
state, under `parked`.
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

from memory.records import Event, HandledMark
from memory.scope import Scope
from memory.store_access import list_items, write_batch, write_new
from memory.tick import Decision, ParkedTick, Question

ANSWERS, DEEDS, ANSWERED, PASSED_OVER = "answers", "deeds", "answered", "passed_over"

HOW = (
    'answer {"decision": "approve"}, {"decision": "edit", "args": {...}} or '
    '{"decision": "refuse", "reason": "..."}'
)
_WORDS: dict[str, Literal["approve", "refuse"]] = {
    "approve": "approve",
    "approved": "approve",
    "accept": "approve",
    "yes": "approve",
    "y": "approve",
    "refuse": "refuse",
    "refused": "refuse",
    "reject": "refuse",
    "no": "refuse",
    "n": "refuse",
}


class Deed(TypedDict):
    """A dangerous call on its way: begun, and what came of it."""

    tool: str
    args: dict[str, Any]
    begun: str
    outcome: str | None
    """The tool's answer, JSON; None: it began, and nobody knows how it ended."""
    ok: bool


class AnswerInput(BaseModel):
    """A person's answer as Studio, the SDK or the command line give it."""

    model_config = ConfigDict(extra="ignore", strict=True)

    decision: Literal["approve", "edit", "refuse"]
    args: dict[str, Any] | None = None
    reason: str | None = None
    id: str | None = None
    """The question that it answers: given to another, it is no answer."""

    @field_validator("decision", mode="before")
    @classmethod
    def _words(cls, value: Any) -> Any:
        return _WORDS.get(value.strip().lower(), value) if isinstance(value, str) else value


def question_id(event: Event | None, now: str, tool: str, args: Mapping[str, Any]) -> str:
    """`ask_<10 hex digits>`: of the event (or an autonomous tick's time), the tool and arguments.

    A tick that is done again and wants the same asks the same question.
    """
    what = [event["id"] if event else now, tool, dict(args)]
    return f"ask_{_digest(what)}"


def deed_key(event: Event | None, question: str | None, tick: int = 0) -> str:
    """Under which a tick's one dangerous call is kept: by its event, else by its question.

    Else by its number, which a tick that is done again has again.
    """
    return f"event_{_digest(event['id'])}" if event else question or f"tick_{tick:08d}"


def decision_of(
    given: Any, *, by: str, at: datetime, question: str | None = None
) -> Decision | str:
    """What a person answered to `question`, or what is wrong with it.

    Taken are a word (yes, no, approve, refuse), true and false, an object as HOW says, and the
    form of LangChain's human-in-the-loop middleware: `{"decisions": [{"type": ...}]}`.
    """
    if isinstance(given, bool):
        given = "approve" if given else "refuse"
    if isinstance(given, str):
        given = {"decision": given}
    if isinstance(given, Mapping) and isinstance(given.get("decisions"), list):
        given = _of_middleware(given["decisions"])
    try:
        answer = AnswerInput.model_validate(given)
    except ValidationError:
        return f"that is no answer: {HOW}"
    if answer.decision == "edit" and answer.args is None:
        return f"an edit needs args: {HOW}"
    if answer.id is not None and question is not None and answer.id != question:
        return f"that answers {answer.id:.80}, and this is {question}"
    return {
        "decision": answer.decision,
        "args": answer.args if answer.decision == "edit" else None,
        "reason": answer.reason,
        "by": by,
        "at": at.isoformat(),
    }


def form(question: Question, problem: str | None = None) -> dict[str, Any]:
    """What an interrupt shows: the question, and the same as LangChain's agent inboxes read it."""
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
            {
                "action_name": question["tool"],
                "allowed_decisions": ["approve", "edit", "reject"],
            }
        ],
    }
    return shown | ({"problem": problem} if problem else {})


async def answers(
    store: BaseStore, scope: Scope, parked: Iterable[ParkedTick]
) -> dict[str, Decision]:
    """The answers that wait to be acted on, by question id."""
    waiting = {one["question"]["id"] for one in parked}
    if not waiting:
        return {}
    items = await list_items(store, scope.namespace(ANSWERS))
    return {item.key: cast(Decision, item.value) for item in items if item.key in waiting}


async def keep(
    store: BaseStore, scope: Scope, question: str, decision: Decision, *, run: str | None = None
) -> Decision:
    """Write an answer down; returns the one that stands: the first one, whoever else answered.

    `run` is the server's run that brought it; the first question that a run answers is its own.
    """
    puts = [PutOp(scope.namespace(ANSWERS), question, dict(decision))]
    if run is not None:
        puts.append(PutOp(scope.namespace(ANSWERED), run, {"question": question}))
    return cast(Decision, (await write_new(store, puts))[0])


async def answered(store: BaseStore, scope: Scope, run: str | None) -> str | None:
    """The question that a server's run has answered already."""
    item = await store.aget(scope.namespace(ANSWERED), run) if run is not None else None
    return str(item.value["question"]) if item else None


async def passed_over(store: BaseStore, scope: Scope, question: str, place: str) -> int:
    """How many of the answers that are given at `place`, a task of the graph, were not to it."""
    item = await store.aget(scope.namespace(PASSED_OVER), question)
    return int(item.value["number"]) if item and item.value["place"] == place else 0


async def pass_over(store: BaseStore, scope: Scope, question: str, place: str, number: int) -> None:
    """Remember `passed_over`."""
    value = {"place": place, "number": number}
    await store.aput(scope.namespace(PASSED_OVER), question, value)


async def deed(store: BaseStore, scope: Scope, key: str) -> Deed | None:
    """What an earlier try of the tick began."""
    item = await store.aget(scope.namespace(DEEDS), key)
    return cast(Deed, item.value) if item else None


async def write_deed(store: BaseStore, scope: Scope, key: str, value: Deed) -> None:
    """Before the call, without its outcome."""
    await write_batch(store, [put_deed(scope, key, value)])


async def drop_deed(store: BaseStore, scope: Scope, key: str) -> None:
    """The call ended in a question of the tool's own; once answered it runs from its top."""
    await store.adelete(scope.namespace(DEEDS), key)


def put_deed(scope: Scope, key: str, value: Deed) -> PutOp:
    """The same as part of a batch: after the call, with its outcome."""
    return PutOp(scope.namespace(DEEDS), key, dict(value))


async def tidy(
    store: BaseStore, scope: Scope, parked: Iterable[ParkedTick], marks: Iterable[HandledMark]
) -> None:
    """Drop what belongs to ticks that are committed; of those kept by number all but the newest."""
    done = {f"event_{_digest(mark['id'])}" for mark in marks}
    items = [
        item
        for kind in (ANSWERS, DEEDS, PASSED_OVER)
        for item in await list_items(store, scope.namespace(kind))
    ]
    keys = {item.key for item in items} - done
    kept = {key for key in keys if key.startswith("event_")}
    kept |= {max((key for key in keys if key.startswith("tick_")), default="")}
    kept |= {one["question"]["id"] for one in parked}
    puts = [PutOp(item.namespace, item.key, None) for item in items if item.key not in kept]
    if puts:
        await write_batch(store, puts)


def _of_middleware(decisions: list[Any]) -> Any:
    first = decisions[0] if decisions and isinstance(decisions[0], Mapping) else {}
    edited = first.get("edited_action") or {}
    return {
        "decision": first.get("type"),
        "args": edited.get("args") if isinstance(edited, Mapping) else None,
        "reason": first.get("message"),
    }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:10]
