"""A process that runs an agent and is killed at a chosen point, or waits there to be killed."""

import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.store.base import PutOp
from langgraph.types import Command

from graph.agent import builder
from graph.api import AsyncAgent
from graph.use_cases import nights
from graph.use_cases.approvals import decide
from memory.errors import CircadianError
from memory.facts.semantic import SemanticMemory
from memory.night import record as night
from memory.settings import Settings
from memory.state.schema import AgentInput
from memory.storage.postgres.saver import CircadianPostgresSaver
from memory.storage.postgres.store import CircadianPostgresStore
from memory.storage.sqlite.saver import CircadianSqliteSaver
from memory.storage.sqlite.store import CircadianSqliteStore
from tests.support.agents import opened
from tests.support.clock import Clock
from tests.support.crash_model import behave, dream_of_all
from tests.support.scripted import ScriptedChatModel
from tools.registry import registered

START = "2026-03-02T09:00:00+00:00"


@dataclass(frozen=True)
class Point:
    """Where a process ends: at the `nth` call (from 1) of one kind, before or after its work.

    Kinds: `write` (a checkpoint, a task's writes, a store batch with puts, or a batch of facts:
    counted together), `checkpoint`, `puts`, `facts`, `fact` (one fact inside a batch), `model`,
    `tool` (the dangerous tool's work). A store batch counts as `put NAMESPACE` too, once for each
    namespace in it, and the plans of a night as `plan STEP`.
    """

    kind: str
    nth: int
    when: str = "after"
    hold: bool = False
    """Stand still there for a minute, instead of dying at once."""


@dataclass(frozen=True)
class Job:
    """What a process does: open the agent of `data`, run each input, write what came out."""

    data: str
    """The data folder; beside it stands what the processes tell. With `database` only that."""
    inputs: list[Any] = field(default_factory=list)
    """Inputs of runs, in order. `{"resume": answer}` answers the question that stands, as a
    server's run whose id is `run` if that is given too; `{"decide": [place, answer]}` answers one
    of those that wait; `{"do": ["preview"]}`, `["apply"]` and `["undo"]` are of the last night."""
    post: list[dict[str, Any]] = field(default_factory=list)
    """Events posted before the runs."""
    point: Point | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    now: str = START
    plain: bool = False
    """A plain compiled graph with `durability="async"` and fresh input, as a server runs it."""
    options: dict[str, Any] = field(default_factory=dict)
    """Of each run, as `durability`."""
    delay: float = 0.0
    """Seconds that the model takes."""
    name: str = "first"
    """Tells the jobs on one data folder apart."""
    model: str = "plain"
    """`plain`: `tests.support.crash_model`; `dreams`: `dream_of_all` there."""
    database: str | None = None
    """The connection string of the database that is used in place of a folder."""

    @property
    def log(self) -> Path:
        """Where all processes on one data folder count model calls."""
        return Path(f"{self.data}.calls")

    @property
    def launched(self) -> Path:
        """Where all processes on one data folder write what they launched, a line each."""
        return Path(f"{self.data}.launched")

    @property
    def given(self) -> Path:
        """Where they write the place of each input before they take it, a line each."""
        return Path(f"{self.data}.given")

    @property
    def out(self) -> Path:
        """Where the process writes what it saw."""
        return Path(f"{self.data}.{self.name}.out")

    @property
    def errors(self) -> Path:
        return Path(f"{self.data}.{self.name}.err")

    @property
    def reached(self) -> Path:
        """A file that stands once the point is reached with `hold`."""
        return Path(f"{self.data}.{self.name}.reached")


class Points:
    """Counts calls of each kind, and ends the process at its point."""

    def __init__(self, job: Job) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, int] = {}
        """The write (from 1) that is the first of each kind."""
        self.last: dict[str, int] = {}
        self._point, self._reached = job.point, job.reached

    async def around(self, kinds: set[str], work: Callable[[], Awaitable[Any]]) -> Any:
        """Do `work` as one call of each of `kinds`."""
        numbers = {kind: self.count(kind) for kind in kinds}
        for kind in kinds:
            self.first.setdefault(kind, numbers["write"])
            self.last[kind] = numbers["write"]
        self.end_at(numbers, "before")
        result = await work()
        self.end_at(numbers, "after")
        return result

    def count(self, kind: str) -> int:
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return self.counts[kind]

    def end_at(self, numbers: dict[str, int], when: str) -> None:
        point = self._point
        if point is None or point.when != when or numbers.get(point.kind) != point.nth:
            return
        if not point.hold:
            os.kill(os.getpid(), signal.SIGKILL)
        self._reached.touch()
        time.sleep(60)


def watch(points: Points) -> None:
    """Let `points` see every durable write of this process."""
    from memory.facts.mem0 import Mem0

    for owner, name, kind in (
        (CircadianSqliteSaver, "aput", "checkpoint"),
        (CircadianSqliteSaver, "aput_writes", "checkpoint"),
        (CircadianSqliteStore, "abatch", "puts"),
        (CircadianSqliteStore, "aput_new", "puts"),
        (CircadianPostgresSaver, "aput", "checkpoint"),
        (CircadianPostgresSaver, "aput_writes", "checkpoint"),
        (CircadianPostgresStore, "abatch", "puts"),
        (SemanticMemory, "add", "facts"),
    ):
        setattr(owner, name, _watched(points, getattr(owner, name), kind))
    add = Mem0.add

    def one_fact(self: Mem0, *args: Any, **kwargs: Any) -> None:
        number = {"fact": points.count("fact")}
        points.end_at(number, "before")
        add(self, *args, **kwargs)
        points.end_at(number, "after")

    setattr(Mem0, "add", one_fact)  # noqa: B010  # mypy takes no assignment to a method


def _watched(
    points: Points, method: Callable[..., Awaitable[Any]], kind: str
) -> Callable[..., Awaitable[Any]]:
    async def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        kinds = {kind, "write"}
        if kind == "puts":
            args = (list(args[0]),)
            named = {_kind_of(op) for op in args[0] if isinstance(op, PutOp)}
            if not named:
                return await method(self, *args)
            kinds |= named
        return await points.around(kinds, lambda: method(self, *args, **kwargs))

    return watched


def _kind_of(put: PutOp) -> str:
    """`plan STEP` for a plan of a night, else `put NAMESPACE` without user and thread."""
    name = put.namespace[2]
    return f"plan {put.value['step']}" if name == "night" and put.value else f"put {name}"


def model_of(job: Job, points: Points) -> ScriptedChatModel:
    """The model, whose calls are points too: `before` its answer and `after` it was made."""

    def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        number = {"model": points.count("model")}
        points.end_at(number, "before")
        said = BEHAVIOURS[job.model](messages, tools)
        points.end_at(number, "after")
        return said

    return ScriptedChatModel(otherwise=answer, log_path=job.log, delay=job.delay)


def launch_tool(job: Job, points: Points) -> BaseTool:
    """The dangerous tool: a line in a file each time that it runs."""

    async def launch(target: str) -> str:
        """Launch a rocket."""
        number = {"tool": points.count("tool")}
        points.end_at(number, "before")
        add_line(job.launched, target)
        points.end_at(number, "after")
        return f"launched to {target}"

    return registered(launch, "dangerous")


BEHAVIOURS = {"plain": behave, "dreams": dream_of_all}
Run = Callable[..., Awaitable[dict[str, Any]]]


@asynccontextmanager
async def running(job: Job, points: Points) -> AsyncIterator[tuple[AsyncAgent, Run]]:
    """The agent of a job, and what runs it."""
    clock = Clock(datetime.fromisoformat(job.now))
    settings = Settings(**job.settings)
    model, tools = model_of(job, points), [launch_tool(job, points)]
    data = None if job.database else Path(job.data)
    named = {"CIRCADIAN_DATABASE_URL": job.database} if job.database else {}
    with patch.dict(os.environ, named):
        async with opened(data, model, clock, settings=settings, tools=tools) as agent:
            ours = partial(agent.ainvoke, raise_on_failure=False, **job.options)
            run = plain_run(agent) if job.plain else ours
            yield agent, partial(step, agent, run)


async def step(agent: AsyncAgent, run: Run, given: Any) -> dict[str, Any]:
    """One run, of an input as `Job.inputs` holds them."""
    if given and "do" in given:
        return await done_to_a_night(agent, *given["do"])
    if given and "decide" in given:
        place, answer = given["decide"]
        parked = (await agent.aget_state()).values["parked"]
        await decide(agent.context, parked[place]["question"]["id"], answer)
        return await run(None)
    if given and "resume" in given:
        more = {"run": given["run"]} if "run" in given else {}
        return await run(Command(resume=given["resume"]), **more)
    return await run(given)


async def done_to_a_night(agent: AsyncAgent, deed: str, place: int = -1) -> dict[str, Any]:
    """Preview one, or apply or undo the one at `place` among all."""
    if deed == "preview":
        return {"report": {"night": await nights.sleep(agent.context, dry_run=True)}}
    name = (await night.records(agent.store, agent.scope))[place]["id"]
    if deed == "apply":
        return {"report": {"night": await nights.apply_night(agent.context, name)}}
    return {"report": {"night": await nights.undo_night(agent.context, name)}}


def add_line(file: Path, line: str) -> None:
    """Add a line, on disk whatever happens to the process then."""
    with file.open("a") as opened_file:
        opened_file.write(f"{line}\n")


def plain_run(agent: AsyncAgent) -> Run:
    """Runs the graph as a server does: every input is fresh, checkpoints are not awaited."""
    graph = builder.compile(checkpointer=agent.graph.checkpointer, store=agent.store)
    config = agent.config()
    nothing: AgentInput = {"messages": []}

    async def as_served(given: Any, run: str | None = None) -> dict[str, Any]:
        bound: RunnableConfig = {**config, "metadata": {"run_id": run} if run else {}}
        output = await graph.ainvoke(
            given or nothing, bound, context=agent.settings, durability="async"
        )
        return cast(dict[str, Any], output)

    return as_served


async def work(job: Job) -> None:
    points = Points(job)
    watch(points)
    result: dict[str, Any] = {"reports": [], "posted": [], "error": None}
    try:
        async with running(job, points) as (agent, run):
            for counted in (points.counts, points.first, points.last):
                counted.clear()
            if job.post:
                result["posted"] = (await agent.post(job.post))._asdict()
            for place, given in enumerate(job.inputs):
                add_line(job.given, str(place))
                result["reports"].append((await run(given))["report"])
    except CircadianError as error:
        result["error"] = [type(error).__name__, str(error)]
    result |= {"counts": points.counts, "first": points.first, "last": points.last}
    partial = job.out.with_suffix(f".{os.getpid()}")
    partial.write_text(json.dumps(result))
    partial.replace(job.out)


def run_job(job: Job) -> None:
    """Be the process that does a job; its standard error goes to a file."""
    gc.freeze()  # nothing looks for garbage in what was imported
    with job.errors.open("ab") as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())
    asyncio.run(work(job))
