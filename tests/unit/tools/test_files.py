"""The working folder: what the agent reads and changes there, and that it cannot leave it."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace as FakeSemantic
from typing import Any, cast

import pytest
from langchain_core.tools import BaseTool

from memory.errors import InputError
from memory.records import Scope
from memory.runtime import KEY, Resources
from tests.support.tool_calls import executed, wanted
from tools.extensions import LONGEST_READ, _Guard, folder_of, folder_tools
from tools.registry import ToolCategory, kind_of

SECRET = "the secret outside"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A working folder beside what must not be reached."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text(SECRET)
    folder = tmp_path / "work"
    (folder / "notes").mkdir(parents=True)
    (folder / "notes" / "plan.txt").write_text("Error: the plan")
    (folder / "todo.txt").write_text("paint")
    return folder


@pytest.fixture
def tools(root: Path) -> list[BaseTool]:
    return folder_tools(root, data=root.parent / "data")


async def use(tools: list[BaseTool], name: str, /, **arguments: Any) -> tuple[str, bool]:
    """What the model is told, and whether it went well. A wrong path is no failure of ours."""
    done = await executed([wanted(name, **arguments)], tools, seconds=5)
    assert done.raised == 0
    return str(done.messages[0].content), done.outcomes[0]["ok"]


async def refused(tools: list[BaseTool], name: str, /, **arguments: Any) -> str:
    text, ok = await use(tools, name, **arguments)
    told = json.loads(text)
    assert (ok, told["success"]) == (False, False)
    assert told["suggestion"]
    assert SECRET not in text
    return str(told["error"])


def test_reading_chains_and_changing_is_dangerous(tools: list[BaseTool]) -> None:
    categories = {tool.name: kind_of(tool).category for tool in tools}
    reading = {"read_file", "list_directory", "file_search"}
    changing = {"write_file", "copy_file", "move_file", "file_delete"}
    assert categories == {
        **dict.fromkeys(reading, ToolCategory.SAFE_CHAIN),
        **dict.fromkeys(changing, ToolCategory.DANGEROUS),
    }


async def test_files_are_listed_found_and_read(tools: list[BaseTool], root: Path) -> None:
    listed, ok = await use(tools, "list_directory")
    assert (set(listed.splitlines()), ok) == ({"notes", "todo.txt"}, True)
    assert await use(tools, "file_search", pattern="*.txt") == ("todo.txt\nnotes/plan.txt", True)
    assert await use(tools, "read_file", file_path="notes/plan.txt") == ("Error: the plan", True)
    assert await use(tools, "read_file", file_path="./notes/../todo.txt") == ("paint", True)
    (root / "odd").mkdir()
    (root / "odd" / "Error: none").touch()
    assert await use(tools, "list_directory", dir_path="odd") == ("Error: none", True)


async def test_files_are_written_copied_moved_and_deleted(
    tools: list[BaseTool], root: Path
) -> None:
    assert (await use(tools, "write_file", file_path="new/a.txt", text="one"))[1]
    assert (await use(tools, "write_file", file_path="new/a.txt", text=" two", append=True))[1]
    assert (root / "new" / "a.txt").read_text() == "one two"
    assert (await use(tools, "copy_file", source_path="new/a.txt", destination_path="notes"))[1]
    moved = {"source_path": "new/a.txt", "destination_path": "b.txt"}
    assert (await use(tools, "move_file", **moved))[1]
    assert (root / "notes" / "a.txt").read_text() == (root / "b.txt").read_text() == "one two"
    assert (await use(tools, "file_delete", file_path="b.txt"))[1]
    assert sorted(os.listdir(root)) == ["new", "notes", "todo.txt"]


def links(root: Path) -> None:
    """Links that lead out, made after the tools were."""
    outside = root.parent / "outside"
    (root / "out").symlink_to(outside)
    (root / "leak.txt").symlink_to(outside / "secret.txt")
    (root / "deep").symlink_to(Path("notes/../../outside"))
    (root / "twice").symlink_to("out")
    (root / "notes" / "todo.txt").symlink_to(outside / "secret.txt")
    (root / "free").symlink_to(outside / "free.txt")


OUT = [
    "../outside/secret.txt",
    "notes/../../outside/secret.txt",
    "{outside}/secret.txt",
    "/etc/hostname",
    "out/secret.txt",
    "leak.txt",
    "deep/secret.txt",
    "twice/secret.txt",
    "notes/todo.txt",
    "notes/../out/secret.txt",
    "free",
    "out/free.txt",
    "..",
    "out",
]


@pytest.mark.parametrize("path", OUT)
async def test_no_path_and_no_link_leads_out(tools: list[BaseTool], root: Path, path: str) -> None:
    links(root)
    path = path.format(outside=root.parent / "outside")
    before = sorted(os.listdir(root.parent))
    await refused(tools, "read_file", file_path=path)
    await refused(tools, "write_file", file_path=path, text="taken over")
    for one, other in ((path, "mine.txt"), ("todo.txt", path)):
        await refused(tools, "copy_file", source_path=one, destination_path=other)
        await refused(tools, "move_file", source_path=one, destination_path=other)
    await refused(tools, "list_directory", dir_path=path)
    await refused(tools, "file_search", dir_path=path, pattern="*")
    assert sorted(os.listdir(root.parent)) == before
    assert os.listdir(root.parent / "outside") == ["secret.txt"]
    assert (root.parent / "outside" / "secret.txt").read_text() == SECRET
    assert (root / "todo.txt").read_text() == "paint"
    assert not (root / "mine.txt").exists()


@pytest.mark.parametrize("name", ["copy_file", "move_file"])
async def test_a_link_in_the_destination_folder_is_not_followed(
    tools: list[BaseTool], root: Path, name: str
) -> None:
    links(root)
    told = await refused(tools, name, source_path="todo.txt", destination_path="notes")
    assert "is a link" in told
    assert (root.parent / "outside" / "secret.txt").read_text() == SECRET


async def test_a_search_does_not_go_through_links(tools: list[BaseTool], root: Path) -> None:
    links(root)
    found, _ = await use(tools, "file_search", pattern="secret*")
    assert found.startswith("No files found")


async def test_deleting_a_link_keeps_its_target(tools: list[BaseTool], root: Path) -> None:
    links(root)
    (root / "inner.txt").symlink_to("todo.txt")
    for name in ("leak.txt", "out", "free", "inner.txt"):
        assert (await use(tools, "file_delete", file_path=name))[1], name
        assert not (root / name).is_symlink()
    assert (root.parent / "outside" / "secret.txt").read_text() == SECRET
    assert (root / "todo.txt").read_text() == "paint"
    for path in ("../outside/secret.txt", "twice/secret.txt", "..", ".", "notes", "gone.txt"):
        await refused(tools, "file_delete", file_path=path)
    assert (root.parent / "outside" / "secret.txt").exists()


async def test_a_link_within_the_folder_or_a_second_name_is_read_and_not_written(
    tools: list[BaseTool], root: Path
) -> None:
    (root / "inner.txt").symlink_to("todo.txt")
    os.link(root.parent / "outside" / "secret.txt", root / "same.txt")
    assert await use(tools, "read_file", file_path="inner.txt") == ("paint", True)
    assert await use(tools, "read_file", file_path="same.txt") == (SECRET, True)
    for name, arguments in (
        ("write_file", {"file_path": "inner.txt", "text": "x"}),
        ("write_file", {"file_path": "same.txt", "text": "x"}),
        ("move_file", {"source_path": "inner.txt", "destination_path": "b.txt"}),
        ("copy_file", {"source_path": "todo.txt", "destination_path": "same.txt"}),
    ):
        assert "is a link" in await refused(tools, name, **arguments)
    assert (root / "same.txt").read_text() == SECRET


@pytest.mark.parametrize(
    "path", ["a\0b", "n" * 300, "n/" * 3000, "circle", "circle/x", "\ud800", "todo.txt/x", "gone/x"]
)
async def test_an_impossible_path_is_an_error_for_the_model(
    tools: list[BaseTool], root: Path, path: str
) -> None:
    (root / "circle").symlink_to("circle")
    await refused(tools, "read_file", file_path=path)
    await refused(tools, "list_directory", dir_path=path)
    await refused(tools, "copy_file", source_path="todo.txt", destination_path=path)
    if path != "gone/x":
        told = await refused(tools, "write_file", file_path=path, text="x")
        assert str(root) not in told
    assert sorted(os.listdir(root)) == ["circle", "notes", "todo.txt"]


async def test_a_huge_file_is_shown_in_part(tools: list[BaseTool], root: Path) -> None:
    (root / "huge.txt").write_text("é" * LONGEST_READ)
    text, ok = await use(tools, "read_file", file_path="huge.txt")
    shown, note = text.splitlines()
    assert (shown, ok) == ("é" * (LONGEST_READ // 2), True)
    assert note == f"[The first {LONGEST_READ:,} of {2 * LONGEST_READ:,} bytes]"
    (root / "just.txt").write_text("x" * LONGEST_READ)
    assert await use(tools, "read_file", file_path="just.txt") == ("x" * LONGEST_READ, True)


async def test_bytes_that_are_no_text_are_neither_read_nor_written(
    tools: list[BaseTool], root: Path
) -> None:
    (root / "picture.png").write_bytes(b"\x89PNG\x00\xff\xfe")
    (root / "zeros").write_bytes(b"ab\0cd")
    (root / "empty").touch()
    assert "not UTF-8 text" in await refused(tools, "read_file", file_path="picture.png")
    assert "not UTF-8 text" in await refused(tools, "read_file", file_path="zeros")
    assert await use(tools, "read_file", file_path="empty") == ("[The file is empty]", True)
    await refused(tools, "write_file", file_path="todo.txt", text="half \ud800")
    assert (root / "todo.txt").read_text() == "paint"


@contextmanager
def pipe(path: Path) -> Iterator[str]:
    """A pipe. Whoever opens it would wait for ever; at the end it is let go."""
    os.mkfifo(path)
    try:
        yield path.name
    finally:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


async def test_pipes_and_folders_are_neither_read_nor_written(
    tools: list[BaseTool], root: Path
) -> None:
    with pipe(root / "pipe") as name:
        for path in (name, "notes"):
            await refused(tools, "read_file", file_path=path)
            await refused(tools, "write_file", file_path=path, text="x")
            await refused(tools, "copy_file", source_path=path, destination_path="x")
        await refused(tools, "copy_file", source_path="todo.txt", destination_path=name)


async def test_the_folder_itself_is_not_moved(tools: list[BaseTool], root: Path) -> None:
    for path in (".", "", "notes/..", str(root)):
        await refused(tools, "move_file", source_path=path, destination_path="notes")
    await refused(tools, "move_file", source_path="notes", destination_path="notes/notes")
    assert sorted(os.listdir(root)) == ["notes", "todo.txt"]


async def test_a_folder_that_became_a_link_is_not_followed(
    tools: list[BaseTool], root: Path
) -> None:
    os.rename(root, root.parent / "moved")
    os.symlink(root.parent / "outside", root)
    await refused(tools, "read_file", file_path="secret.txt")


@pytest.mark.parametrize(
    ("folder", "data", "says"),
    [
        ("gone", "data", "name another .CIRCADIAN_FOLDER"),
        ("work/todo.txt", "data", "is not a folder"),
        ("work", "work/.circadian", "lie one in the other"),
        ("work", "work", "lie one in the other"),
        ("work/notes", "work", "lie one in the other"),
        ("work", "linked", "lie one in the other"),
    ],
)
def test_a_folder_that_will_not_do_is_one_clear_error(
    root: Path, folder: str, data: str, says: str
) -> None:
    (root.parent / "linked").symlink_to(root / "notes")
    with pytest.raises(InputError, match=says) as caught:
        folder_tools(root.parent / folder, data=root.parent / data)
    assert str(root.parent / folder) in str(caught.value)


async def test_files_are_touched_in_a_thread(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def where(guard: object, file_path: str) -> str:
        return "loop" if threading.current_thread() is threading.main_thread() else "thread"

    monkeypatch.setattr(_Guard, "read_file", where)
    tools = folder_tools(root, data=root.parent / "data")
    assert await use(tools, "read_file", file_path="todo.txt") == ("thread", True)


async def test_each_agent_of_each_user_has_a_folder_of_its_own(root: Path) -> None:
    tools = {one.name: one for one in folder_tools(root, data=root.parent / "data", apart=True)}

    async def use_as(user: str, thread: str, name: str, **arguments: Any) -> str:
        resources = Resources(cast(Any, None), cast(Any, FakeSemantic()), user=user)
        config: Any = {"configurable": {KEY: resources, "thread_id": thread}}
        return str(await tools[name].ainvoke(arguments, config))

    await use_as("../ada", "one", "write_file", file_path="diary.txt", text=SECRET)
    assert await use_as("../ada", "one", "read_file", file_path="diary.txt") == SECRET
    for user, thread in (("ben", "one"), ("../ada", "two"), ("..", "one")):
        assert "there is no file" in await use_as(user, thread, "read_file", file_path="diary.txt")
        up = "../../..%2Fada/one/diary.txt"
        assert "leads out" in await use_as(user, thread, "read_file", file_path=up)
        assert "todo" not in await use_as(user, thread, "list_directory")
    for user in ("ada" * 60, "\u00e4" * 200, "..", ".", "a/b"):
        place = folder_of(root, Scope(user, "thread"))
        assert place.relative_to(root).parts[1:] == ("thread",)
        assert place.resolve() == place
