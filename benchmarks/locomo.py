"""Evidence recall on conversations in LoCoMo's format (Maharana et al., ACL 2024).

Each conversation is replayed as overheard events, session by session. Then every question with
evidence is asked. A question's evidence recall@k is the fraction of its gold turns among the first
k distinct source turns, in rank order (or of their sessions among the first k distinct sessions). A
figure is the mean over questions.

    python -m benchmarks.locomo [--data FILE] [--conversation ID ...] [--no-nights]
                                [--embedder minilm|none|NAME] [--model NAME] [--json FILE]

The default of --data is the file that CIRCADIAN_LOCOMO names.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from benchmarks.conversations import (
    CATEGORIES,
    Conversation,
    Question,
    evidence_recall,
    questions,
    read_conversations,
    session_of,
    spoken,
)
from benchmarks.minilm import Absent, MiniLM
from benchmarks.searchers import (
    DEPTH,
    Notes,
    Searcher,
    Shared,
    by_meaning,
    by_mem0,
    by_words,
    circadian,
)
from memory.errors import InputError
from memory.models import OFFLINE, load_embedder
from memory.recall import BESIDE, IN_PROMPT, LONGEST_LINE
from memory.settings import Settings
from memory.text import approximate_tokens

VARIABLE = "CIRCADIAN_LOCOMO"
NO_DATA = f"LoCoMo was not measured: neither --data nor {VARIABLE} names a file in its format"
TUNED_ON = (
    *("conv-26", "conv-30", "conv-41", "conv-42", "conv-43"),
    *(f"chat {number}" for number in range(1, 11)),
)
"""Conversations that recall was tuned on. All others are held out."""
TURNS = {f"{level}@{count}": (level, count) for level in ("turn", "session") for count in (5, 10)}
PROMPT = "turn in a prompt"
NEWEST = "newest first"
UPDATED = "knowledge_update"
"""The category of questions about a value that was updated."""
ALL = "all"
MINILM, NONE = "minilm", "none"
MEASURED = (
    "Fraction of a question's evidence among the first k distinct turns (or sessions), mean over "
    f"questions; each system returns its best {DEPTH}. In a prompt: among the lines that fill its "
    f"tokens for memories, at most {IN_PROMPT}. Circadian overhears the turns. It has an "
    "embedding model only in rows that name one (the offline embedder compares words and parts of "
    "words). Nights: after each session the offline model makes facts, links them, and prunes old "
    "entries of no importance; no links: recall does not follow links. BM25: over stems, without "
    "stop words. Dense: cosine. Mem0: its own search over its own FAISS provider, one store per "
    "conversation."
)


@dataclass(frozen=True)
class Row:
    """The figures of one system."""

    system: str
    recall: dict[str, dict[str, float]]
    """Measure -> category number or `all` -> mean evidence recall."""
    learned_s: float
    asked_s: float
    """Seconds for all conversations. A text that an earlier system embedded costs nothing again."""
    facts: int
    calls: dict[str, int]
    """Model calls by step."""


def systems(
    embeddings: Embeddings | None, *, name: str, nights: bool, model: str
) -> dict[str, Searcher]:
    """The systems by name: without an embedding model, and with `embeddings` if given."""
    offline: dict[str, Embeddings | str] = {"Circadian": OFFLINE}
    beside = {} if embeddings is None else {f"Circadian, {name}": embeddings}
    found: dict[str, Searcher] = {}
    for called, embedder in {**offline, **beside}.items():
        found[called] = circadian(embedder, model=model, nights=False)
        if nights:
            found[f"{called}, nights"] = circadian(embedder, model=model, nights=True)
            unlinked = circadian(embedder, model=model, nights=True, links=False)
            found[f"{called}, nights, no links"] = unlinked
    found["BM25"] = by_words
    if embeddings is not None:
        found[f"dense, {name}"] = by_meaning(embeddings)
        found[f"Mem0, {name}"] = by_mem0(embeddings)
    return found


def scores(question: Question, found: Sequence[str]) -> dict[str, float]:
    """All measures of one question, by name."""
    gold = question.gold
    lists = {
        "turn": (found, gold),
        "session": ([session_of(one) for one in found], [session_of(one) for one in gold]),
    }
    return {name: evidence_recall(*lists[level], count) for name, (level, count) in TURNS.items()}


def in_prompt(question: Question, found: Sequence[str], turns: Mapping[str, str]) -> float:
    """Evidence recall among the turns whose lines fill a prompt's tokens for memories."""
    left, shown = Settings().recall_tokens, list[str]()
    for turn in list(dict.fromkeys(found))[:IN_PROMPT]:
        left -= min(approximate_tokens(turns.get(turn, "")), LONGEST_LINE) + BESIDE
        if left < 0:
            break
        shown.append(turn)
    return evidence_recall(shown, question.gold, IN_PROMPT)


def newest_first(question: Question, found: Sequence[str]) -> float:
    """Whether the newest gold turn stands above the older ones; gold is in order of time."""
    *older, newest = sorted(question.gold, key=lambda turn: int(turn.partition(":")[2]))
    place = {turn: number for number, turn in reversed(list(enumerate(found)))}
    return float(newest in place and all(place[newest] < place.get(one, DEPTH) for one in older))


async def measure(name: str, searcher: Searcher, conversations: Sequence[Conversation]) -> Row:
    """Let one system learn each conversation, and ask it the questions."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    notes, learned, asked = Notes(), 0.0, 0.0
    for conversation in conversations:
        began, turns = time.perf_counter(), spoken(conversation)
        async with searcher(conversation, notes) as ask:
            ready = time.perf_counter()
            for question in questions(conversation):
                found = await ask(question.text)
                figures = scores(question, found)
                figures[PROMPT] = in_prompt(question, found, turns)
                if question.category == UPDATED and len(question.gold) > 1:
                    figures[NEWEST] = newest_first(question, found)
                for key, value in figures.items():
                    values[key][str(question.category)].append(value)
                    values[key][ALL].append(value)
            asked += time.perf_counter() - ready
            learned += ready - began
    means = {
        key: {category: _mean(of) for category, of in sorted(by_category.items())}
        for key, by_category in values.items()
    }
    return Row(name, means, round(learned, 1), round(asked, 1), notes.facts, dict(notes.calls))


def _mean(values: Sequence[float]) -> float:
    return round(sum(values) / len(values), 4)


def compare(
    found: dict[str, Searcher], conversations: Sequence[Conversation], console: Console
) -> list[Row]:
    """Measure one system after the other."""
    rows = []
    with Progress(console=console, transient=True) as progress:
        task = progress.add_task("", total=len(found))
        for name, searcher in found.items():
            progress.update(task, description=f"LoCoMo: {name}")
            rows.append(asyncio.run(measure(name, searcher, conversations)))
            progress.advance(task)
    return rows


def as_json(rows: Sequence[Row], conversations: Sequence[Conversation]) -> dict[str, Any]:
    """The figures as JSON."""
    return {
        "measured": MEASURED,
        "conversations": [one["sample_id"] for one in conversations],
        "tuned_on": tuned_on(conversations),
        "questions": counts(conversations),
        "rows": [asdict(row) for row in rows],
    }


def counts(conversations: Sequence[Conversation]) -> dict[str, int]:
    """Questions per category, and in all."""
    found: dict[str, int] = defaultdict(int)
    for question in (
        question for conversation in conversations for question in questions(conversation)
    ):
        found[str(question.category)] += 1
        found[ALL] += 1
    return dict(sorted(found.items()))


def tuned_on(conversations: Sequence[Conversation]) -> str:
    """A sentence that names the conversations that recall was tuned on."""
    ids = [str(one["sample_id"]) for one in conversations]
    known = [one for one in ids if one in TUNED_ON]
    if not known:
        return "Recall was tuned on none of these conversations: they are held out."
    if len(known) == len(ids):
        return "Recall was tuned on these very conversations; others are held out."
    return f"Recall was tuned on {', '.join(known)}; the others here are held out."


def show(
    rows: Sequence[Row],
    conversations: Sequence[Conversation],
    console: Console,
    title: str = "LoCoMo evidence recall",
) -> None:
    """Print the figures and their explanations."""
    asked = counts(conversations)
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("system", no_wrap=True)
    for key, count in asked.items():
        table.add_column(f"{_category(key)}\n({count})", justify="right")
    for name in rows[0].recall:
        table.add_row(f"[bold]{name}")
        for row in rows:
            of = row.recall[name]
            table.add_row(row.system, *(f"{of[key]:.3f}" if key in of else "" for key in asked))
    console.print(table)
    console.print(MEASURED)
    console.print(tuned_on(conversations))


def _category(key: str) -> str:
    """A category's name as a narrow column's heading."""
    return CATEGORIES[int(key)].replace("-", "-\n") if key.isdigit() else key.replace("_", "\n")


def embedder_of(name: str) -> Embeddings | None:
    """The embedder called `name`: MiniLM, none, or one of the product's names.

    Raises Absent or InputError if it cannot be loaded; the message is one line.
    """
    if name == NONE:
        return None
    return Shared(MiniLM() if name == MINILM else load_embedder(name))


def run(conversations: Sequence[Conversation], found: dict[str, Searcher], path: Path) -> None:
    """Measure, print the table, write the JSON to `path`."""
    console = Console()
    rows = compare(found, conversations, console)
    show(rows, conversations, console)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(as_json(rows, conversations), indent=2) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status. Without data it measures nothing and says so.

    The status is 2 if a named file or embedder cannot be used.
    """
    options = _parser().parse_args(arguments)
    try:
        conversations = _wanted(options.data, options.conversation)
        embeddings = embedder_of(options.embedder)
    except Absent as error:
        print(error)
        embeddings = None
    except (InputError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    if conversations:
        kinds = systems(
            embeddings, name=options.embedder, nights=not options.no_nights, model=options.model
        )
        run(conversations, kinds, options.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Evidence recall on LoCoMo's format.")
    named = os.environ.get(VARIABLE)
    parser.add_argument("--data", type=Path, default=Path(named) if named else None)
    parser.add_argument("--conversation", nargs="+", help="sample_ids; default all")
    parser.add_argument("--no-nights", action="store_true", help="leave out the rows after nights")
    parser.add_argument("--model", default=OFFLINE, help="makes facts in nights")
    parser.add_argument("--embedder", default=MINILM, help="measured beside no embedding model")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/locomo.json"))
    return parser


def _wanted(path: Path | None, ids: Sequence[str] | None) -> list[Conversation]:
    """The conversations of the file. Without a file: none, and a printed line that says so.

    Raises ValueError if the file is absent, has another format, or lacks one of `ids`.
    """
    if path is None:
        print(NO_DATA)
        return []
    if not path.is_file():
        raise ValueError(f"{path} is absent: LoCoMo was not measured")
    try:
        found = read_conversations(path)
    except ValueError as error:
        raise ValueError(f"{path} is not in LoCoMo's format: {error}") from error
    unknown = set(ids or ()) - {one["sample_id"] for one in found}
    if unknown:
        raise ValueError(f"no conversation {', '.join(sorted(unknown))} in {path}")
    return [one for one in found if not ids or one["sample_id"] in ids]


if __name__ == "__main__":
    sys.exit(main())
