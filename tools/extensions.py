"""Everything that a user adds to the agent, loaded and checked: tools, components, a folder.

Tools of MCP servers come through langchain-mcp-adapters (the optional extra `mcp`).
The file that CIRCADIAN_MCP names, for a server that it starts and a server that it reaches:

    {"servers": {"files": {"command": "npx", "args": ["-y", "a-server"], "env": {"KEY": "${KEY}"}},
                 "town": {"url": "https://town.example/mcp"}},
     "categories": {"look": "safe_chain", "files_look": "async_required"}}

Every call has a session of its own, so a server cannot keep anything between two calls.

The tools of the working folder, whose files the agent reads, and changes if a person approves, are
langchain-community's. A guard stands before each: the library deletes what a link points to, copies
and moves through a link that lies in the destination folder, reads files of any size and kind, and
answers its errors as if they were content. Links are checked when a tool is called; no guard
protects against a program that swaps files while the tool runs.
"""

from __future__ import annotations

import asyncio
import codecs
import importlib
import os
import re
import stat
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn
from urllib.parse import quote

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, ValidationError

from memory.errors import InputError
from memory.prompt import Extensions, PromptComponent
from memory.prompt import registered as checked_components
from memory.records import Scope
from memory.runtime import scope_of
from memory.settings import Deployment
from memory.text import regex, safe
from tools.execution import error_text, innermost
from tools.registry import BUILT_IN, ToolCategory, as_tools, checked_tools, registered

if TYPE_CHECKING:
    from langchain_mcp_adapters.client import MultiServerMCPClient


LONGEST_READ = 40_000
"""Bytes of a file that are shown."""

_READING = ("read_file", "list_directory", "file_search")
_CHANGING = ("write_file", "copy_file", "move_file", "file_delete")

_LONGEST_FOLDER = 200
"""Bytes of a folder name that is made from a user's name."""

_FAILED = "Error: "
"""How the library begins the answer of a call that failed."""


def folder_tools(root: Path, *, data: Path, apart: bool = False) -> list[BaseTool]:
    """Tools for the files under `root`: SAFE_CHAIN to read them, DANGEROUS to change them.

    `apart`: each agent of each user has a folder of its own below `root` (`folder_of`), made when
    it is first used. Raises InputError if there is no `root`, or it and `data` overlap.
    """
    shared = _usable(root, data)
    place = (lambda config: folder_of(shared, scope_of(config))) if apart else lambda _: shared
    return [
        registered(_guarded(tool, place), category)
        for category, names in (
            (ToolCategory.SAFE_CHAIN, _READING),
            (ToolCategory.DANGEROUS, _CHANGING),
        )
        for tool in (_library(shared)[name] for name in names)
    ]


def folder_of(root: Path, scope: Scope) -> Path:
    """The folder below `root` of one agent; without a thread, of all agents of its user."""
    user = quote(scope.user, safe="").replace(".", "%2E")
    if len(user) > _LONGEST_FOLDER:
        # No quoted name has a plus.
        user = f"+{sha256(scope.user.encode()).hexdigest()}"
    return root / user / scope.thread


@lru_cache(maxsize=256)
def _library(root: Path) -> Mapping[str, BaseTool]:
    with warnings.catch_warnings():
        # It warns at import that it is no longer developed.
        warnings.simplefilter("ignore", DeprecationWarning)
        from langchain_community.agent_toolkits import FileManagementToolkit

        toolkit = FileManagementToolkit(root_dir=str(root), selected_tools=[*_READING, *_CHANGING])
        return {tool.name: tool for tool in toolkit.get_tools()}


def _usable(root: Path, data: Path) -> Path:
    given, root, data = root, root.expanduser().resolve(), data.expanduser().resolve()
    if not root.exists():
        instead = "make it, or name another (CIRCADIAN_FOLDER)"
        raise InputError(f"the working folder {given} does not exist; {instead}")
    if not root.is_dir():
        raise InputError(f"the working folder {given} is not a folder; name one")
    if data.is_relative_to(root) or root.is_relative_to(data):
        raise InputError(
            f"the working folder {given} and the data folder {data} lie one in the other, and the "
            "agent must not reach its own data; name another working folder"
        )
    return root


def _guarded(tool: BaseTool, place: Callable[[RunnableConfig], Path]) -> BaseTool:
    def act(config: RunnableConfig, **arguments: Any) -> str:
        root = place(config)
        root.mkdir(parents=True, exist_ok=True)
        guard = _Guard(root)
        check: Callable[..., str | None] = getattr(guard, tool.name)
        try:
            answered = check(**arguments)
        except (OSError, ValueError, RuntimeError) as error:
            # A null byte, a name that is too long, links in a circle, no permission.
            _refuse(guard.shown(error), "Name another path.")
        if answered is not None:
            return answered
        # No callbacks: traces show the call once, as this tool's.
        said = str(_library(root)[tool.name].invoke(arguments, {"callbacks": []}))
        if tool.name in _CHANGING and said.startswith(_FAILED):
            _refuse(guard.shown(said.removeprefix(_FAILED)), "Look at the folder and try again.")
        return said

    return StructuredTool(
        name=tool.name,
        description=f"{tool.description}. Paths are relative to your working folder.",
        args_schema=tool.args_schema,
        func=act,
        handle_tool_error=True,
    )


class _Guard:
    """Checks that run before the library's tools; each method has the name of its tool.

    A check raises ToolException to refuse a call. If it returns a text, that is the tool's answer.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def read_file(self, file_path: str) -> str:
        """Return the beginning. The library would read a whole file, or wait on a pipe for ever."""
        place = self._file(file_path)
        with place.open("rb") as file:
            data = file.read(LONGEST_READ + 1)
        cut = len(data) > LONGEST_READ
        try:
            decoder = codecs.getincrementaldecoder("utf-8")()
            text = decoder.decode(data[:LONGEST_READ], final=not cut)
        except UnicodeDecodeError:
            text = "\0"
        if "\0" in text:
            _refuse(f"{file_path!r} is not UTF-8 text", "Only texts can be read.")
        if not cut:
            return text or "[The file is empty]"
        return f"{text}\n[The first {LONGEST_READ:,} of {place.stat().st_size:,} bytes]"

    def list_directory(self, dir_path: str = ".") -> None:
        """Allow only a folder within the working folder."""
        if not self._place(dir_path).is_dir():
            _refuse(f"{dir_path!r} is not a folder", "List '.' to see what there is.")

    def file_search(self, pattern: str, dir_path: str = ".") -> None:
        """As `list_directory`; the library's search follows no links."""
        self.list_directory(dir_path)

    def write_file(self, file_path: str, text: str, append: bool = False) -> None:
        """Allow a new or existing file. The library truncates it before it encodes the text."""
        try:
            text.encode()
        except UnicodeEncodeError:
            _refuse("the text cannot be written in UTF-8", "Leave out invalid characters.")
        self._target(self._entry(file_path), file_path)

    def copy_file(self, source_path: str, destination_path: str) -> None:
        """Allow a file as source, and a free place or a file as destination."""
        self._destination(self._file(source_path), destination_path)

    def move_file(self, source_path: str, destination_path: str) -> None:
        """Allow a file or folder as source, and a free place or a file as destination."""
        source = self._entry(source_path)
        if not source.exists():
            _refuse(f"there is no {source_path!r} to move", "List '.' to see what there is.")
        self._destination(source, destination_path)

    def file_delete(self, file_path: str) -> str | None:
        """Delete a link here; the library would delete the link's target instead."""
        place = self._entry(file_path, links=True)
        if place.is_symlink():
            place.unlink()
            return f"Link deleted successfully: {file_path}."
        self._file(file_path)
        return None

    def shown(self, problem: object) -> str:
        """An error's text without the path of the working folder."""
        return str(problem).replace(f"{self.root}/", "")

    def _place(self, path: str) -> Path:
        place = (self.root / _without_null(path)).resolve()
        if not place.is_relative_to(self.root):
            _refuse(f"{path!r} leads out of the working folder", "Name a path within it.")
        return place

    def _entry(self, path: str, *, links: bool = False) -> Path:
        """The entry that `path` names, with parent links followed.

        A link as the last part is refused, or returned as it is with `links`.
        """
        given = Path(path)
        if given.name in ("", ".."):
            return self._place(path)
        entry = self._place(str(given.parent)) / _without_null(given.name)
        if entry.is_symlink() and not links:
            _refuse(f"{path!r} is a link", "Name the file that it points to.")
        return entry

    def _file(self, path: str) -> Path:
        place = self._place(path)
        if not place.exists():
            _refuse(f"there is no file {path!r}", "List '.' to see what there is.")
        if not stat.S_ISREG(place.stat().st_mode):
            _refuse(f"{path!r} is not a file", "Name a file.")
        return place

    def _target(self, place: Path, path: str) -> None:
        """Refuse a place that may not be written: a link, a file with a second name, or no file."""
        if not place.is_symlink() and not place.exists():
            return
        found = place.lstat()
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            _refuse(f"{path!r} is a link, or no file", "Name a file, or a place that is free.")

    def _destination(self, source: Path, path: str) -> None:
        """Check the place that `source` would get; in a folder it keeps its name."""
        place = self._entry(path)
        self._target(place / source.name if place.is_dir() else place, path)


def _without_null(path: str) -> str:
    """Return `path`; raise ValueError for a null byte, an error that `pathlib` hides in places."""
    if b"\0" in os.fsencode(path):
        raise ValueError("no path has a null byte in it")
    return path


def _refuse(error: str, suggestion: str) -> NoReturn:
    raise ToolException(error_text(error, suggestion))


_SETTING = "CIRCADIAN_EXTENSIONS"


async def extra(
    deployment: Deployment,
    *,
    data: Path,
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    components: Sequence[PromptComponent] = (),
    apart: bool = False,
) -> Extensions:
    """The user's tools and components: from Python, the extensions, the folder and the MCP file.

    `data`: the agent's data folder. `apart`: each agent of each user has a working folder of its
    own. Raises InputError if one cannot be loaded, or two share a name, key or id.
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

    The module is searched on Python's path and in the current folder. Raises InputError if there is
    none, its import fails, or a list has a wrong element.
    """
    module = _imported(name)
    try:
        found = Extensions(
            tools=tuple(as_tools(_listed(module, "tools"))),
            components=tuple(_listed(module, "components")),
        )
        checked_components(found.components)
    except InputError as error:
        raise InputError(f"{_SETTING}: the module {name}: {error}") from error
    if found == Extensions():
        raise InputError(f"{_SETTING}: the module {name} holds neither tools nor components")
    return found


def _imported(name: str) -> ModuleType:
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except Exception as error:
        why = f"{type(error).__name__}: {error}"
        advice = "give the name of a module, such as my_agent.tools"
        raise InputError(f"{_SETTING}: {name!r} cannot be imported ({why}); {advice}") from error


def _listed(module: ModuleType, name: str) -> list[Any]:
    given = getattr(module, name, ())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{name} must be a list, and is a {type(given).__name__}")
    return [*given]


# MCP servers.

START_SECONDS = 25.0
"""Time limit for a server to start and to list its tools."""

_LONGEST_NAME = 64
_VARIABLE = regex(r"\$\{(\w+)\}")


class LocalServer(BaseModel):
    """A server that is a local program; it talks over standard input and output."""

    model_config = ConfigDict(extra="forbid")

    transport: Literal["stdio"] = "stdio"
    command: str = Field(min_length=1)
    args: list[str] = []
    env: dict[str, str] | None = None
    """Added to PATH and the like; `${NAME}` is replaced by our own variable NAME."""
    cwd: str | None = None


class RemoteServer(BaseModel):
    """A server on the network, over HTTP."""

    model_config = ConfigDict(extra="forbid")

    transport: Literal["http", "streamable_http", "sse"] = "http"
    url: str = Field(pattern=r"^https?://")
    headers: dict[str, str] | None = None
    """`${NAME}` is replaced by our own variable NAME, such as a key."""


McpServer = Annotated[
    Annotated[LocalServer, Tag("local")] | Annotated[RemoteServer, Tag("remote")],
    Discriminator(lambda raw: "remote" if isinstance(raw, Mapping) and "url" in raw else "local"),
]
ServerName = Annotated[str, Field(pattern=r"^[a-zA-Z0-9_-]{1,32}$")]


class McpConfig(BaseModel):
    """The file that CIRCADIAN_MCP names."""

    model_config = ConfigDict(extra="forbid")

    servers: dict[ServerName, McpServer] = Field(min_length=1)
    categories: dict[str, ToolCategory] = {}
    """Tool category by the tool's name as the model sees it."""


async def mcp_tools(path: Path, *, taken: Collection[str] = ()) -> list[BaseTool]:
    """The tools of the servers that the file at `path` names.

    The file sets a tool's category. Without one, a tool is SAFE_CHAIN if its server says that it
    only reads, and DANGEROUS otherwise. If two servers share a tool's name, or it is in `taken`,
    the tool gets its server's name as a prefix. Raises InputError for a missing file or package, a
    wrong entry, and a server that does not start.
    """
    config = await asyncio.to_thread(_mcp_config, path)
    connections = {name: _connection(path, name, one) for name, one in config.servers.items()}
    client = (await asyncio.to_thread(_client_type))(dict(connections))
    found = await asyncio.gather(
        *(_tools_of_server(client, server) for server in connections), return_exceptions=True
    )
    lists: list[list[BaseTool]] = []
    for tools in found:
        if isinstance(tools, BaseException):
            raise tools
        lists.append(tools)
    named = _distinct(dict(zip(connections, lists, strict=True)), taken)
    if unknown := sorted(set(config.categories) - {tool.name for tool in named}):
        known = ", ".join(sorted(tool.name for tool in named)) or "none"
        raise InputError(
            f"{path}: categories.{unknown[0]}: no server has this tool; there are: {known}"
        )
    return [registered(tool, config.categories.get(tool.name, _hinted(tool))) for tool in named]


def _mcp_config(path: Path) -> McpConfig:
    try:
        return McpConfig.model_validate_json(path.expanduser().read_bytes())
    except OSError as error:
        raise InputError(f"the MCP file {path} cannot be read: {error.strerror or error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        where = [str(part) for part in first["loc"] if part not in ("local", "remote", "[key]")]
        raise InputError(f"{path}: {'.'.join(where) or 'the file'}: {first['msg']}") from None


def _client_type() -> type[MultiServerMCPClient]:
    try:
        from langchain_mcp_adapters.client import MultiServerMCPClient
    except ModuleNotFoundError as error:
        raise InputError(
            f"MCP servers need a package that is not installed ({error.name}): "
            "pip install '.[mcp]' in the clone"
        ) from error
    return MultiServerMCPClient


def _connection(path: Path, name: str, server: LocalServer | RemoteServer) -> Any:
    given = server.model_dump(exclude_none=True)
    for key in ("env", "headers"):
        for field, value in given.get(key, {}).items():
            given[key][field] = _expanded(value, f"{path}: servers.{name}.{key}.{field}")
    return given


def _expanded(value: str, where: str) -> str:
    for name in _VARIABLE.findall(value):
        if name not in os.environ:
            raise InputError(f"{where}: the variable {name} is not set")
    return _VARIABLE.sub(lambda match: os.environ[match[1]], value)


async def _tools_of_server(client: MultiServerMCPClient, server: str) -> list[BaseTool]:
    try:
        async with asyncio.timeout(START_SECONDS):
            return await client.get_tools(server_name=server)
    except TimeoutError as error:
        why = f"it did not list its tools within {START_SECONDS:g} s"
        raise InputError(f"the MCP server {server!r} did not start: {why}") from error
    except Exception as error:
        cause = innermost(error)
        why = safe(f"{type(cause).__name__}: {cause}")
        raise InputError(f"the MCP server {server!r} did not start: {why}") from error


def _distinct(found: Mapping[str, list[BaseTool]], taken: Collection[str]) -> list[BaseTool]:
    """The tools with prefixed names where two tools would share one."""
    used = Counter(_allowed_name(tool.name) for tools in found.values() for tool in tools)
    named = []
    for server, tools in found.items():
        for tool in tools:
            name = _allowed_name(tool.name)
            if used[name] > 1 or name in taken:
                name = _allowed_name(f"{server}_{name}")
            named.append(tool.model_copy(update={"name": name}))
    return named


def _allowed_name(name: str) -> str:
    return re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:_LONGEST_NAME]


def _hinted(tool: BaseTool) -> ToolCategory:
    """The category by the server's own hint, which most servers do not give."""
    reads = (tool.metadata or {}).get("readOnlyHint") is True
    return ToolCategory.SAFE_CHAIN if reads else ToolCategory.DANGEROUS
