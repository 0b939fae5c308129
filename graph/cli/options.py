"""The options that all commands share, and how a command is declared with them."""

from __future__ import annotations

import asyncio
import inspect
import shlex
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from typer import Option
from typer.core import TyperCommand

from graph.cli.exits import interrupted
from memory.errors import InputError
from memory.settings import Deployment

Body = Callable[..., Coroutine[Any, Any, int]] | Callable[..., int]
"""A command: takes Options and its own arguments, returns the exit status."""

LOADED: dict[str, TyperCommand] = {}
"""The commands imported so far, by name."""


@dataclass(frozen=True)
class Options:
    """The values of the shared options."""

    data: Path | None
    """`--data` as given; `folder` is the data folder in use."""
    folder: Path
    agent: str
    model: str | None
    embedder: str | None
    offline: bool
    """CIRCADIAN_OFFLINE."""
    lock_timeout: float
    """Seconds to wait for another process's run."""
    json: bool

    @classmethod
    def of(
        cls, deployment: Deployment, *, data: Path | None = None, json: bool = False, **given: Any
    ) -> Options:
        """The options as given, with the environment's values for the others."""
        return cls(
            data=data,
            folder=(data or deployment.data).expanduser(),
            agent=given.get("agent") or deployment.agent,
            model=given.get("model") or deployment.model,
            embedder=given.get("embedder") or deployment.embedder,
            offline=deployment.offline,
            lock_timeout=deployment.lock_timeout,
            json=json,
        )

    def command_line(self, *words: str, with_model: bool = False) -> str:
        """The command `circadian WORDS` on this agent, to be copied into a shell."""
        usual = Deployment()
        more = ["--data", str(self.data)] if self.data is not None else []
        more += ["--agent", self.agent] if self.agent != usual.agent else []
        if with_model and self.model and self.model != usual.model:
            more += ["--model", self.model]
        return shlex.join(["circadian", *words, *more])


def _option(kind: Any, metavar: str, help: str) -> Any:
    return Annotated[kind | None, Option(metavar=metavar, help=help)]


COMMON = {
    "data": _option(Path, "DIR", "The data folder [CIRCADIAN_DATA, else ./.circadian]."),
    "agent": _option(str, "NAME", "The agent's name [CIRCADIAN_AGENT, else default]."),
    "model": _option(str, "NAME", "offline, openai:<model>, <provider>:<model>."),
    "embedder": _option(str, "NAME", "As --model; later only reindex changes it."),
}

WITH_VALUE = {f"--{name}" for name in COMMON}
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]


def command(name: str | None = None, *, json: bool = True) -> Callable[[Body], Body]:
    """Declare a command: its own parameters and docstring, and the shared options."""

    def declare(body: Body) -> Body:
        def run(**given: Any) -> None:
            raise typer.Exit(_carry_out(body, given))

        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        shared = [_keyword(key, kind, None) for key, kind in COMMON.items()]
        shared += [_keyword("json", Json, False)] if json else []
        parameters = [*own, *shared]
        run.__doc__ = body.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # a function takes any attribute
        called = name or body.__name__
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(called)(run)
        LOADED[called] = typer.main.get_command(alone)  # type: ignore[assignment] # it has one command
        return body

    return declare


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, place, default=default, annotation=kind)


def _carry_out(body: Body, given: dict[str, Any]) -> int:
    try:
        from graph.cli.logs import set_up

        deployment = _deployment()
        set_up(deployment)
        shared = {key: given.pop(key) for key in (*COMMON, "json") if key in given}
        result = body(Options.of(deployment, **shared), **given)
        return result if isinstance(result, int) else asyncio.run(result)
    except KeyboardInterrupt:  # Typer would end it without a word
        return interrupted()


def _deployment() -> Deployment:
    try:
        return Deployment()
    except ValidationError as error:
        first = error.errors()[0]
        variable = "CIRCADIAN_" + "_".join(str(part) for part in first["loc"]).upper()
        raise InputError(f"{variable}: {first['msg']}") from None
