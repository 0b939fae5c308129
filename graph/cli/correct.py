"""`circadian correct`: a person mends a fact."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from graph import corrections
from graph.cli.access import opened_without_running
from graph.cli.console import Screen, date, one_line
from graph.cli.options import Options
from graph.cli.recall import short_ids
from graph.cli.waiting import telling_waits
from memory.records import Fact


async def correct(options: Options, fact: str, text: str, by: str | None) -> int:
    """Put `text` in a fact's place; print the fact that holds now and the superseded one."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        old = await corrections.find_fact(agent.context, fact)
        async with telling_waits(options, screen):
            new = await corrections.correct(agent.context, old["id"], text, by)
        before = await agent.resources.semantic.get(agent.scope, old["id"])
    superseded = before if new["id"] != old["id"] else None
    screen.result({"fact": new, "superseded": superseded}, correction_view(new, superseded))
    return 0


def correction_view(new: Fact, old: Fact | None) -> RenderableType:
    """The old fact crossed out, and the new one under it."""
    if old is None:
        return Text("The fact says so already: nothing was changed.")
    shortened = short_ids([old["id"], new["id"]])
    rows = Table.grid(padding=(0, 2))
    told = f" superseded, {date(new['valid_from'])}"
    gone = Text.assemble((one_line(old["text"]), "strike"), (told, "yellow"))
    holds = Text.assemble(one_line(new["text"]), (f" ({one_line(new['speaker'] or '-')})", "dim"))
    rows.add_row(Text("-", "red"), Text(shortened[old["id"]], "dim"), gone)
    rows.add_row(Text("+", "green"), Text(shortened[new["id"]], "cyan"), holds)
    return rows
