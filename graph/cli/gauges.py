"""What a prompt costs, what was spent, which services are left alone: lines of the status. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from graph.cli.console import one_line
from memory.prompt_health import ComponentHealth, PromptHealth

LARGEST = 3
"""Parts of the prompt that its one line names."""


def prompt_gauge(prompt: PromptHealth, own_version: int, *, verbose: bool) -> RenderableType:
    """The largest parts on one line; all of them where something is wrong, or when asked for."""
    parts = [part for part in prompt["components"] if part["tokens"]]
    largest = sorted(parts, key=lambda part: part["tokens"], reverse=True)[:LARGEST]
    named = ", ".join(f"{one_line(part['key'])} {part['tokens']:,}" for part in largest)
    line = Text.assemble(f"{named} tokens", (", ..." if len(parts) > LARGEST else "", "dim"))
    if own_version:
        line.append(f" · its own guidelines in version {own_version}", "dim")
    if not (verbose or prompt["problems"]):
        return line
    problems = [Text(one_line(problem), style="yellow") for problem in prompt["problems"]]
    return Group(line, *problems, _parts(parts))


def spending_gauge(spending: Mapping[str, Any]) -> RenderableType:
    """Today's tokens and this hour's ticks of its own, of what there may be."""
    line = Text(
        f"{spending['tokens']:,} of {spending['tokens_per_day']:,} tokens today · "
        f"{spending['autonomous_ticks']:,} of {spending['autonomous_ticks_per_hour']:,} "
        "ticks of its own this hour"
    )
    if spending["over"] is None:
        return line
    return Group(line, Text(one_line(spending["over"]), style="yellow"))


def breakers_gauge(breakers: Mapping[str, str]) -> Text | None:
    """The services that are left alone; None where there are none."""
    told = {"open": "left alone after too many failures", "half_open": "to be tried again"}
    lines = [f"{name}: {told[state]}" for name, state in breakers.items() if state in told]
    return Text("\n".join(lines), style="yellow") if lines else None


def _parts(parts: list[ComponentHealth]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("part")
    for name in ("tokens", "share", "budget"):
        table.add_column(name, justify="right")
    for part in parts:
        budget = "-" if part["budget"] is None else f"{part['budget']:,}"
        style = "yellow" if part["at_budget"] else ""
        row = (one_line(part["key"]), f"{part['tokens']:,}", f"{part['share']:g} %", budget)
        table.add_row(*row, style=style)
    return table
