"""`circadian config`: the settings, where each comes from, and the settings file."""

from __future__ import annotations

import asyncio
import os
from typing import Annotated, Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from typer import Argument, Option

from graph.cli.program import Options, command, configuration_of
from graph.console import Screen, one_line, ruled_table
from memory.errors import InputError
from memory.settings import (
    OWN_REFUSED,
    Configuration,
    Deployment,
    Settings,
    SettingSource,
    edited,
    file_value,
    known_name,
    place_of_file,
    read_file,
    shown_value,
)
from memory.text import shortened

LONGEST = 60
"""Characters of a value in a table; `config get NAME` prints all."""

USAGE = "circadian config, or config get NAME, config set NAME VALUE, config unset NAME"

NAMES = (*Settings.model_fields, *Deployment.model_fields)


@command(reads_file=False)
async def config(
    options: Options,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="get NAME | set NAME VALUE | unset NAME",
            help="Print, write or remove one setting; by default, list those that are set.",
        ),
    ] = None,
    explain: Annotated[
        bool, Option("--explain", help="Every setting, and where its value comes from.")
    ] = False,
) -> int:
    """Show the settings, or change them in the settings file.

    Options override environment variables, variables override the file, the file the defaults.
    """
    screen = Screen(json=options.json)
    match words or []:
        case []:
            found = await asyncio.to_thread(configuration_of, options)
            _list(screen, options, found, everything=explain)
        case ["get", name]:
            found = await asyncio.to_thread(configuration_of, options)
            row = _row(found, known_name(name))
            screen.result(row, Text(_said(row["value"])))
        case ["set", name, value]:
            await asyncio.to_thread(_set, screen, options, name, value)
        case ["unset", name]:
            await asyncio.to_thread(_unset, screen, options, name)
        case _:
            raise InputError(USAGE)
    return 0


def _row(found: Configuration, name: str) -> dict[str, Any]:
    origin = found.origin(name)
    return {
        "name": name,
        "value": shown_value(found.value(name)),
        "source": origin.source.value,
        "place": origin.place or None,
    }


def _list(screen: Screen, options: Options, found: Configuration, *, everything: bool) -> None:
    path, _ = place_of_file(options.data, options.config)
    rows = [_row(found, name) for name in NAMES]
    shown = [row for row in rows if everything or row["source"] != SettingSource.DEFAULT]
    keys = sorted(name for name, text in os.environ.items() if text and name.endswith("_API_KEY"))
    document = {
        "file": str(path),
        "exists": found.file is not None,
        "settings": shown,
        "keys": {name: "set" for name in keys},
    }
    screen.line(f"settings file {path}")
    parts: list[RenderableType] = []
    if found.file is None:
        parts.append(Text("It is not there yet: `circadian config set` makes it.", style="dim"))
    if shown:
        parts += [Text(""), _table(shown)]
    else:
        parts.append(Text("Nothing is set: all settings are at their defaults."))
    if everything and keys:
        parts += [Text(""), Text(f"keys in the environment: {', '.join(keys)}", style="dim")]
    if not everything:
        parts.append(Text("`circadian config --explain` lists every setting.", style="dim"))
    screen.result(document, Group(*parts))


def _table(rows: list[dict[str, Any]]) -> Table:
    table = ruled_table()
    table.add_column("setting", no_wrap=True)
    table.add_column("value")
    table.add_column("from")
    for row in rows:
        style = "dim" if row["source"] == SettingSource.DEFAULT else ""
        place = row["place"] if row["source"] in ("environment", "option") else row["source"]
        value = Text(shortened(one_line(_said(row["value"])), LONGEST), style=style)
        table.add_row(Text(row["name"], style=style), value, Text(place, "dim"))
    return table


def _said(value: Any) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case list():
            return ", ".join(map(str, value)) or "[]"
        case dict():
            return ", ".join(f"{key}={one}" for key, one in value.items()) or "{}"
    return str(value)


def _set(screen: Screen, options: Options, name: str, text: str) -> None:
    path, own = place_of_file(options.data, options.config)
    known_name(name)
    if own and name in OWN_REFUSED:
        raise InputError(
            f"{name} may not stand in a data folder's own file: name another file with --config "
            f"FILE, or export CIRCADIAN_{name.upper()}"
        )
    changed = edited(path, name, file_value(name, text))
    _report(screen, options, name, "set" if changed else "unchanged")


def _unset(screen: Screen, options: Options, name: str) -> None:
    path, _ = place_of_file(options.data, options.config)
    if name not in read_file(path):
        raise InputError(f"{path} does not set {name!r:.80}")
    edited(path, name)
    _report(screen, options, name, "unset")


def _report(screen: Screen, options: Options, name: str, did: str) -> None:
    path, _ = place_of_file(options.data, options.config)
    row: dict[str, Any] = {"name": name, "value": None}
    try:
        found = configuration_of(options)
        row = _row(found, name) if name in NAMES else row
        if found.origin(name).source in (SettingSource.ENVIRONMENT, SettingSource.OPTION):
            screen.note(f"{found.origin(name).place} overrides the file")
    except InputError as error:  # another line of the file was wrong before
        screen.note(str(error))
    line = f"{name} is {_said(row['value'])}" if did != "unset" or name in NAMES else name
    screen.result({"file": str(path), "did": did, **row}, Text(f"{did}: {line} ({path})"))
