"""Opening the agent for a command, and telling a person what the command waits for."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import datetime
from difflib import get_close_matches
from typing import Any, NamedTuple

from graph.api import AsyncAgent, open_agent
from graph.cli.program import Options
from graph.console import Screen
from graph.following import Listener, follow
from graph.use_cases import list_agents
from memory.errors import MOST, BusyError, CircadianError, FolderError, InputError
from memory.installation import Installation, database_url, is_made, open_installation
from memory.models import OFFLINE, is_offline
from memory.records import LOCAL_USER, Report, thread_id
from memory.runtime import utc_now
from memory.storage import count_items

NO_LANGUAGE_MODEL = (
    "model: offline (embedded rules, not a language model). "
    "For a real one set OPENAI_API_KEY or give --model."
)

NEARLY = 0.8
"""Similarity (0..1) from which a name counts as a misspelling of another."""

PATIENCE = 1.0
"""Seconds before a command says whom it waits for."""


class Session(NamedTuple):
    """One command on an open agent."""

    options: Options
    screen: Screen
    agent: AsyncAgent

    def say_model(self) -> None:
        """Say so when no language model is at work."""
        if is_offline(self.agent.resources.chat_model):
            self.screen.note(NO_LANGUAGE_MODEL)

    async def follow(self, given: Mapping[str, Any], listener: Listener) -> Report:
        """Run the agent, and note which process the run waits for."""
        async with self.waiting("the message is in the inbox; " if given.get("events") else ""):
            return await follow(self.agent.context, given, listener)

    @asynccontextmanager
    async def waiting(self, kept: str = "") -> AsyncIterator[None]:
        """Note, once, which process holds the agent while the block waits for it."""
        if self.screen.json and not self.screen.err.is_terminal:
            yield
            return
        task = asyncio.create_task(self._say_holder(kept))
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _say_holder(self, kept: str) -> None:
        await asyncio.sleep(PATIENCE)
        with suppress(CircadianError):  # the run itself reports what is wrong
            home = await asyncio.to_thread(home_as_recorded, self.options)
            try:
                found = await holder(home, self.options.agent)
            finally:
                await asyncio.to_thread(home.close)
            if found not in (None, f"process {os.getpid()} (circadian)"):
                limit = f"up to {self.options.deployment.lock_timeout:g} s"
                self.screen.note(f"{kept}waiting for {found}, {limit}")


@asynccontextmanager
async def running(
    options: Options,
    *,
    clock: Callable[[], datetime] = utc_now,
    announce: bool = True,
    new: bool = True,
) -> AsyncIterator[Session]:
    """Open the agent to run it. `announce`: note that no language model is at work, if so.

    `new`: make an agent of this name if there is none; otherwise that is an InputError.
    """
    if options.is_named and not new:
        await must_be_made(options)
    async with opening(options, clock=clock) as agent:
        session = Session(options, Screen(json=options.json), agent)
        if new:
            await confirm_new_name(session)
        elif not await (_is_made if options.is_named else _is_known)(agent):
            raise await no_agent(session)
        if announce:
            session.say_model()
        yield session


@asynccontextmanager
async def reading(options: Options, *, announce: bool = True) -> AsyncIterator[Session]:
    """Open the agent without running it: waits for nobody, needs no model, makes no data folder.

    `announce`: note that the agent is not there, if the folder has others. With a name it is an
    InputError, since the empty answer would pass for that agent's own.
    """
    await must_be_made(options)
    screen = Screen(json=options.json)
    async with opening(replace(options, model=OFFLINE), mcp=False) as agent:
        session = Session(options, screen, agent)
        if announce and not await _is_known(agent):
            if options.is_named:
                raise await no_agent(session)
            screen.note(f"no agent {options.agent} here yet")
        yield session


def opening(
    options: Options,
    *,
    clock: Callable[[], datetime] = utc_now,
    mcp: bool = True,
) -> open_agent:
    """The agent that `options` name, ready to be opened. Opening makes a missing data folder."""
    named = (options.data, options.agent, options.model, options.embedder)
    return open_agent(*named, options.configuration, clock=clock, mcp=mcp)


async def must_be_made(options: Options) -> None:
    """Raise FolderError if there is no data folder, or the database is empty."""
    deployment = options.deployment
    if await asyncio.to_thread(is_made, deployment, options.data):
        return
    if database_url(deployment, options.data) is not None:
        raise FolderError("the database holds nothing of Circadian yet; `circadian send` begins")
    raise FolderError(f"no data folder at {options.folder}; `circadian send` makes one")


async def confirm_new_name(session: Session) -> None:
    """Ask before making an agent whose name is nearly that of another. Without a terminal, note it.

    Raises:
        InputError: the person says no, or `--json` leaves nobody to ask.
    """
    options, screen, agent = session
    if not options.is_named or await _is_known(agent):
        return
    others = [line["name"] for line in await list_agents(agent.context) if line["name"]]
    close = get_close_matches(options.agent, others, 1, NEARLY)
    if not close:
        return
    problem = f"there is no agent {options.agent!r:.80} here; there is {close[0]!r:.80}"
    if options.json:
        raise InputError(f"{problem}; a command without --json makes a new one")
    if not sys.stdin.isatty():
        screen.note(f"{problem}; a new one is made")
    else:
        said = await _typed(f"{problem}. Make a new one? [y/N] ")
        if said.strip().lower() not in ("y", "yes"):
            raise InputError("no agent was made")


async def _typed(prompt: str) -> str:
    """A line from the terminal; empty at its end. No thread waits in `input`, deaf to Ctrl-C."""
    sys.stdout.write(prompt)
    sys.stdout.flush()
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(sys.stdin, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(sys.stdin)
    return sys.stdin.readline()


async def no_agent(session: Session) -> InputError:
    """That the agent is not there, and which are."""
    names = [line["name"] for line in await list_agents(session.agent.context) if line["name"]]
    some = f" ({', '.join(name[:80] for name in names[:MOST])})" if names else ""
    ways = f"`circadian agents` lists those that are{some}, and `circadian send` makes one"
    return InputError(f"there is no agent {session.options.agent!r:.80} here; {ways}")


async def must_be_here(session: Session) -> None:
    """Raise InputError if the agent is not there."""
    if not await _is_made(session.agent):
        raise await no_agent(session)


async def _is_made(agent: AsyncAgent) -> bool:
    made = await agent.context.values() or await count_items(agent.store, agent.scope.namespace())
    return bool(made)


async def _is_known(agent: AsyncAgent) -> bool:
    """Whether the agent is here, or no agent is."""
    mine = agent.scope.namespace()
    return await _is_made(agent) or not await count_items(agent.store, mine[:1])


def home_as_recorded(options: Options) -> Installation:
    """The data folder or database, open, with the embedder recorded there. Blocking."""
    undecided = options.deployment.model_copy(update={"embedder": None, "offline": False})
    return open_installation(undecided, data=options.data)


async def holder(home: Installation, agent: str) -> str | None:
    """The process that holds the agent's lock, as the lock names it; None if the lock is free."""
    try:
        async with home.agent_lock(thread_id(LOCAL_USER, agent), timeout=0):
            return None
    except BusyError as error:
        return str(error).partition(" in use by ")[2].partition(": wait")[0]


def standard_input() -> str:
    """The text on standard input. Raises InputError unless it is UTF-8."""
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise InputError("standard input is not UTF-8 text") from None
