"""What a user adds: in Python, by a module the environment names, a working folder, MCP servers."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from blockbuster import blockbuster_ctx
from langchain_core.tools import BaseTool

import tools.extensions
from graph import persistence
from graph.api import open_agent
from memory.errors import InputError
from memory.prompt.components import component
from memory.runtime import Resources, resources_of
from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.scripted import call, scripted
from tools.extensions import load_extensions
from tools.registry import registered

Patch = pytest.MonkeyPatch

MODULE = """
from memory.prompt.components import component
from tools.registry import registered

def ring_bell(times: int) -> str:
    '''Ring the bell.'''
    return 'ding' * times

tools = [registered(ring_bell, 'terminal')]
components = [component(1001, 'house_rules', 'Be kind to {sender}.')]
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: Patch) -> Iterator[Path]:
    """The current folder, where modules are found; what was imported is forgotten."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path / "here"
    for name in set(sys.modules) - before:
        if name.startswith("mine"):
            del sys.modules[name]


@pytest.fixture
def named(modules: Path, monkeypatch: Patch) -> None:
    """The environment names a module, a data folder and the offline model."""
    (modules / "mine.py").write_text(MODULE)
    monkeypatch.setenv("CIRCADIAN_EXTENSIONS", "mine")
    monkeypatch.setenv("CIRCADIAN_DATA", str(modules.parent / "data"))
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "true")


def names(resources: Resources) -> tuple[list[str], list[str]]:
    return [tool.name for tool in resources.tools], [one.key for one in resources.components]


def hum() -> str:
    """Hum."""
    return "mmm"


def test_one_of_the_two_is_enough(modules: Path) -> None:
    (modules / "mine").mkdir()
    (modules / "mine" / "kit.py").write_text(MODULE.replace("components =", "others ="))
    assert load_extensions("mine.kit").components == ()


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("mine_gone", "", r"'mine_gone' cannot be imported \(.*No module named 'mine_gone'\)"),
        ("mine_gone.kit", "", "No module named 'mine_gone'"),
        ("./mine.py", "", r"cannot be imported \(.*\); give the name of a module, such as"),
        ("mine", "import mine_not_there", "No module named 'mine_not_there'"),
        ("mine", "x = 1 / 0", "'mine' cannot be imported .ZeroDivisionError: division by zero"),
        ("mine", "tools = [", "SyntaxError"),
        ("mine", "x = 1", "the module mine holds neither tools nor components"),
        ("mine", "tools = []", "holds neither tools nor components"),
        ("mine", "tools = 3", "the module mine: tools must be a list, and is a int"),
        ("mine", "components = 'abc'", "components must be a list, and is a str"),
        ("mine", "def f(): ...\ntools = [f]", "no tool can be made of f: .* docstring"),
        ("mine", "tools = [1]", "1 is neither a tool nor a function"),
        ("mine", "components = [1]", "1 is not a prompt component; make one with component"),
    ],
)
def test_a_module_that_cannot_be_used_is_one_clear_error(
    modules: Path, name: str, text: str, says: str
) -> None:
    (modules / "mine.py").write_text(text)
    with pytest.raises(InputError, match=f"CIRCADIAN_EXTENSIONS: .*{says}"):
        load_extensions(name)


@pytest.mark.usefixtures("named")
async def test_an_agent_has_what_python_and_the_environment_name(
    tmp_path: Path, modules: Path, clock: Clock
) -> None:
    (modules / "files").mkdir()
    model = scripted(call("ring_bell", times=2), "Rung.")
    async with open_agent(
        model=model,
        embedder="offline",
        tools=[registered(hum, "safe_chain")],
        components=[component(1002, "mood", "You are merry.")],
        folder=modules / "files",
        clock=clock,
    ) as agent:
        own, keys = names(agent.resources)
        assert own[:2] == ["hum", "ring_bell"]
        assert {"read_file", "write_file", "file_delete"} < set(own)
        assert keys == ["mood", "house_rules"]
        await agent.ainvoke(said("Ring the bell"))
    assert {"hum", "ring_bell", "read_file"} < set(model.calls[0].tools)


@pytest.mark.usefixtures("named")
async def test_reading_commands_start_no_servers(monkeypatch: Patch, clock: Clock) -> None:
    monkeypatch.setenv("CIRCADIAN_MCP", "gone.json")
    async with open_agent(model=scripted(), embedder="offline", mcp=False, clock=clock) as agent:
        assert names(agent.resources) == (["ring_bell"], ["house_rules"])
    with pytest.raises(InputError, match=r"the MCP file gone\.json cannot be read"):
        async with open_agent(model=scripted(), embedder="offline", clock=clock):
            pass


@pytest.mark.usefixtures("named")
async def test_the_breakers_are_as_the_environment_sets_them(monkeypatch: Patch) -> None:
    monkeypatch.setenv("CIRCADIAN_BREAKER_FAILURES", "7")
    async with open_agent(model=scripted(), embedder="offline") as agent:
        assert agent.resources.breakers.model.failures == 7


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize(
    ("added", "says"),
    [
        ({"tools": [3]}, "3 is neither a tool nor a function"),
        ({"tools": [registered(hum, "safe_chain")] * 2}, "two tools are named 'hum'"),
        ({"components": [component(1001, "other", "x")]}, "both have the id 1001"),
        ({"folder": "gone"}, "the working folder gone does not exist"),
        ({"folder": ".."}, "lie one in the other"),
    ],
)
async def test_a_name_clash_is_an_error_before_anything_is_opened(
    tmp_path: Path, added: dict[str, list[BaseTool]], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        async with open_agent(model=scripted(), embedder="offline", **added):  # type: ignore[arg-type]
            pass
    assert not (tmp_path / "data").exists()


@pytest.mark.usefixtures("named")
async def test_a_server_has_what_the_environment_names(modules: Path, monkeypatch: Patch) -> None:
    (modules / "files").mkdir()
    monkeypatch.setenv("CIRCADIAN_FOLDER", "files")
    with blockbuster_ctx():
        async with persistence.store():
            own, keys = names(resources_of({}))
    assert own == [
        "ring_bell",
        "read_file",
        "list_directory",
        "file_search",
        "write_file",
        "copy_file",
        "move_file",
        "file_delete",
    ]
    assert keys == ["house_rules"]


@pytest.mark.usefixtures("named")
async def test_a_server_with_a_broken_module_does_not_start_and_can_start_later(
    modules: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("CIRCADIAN_FOLDER", "gone")
    with pytest.raises(InputError, match="the working folder gone does not exist"):
        async with persistence.store():
            pass
    monkeypatch.delenv("CIRCADIAN_FOLDER")
    async with persistence.store():
        first = resources_of({})
        assert names(first) == (["ring_bell"], ["house_rules"])
    async with persistence.store():
        assert resources_of({}).semantic is not first.semantic


@pytest.mark.usefixtures("named")
async def test_mcp_tools_stand_beside_the_others_and_make_way_for_their_names(
    modules: Path, monkeypatch: Patch
) -> None:
    asked: list[set[str]] = []

    async def mcp_tools(path: Path, *, taken: set[str]) -> list[BaseTool]:
        asked.append(taken)
        return [registered(hum, "dangerous")]

    monkeypatch.setattr(tools.extensions, "mcp_tools", mcp_tools)
    (modules / "mcp.json").write_text(json.dumps({"servers": {}}))
    monkeypatch.setenv("CIRCADIAN_MCP", "mcp.json")
    async with open_agent(model=scripted(), embedder="offline") as agent:
        assert names(agent.resources)[0] == ["ring_bell", "hum"]
    assert {"noop", "ring_bell"} < asked[0]
