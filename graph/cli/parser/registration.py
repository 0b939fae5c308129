"""How a command is registered: with the options that all of them share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import typer

from graph.cli.shared import COMMON, Body, Json, carry_out


def group(**more: Any) -> typer.Typer:
    """Commands of one theme, plain in what they print of themselves."""
    return typer.Typer(
        add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None, **more
    )


def command(
    theme: typer.Typer, name: str | None = None, *, json: bool = True, opens: bool = True
) -> Callable[[Body], Body]:
    """Register a command; it gets the options that all of them share as its first argument.

    `opens`: it may open an agent.
    """

    def register(body: Body) -> Body:
        def run(**given: Any) -> None:
            raise typer.Exit(carry_out(body, given, opens=opens))

        shared = {**COMMON, "json": Json} if json else COMMON
        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        parameters = [*own, *(_optional(key, kind) for key, kind in shared.items())]
        run.__doc__ = body.__doc__
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # a function takes any attribute
        theme.command(name or body.__name__)(run)
        return body

    return register


def _optional(name: str, kind: Any) -> inspect.Parameter:
    default = False if kind is Json else None
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, place, default=default, annotation=kind)
