"""What Studio calls, as docs/studio.md tells of it: each block is run against a real server."""

import re
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

from graph.agent import builder
from memory.settings import GROUPS, KINDS, Settings
from tests.support.pages import Page
from tests.support.server import Server

PAGE = Page("docs/studio.md")
graph = builder.compile(name="agent")


def test_each_step_of_the_page_prints_what_it_says(server: Server) -> None:
    names: dict[str, Any] = {}
    printed: list[str] = []
    for code, _ in PAGE.told():
        assert "127.0.0.1:2024" in code or "client" in names
        with redirect_stdout(StringIO()) as said:
            exec(code.replace("http://127.0.0.1:2024", server.url), names)
        printed.append(said.getvalue())
    names["client"].close()
    assert printed == [text for _, text in PAGE.told()]


def test_every_setting_stands_under_one_node_that_there_is() -> None:
    nodes = {name.rpartition(":")[2] for name in graph.get_graph(xray=True).nodes}
    assert GROUPS.keys() - nodes == set()
    shown = [name for names in GROUPS.values() for name in names.split()]
    assert sorted(shown) == sorted(Settings.model_fields)
    schema: Any = graph.get_context_jsonschema()
    for name, field in schema["properties"].items():
        assert name in GROUPS[field["langgraph_nodes"][0]].split()
    assert {n for n, one in schema["properties"].items() if "langgraph_type" in one} == set(KINDS)


def test_every_field_of_the_input_is_labelled() -> None:
    fields: Any = graph.get_input_jsonschema()["properties"]
    assert [name for name, one in fields.items() if not (one["title"] and one["description"])] == []
    assert re.findall(r"\w+", fields["request"]["description"])[:3] == ["tick", "sleep", "wake"]
