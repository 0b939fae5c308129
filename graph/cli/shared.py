"""What all commands share: their options, and how they are carried out."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError

from graph.cli.app import interrupted
from graph.cli.options import Options
from memory.collecting import not_collecting
from memory.errors import InputError
from memory.settings import Deployment

Body = Callable[..., Coroutine[Any, Any, int]] | Callable[..., int]
"""What a command does, given Options and its own arguments; returns the exit status."""

Data = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The data folder [CIRCADIAN_DATA, else ./.circadian].",
        show_default=False,
    ),
]
Agent = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="The agent's name [CIRCADIAN_AGENT, else default].", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="offline, openai:<model>, <provider>:<model>.", show_default=False
    ),
]
Embedder = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="As --model; later only reindex changes it.", show_default=False
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]

COMMON: dict[str, Any] = {"data": Data, "agent": Agent, "model": Model, "embedder": Embedder}
WITH_VALUE = {f"--{name}" for name in COMMON}


def carry_out(body: Body, given: dict[str, Any], *, opens: bool) -> int:
    """Carry the command out; `opens`: it may open an agent.

    Typer would end a Ctrl-C without a word.
    """
    try:
        from graph.cli.logs import set_up

        if opens:
            _import_all()
        deployment = _deployment()
        set_up(deployment)
        shared = {key: given.pop(key, None) for key in (*COMMON, "json")}
        options = Options.of(deployment, **{**shared, "json": bool(shared["json"])})
        result = body(options, **given)
        return result if isinstance(result, int) else asyncio.run(result)
    except KeyboardInterrupt:
        return interrupted()


def _import_all() -> None:
    """Import what opening an agent takes: some thousand modules, of which nothing is ever garbage.

    To look for garbage in it, while it grows and at the end of the process, takes a fifth of what
    a short command takes in all.
    """
    if "graph.cli.access" in sys.modules:
        return
    with not_collecting():
        import_module("graph.cli.access")
        gc.freeze()


def _deployment() -> Deployment:
    try:
        return Deployment()
    except ValidationError as error:
        first = error.errors()[0]
        variable = "CIRCADIAN_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InputError(f"{variable}: {first['msg']}") from None
