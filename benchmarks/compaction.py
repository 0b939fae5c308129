"""The size of the context before and after a night's compaction.

The original design's example: 50 messages of 70,000 tokens become 21 of about 15,000. The first run
has a model that writes a summary of usual length. In the second run the model fails, and an extract
of the conversation takes the summary's place.

    python -m benchmarks.compaction [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from rich.console import Console
from rich.table import Table

from benchmarks.models import FixedModel
from benchmarks.words import sentence
from graph.agent import open_agent
from memory.errors import ModelError
from memory.messages import EVENT_KEY
from memory.records import CompactionResult
from memory.settings import Settings

OLD, RECENT = 30, 20
"""Messages that are cut, and messages of the preserve window."""
OUTPUT = 22_400
"""Characters of an old tool output."""
PAGE = (50, 70_000, 21, 15_000)
"""Messages and tokens before, messages and tokens after: what the page says."""
_FIGURES = ("messages_before", "tokens_before", "messages_after", "tokens_after")


class Row(NamedTuple):
    """The sizes before and after one compaction."""

    model: str
    messages_before: int
    messages_after: int
    result: CompactionResult


class SummaryModel(FixedModel):
    """Summarises everything in the same 25 sentences, or fails."""

    fails: bool = False

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if self.fails:
            raise ModelError("the model fails")
        text = " ".join(sentence(number) for number in range(25))
        return ChatResult(generations=[ChatGeneration(message=AIMessage(text))])


def example() -> list[AnyMessage]:
    """50 messages of about 70,000 tokens: long tool outputs first, talk in the newest 20."""
    messages: list[AnyMessage] = []
    for number in range(OLD // 3):
        call = {"name": "look_up", "args": {}, "id": f"c{number}", "type": "tool_call"}
        output = "".join(sentence(line) for line in range(OUTPUT // 80))[:OUTPUT]
        messages += [
            _asked(number, sentence(number)),
            AIMessage("", id=f"q{number}", tool_calls=[call], **_mark(number)),
            ToolMessage(output, id=f"t{number}", tool_call_id=f"c{number}", **_mark(number)),
        ]
    first = len(messages)
    for number in range(first, first + RECENT // 2):
        answer = " ".join(sentence(line) for line in range(50))
        messages += [
            _asked(number, sentence(number)),
            AIMessage(answer, id=f"a{number}", **_mark(number)),
        ]
    return messages


async def measured() -> list[Row]:
    """Both compactions, each in its own agent."""
    rows = []
    for name, fails in (("summarises", False), ("fails", True)):
        settings = Settings(memory_enabled=False)
        with tempfile.TemporaryDirectory() as folder:
            model = SummaryModel(fails=fails)
            opening = open_agent(Path(folder), model=model, embedder="offline", settings=settings)
            async with opening as agent:
                await agent.aupdate_state(None, {"messages": example()})
                before = (await agent.aget_state()).values["messages"]
                out = await agent.ainvoke({"request": "sleep"})
        result = out["report"]["night"]["compaction"]
        rows.append(Row(name, len(before), len(out["messages"]), result))
    return rows


def table(rows: list[Row]) -> Table:
    """The rows, compared with the original design's figures."""
    shown = Table(title="The context before and after a compaction")
    for name in ("model", "messages", "after", "tokens", "after", "less", "by"):
        shown.add_column(name, justify="left" if name in ("model", "by") else "right")
    for row in rows:
        before, after = row.result["tokens_before"], row.result["tokens_after"]
        shown.add_row(
            row.model,
            f"{row.messages_before}",
            f"{row.messages_after}",
            f"{before:,}",
            f"{after:,}",
            f"{1 - after / before:.0%}",
            row.result["by"],
        )
    told = [f"{figure:,}" for figure in (PAGE[0], PAGE[2], PAGE[1], PAGE[3])]
    shown.add_row("the page", *told, f"{1 - PAGE[3] / PAGE[1]:.0%}", "summary")
    return shown


def _asked(number: int, text: str) -> HumanMessage:
    return HumanMessage(text, id=f"h{number}", name="Ada", **_mark(number, event=f"h{number}"))


def _mark(number: int, **more: str) -> dict[str, Any]:
    mark = {"tick": number, "at": "2026-03-02T09:00:00+00:00", **more}
    return {"additional_kwargs": {EVENT_KEY: mark}}


def run(path: Path) -> None:
    """Measure, print the table, write the JSON to `path`."""
    rows = asyncio.run(measured())
    Console(width=100).print(table(rows))
    path.parent.mkdir(parents=True, exist_ok=True)
    told = dict(zip(_FIGURES, PAGE, strict=True))
    figures = {"page": told, "measured": [_row_json(row) for row in rows]}
    path.write_text(json.dumps(figures, indent=2) + "\n")


def _row_json(row: Row) -> dict[str, Any]:
    tokens = row.result["tokens_before"], row.result["tokens_after"]
    sizes = (row.messages_before, tokens[0], row.messages_after, tokens[1])
    figures = dict(zip(_FIGURES, sizes, strict=True))
    return {"model": row.model, "by": row.result["by"], **figures}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return the exit status."""
    parser = argparse.ArgumentParser(description="The context before and after a compaction.")
    parser.add_argument("--json", type=Path, default=Path("benchmarks/results/compaction.json"))
    run(parser.parse_args(arguments).json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
