"""What nights make of memory: a scorecard over annotated lives.

A life is a file of events over some days, with the facts in them, how these relate, and questions.
Each life is lived in several ways on the product's own path with its defaults: each day's events,
then (but for "none") a night. On the morning after, recall is asked every question.

    python -m benchmarks.nights --data LIFE.json [LIFE.json ...] [--ways none offline reference]
                                [--later DAYS ...] [--noise SHARE] [--json OUT]

The reference model answers a night's prompts from the annotations of what they show; with
`--noise` that share of its answers is wrong.

With `--later` the questions are asked again after so many more days, each time after one more
night: what nights forget with time shows there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.reference_model import ReferenceModel
from graph.api import AsyncAgent, open_agent
from memory.models import OFFLINE
from memory.recall import IN_PROMPT
from memory.records import Fact, RecallHit

Life = dict[str, Any]
Figures = dict[str, Any]

NIGHT_AFTER = timedelta(hours=6)
"""From a day's last event to its night."""
MOST, REACH = 10, 100
"""Memories that count as found, and as reachable."""
DRAWS = 1_000
"""Bootstrap samples of the questions."""
SHOWN = ("recall_at_10", "recall_1300", "reach_100", "stale_first", "auroc", "calls_per_100")
MEASURED = (
    "recall_at_10: share of a question's evidence among the source events of ten memories; "
    "recall_1300: among those that a prompt shows; reach_100: among a hundred. stale_first: "
    "questions about the present for which something outdated stands above all that is current. "
    "auroc: how well the best score tells answerable from unanswerable questions. An event counts "
    "for one that says the same. Brackets: 95 % of bootstrap samples of the questions."
)


@dataclass(frozen=True)
class Way:
    """How a life is lived: whether there are nights, and which chat model thinks in them."""

    nights: bool
    thinker: Callable[[Life, float], BaseChatModel | str] = lambda life, noise: OFFLINE
    """The chat model, from the life and the share of its answers that are wrong."""


WAYS: Mapping[str, Way] = {
    "none": Way(nights=False),
    "offline": Way(nights=True),
    "reference": Way(True, lambda life, noise: ReferenceModel(life=life, noise=noise)),
}
"""The ways by name."""


@dataclass
class Asked:
    """What recall gave for each question, by question id, and the facts in memory."""

    best: dict[str, list[RecallHit]] = field(default_factory=dict)
    prompt: dict[str, list[RecallHit]] = field(default_factory=dict)
    reach: dict[str, list[RecallHit]] = field(default_factory=dict)
    facts: list[Fact] = field(default_factory=list)
    calls: int = 0
    """Model calls of all nights so far."""


def read_life(path: Path) -> Life:
    """Read a life. Raises ValueError if the file has another form."""
    try:
        life = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    wanted = {"events", "facts", "relations", "dependents", "questions"}
    if not isinstance(life, dict) or not wanted <= life.keys():
        raise ValueError(f"{path} is no life: it lacks one of {', '.join(sorted(wanted))}")
    return life


async def lived(
    life: Life, way: Way, later: Sequence[int] = (), noise: float = 0.0
) -> dict[int, Asked]:
    """Live a life and ask its questions, by the days that passed since."""
    clock = [datetime.fromisoformat(life["events"][0]["at"])]
    found, calls = dict[int, Asked](), 0
    with tempfile.TemporaryDirectory() as folder:
        model = way.thinker(life, noise)
        opening = open_agent(Path(folder) / "data", model=model, clock=lambda: clock[0])
        async with opening as agent:
            for _, events in groupby(life["events"], key=lambda event: event["at"][:10]):
                day = list(events)
                clock[0] = datetime.fromisoformat(day[-1]["at"])
                await agent.ainvoke({"events": day})
                if way.nights:
                    clock[0] += NIGHT_AFTER
                    calls += await _night(agent)
            morning = datetime.fromisoformat(life["questions"][0]["at"])
            for days in (0, *later):
                clock[0] = morning + timedelta(days=days)
                if way.nights and days:
                    calls += await _night(agent)
                found[days] = await _ask(agent, life)
                found[days].calls = calls
    return found


async def _night(agent: AsyncAgent) -> int:
    """Run a night; return its model calls."""
    slept = await agent.ainvoke({"request": "sleep"})
    night = slept["report"].get("night") or {"steps": []}
    return sum(step["llm_calls"] for step in night["steps"])


async def _ask(agent: AsyncAgent, life: Life) -> Asked:
    asked, settings = Asked(), agent.context.settings
    for question in life["questions"]:
        id_, text = question["id"], question["text"]
        asked.best[id_] = await agent.recall(text, MOST)
        asked.reach[id_] = await agent.recall(text, REACH)
        asked.prompt[id_] = await agent.recall(text, IN_PROMPT, max_tokens=settings.recall_tokens)
    asked.facts = await agent.resources.semantic.all(agent.scope)
    return asked


def figures(life: Life, asked: Asked) -> Figures:
    """The figures of one life lived in one way. Pure."""
    same = _same_events(life)
    questions = life["questions"]
    scores: dict[str, dict[str, float]] = {"recall_at_10": {}, "recall_1300": {}, "reach_100": {}}
    for question in questions:
        if gold := question["evidence"]:
            lists = (asked.best, asked.prompt, asked.reach)
            for name, found in zip(scores, lists, strict=True):
                scores[name][question["id"]] = evidence(found[question["id"]], gold, same)
    stale = {
        question["id"]: float(stale_first(asked.best[question["id"]], question, life))
        for question in questions
        if question["kind"] == "current"
    }
    tops = {
        one["id"]: max((hit["score"] for hit in asked.best[one["id"]]), default=0.0)
        for one in questions
    }
    yes = [tops[one["id"]] for one in questions if one["kind"] != "unanswerable"]
    no = [tops[one["id"]] for one in questions if one["kind"] == "unanswerable"]
    kinds = {
        kind: _mean([scores["recall_at_10"][one["id"]] for one in some])
        for kind in dict.fromkeys(one["kind"] for one in questions)
        if (some := [one for one in questions if one["kind"] == kind and one["evidence"]])
    }
    return {
        **{name: _mean(list(values.values())) for name, values in scores.items()},
        "stale_first": _mean(list(stale.values())),
        **dependents(life, asked.facts),
        "auroc": round(auroc(yes, no), 4),
        "answered_nothing": _mean([float(not asked.best[one["id"]]) for one in questions]),
        "calls_per_100": round(100 * asked.calls / len(life["events"]), 1),
        "kinds": kinds,
        "intervals": {
            name: interval(list(values.values()))
            for name, values in {**scores, "stale_first": stale}.items()
        },
    }


def evidence(
    hits: Sequence[RecallHit], gold: Collection[str], same: Mapping[str, Collection[str]]
) -> float:
    """The share of `gold` among the source events of `hits`, or of what says the same."""
    found = {event for hit in hits for event in hit["sources"]}
    return sum(bool({event, *same.get(event, ())} & found) for event in gold) / len(gold)


def stale_first(hits: Sequence[RecallHit], question: Mapping[str, Any], life: Life) -> bool:
    """Whether something outdated stands above everything current."""
    facts = {one["id"]: one["sources"] for one in life["facts"]}
    current = {
        *question["evidence"],
        *(event for id_ in question["current"] for event in facts[id_]),
    }
    stale = {event for id_ in question.get("stale", ()) for event in facts[id_]}
    stale = {*stale, *question.get("stale_events", ())} - current
    for hit in hits:
        if current & {*hit["sources"]}:
            return False
        if stale & {*hit["sources"]}:
            return True
    return False


def dependents(life: Life, produced: Sequence[Fact]) -> Figures:
    """The share of dependent facts that are marked doubtful, and of other live facts."""
    doubtful = {
        event
        for one in produced
        if dict(one).get("doubtful") and one["invalid_at"] is None
        for event in one["source_events"]
    }
    gold = {one["fact"] for one in life["dependents"]}
    live = [one for one in life["facts"] if one["superseded_by"] is None]
    flagged = {one["id"]: bool(doubtful & {*one["sources"]}) for one in live}
    return {
        "dependents_flagged": _mean([float(flagged[id_]) for id_ in gold if id_ in flagged]),
        "flagged_wrongly": _mean([float(on) for id_, on in flagged.items() if id_ not in gold]),
    }


def auroc(yes: Sequence[float], no: Sequence[float]) -> float:
    """How often a score of `yes` is above one of `no`; a tie counts half."""
    if not yes or not no:
        return 0.5
    above = sum((one > other) + (one == other) / 2 for one in yes for other in no)
    return above / (len(yes) * len(no))


def interval(values: Sequence[float]) -> list[float]:
    """The bounds of 95 % of the means of bootstrap samples."""
    if not values:
        return [0.0, 0.0]
    draw = random.Random(0)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(DRAWS))
    return [round(means[int(DRAWS * share)], 4) for share in (0.025, 0.975)]


def _same_events(life: Life) -> dict[str, set[str]]:
    """For each event those from which a fact that says the same was made."""
    facts = {one["id"]: one["sources"] for one in life["facts"]}
    found: dict[str, set[str]] = defaultdict(set)
    for one in life["relations"]:
        if one["kind"] == "duplicates":
            for event, other in ((one["first"], one["second"]), (one["second"], one["first"])):
                for source in facts[event]:
                    found[source] |= {*facts[other]}
    return found


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else 0.0


def scorecard(
    lives: Mapping[str, Life], ways: Sequence[str], later: Sequence[int] = (), noise: float = 0.0
) -> dict[str, dict[str, Figures]]:
    """Live every life in every way: life -> way -> figures. `offline+30`: thirty days later."""
    found: dict[str, dict[str, Figures]] = {}
    for name, life in lives.items():
        found[name] = {}
        for way in ways:
            for days, asked in asyncio.run(lived(life, WAYS[way], later, noise)).items():
                found[name][f"{way}+{days}" if days else way] = figures(life, asked)
    return found


def show(found: Mapping[str, Mapping[str, Figures]], console: Console) -> None:
    """Print the figures and their explanations."""
    table = Table(title="Lives", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("life, way", no_wrap=True)
    for name in SHOWN:
        table.add_column(name, justify="right")
    for life, ways in found.items():
        for way, one in ways.items():
            table.add_row(f"{life}, {way}", *(_shown(one, name) for name in SHOWN))
    console.print(table)
    for life, ways in found.items():
        for way, one in ways.items():
            kinds = ", ".join(f"{kind} {value:.2f}" for kind, value in one["kinds"].items())
            console.print(f"{life}, {way}: {kinds}")
    console.print(MEASURED)


def _shown(one: Figures, name: str) -> str:
    within = one["intervals"].get(name)
    text = f"{one[name]:.1f}" if name == "calls_per_100" else f"{one[name]:.3f}"
    return f"{text}\n[{within[0]:.2f}, {within[1]:.2f}]" if within else text


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status: 2 if a file cannot be used."""
    parser = argparse.ArgumentParser(description="What nights make of memory.")
    parser.add_argument("--data", type=Path, nargs="+", required=True, metavar="LIFE.json")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--later", type=int, nargs="+", default=[], metavar="DAYS")
    parser.add_argument("--noise", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/nights.json"))
    options = parser.parse_args(arguments)
    try:
        lives = {path.stem: read_life(path) for path in options.data}
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    found = scorecard(lives, options.ways, options.later, options.noise)
    show(found, Console())
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(found, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
