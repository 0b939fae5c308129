"""Evidence recall on long chats with an assistant, in the form of BEAM (Tavakoli et al. 2025).

A file is a list of {chat, messages: [{id, role, at, text}], questions: [{category, text, gold}]}.
Messages are overheard, once the user's alone and once all of them, and then the questions are
asked, as in `benchmarks.locomo`. Of a value that was updated it is also counted how often the
newest message stands above the older ones.

    python -m benchmarks.beam --data FILE [--embedder minilm|none|NAME] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks import locomo
from benchmarks.conversations import Conversation, session_label
from benchmarks.minilm import Absent
from benchmarks.searchers import Searcher, by_both, by_meaning, by_words, circadian
from memory.errors import InputError
from memory.models import OFFLINE

Chat = dict[str, Any]
FORM = {"chat", "messages", "questions"}


def read_chats(path: Path) -> list[Chat]:
    """Read the chats of a file. Raises ValueError if it has another form."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(found, list) or not all({*one} >= FORM for one in found):
        raise ValueError(f"{path} is not a list of chats with {', '.join(sorted(FORM))}")
    return found


def conversation_of(chat: Chat, *, user_only: bool) -> Conversation:
    """A chat in LoCoMo's format: the messages of a day are a session. Pure."""
    said = [one for one in chat["messages"] if one["role"] == "user" or not user_only]
    days = [list(some) for _, some in groupby(said, key=lambda one: one["at"][:10])]
    ids: dict[str, str] = {}
    conversation: dict[str, Any] = {}
    for number, messages in enumerate(days, 1):
        for message in messages:
            ids[str(message["id"])] = f"D{number}:{message['id']}"
        conversation[f"session_{number}_date_time"] = session_label(messages[0]["at"])
        conversation[f"session_{number}"] = [
            {
                "speaker": one["role"].capitalize(),
                "dia_id": ids[str(one["id"])],
                "text": one["text"],
                "at": one["at"],
            }
            for one in messages
        ]
    asked = [
        {
            "question": one["text"],
            "category": one["category"],
            "evidence": [ids[gold] for gold in map(str, one["gold"]) if gold in ids],
        }
        for one in chat["questions"]
    ]
    return {"sample_id": f"chat {chat['chat']}", "conversation": conversation, "qa": asked}


def systems(embedder: str) -> dict[str, Searcher]:
    """The systems by name. Raises Absent or InputError if the embedder cannot be loaded."""
    found: dict[str, Searcher] = {"Circadian": circadian(OFFLINE, model=OFFLINE, nights=False)}
    embeddings = locomo.embedder_of(embedder)
    if embeddings is not None:
        with_it = circadian(embeddings, model=OFFLINE, nights=False)
        found[f"Circadian, {embedder}"] = with_it
        found[f"dense, {embedder}"] = by_meaning(embeddings)
        found[f"BM25 + dense, {embedder}"] = by_both(embeddings)
    return {**found, "BM25": by_words}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status: 2 if a file or embedder cannot be used."""
    parser = argparse.ArgumentParser(description="Evidence recall on long chats.")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--embedder", default=locomo.MINILM)
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/beam.json"))
    options = parser.parse_args(arguments)
    console, results = Console(), {}
    try:
        chats, found = read_chats(options.data), systems(options.embedder)
    except (Absent, InputError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    for name, user_only in (("user's messages", True), ("all messages", False)):
        conversations = [conversation_of(chat, user_only=user_only) for chat in chats]
        rows = locomo.compare(found, conversations, console)
        locomo.show(rows, conversations, console, title=f"BEAM evidence recall, {name}")
        results[name] = [asdict(row) for row in rows]
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(results, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
