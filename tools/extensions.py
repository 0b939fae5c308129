"""Everything that a user adds to the agent, loaded and checked: tools and prompt components."""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from langchain_core.tools import BaseTool

from memory.errors import InputError
from memory.prompt import Extensions, PromptComponent
from memory.prompt import registered as checked_components
from memory.settings import Deployment
from tools.files import folder_tools
from tools.mcp import mcp_tools
from tools.registry import BUILT_IN, as_tools, checked_tools

_VARIABLE = "CIRCADIAN_EXTENSIONS"


async def extra(
    deployment: Deployment,
    *,
    data: Path,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    components: Sequence[PromptComponent] = (),
    apart: bool = False,
) -> Extensions:
    """`tools` and `components`, with those of the deployment's extensions, folder and MCP file.

    Args:
        deployment: names the extensions, the folder and the MCP file.
        data: the agent's data folder.
        tools: the user's own, given in Python.
        components: the same.
        apart: each agent of each user has a working folder of its own below the deployment's.

    Raises:
        InputError: one cannot be loaded, or two share a name, key or id.
    """
    local = await asyncio.to_thread(_local, deployment, data, apart=apart)
    found = [*as_tools(tools), *local.tools]
    if deployment.mcp is not None:
        taken = {*BUILT_IN, *checked_tools(found)}
        found += await mcp_tools(deployment.mcp, taken=taken)
    checked_tools(found)
    all_components = (*components, *local.components)
    checked_components(all_components)
    return Extensions(tuple(found), all_components)


def _local(deployment: Deployment, data: Path, *, apart: bool) -> Extensions:
    """Extensions and folder tools. Blocks."""
    named = load_extensions(deployment.extensions) if deployment.extensions else Extensions()
    folder = deployment.folder
    files = folder_tools(folder, data=data, apart=apart) if folder is not None else []
    return Extensions((*named.tools, *files), named.components)


def load_extensions(name: str) -> Extensions:
    """Load the lists `tools` and `components` of the module `name`; either may be missing.

    The module is searched on Python's path and in the current folder.

    Raises:
        InputError: there is no such module, its import fails, or a list has a wrong element.
    """
    module = _imported(name)
    found = Extensions(
        tools=_tools_of(module),
        components=_listed(module, "components", (PromptComponent,), "made with component(...)"),
    )
    if found == Extensions():
        raise InputError(f"{_VARIABLE}: the module {name} holds neither tools nor components")
    return found


def _tools_of(module: ModuleType) -> tuple[BaseTool, ...]:
    kinds = (BaseTool, FunctionType)
    listed = _listed(module, "tools", kinds, "a function or a LangChain tool")
    try:
        return tuple(as_tools(listed))
    except InputError as error:
        raise InputError(f"{_VARIABLE}: {module.__name__}.tools: {error}") from error


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{_VARIABLE}: {name!r} is no module's name, such as my_agent.tools")
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        needed = (
            "" if name == missing or name.startswith(f"{missing}.") else f", which {name} needs"
        )
        raise InputError(f"{_VARIABLE}: there is no module {missing}{needed}") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"{_VARIABLE}: the module {name} fails: {told}") from error


def _listed(module: ModuleType, name: str, kinds: tuple[type, ...], form: str) -> tuple[Any, ...]:
    """The module's list `name`, validated; empty if there is none."""
    where = f"{_VARIABLE}: {module.__name__}.{name}"
    given = getattr(module, name, ())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{where} must be a list, and is a {type(given).__name__}")
    found = tuple(given)
    for at, one in enumerate(found):
        if not isinstance(one, kinds):
            raise InputError(f"{where}[{at}] is a {type(one).__name__}; it must be {form}")
    return found
