"""The working folder: files that the agent reads, and changes if a person approves.

The tools are langchain-community's. A guard stands before each: the library deletes what a link
points to, copies and moves through a link that lies in the destination folder, reads files of any
size and kind, and answers its errors as if they were content. Links are checked when a tool is
called; no guard protects against a program that swaps files while the tool runs.
"""

from __future__ import annotations

import codecs
import os
import stat
import warnings
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from memory.errors import InputError
from memory.records import Scope
from memory.runtime import scope_of
from tools.execution import error_text
from tools.registry import ToolCategory, registered

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
            own = check(**arguments)
        except (OSError, ValueError, RuntimeError) as error:
            # A null byte, a name that is too long, links in a circle, no permission.
            _refuse(guard.shown(error), "Name another path.")
        if own is not None:
            return own
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
        place = (self.root / _named(path)).resolve()
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
        entry = self._place(str(given.parent)) / _named(given.name)
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


def _named(path: str) -> str:
    """`path`, unless no file can have that name: `pathlib` hides that error in places."""
    if b"\0" in os.fsencode(path):
        raise ValueError("no path has a null byte in it")
    return path


def _refuse(error: str, suggestion: str) -> NoReturn:
    raise ToolException(error_text(error, suggestion))
