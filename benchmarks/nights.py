"""What nights make of memory: a scorecard over annotated lives.

A life is a file of events over some days, with the facts in them, how these relate, and questions.
Each life is lived in several ways on the product's own path with its defaults: each day's events,
then (but for "none") a night. On the morning after, recall is asked every question.

    python -m benchmarks.nights --data LIFE.json [LIFE.json ...] [--ways none offline reference]
                                [--later DAYS ...] [--noise SHARE] [--without PHASE ...]
                                [--empty NIGHTS] [--json OUT]

The reference model answers a night's prompts from the annotations of what they show; with
`--noise` that share of its answers is wrong.

`--without` leaves out phases of the night. With `--empty` so many nights follow in which nothing
is new; `drift` is the share of questions that recall then answers with other memories.

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
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import Any
from unittest.mock import patch

from langchain_core.language_models import BaseChatModel
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from benchmarks.reference_model import ReferenceModel
from graph.api import AsyncAgent, open_agent
from memory.guards import share
from memory.models import OFFLINE
from memory.night import Thought, steps
from memory.recall import IN_PROMPT, within
from memory.records import Fact, RecallHit
from memory.settings import Settings

Life = dict[str, Any]
Figures = dict[str, Any]

NIGHT_AFTER = timedelta(hours=6)
"""From a day's last event to its night."""
MOST, REACH = 10, 100
"""Memories that count as found, and as reachable."""
DRAWS = 1_000
"""Bootstrap samples of the questions."""
PHASES = (
    *("score_importance", "consolidate", "dream", "prune_links", "consolidate_entities"),
    *("write_pages", "reflect", "prune"),
)
"""Phases of a night that can be left out."""
KEPT = (
    *("recall_at_10", "recall_1300", "stale_first", "dependents_flagged", "flagged_wrongly"),
    *("auroc", "calls_per_100", "kinds"),
)
"""The figures in the JSON file."""
SHOWN = KEPT[:-1]
SETTLING = 2
"""Nights that take what earlier ones left, before those in which nothing is new."""
STEP = 50
"""Tokens between two budgets, where it is measured how many a recall needs."""
RELATIONS = ("supersedes", "duplicates", "contradicts")
MEASURED = (
    "recall_at_10: share of a question's evidence among the source events of ten memories; "
    "recall_1300: among those that a prompt shows; reach_100: among a hundred. stale_first: "
    "questions about the present for which something outdated stands above all that is current. "
    "auroc: how well the best score tells answerable from unanswerable questions. An event counts "
    "for one that says the same. dependents_flagged, flagged_wrongly: live facts that rest on what "
    "changed, and others, that are marked doubtful. tokens_equal: budget with which a prompt finds "
    "as much as without nights in 1,300 tokens. right: stored facts that share a source with an "
    "annotated one. Brackets: 95 % of bootstrap samples of the questions."
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
    drift: float = 0.0
    """Share of questions that recall answers with other memories after empty nights."""


def read_life(path: Path) -> Life:
    """Read a life. Raises ValueError if the file has another form."""
    try:
        life = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    wanted = {"events", "facts", "relations", "dependents", "questions"}
    if not isinstance(life, dict) or not wanted <= life.keys():
        raise ValueError(f"{path} is not a life: it lacks one of {', '.join(sorted(wanted))}")
    return life


@contextmanager
def left_out(phases: Collection[str]) -> Iterator[None]:
    """Nights in which these phases decide nothing."""
    thought = steps._thought

    async def without(context: Any, step: str, *others: Any) -> Thought:
        return Thought() if step in phases else await thought(context, step, *others)

    with patch.object(steps, "_thought", without):
        yield


async def lived(
    life: Life, way: Way, later: Sequence[int] = (), noise: float = 0.0, empty: int = 0
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
            if way.nights and empty:
                found[0].drift = await _drift(agent, life, empty)
    return found


async def _drift(agent: AsyncAgent, life: Life, nights: int) -> float:
    """The share of questions whose memories differ after nights without anything new."""
    for _ in range(SETTLING):
        await _night(agent)
    before = await _ask(agent, life)
    for _ in range(nights):
        await _night(agent)
    after = await _ask(agent, life)
    told = [[hit["id"] for hit in hits] for hits in before.best.values()]
    again = [[hit["id"] for hit in hits] for hits in after.best.values()]
    return _mean([float(one != other) for one, other in zip(told, again, strict=True)])


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
        "relations": relations(life, asked.facts),
        "right": right(life, asked.facts),
        "drift": asked.drift,
        "by_tokens": by_tokens(life, asked.prompt),
        "auroc": round(auroc(yes, no), 4),
        "answered_nothing": _mean([float(not asked.best[one["id"]]) for one in questions]),
        "calls_per_100": round(100 * asked.calls / len(life["events"]), 1),
        "kinds": kinds,
        "values": {
            name: list(values.values()) for name, values in {**scores, "stale_first": stale}.items()
        },
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
    """Whether something outdated stands above everything current.

    What a hit tells as past, with what holds instead, is not outdated.
    """
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
        past = {event for one in hit.get("earlier", ()) for event in one["sources"]}
        if stale & ({*hit["sources"]} - past):
            return True
    return False


def dependents(life: Life, produced: Sequence[Fact]) -> Figures:
    """The share of dependent facts that are marked doubtful, and of other live facts.

    Of the annotated facts with the same source a doubtful one stands for those most like it.
    """
    gold = {one["fact"] for one in life["dependents"]}
    live = [one for one in life["facts"] if one["superseded_by"] is None]
    on = set[str]()
    for fact in produced:
        if dict(fact).get("doubtful") and fact["invalid_at"] is None:
            its = [each for each in life["facts"] if {*fact["source_events"]} & {*each["sources"]}]
            likeness = {each["id"]: share(each["text"], [fact["text"]]) for each in its}
            best = max(likeness.values(), default=0.0)
            on |= {id_ for id_, like in likeness.items() if like == best}
    flagged = {one["id"]: one["id"] in on for one in live}
    return {
        "dependents_flagged": _mean([float(flagged[id_]) for id_ in gold if id_ in flagged]),
        "flagged_wrongly": _mean([float(on) for id_, on in flagged.items() if id_ not in gold]),
    }


def relations(life: Life, produced: Sequence[Fact]) -> dict[str, list[float]]:
    """Precision and recall of each kind of relation; facts are matched by shared source events."""
    facts = {one["id"]: {*one["sources"]} for one in life["facts"]}
    by_id = {one["id"]: one for one in produced}
    by_op = {one["op"]: one for one in produced}
    made: dict[str, list[tuple[set[str], set[str]]]] = {kind: [] for kind in RELATIONS}
    for fact in produced:
        its = {*fact["source_events"]}
        if heir := by_id.get(fact["superseded_by"] or ""):
            theirs = {*heir["source_events"]}
            made["duplicates" if its <= theirs else "supersedes"].append((theirs, its))
        for op in fact.get("disputed", ()):
            if op in by_op and op < fact["op"]:
                made["contradicts"].append(({*by_op[op]["source_events"]}, its))
    found: dict[str, list[float]] = {}
    for kind, pairs in made.items():
        gold = [
            (facts[one["first"]], facts[one["second"]])
            for one in life["relations"]
            if one["kind"] == kind
        ]
        right_ones = [any(_same_pair(one, other, kind) for other in gold) for one in pairs]
        reached = [any(_same_pair(one, other, kind) for one in pairs) for other in gold]
        found[kind] = [_mean(list(map(float, some))) for some in (right_ones, reached)]
    return found


def _same_pair(one: tuple[set[str], set[str]], other: tuple[set[str], set[str]], kind: str) -> bool:
    """Whether two pairs share sources; only what supersedes has a direction."""
    ways = [other] if kind == "supersedes" else [other, other[::-1]]
    return any(one[0] & first and one[1] & second for first, second in ways)


def right(life: Life, produced: Sequence[Fact]) -> float:
    """The share of stored facts that share a source with an annotated one."""
    cited = {event for one in life["facts"] for event in one["sources"]}
    return _mean([float(bool(cited & {*one["source_events"]})) for one in produced])


def by_tokens(life: Life, prompts: Mapping[str, Sequence[RecallHit]]) -> list[float]:
    """Evidence recall within each budget of tokens, from STEP on by STEP."""
    same, found = _same_events(life), list[float]()
    asked = [one for one in life["questions"] if one["evidence"]]
    for budget in range(STEP, Settings().recall_tokens + STEP, STEP):
        values = []
        for question in asked:
            hits = within(prompts[question["id"]], budget)
            values.append(evidence(hits, question["evidence"], same))
        found.append(_mean(values))
    return found


def tokens_equal(one: Figures, none: Figures) -> int:
    """The budget with which `one` finds as much as `none` with all tokens; 0 if it never does."""
    wanted = none["by_tokens"][-1]
    enough = (place for place, value in enumerate(one["by_tokens"], 1) if value >= wanted)
    return STEP * next(enough, 0)


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
    for pair in life["relations"]:
        if pair["kind"] == "duplicates":
            for event, other in ((pair["first"], pair["second"]), (pair["second"], pair["first"])):
                for source in facts[event]:
                    found[source] |= {*facts[other]}
    return found


def _mean(values: Sequence[float]) -> float:
    return round(statistics.fmean(values), 4) if values else 0.0


def scorecard(
    lives: Mapping[str, Life],
    ways: Sequence[str],
    later: Sequence[int] = (),
    noise: float = 0.0,
    empty: int = 0,
) -> dict[str, dict[str, Figures]]:
    """Live every life in every way: life -> way -> figures. `offline+30`: thirty days later."""
    found: dict[str, dict[str, Figures]] = {}
    for name, life in lives.items():
        found[name] = {}
        for way in ways:
            for days, asked in asyncio.run(lived(life, WAYS[way], later, noise, empty)).items():
                found[name][f"{way}+{days}" if days else way] = figures(life, asked)
    return found


def pooled(found: Mapping[str, Mapping[str, Figures]]) -> dict[str, Figures]:
    """For each way the means over the lives; intervals over the questions of all of them."""
    ways = list(dict.fromkeys(way for one in found.values() for way in one))
    told: dict[str, Figures] = {}
    for way in ways:
        some = [one[way] for one in found.values() if way in one]
        values: dict[str, list[float]] = defaultdict(list)
        for run in some:
            for name, each in run["values"].items():
                values[name] += each
        told[way] = {name: _mean([one[name] for one in some]) for name in SHOWN}
        told[way] |= {name: _mean(each) for name, each in values.items()}
        told[way]["intervals"] = {name: interval(each) for name, each in values.items()}
    return told


def document(found: Mapping[str, Mapping[str, Figures]]) -> dict[str, dict[str, Figures]]:
    """The figures as the JSON file keeps them."""
    return {
        life: {way: {name: one[name] for name in KEPT} for way, one in ways.items()}
        for life, ways in found.items()
    }


def show(found: Mapping[str, Mapping[str, Figures]], console: Console) -> None:
    """Print the figures and their explanations."""
    table = Table(title="Lives", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("life, way", no_wrap=True)
    for name in SHOWN:
        table.add_column(name, justify="right")
    both = {"pooled": pooled(found)} if len(found) > 1 else {}
    for life, ways in {**found, **both}.items():
        for way, figures in ways.items():
            table.add_row(f"{life}, {way}", *(_shown(figures, name) for name in SHOWN))
    console.print(table)
    for life, ways in found.items():
        for way, figures in ways.items():
            console.print(f"{life}, {way}: {_beside(figures, ways.get('none'))}")
    for life, ways in found.items():
        for way, figures in ways.items():
            kinds = ", ".join(f"{kind} {value:.2f}" for kind, value in figures["kinds"].items())
            console.print(f"{life}, {way}: {kinds}")
    console.print(MEASURED)


def _beside(one: Figures, none: Figures | None) -> str:
    """The figures of a life that the table has no room for."""
    pairs = (f"{kind} {right_:.2f}/{all_:.2f}" for kind, (right_, all_) in one["relations"].items())
    equal = f", tokens_equal {tokens_equal(one, none)}" if none else ""
    told = f"reach_100 {one['reach_100']:.2f}, right {one['right']:.2f}, drift {one['drift']:.2f}"
    return f"{told}{equal}; precision/recall: {', '.join(pairs)}"


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
    parser.add_argument("--without", nargs="+", choices=PHASES, default=[], metavar="PHASE")
    parser.add_argument("--empty", type=int, default=0, metavar="NIGHTS")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/nights.json"))
    options = parser.parse_args(arguments)
    try:
        lives = {path.stem: read_life(path) for path in options.data}
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2
    with left_out(options.without):
        found = scorecard(lives, options.ways, options.later, options.noise, options.empty)
    show(found, Console())
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(document(found), indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
