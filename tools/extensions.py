"""Everything that a user adds to the agent, loaded and checked: tools and prompt components."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from langchain_core.tools import BaseTool

from memory.prompt import Extensions, PromptComponent, load_extensions
from memory.prompt import registered as checked_components
from memory.settings import Deployment
from tools.files import folder_tools
from tools.mcp import mcp_tools
from tools.registry import BUILT_IN, checked_tools


async def extra(
    deployment: Deployment,
    *,
    data: Path,
    tools: Sequence[BaseTool] = (),
    components: Sequence[PromptComponent] = (),
) -> Extensions:
    """`tools` and `components`, with those of the deployment's extensions, folder and MCP file.

    Args:
        deployment: names the extensions, the folder and the MCP file.
        data: the agent's data folder.
        tools: the user's own, given in Python.
        components: the same.

    Raises:
        InputError: one cannot be loaded, or two share a name, key or id.
    """
    local = await asyncio.to_thread(_local, deployment, data)
    found = [*tools, *local.tools]
    if deployment.mcp is not None:
        taken = {*BUILT_IN, *checked_tools(found)}
        found += await mcp_tools(deployment.mcp, taken=taken)
    checked_tools(found)
    all_components = (*components, *local.components)
    checked_components(all_components)
    return Extensions(tuple(found), all_components)


def _local(deployment: Deployment, data: Path) -> Extensions:
    """Extensions and folder tools. Blocks."""
    named = load_extensions(deployment.extensions) if deployment.extensions else Extensions()
    files = folder_tools(deployment.folder, data=data) if deployment.folder is not None else []
    return Extensions((*named.tools, *files), named.components)
