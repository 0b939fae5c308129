"""Evidence recall on conversations in LoCoMo's format (Maharana et al., ACL 2024).

Replays each conversation day by day as overheard events, with a night after each session, then asks
every question that has evidence through `recall`. Evidence recall@10 of a question is the fraction
of its gold turns among the first ten distinct source ids, in rank order; a category's figure is the
mean over its questions.

    python -m benchmarks.locomo --data FILE [--conversation ID] [--model NAME] [--embedder NAME]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import track
from rich.table import Table

from graph.agent import open_agent
from graph.handle import AsyncAgent

CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
TOP = 10
CANDIDATES = 40
"""Memories asked for: several may share a source, and ten distinct sources are counted."""


def read_samples(path: Path) -> list[dict[str, Any]]:
    """The conversations of a file. Raises ValueError where it is no JSON list of them."""
    try:
        samples = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None
    if not isinstance(samples, list):
        raise ValueError("no list of conversations")
    wanted = {"sample_id", "conversation", "qa"}
    for place, one in enumerate(samples):
        if not isinstance(one, dict) or not wanted <= one.keys():
            raise ValueError(f"item {place} lacks one of {', '.join(sorted(wanted))}")
    return samples


def sessions(conversation: dict[str, Any]) -> Iterator[tuple[datetime, list[dict[str, Any]]]]:
    """(time, turns) of each session, in order."""
    numbers = sorted(
        int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key)
    )
    for number in numbers:
        yield (
            session_time(conversation[f"session_{number}_date_time"]),
            conversation[f"session_{number}"],
        )


def session_time(text: str) -> datetime:
    """A session's time, as in `1:56 pm on 8 May, 2023`; taken as UTC."""
    return datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)


def events_of(turns: Sequence[dict[str, Any]], start: datetime) -> list[dict[str, Any]]:
    """A session's turns as overheard events, half a minute apart; an image by its caption."""
    return [
        {
            "id": turn["dia_id"],
            "at": (start + timedelta(seconds=30 * place)).isoformat(),
            "sender": turn["speaker"],
            "text": turn["text"] + _caption(turn),
            "addressed": False,
        }
        for place, turn in enumerate(turns)
    ]


def _caption(turn: dict[str, Any]) -> str:
    return f" [image: {turn['blip_caption']}]" if turn.get("blip_caption") else ""


def evidence_recall(sources: Sequence[str], gold: Sequence[str]) -> float:
    """The fraction of `gold` among the first ten distinct `sources`."""
    first = list(dict.fromkeys(sources))[:TOP]
    return len(set(gold) & set(first)) / len(set(gold))


def gold_of(question: dict[str, Any], turns: set[str]) -> list[str]:
    """The question's gold turns that exist; some rows hold several ids in one string."""
    ids = [one for raw in question.get("evidence", []) for one in re.findall(r"D\d+:\d+", raw)]
    return [one for one in dict.fromkeys(ids) if one in turns]


async def live(agent: AsyncAgent, clock: list[datetime], sample: dict[str, Any]) -> Counter[str]:
    """Replay one conversation; return the model calls by step."""
    calls: Counter[str] = Counter()
    for start, turns in sessions(sample["conversation"]):
        clock[0] = start
        heard = await agent.ainvoke({"events": events_of(turns, start)})
        calls["awake"] += sum(tick["llm_calls"] for tick in heard["report"]["ticks"])
        clock[0] = start + timedelta(hours=8)
        slept = await agent.ainvoke({"request": "sleep"})
        for step in slept["report"]["night"]["steps"]:
            if step["llm_calls"]:
                calls[step["step"]] += step["llm_calls"]
    return calls


async def ask(agent: AsyncAgent, sample: dict[str, Any]) -> dict[int, list[float]]:
    """Evidence recall of every question with evidence, by category."""
    turns = {turn["dia_id"] for _, session in sessions(sample["conversation"]) for turn in session}
    scores: dict[int, list[float]] = defaultdict(list)
    for question in sample["qa"]:
        gold = gold_of(question, turns)
        if gold:
            hits = await agent.recall(question["question"], CANDIDATES)
            found = [source for hit in hits for source in hit["sources"]]
            scores[question["category"]].append(evidence_recall(found, gold))
    return scores


async def measure(sample: dict[str, Any], model: str, embedder: str) -> dict[str, Any]:
    """Live through one conversation in a folder of its own, and question it."""
    clock = [datetime.now(UTC)]
    with tempfile.TemporaryDirectory() as folder:
        opening = open_agent(
            Path(folder) / "data", model=model, embedder=embedder, clock=lambda: clock[0]
        )
        async with opening as agent:
            began = time.perf_counter()
            calls = await live(agent, clock, sample)
            lived = time.perf_counter()
            scores = await ask(agent, sample)
            return {
                "conversation": sample["sample_id"],
                "turns": sum(len(turns) for _, turns in sessions(sample["conversation"])),
                "facts": await agent.resources.semantic.count(agent.scope),
                "calls": dict(calls),
                "scores": {str(key): value for key, value in sorted(scores.items())},
                "seconds": {
                    "lived": round(lived - began, 1),
                    "asked": round(time.perf_counter() - lived, 1),
                },
            }


def summary(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures over all conversations."""
    scores: dict[str, list[float]] = defaultdict(list)
    calls: Counter[str] = Counter()
    for row in rows:
        calls.update(row["calls"])
        for category, values in row["scores"].items():
            scores[category] += values
    every = [value for values in scores.values() for value in values]
    return {
        "recall@10": {key: _mean(values) for key, values in sorted(scores.items())},
        "questions": {key: len(values) for key, values in sorted(scores.items())},
        "all": _mean(every),
        "turns": sum(row["turns"] for row in rows),
        "facts": sum(row["facts"] for row in rows),
        "calls": dict(calls),
    }


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def show(figures: dict[str, Any], console: Console) -> None:
    """Print the figures."""
    table = Table("category", "questions", "evidence recall@10")
    for key, value in figures["recall@10"].items():
        name = CATEGORIES.get(int(key), key)
        table.add_row(f"{key} {name}", str(figures["questions"][key]), f"{value:.3f}")
    table.add_row("all", str(sum(figures["questions"].values())), f"{figures['all']:.3f}")
    console.print(table)
    console.print(f"turns {figures['turns']}, facts {figures['facts']}")
    calls = ", ".join(f"{step} {count}" for step, count in figures["calls"].items())
    console.print(f"model calls: {calls}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="Evidence recall on LoCoMo's format.")
    parser.add_argument("--data", type=Path, required=True, help="a file in LoCoMo's format")
    parser.add_argument("--conversation", help="one sample_id instead of all")
    parser.add_argument("--model", default="offline")
    parser.add_argument("--embedder", default="offline")
    parser.add_argument("--json", type=Path, help="also write the figures here")
    options = parser.parse_args(arguments)
    if not options.data.is_file():
        print(f"{options.data} is absent: nothing was measured", file=sys.stderr)
        return 2
    try:
        samples = read_samples(options.data)
    except ValueError as error:
        print(f"{options.data} is not in LoCoMo's format: {error}", file=sys.stderr)
        return 2
    wanted = [s for s in samples if options.conversation in (None, s["sample_id"])]
    if not wanted:
        print(f"no conversation {options.conversation} in {options.data}", file=sys.stderr)
        return 2
    console = Console()
    rows = [
        asyncio.run(measure(sample, options.model, options.embedder))
        for sample in track(wanted, "conversations", console=console, transient=True)
    ]
    figures = summary(rows)
    show(figures, console)
    if options.json:
        options.json.write_text(json.dumps({"summary": figures, "rows": rows}, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
