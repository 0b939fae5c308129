"""Grounding: does `store_memory` keep right facts and reject wrong ones?

    python -m benchmarks.grounding --data FILE [--json OUT] [--mistakes]

FILE holds a scene a line: journal entries, other texts of the conversation (`elsewhere`), and
proposed facts labelled right or wrong. Every proposal goes through the tool alone, as in a night
that shows the scene's entries; what stands elsewhere is in the state, as confirmations, session
memory, memories and tool results. No model takes part.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, cast

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, StateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from memory import runtime
from memory.errors import InputError
from memory.events import entry_for_event
from memory.facts import SemanticMemory
from memory.models import load_chat_model
from memory.operations import PlanCollector, with_collector
from memory.records import JournalEntry
from memory.runtime import Resources
from memory.settings import Settings
from memory.state import State, fresh_state
from tools.execution import execute
from tools.registry import BUILT_IN


class Entry(TypedDict):
    """What somebody said."""

    id: str
    at: str
    speaker: str | None
    text: str


class Proposal(TypedDict):
    """A proposed fact."""

    text: str
    sources: list[str]
    speaker: str | None
    label: Literal["right", "wrong"]
    kind: str


class Scene(TypedDict):
    """Entries, what else stands in the conversation, and proposed facts."""

    id: str
    entries: list[Entry]
    elsewhere: list[str]
    proposals: list[Proposal]


@dataclass(frozen=True)
class Outcome:
    """What became of a proposal."""

    proposal: Proposal
    elsewhere: bool
    """Its scene has other texts."""
    error: str | None
    """Why it was rejected; None: it was stored."""

    @property
    def correct(self) -> bool:
        """Whether a right one was stored, or a wrong one rejected."""
        return (self.error is None) == (self.proposal["label"] == "right")


def read_scenes(path: Path) -> list[Scene]:
    """The scenes of a file.

    Raises:
        InputError: the file is absent, or a line is no scene.
    """
    if not path.is_file():
        raise InputError(f"{path} is absent: give a file of scenes, one a line")
    adapter, scenes = TypeAdapter(Scene), list[Scene]()
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.strip():
            try:
                scenes.append(adapter.validate_json(line))
            except ValidationError as error:
                first = error.errors()[0]
                where = ".".join(map(str, first["loc"]))
                raise InputError(f"{path}, line {number}: {where}: {first['msg']}") from error
    return scenes


async def judge(scene: Scene) -> list[Outcome]:
    """Propose every fact of a scene to the tool, each as the first of a night."""
    shown = {one["id"]: _entry(one) for one in scene["entries"]}
    outcomes: list[Outcome] = []

    async def propose(state: State, config: RunnableConfig) -> dict[str, Any]:
        for proposal in scene["proposals"]:
            done = await execute(
                [_call(proposal)],
                [BUILT_IN["store_memory"][0]],
                _side(scene),
                with_collector(config, PlanCollector(shown)),
                seconds=Settings().tool_timeout,
            )
            rejected = json.loads(str(done.messages[0].content))["rejected"]
            error = rejected[0]["error"] if rejected else None
            outcomes.append(Outcome(proposal, bool(scene["elsewhere"]), error))
        return {}

    builder = StateGraph(State, context_schema=Settings)
    builder.add_node("propose", propose)
    builder.add_edge(START, "propose")
    graph = builder.compile(store=InMemoryStore())
    offline = load_chat_model("offline")
    resources = Resources(
        model=lambda: offline,
        semantic=cast(SemanticMemory, SimpleNamespace(keywords=_nothing_known)),
        clock=lambda: _night(scene),
    )
    configurable = {"thread_id": scene["id"], runtime.KEY: resources}
    settings = Settings(time_zone=_zone(scene))
    await graph.ainvoke({"mode": "sleep"}, {"configurable": configurable}, context=settings)
    return outcomes


async def _nothing_known(*_: Any, **__: Any) -> list[Any]:
    """The facts before the first night: none. A fact of a night goes into its plan alone."""
    return []


def _entry(entry: Entry) -> JournalEntry:
    event = {
        "id": entry["id"],
        "at": entry["at"],
        "sender": entry["speaker"] or "-",
        "text": entry["text"],
        "channel": None,
        "addressed": True,
    }
    made = entry_for_event(cast(Any, event), known_entities=(), projects=())
    return {**made, "id": entry["id"], "source_entity": entry["speaker"]}


def _call(proposal: Proposal) -> Any:
    fact = {
        "text": proposal["text"],
        "source_ids": proposal["sources"],
        "speaker": proposal["speaker"],
    }
    return {"name": "store_memory", "args": {"facts": [fact]}, "id": "call-1", "type": "tool_call"}


def _night(scene: Scene) -> datetime:
    newest = max(datetime.fromisoformat(one["at"]) for one in scene["entries"])
    return newest + timedelta(hours=8)


def _zone(scene: Scene) -> str:
    """The time zone of a scene's people, as far as the times of its entries tell."""
    offset = _night(scene).utcoffset() or timedelta()
    hours, rest = divmod(int(offset.total_seconds()), 3600)
    return "UTC" if rest or not hours else f"Etc/GMT{-hours:+d}"


def _side(scene: Scene) -> State:
    """The state of the night, with the texts from elsewhere where such texts stand."""
    messages: list[AnyMessage] = []
    memory = fresh_state()["session_memory"]
    recalled: list[str] = []
    for place, text in enumerate(scene["elsewhere"]):
        head, _, rest = text.partition(":")
        if "tool" in head.casefold() or "(" in head:
            messages.append(ToolMessage(rest, name="read_page", tool_call_id=f"tool-{place}"))
        elif "session" in head.casefold():
            memory = {**memory, "key_facts": [*memory["key_facts"], rest.strip()]}
        elif "recall" in head.casefold():
            recalled.append(rest.strip())
        messages.append(AIMessage(text))
    return {
        **fresh_state(),
        "mode": "sleep",
        "messages": messages,
        "session_memory": memory,
        "context": {
            "context_type": "sleep_consolidate",
            "now": _night(scene).isoformat(),
            "system": "\n".join([*scene["elsewhere"], *recalled]),
            "tokens": {},
        },
        "exchange": [],
    }


def scores(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The shares that were judged correctly."""
    right = [one for one in outcomes if one.proposal["label"] == "right"]
    kinds: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        kinds[outcome.proposal["kind"]].append(outcome)
    return {
        "right": _share(right),
        "right_with_elsewhere": _share(one for one in right if one.elsewhere),
        "wrong": _share(one for one in outcomes if one.proposal["label"] == "wrong"),
        "kinds": {kind: _share(kinds[kind]) for kind in sorted(kinds)},
    }


def _share(outcomes: Iterable[Outcome]) -> float | None:
    """Share of the correct ones (0..1), or None without any."""
    found = [one.correct for one in outcomes]
    return round(sum(found) / len(found), 4) if found else None


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """The shares, as lines to read."""
    right = [one for one in outcomes if one.proposal["label"] == "right"]
    wrong = [one for one in outcomes if one.proposal["label"] == "wrong"]
    rows = [
        ("right accepted", right),
        ("  with texts elsewhere", [one for one in right if one.elsewhere]),
        ("  without", [one for one in right if not one.elsewhere]),
        ("wrong rejected", wrong),
    ]
    for label, of in (("right", right), ("wrong", wrong)):
        kinds = sorted({one.proposal["kind"] for one in of})
        rows += [
            (f"{label}: {kind}", [one for one in of if one.proposal["kind"] == kind])
            for kind in kinds
        ]
    return [
        f"{name:<34}{sum(one.correct for one in of) / len(of):>7.1%}{len(of):>6}"
        for name, of in rows
        if of
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a file; 2 if it cannot be read."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="scenes, one a line (JSON)")
    parser.add_argument("--json", type=Path, help="write the shares to this file")
    parser.add_argument("--mistakes", action="store_true", help="list what was judged wrongly")
    given = parser.parse_args(arguments)
    try:
        scenes = read_scenes(given.data)
    except InputError as error:
        print(error, file=sys.stderr)
        return 2

    async def everything() -> list[Outcome]:
        return [one for scene in scenes for one in await judge(scene)]

    outcomes = asyncio.run(everything())
    print("\n".join(table(outcomes)))
    if given.mistakes:
        for outcome in outcomes:
            if not outcome.correct:
                print(f"{outcome.proposal['kind']}: {outcome.proposal['text']} -- {outcome.error}")
    if given.json:
        given.json.write_text(json.dumps(scores(outcomes), indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
