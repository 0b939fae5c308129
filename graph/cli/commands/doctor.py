"""`circadian doctor`: is everything there that the agent needs, and is it sound?"""

from __future__ import annotations

import asyncio
import os
import platform
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, NotRequired, TypeVar

from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from pydantic import SecretStr
from rich.table import Table
from rich.text import Text
from typer import Option
from typing_extensions import TypedDict

from graph.cli.access import holder, home_as_recorded, reading
from graph.cli.program import Options, command
from graph.console import Screen, counted, one_line
from graph.use_cases import half_done, losses, status
from memory.errors import CircadianError, InputError, ModelError
from memory.installation import (
    FOLDER_SCHEMA,
    DataFolder,
    Installation,
    database_url,
    examine,
    is_made,
)
from memory.models import (
    OFFLINE,
    RetryPolicy,
    ask,
    choose_embedder,
    choose_model,
    embed_query,
    is_offline,
    load_embedder,
    model_name,
)
from memory.prompt import registered
from memory.records import LOCAL_USER, thread_id
from memory.settings import Deployment, SettingSource
from memory.storage.sqlite import quick_check
from tools.extensions import folder_tools, load_extensions, mcp_tools
from tools.registry import BUILT_IN, checked_tools

T = TypeVar("T")

PATIENCE = 60.0
"""Seconds that a call to a model or an embedder may take here."""

DATABASE, FOLDER = "database", "data folder"

FACTS_LOST = "missing: `circadian reindex` indexes the journal again; facts are in a backup alone"


class Check(TypedDict):
    """The result of one check."""

    name: str
    ok: bool
    detail: str
    note: NotRequired[bool]
    """Whether a person should know the detail, though nothing is wrong."""


@command()
async def doctor(
    options: Options,
    call: Annotated[bool, Option("--call", help="Also call model and embedder once.")] = False,
) -> int:
    """Check the installation, the data folder and the model."""
    deployment = options.deployment
    checks = [
        _check("python", platform.python_version(), ok=sys.version_info >= (3, 11)),
        *(_check(name, version(name)) for name in ("langgraph", "mem0ai")),
        *_settings(options),
        await _tried("model", _model(options, call=call)),
        *await _additions(deployment, options),
        *await _memory(options, call=call),
    ]
    ok = all(check["ok"] for check in checks)
    thread = thread_id(LOCAL_USER, options.agent)
    Screen(json=options.json).result(
        {"ok": ok, "agent": options.agent, "thread": thread, "checks": checks},
        Text(f"agent {one_line(options.agent)}, thread {thread}"),
        _view(checks),
    )
    return 0 if ok else 1


def _check(name: str, detail: str, *, ok: bool = True, note: bool = False) -> Check:
    check: Check = {"name": name, "ok": ok, "detail": detail}
    return {**check, "note": True} if note else check


def _problem(name: str, detail: str) -> Check:
    return _check(name, detail, ok=False)


def _settings(options: Options) -> list[Check]:
    """The settings file, if there is one; a wrong file has already ended the command."""
    found = options.configuration
    if found.file is None:
        return []
    here = sum(origin.source is SettingSource.FILE for origin in found.origins.values())
    return [_check("settings", f"{found.file}, {here} in force; `circadian config` shows them")]


async def _tried(name: str, work: Awaitable[str]) -> Check:
    try:
        return _check(name, await work)
    except CircadianError as error:
        return _problem(name, str(error))


async def _model(options: Options, *, call: bool) -> str:
    model = choose_model(options.model, offline=options.deployment.offline)
    if is_offline(model):
        return f"{model_name(model)}{'; nothing to call' if call else ''}"
    if not call:
        name = model_name(model)
        variable = f"{name.partition(':')[0].replace('-', '_').upper()}_API_KEY"
        return f"{name}{', a key is set' if os.environ.get(variable) else ''}; --call asks it"
    question = HumanMessage("Answer with the one word: ready")
    asking = ask(model, [question], options.configuration.settings, attempts=1)
    answer, took = await _timed(asking, "the model")
    cost = counted(answer.usage["tokens"], "token")
    return f"{model_name(model)}, it answers in {took}, {cost}"


async def _timed(answer: Coroutine[Any, Any, T], who: str) -> tuple[T, str]:
    begun = time.perf_counter()
    try:
        found = await asyncio.wait_for(answer, PATIENCE)
    except TimeoutError:
        raise ModelError(f"{who} did not answer within {PATIENCE:g} s") from None
    return found, f"{(time.perf_counter() - begun) * 1_000:,.0f} ms"


async def _additions(deployment: Deployment, options: Options) -> list[Check]:
    """Checks of working folder, extensions and MCP servers, and the circuit breakers' rule."""
    tools: list[BaseTool] = []

    async def folder(root: Path) -> str:
        tools.extend(await asyncio.to_thread(folder_tools, root, data=options.folder))
        return counted(len(tools), "tool")

    async def extensions(module: str) -> str:
        found = await asyncio.to_thread(load_extensions, module)
        checked_tools([*tools, *found.tools])
        registered(found.components)
        tools.extend(found.tools)
        components = counted(len(found.components), "component")
        return f"{counted(len(found.tools), 'tool')}, {components}"

    async def servers(file: Path) -> str:
        found = await mcp_tools(file, taken={*BUILT_IN, *checked_tools(tools)})
        return counted(len(found), "tool")

    failed = counted(deployment.breaker_failures, "failed call")
    left = f"a service is left alone for {deployment.breaker_seconds:g} s after {failed} in a row"
    return [
        await _addition("working folder", "CIRCADIAN_FOLDER", deployment.folder, folder),
        await _addition("extensions", "CIRCADIAN_EXTENSIONS", deployment.extensions, extensions),
        await _addition("MCP servers", "CIRCADIAN_MCP", deployment.mcp, servers),
        _check("breaker", left),
    ]


async def _addition(
    name: str, variable: str, value: T | None, load: Callable[[T], Awaitable[str]]
) -> Check:
    async def loaded() -> str:
        return f"none; {variable} names one" if value is None else f"{value}, {await load(value)}"

    return await _tried(name, loaded())


async def _memory(options: Options, *, call: bool) -> list[Check]:
    """Checks of the installation, its files, the lock and the inbox, up to the first failure."""
    url = database_url(options.deployment, options.data)
    checks: list[Check] = []
    try:
        if url is not None:
            checks.append(await asyncio.to_thread(_database, url))
        if not await asyncio.to_thread(is_made, options.deployment, options.data):
            return [*checks, *await _nothing_yet(options, url, call=call)]
        home = await asyncio.to_thread(home_as_recorded, options)
    except CircadianError as error:
        return [_problem(FOLDER if url is None else DATABASE, str(error))]
    try:
        return [*checks, *await _of_home(options, home, call=call)]
    finally:
        await asyncio.to_thread(home.close)


async def _nothing_yet(options: Options, url: SecretStr | None, *, call: bool) -> list[Check]:
    if url is None and options.folder.is_file():
        return [_problem(FOLDER, f"{options.folder} is a file; name a folder with --data")]
    none = _check(FOLDER, "none yet: circadian send makes one", note=True)
    if url is not None:
        none = _check("memory", "none there yet: circadian send begins", note=True)
    name = choose_embedder(options.embedder, offline=options.deployment.offline)
    return [none, await _embedder(name, lambda: load_embedder(name), call=call)]


def _database(url: SecretStr) -> Check:
    seen = examine(url)
    from memory.storage.postgres import SIZE

    few_left = seen.most - seen.connections <= SIZE
    details = [
        f"{seen.name}, PostgreSQL {seen.server}",
        f"pgvector {seen.vector}" if seen.vector else "no pgvector: install it on the server",
        f"answered in {seen.seconds * 1_000:,.0f} ms",
        f"{seen.connections:,} of {seen.most:,} connections open, a pool takes up to {SIZE}",
        *(["few are left: raise max_connections"] if few_left else []),
    ]
    return _check(DATABASE, ", ".join(details), ok=seen.vector is not None, note=few_left)


async def _of_home(options: Options, home: Installation, *, call: bool) -> list[Check]:
    """Checks of an open installation; the agent is opened only if everything else is sound."""
    embedder = await _embedder(
        home.embedder, home.semantic.open_embeddings, call=call, dimension=home.dimension
    )
    checks = []
    if isinstance(home, DataFolder):
        checks.append(_check(FOLDER, f"{home.path}, writable, schema {FOLDER_SCHEMA}"))
        if home.store_db.exists() and not home.facts_db.exists():
            checks.append(_problem(home.facts_db.name, FACTS_LOST))
    checks += [embedder, *[await _file(path) for path in _files(home)]]
    if not all(check["ok"] for check in checks if check is not embedder):
        return checks
    checks.append(await _vectors(home))
    found = await holder(home, options.agent)
    checks.append(_check("lock", f"held by {found}" if found else "nobody runs the agent now"))
    return [*checks, await _agent(options)]


async def _embedder(
    name: str, load: Callable[[], Embeddings], *, call: bool, dimension: int | None = None
) -> Check:
    """The embedder: can it be made, with `call` does it embed, and do its vectors fit?"""
    try:
        embeddings = await asyncio.to_thread(load)
        numbers, asked = dimension, "--call asks it"
        if call:
            sent = embed_query(embeddings, "ready", RetryPolicy(attempts=1))
            vector, took = await _timed(sent, "the embedder")
            numbers = len(vector)
            asked = f"it embeds in {took}, about 1 token, {numbers:,} numbers"
    except CircadianError as error:
        return _problem("embedder", f"{name}: {error}")
    if dimension is not None and numbers != dimension:
        wrong = f"{name} gives vectors of {numbers} numbers, and those kept have {dimension}"
        return _problem("embedder", f"{wrong}: `circadian reindex --embedder {name}`")
    return _check("embedder", name if name == OFFLINE else f"{name}, {asked}")


def _files(home: Installation) -> list[Path]:
    if not isinstance(home, DataFolder):
        return []
    return [path for path in (home.checkpoints_db, home.store_db, home.facts_db) if path.exists()]


async def _file(path: Path) -> Check:
    wrong, size = await asyncio.to_thread(lambda: (quick_check(path), path.stat().st_size))
    return _check(path.name, wrong or f"sound, {size / 1e6:,.1f} MB", ok=wrong is None)


async def _vectors(home: Installation) -> Check:
    """Memories without a vector of the embedder in use are found by words alone."""
    try:
        waiting = await home.semantic.count_unembedded()
    except CircadianError as error:
        return _problem("vectors", str(error))
    kind = f"{home.embedder}, {home.dimension:,} numbers each"
    if not waiting:
        return _check("vectors", f"none is missing ({kind})")
    waits = counted(waiting, "memory waits", "memories wait")
    detail = f"{waits} for one ({kind}), found by words until `circadian reindex`"
    return _check("vectors", detail, note=True)


async def _agent(options: Options) -> Check:
    try:
        async with reading(options, announce=False) as (_, _, agent):
            if left := await half_done(agent.context):
                return _problem(next(iter(left)), "; ".join(left.values()))
            if lost := await losses(agent.context):
                return _problem("memory", "; ".join(lost))
            now = await status(agent.context)
            aside = now["inbox"]["set_aside"]
            lines = [f"{now['inbox']['waiting']:,} waiting"]
            lines += [f"set aside: {item['id']}: {item['error']}" for item in aside]
            if now["emergency_stop"]:
                lines.append("the emergency stop is set (`circadian clear-stop`)")
            return _check("inbox", "; ".join(lines), ok=not aside and not now["emergency_stop"])
    except InputError as error:
        return _problem("agent", f"it cannot be opened: {error}")


def _view(checks: list[Check]) -> Table:
    rows = Table.grid(padding=(0, 2))
    for check in checks:
        mark = Text("ok", style="green") if check["ok"] else Text("problem", style="bold red")
        if check.get("note"):
            mark = Text("note", style="yellow")
        rows.add_row(mark, check["name"], Text(one_line(check["detail"]), style="dim"))
    return rows
