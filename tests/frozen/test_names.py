"""Names that are on disk, in checkpoints, in forms and on the command line."""

from typing import Any

import pytest

from graph.agent import graph
from memory.settings import Deployment, Settings
from tests.frozen.keeping import WallClock, compare, document
from tests.frozen.test_documents import AFTERWARDS
from tests.support.commandline import circadian

COMMANDS = """
    demo chat send replay run tick sleep wake stop clear-stop approve refuse retry recall correct
    forget export import reindex nights night undo agents status inspect log prompt config doctor
    schedule token
"""


def subgraphs() -> list[tuple[str, Any]]:
    return list(graph.get_subgraphs(recurse=True))


def test_the_nodes_of_the_compiled_graph_and_its_subgraphs() -> None:
    nodes = {"agent": sorted(graph.nodes)}
    nodes |= {name: sorted(inner.nodes) for name, inner in subgraphs()}
    compare("nodes.json", document(nodes))


def test_the_keys_of_the_state_and_of_input_and_output() -> None:
    internal = ("__", "branch:")
    keys = {"state": sorted(name for name in graph.channels if not name.startswith(internal))}
    inner = {
        f"state of {name}": sorted(key for key in sub.channels if not key.startswith(internal))
        for name, sub in subgraphs()
    }
    given, returned = graph.get_input_jsonschema(), graph.get_output_jsonschema()
    keys |= inner | {
        "input": sorted(given["properties"]),
        "output": sorted(returned["properties"]),
    }
    compare("state_keys.json", document(keys))


def test_the_settings_with_their_defaults_and_the_variables() -> None:
    schema = graph.get_context_jsonschema()
    assert schema is not None
    shown = {
        "settings": Settings().model_dump(mode="json"),
        "forms": {name: _without_text(form) for name, form in schema["properties"].items()},
        "variables": {
            f"CIRCADIAN_{name.upper()}": str(field.default)
            for name, field in Deployment.model_fields.items()
        },
    }
    compare("settings.json", document(shown))


def _without_text(form: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in form.items() if key not in ("description", "title")}


def test_the_commands_and_their_options(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    listed = circadian(capsys, "--help").out
    assert [
        line.split()[0] for line in listed.split("Commands:\n")[1].splitlines()
    ] == COMMANDS.split()
    pages = [listed, *(circadian(capsys, name, "--help").out for name in COMMANDS.split())]
    compare("help.txt", "\n".join(pages))


def test_the_document_of_a_token(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    WallClock(monkeypatch, AFTERWARDS)
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", "s" * 40)
    done = circadian(capsys, "token", "ada", "--days", "2", "--json")
    compare("documents_alone/token.json", document([done.status, done.out, done.err]))
