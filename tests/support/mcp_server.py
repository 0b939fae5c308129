"""A small MCP server over standard input and output, started by the tests of the MCP tools."""

import asyncio
import os

from mcp.server.fastmcp import FastMCP
from mcp.server.fastmcp.utilities.types import Image
from mcp.types import ToolAnnotations

server = FastMCP("tests", log_level="ERROR")


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def look(place: str) -> str:
    """Look at a place."""
    return f"{place} lies in the sun, says {os.environ.get('SERVER', 'nobody')}"


@server.tool(name="paint.wall", annotations=ToolAnnotations(readOnlyHint=False))
def paint(wall: str) -> dict[str, str]:
    """Paint a wall."""
    if wall == "glass":
        raise ValueError("glass takes no paint")
    return {"painted": wall}


@server.tool(structured_output=False)
def draw() -> list[object]:
    """Draw a picture."""
    return ["A picture:", Image(data=b"\x89PNG", format="png")]


@server.tool()
async def wait() -> str:
    """Wait for ever."""
    await asyncio.sleep(3600)
    return "late"


@server.tool()
def crash() -> str:
    """End the server in the middle of a call."""
    os._exit(3)


if __name__ == "__main__":
    server.run()
