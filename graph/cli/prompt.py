"""`circadian prompt`: the user's prompt, the assistant's own one, and its versions."""

from __future__ import annotations

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.cli.access import opened_without_running
from graph.cli.console import Screen, clean, clock_time, date, one_line
from graph.cli.options import Options
from graph.cli.waiting import telling_waits
from graph.prompt import prompt_of, rollback
from memory.models.words import shortened
from memory.state import AssistantPrompt, PromptVersion

FIRST_LINE = 60
"""Characters of a version's text that its line shows."""


async def prompt(options: Options, version: int | None) -> int:
    """Print the prompts; with `version`, put that version's text in force first."""
    screen = Screen(json=options.json)
    async with opened_without_running(options) as agent:
        before = own = await prompt_of(agent.context)
        if version is not None:
            async with telling_waits(options, screen):
                own = await rollback(agent.context, version)
            screen.show(_went_back(before, own, version), Text(""))
        user = agent.settings.user_prompt
    screen.result({"user_prompt": user, **own}, prompt_view(user, own))
    return 0


def prompt_view(user: str, own: AssistantPrompt) -> RenderableType:
    """Both prompts, the one that stands above first, then the versions, newest first."""
    parts: list[RenderableType] = [
        Text.assemble(("The user's prompt", "bold"), ("  setting user_prompt", "dim")),
        _text(user),
        Text(""),
        Text.assemble(
            ("The assistant's own prompt", "bold"), (f"  version {own['version']}", "dim")
        ),
        _text(own["text"]),
    ]
    if own["versions"]:
        parts += [Text(""), _versions(own)]
    return Group(*parts)


def _text(text: str) -> RenderableType:
    shown = Text(clean(text)) if text else Text("empty", style="dim")
    return Padding(shown, (0, 0, 0, 2))


def _versions(own: AssistantPrompt) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
    table.add_column("version", justify="right", no_wrap=True)
    for name in ("when", "by", "why", "text"):
        table.add_column(name, no_wrap=name == "when")
    for one in reversed(own["versions"]):
        table.add_row(*_row(one), style="bold" if one["version"] == own["version"] else "")
    return table


def _row(one: PromptVersion) -> list[RenderableType]:
    """When, by whom, why, and how it begins."""
    first = one_line(one["text"].partition("\n")[0])
    return [
        str(one["version"]),
        f"{date(one['at'])} {clock_time(one['at'])}",
        Text(one_line(one["by"])),
        Text(one_line(one["reason"])),
        Text(shortened(first, FIRST_LINE) or "empty"),
    ]


def _went_back(before: AssistantPrompt, now: AssistantPrompt, version: int) -> Text:
    if now["version"] == before["version"]:
        return Text(f"The text of version {version} is in force already: nothing was changed.")
    return Text(f"The text of version {version} is in force again, as version {now['version']}.")
