"""MCP servers: real ones, in a process of their own, over standard input and output."""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, StructuredTool

import tools.extensions
from memory.errors import InputError
from tests.support import mcp_server
from tests.support.tool_calls import executed, wanted
from tools.extensions import mcp_tools
from tools.registry import ToolCategory, checked_tools, kind_of

LOCAL = {"command": sys.executable, "args": [str(mcp_server.__file__)]}


def written(folder: Path, config: Any) -> Path:
    file = folder / "mcp.json"
    file.write_text(config if isinstance(config, str) else json.dumps(config))
    return file


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> list[BaseTool]:
    config = {"servers": {"town": {**LOCAL, "env": {"SERVER": "${TOWN_MAYOR}"}}}}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOWN_MAYOR", "Ada")
        return asyncio.run(mcp_tools(written(tmp_path_factory.mktemp("mcp"), config)))


def test_a_tool_that_only_reads_chains_and_any_other_is_dangerous(found: list[BaseTool]) -> None:
    assert {tool.name: kind_of(tool).category for tool in found} == {
        "look": ToolCategory.SAFE_CHAIN,
        "paint_wall": ToolCategory.DANGEROUS,
        "draw": ToolCategory.DANGEROUS,
        "wait": ToolCategory.DANGEROUS,
        "crash": ToolCategory.DANGEROUS,
    }
    assert found[0].description == "Look at a place."
    assert list(checked_tools(found)) == [tool.name for tool in found]


async def test_the_model_gets_the_answer_as_a_text(found: list[BaseTool]) -> None:
    calls = [
        wanted("look", place="Rome", reasoning="to know"),
        wanted("paint_wall", wall="red"),
        wanted("draw"),
    ]
    done = await executed(calls, found)
    texts = [str(message.content) for message in done.messages]
    assert texts[0] == "Rome lies in the sun, says Ada"
    assert json.loads(texts[1]) == {"painted": "red"}
    assert texts[2] == "A picture:\n[image, image/png: left out, this is text only]"
    assert [message.artifact for message in done.messages] == [None] * 3
    assert ([one["ok"] for one in done.outcomes], done.raised) == ([True] * 3, 0)


async def test_an_error_of_an_mcp_tool_does_not_count_as_our_failure(found: list[BaseTool]) -> None:
    done = await executed([wanted("paint_wall", wall="glass")], found)
    assert "glass takes no paint" in str(done.messages[0].content)
    assert (done.outcomes[0]["ok"], done.raised) == (False, 0)


async def test_a_server_that_dies_or_hangs_in_a_call_is_answered_for(found: list[BaseTool]) -> None:
    done = await executed([wanted("crash")], found, seconds=20)
    assert "Connection closed" in json.loads(str(done.messages[0].content))["error"]
    late = await executed([wanted("wait")], found, seconds=0.5)
    assert "did not answer within 0.5 s" in str(late.messages[0].content)
    assert (done.raised, late.raised) == (1, 1)


def named(*names: str) -> list[BaseTool]:
    made = []
    for at, name in enumerate(names):

        async def act(_name: str = name) -> str:
            return _name

        made.append(
            StructuredTool(
                name=name,
                description="Act.",
                args_schema={"type": "object", "properties": {}},
                coroutine=act,
                metadata={"readOnlyHint": at == 0, "category": "safe_chain"},
            )
        )
    return [*made]


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[BaseTool]]:
    offers: dict[str, list[BaseTool]] = {}

    async def offered(_client: object, server: str) -> list[BaseTool]:
        return offers[server]

    monkeypatch.setattr(tools.extensions, "_tools_of_server", offered)
    return offers


async def test_names_that_clash_get_their_server_s_before_them(
    tmp_path: Path, servers: dict[str, list[BaseTool]]
) -> None:
    servers |= {"a": named("look", "paint"), "b-2": named("look", "read/file", "noop", "x" * 70)}
    config = {
        "servers": {"a": LOCAL, "b-2": LOCAL},
        "categories": {"b-2_look": "terminal", "paint": "safe_chain"},
    }
    both = await mcp_tools(written(tmp_path, config), taken={"noop"})
    assert {tool.name: kind_of(tool).category.value for tool in both} == {
        "a_look": "safe_chain",
        "paint": "safe_chain",
        "b-2_look": "terminal",
        "read_file": "dangerous",
        "b-2_noop": "dangerous",
        "x" * 64: "dangerous",
    }
    done = await executed([wanted("b-2_look"), wanted("read_file")], both)
    assert [message.content for message in done.messages] == ["look", "read/file"]


async def test_a_category_for_a_tool_that_no_server_has_is_an_error(
    tmp_path: Path, servers: dict[str, list[BaseTool]]
) -> None:
    servers["town"] = named("look")
    config = {"servers": {"town": LOCAL}, "categories": {"lok": "safe_chain"}}
    with pytest.raises(InputError, match=r"categories\.lok: no server has this tool; .*look"):
        await mcp_tools(written(tmp_path, config))


def program(text: str) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-c", text]}


@pytest.mark.parametrize(
    ("server", "says"),
    [
        ({"command": "/no/such/program"}, "FileNotFoundError"),
        (program("raise SystemExit(3)"), "Connection closed"),
        (program("import sys; sys.stdin.read()"), "did not list its tools within 1 s"),
        ({"url": "http://127.0.0.1:9/mcp"}, "connection attempts failed"),
    ],
)
async def test_a_server_that_does_not_start_is_one_clear_error(
    tmp_path: Path, server: Any, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools.extensions, "START_SECONDS", 1.0)
    config = written(tmp_path, {"servers": {"bad": server}})
    began = time.monotonic()
    with pytest.raises(InputError, match=f"the MCP server 'bad' did not start: .*{says}"):
        await mcp_tools(config)
    assert time.monotonic() - began < 30


def test_a_server_is_given_up_within_half_a_minute() -> None:
    assert tools.extensions.START_SECONDS <= 30


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ("{", r"mcp\.json: the file: Invalid JSON"),
        ({}, r"mcp\.json: servers: Field required"),
        ({"servers": {}}, r"servers: .*at least 1"),
        ({"mcpServers": {}, "servers": {"a": LOCAL}}, r"mcpServers: Extra inputs"),
        ({"servers": {"a b": LOCAL}}, r"servers\.a b: String should match"),
        ({"servers": {"a": {}}}, r"servers\.a\.command: Field required"),
        ({"servers": {"a": {"command": "x", "args": "y"}}}, r"servers\.a\.args: .*valid array"),
        ({"servers": {"a": {"command": "x", "cmd": "y"}}}, r"servers\.a\.cmd: Extra inputs"),
        ({"servers": {"a": {"url": "ftp://x"}}}, r"servers\.a\.url: String should match"),
        (
            {"servers": {"a": {"url": "http://x", "transport": "stdio"}}},
            r"servers\.a\.transport: Input should be 'http'",
        ),
        ({"servers": {"a": LOCAL}, "categories": {"look": "mild"}}, r"categories\.look: Input"),
        (
            {"servers": {"a": {**LOCAL, "env": {"KEY": "${NO_SUCH_KEY}"}}}},
            r"servers\.a\.env\.KEY: the variable NO_SUCH_KEY is not set",
        ),
        (
            {"servers": {"a": {"url": "http://x", "headers": {"X": "Bearer ${NO_SUCH_KEY}"}}}},
            r"servers\.a\.headers\.X: the variable NO_SUCH_KEY is not set",
        ),
    ],
)
async def test_a_wrong_entry_is_named_and_nothing_is_started(
    tmp_path: Path, config: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        await mcp_tools(written(tmp_path, config))


async def test_a_file_that_is_not_there_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the MCP file .*gone\.json cannot be read: No such file"):
        await mcp_tools(tmp_path / "gone.json")


async def test_without_its_package_the_command_that_installs_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "langchain_mcp_adapters.client", None)
    with pytest.raises(InputError, match=r"pip install '\.\[mcp\]'"):
        await mcp_tools(written(tmp_path, {"servers": {"town": LOCAL}}))
