"""`circadian doctor`: is everything there that the agent needs, and sound?"""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool
from rich.table import Table
from rich.text import Text

from graph.cli.checks import Check, home_checks
from graph.cli.console import Screen, counted, one_line
from graph.cli.options import Options
from memory.components import registered
from memory.errors import CircadianError, InputError
from memory.extensions import load_extensions
from memory.models.ask import ask
from memory.models.offline import OfflineChatModel
from memory.models.seam import choose_model, model_name
from memory.scope import LOCAL_USER, thread_id
from memory.settings import Deployment
from tools.files import folder_tools
from tools.mcp import mcp_tools
from tools.registry import BUILT_IN, checked_tools

T = TypeVar("T")
OLDEST = (3, 11)
LIBRARIES = ("langgraph", "mem0ai")


async def doctor(options: Options, *, call: bool) -> int:
    """Look at everything, print it; status 1 where something is wrong.

    `call` asks the model and the embedder one word; without it only name and key are looked at.
    """
    screen = Screen(json=options.json)
    checks = [_python(), *map(_library, LIBRARIES), await _model(options, call=call)]
    checks += await _added(Deployment(), options)
    checks += await home_checks(options, call=call)
    ok = all(check["ok"] for check in checks)
    thread = thread_id(LOCAL_USER, options.agent)
    screen.result(
        {"ok": ok, "agent": options.agent, "thread": thread, "checks": checks},
        Text(f"agent {one_line(options.agent)}, thread {thread}"),
        _view(checks),
    )
    return 0 if ok else 1


def _python() -> Check:
    return {
        "name": "python",
        "ok": sys.version_info >= OLDEST,
        "detail": platform.python_version(),
    }


def _library(name: str) -> Check:
    return {"name": name, "ok": True, "detail": version(name)}


async def _model(options: Options, *, call: bool) -> Check:
    """The chat model: can it be made, and does it answer?"""
    try:
        model = choose_model(options.model, offline=options.offline)
        detail = model_name(model)
        if isinstance(model, OfflineChatModel):
            return {"name": "model", "ok": True, "detail": detail}
        if call:
            await ask(model, [HumanMessage("Answer with the one word: ready")], attempts=1)
        answer = "it answers" if call else "a key is set; --call asks it"
        return {"name": "model", "ok": True, "detail": f"{detail}, {answer}"}
    except CircadianError as error:
        return {"name": "model", "ok": False, "detail": str(error)}


async def _added(deployment: Deployment, options: Options) -> list[Check]:
    """What the environment adds to the agent, each tried out, and when a service is left alone."""
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

    failures, seconds = deployment.breaker_failures, deployment.breaker_seconds
    failed = counted(failures, "failed call")
    left = f"a service is left alone for {seconds:g} s after {failed} in a row"
    return [
        await _addition("working folder", "CIRCADIAN_FOLDER", deployment.folder, folder),
        await _addition("extensions", "CIRCADIAN_EXTENSIONS", deployment.extensions, extensions),
        await _addition("MCP servers", "CIRCADIAN_MCP", deployment.mcp, servers),
        {"name": "breaker", "ok": True, "detail": left},
    ]


async def _addition(
    name: str, variable: str, value: T | None, load: Callable[[T], Awaitable[str]]
) -> Check:
    """One thing that a variable names; `load` tries it and says what there is."""
    if value is None:
        return {"name": name, "ok": True, "detail": f"none; {variable} names one"}
    try:
        return {"name": name, "ok": True, "detail": f"{value}, {await load(value)}"}
    except InputError as error:
        return {"name": name, "ok": False, "detail": str(error)}


def _view(checks: list[Check]) -> Table:
    rows = Table.grid(padding=(0, 2))
    for check in checks:
        rows.add_row(_mark(check), check["name"], Text(one_line(check["detail"]), style="dim"))
    return rows


def _mark(check: Check) -> Text:
    if check.get("note"):
        return Text("note", style="yellow")
    return Text("ok", style="green") if check["ok"] else Text("problem", style="bold red")
