"""How a command opens its agent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime

from graph.cli.console import Screen
from graph.cli.options import Options
from graph.handle import AsyncAgent
from graph.opening import open_agent
from memory.errors import BusyError, FolderError
from memory.home import Home, database_url, is_made, open_home
from memory.models.offline import OfflineChatModel
from memory.models.seam import OFFLINE
from memory.resources import utc_now
from memory.scope import LOCAL_USER, thread_id
from memory.settings import Deployment
from memory.store_access import count_items

NO_LANGUAGE_MODEL = (
    "model: offline (embedded rules, not a language model). "
    "For a real one set OPENAI_API_KEY or give --model."
)


def opening(
    options: Options, *, clock: Callable[[], datetime] = utc_now, mcp: bool = True
) -> open_agent:
    """The agent that `options` name, to be opened; makes the data folder where there is none."""
    return open_agent(
        options.data, options.agent, options.model, options.embedder, clock=clock, mcp=mcp
    )


@asynccontextmanager
async def opened_without_running(options: Options) -> AsyncIterator[AsyncAgent]:
    """The agent, not to be run: waits for nobody, needs no model, makes no data folder.

    Raises:
        FolderError: there is no data folder, or it cannot be used.
        DatabaseDown: there is a database in its place, and it cannot be reached.
    """
    await must_be_made(options)
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        yield agent


async def must_be_made(options: Options) -> None:
    """Raise FolderError where nothing is kept yet."""
    deployment = Deployment()
    if await asyncio.to_thread(is_made, deployment, options.data):
        return
    if database_url(deployment, options.data) is not None:
        raise FolderError("the database holds nothing of Circadian yet; `circadian send` begins")
    raise FolderError(f"no data folder at {options.folder}; `circadian send` makes one")


def say_model(screen: Screen, agent: AsyncAgent) -> None:
    """Say it when no language model is at work."""
    if isinstance(agent.resources.chat_model, OfflineChatModel):
        screen.note(NO_LANGUAGE_MODEL)


async def say_unknown(screen: Screen, agent: AsyncAgent, name: str) -> None:
    """Say it when the folder has agents, and this one is not among them."""
    mine = agent.scope.namespace()
    if (await agent.aget_state()).values or await count_items(agent.store, mine):
        return
    if await count_items(agent.store, mine[:1]):
        screen.note(f"no agent {name} here yet")


def home_as_recorded(options: Options) -> Home:
    """What keeps the agent, with the embedder recorded there whatever is asked for. Blocking.

    To be closed. Errors as `open_home`.
    """
    undecided = Deployment().model_copy(update={"embedder": None, "offline": False})
    return open_home(undecided, data=options.data)


async def holder(home: Home, agent: str) -> str | None:
    """The process that runs the agent now, as its lock names it; None where nobody does."""
    try:
        async with home.agent_lock(thread_id(LOCAL_USER, agent), timeout=0):
            return None
    except BusyError as error:
        return str(error).partition(" in use by ")[2].partition(": wait")[0]
