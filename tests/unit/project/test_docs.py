"""What the pages under docs/ show is run; their tables and figures are the code's."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph.state import CompiledStateGraph

from graph.builder import awake, sleep
from graph.cli.program import COMMANDS
from graph.server.app import app
from graph.server.settings import USERS_OWN
from memory import errors
from memory.events.rules import RULES
from memory.prompt.components import COMPONENTS, PLACEHOLDERS
from memory.settings import Deployment, Settings
from nodes.delegate import PROMPTS
from tests.support.forked import forked_python
from tests.support.pages import Page, printed, run, run_shell
from tests.support.source_files import ROOT
from tools.extensions import McpConfig
from tools.policy import CONTEXTS, FULL_COMPONENTS
from tools.registry import ToolCategory

ACTING, EXTENDING = Page("docs/acting.md"), Page("docs/extending.md")
NIGHT, README = Page("docs/night.md"), Page("README.md")
ERRORS = Page("docs/errors.md")
SHOWN = [line for line in README.commands() if line.startswith("circadian ")]
ARCHITECTURE = Page("docs/architecture.md")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")),
]


def test_acting_prints_what_it_says_and_the_log_has_it(tmp_path: Path) -> None:
    said = tried(ACTING, tmp_path)
    assert "agent called open_gate" in said
    assert '"target": "delegate_task"' in said


def test_extending_prints_what_it_says_and_the_doctor_finds_what_it_adds(tmp_path: Path) -> None:
    said = " ".join(tried(EXTENDING, tmp_path).split())
    assert "extensions garden, 1 tool, 1 component" in said
    assert "working folder notes, 7 tools" in said


def test_the_mcp_file_is_one() -> None:
    [text] = EXTENDING.of_kind("json")
    assert set(McpConfig.model_validate(json.loads(text)).servers) == {"files", "town"}


def test_the_page_of_nights_prints_what_it_says(tmp_path: Path) -> None:
    told = NIGHT.told()
    assert printed([code for code, _ in told], tmp_path) == [text for _, text in told]


def test_the_settings_of_nights_and_their_defaults_are_the_codes() -> None:
    shown = dict(re.findall(r"`(\w+)` \(([\d.]+)\)", NIGHT.text))
    defaults = dict(Settings())
    assert len(shown) >= 5
    assert {name: float(value) for name, value in shown.items()} == {
        name: float(defaults[name]) for name in shown
    }


def test_the_commands_of_nights_exist() -> None:
    names = set(re.findall(r"^\$ circadian ([\w-]+)", NIGHT.text, re.MULTILINE))
    assert names <= COMMANDS.keys()
    assert {"sleep", "nights", "night", "undo"} <= names


def test_the_rules_of_classification_stand_in_their_order() -> None:
    assert [row[0] for row in ACTING.rows("rule")] == [rule.name for rule in RULES]


def test_the_table_of_contexts_is_the_codes() -> None:
    shown = {
        context: (components, mode, int(iterations))
        for context, _, components, _, mode, iterations in ACTING.rows("context")
    }
    assert shown == {
        name: (
            "all"
            if config.enabled_components == FULL_COMPONENTS
            else ", ".join(map(str, config.enabled_components)),
            config.execution_mode,
            config.max_iterations,
        )
        for name, config in CONTEXTS.items()
    }


def test_the_settings_of_users_are_the_codes() -> None:
    told = (ROOT / "docs" / "deploy.md").read_text().split("Users set these settings")[1]
    listed = told.split("\n\n")[1]
    assert set(re.findall(r"`(\w+)`", listed)) == USERS_OWN


def test_the_api_page_names_the_routes_that_there_are() -> None:
    told = re.findall(
        r"^\| ([A-Z]+) \| `(\S+)` \| (.*?) \|", Page("docs/api.md").text, re.MULTILINE
    )
    shown = {(method, path): set(re.findall(r"\w+", names)) for method, path, names in told}
    assert len(shown) == len(told)
    assert shown == {
        (method.upper(), path): {
            one["name"] for one in operation.get("parameters", []) if one["in"] == "query"
        }
        for path, methods in app.openapi()["paths"].items()
        if "/inspect" not in path
        for method, operation in methods.items()
    }


def test_the_tests_that_the_page_of_threats_names_exist() -> None:
    page = Page("docs/security.md")
    assert [row for row in page.rows("threat") if "tests/" not in row[2]] == []
    for name in re.findall(r"`(tests/[^`]+)`", page.text):
        file, _, test = name.partition("::")
        assert f"def {test or 'test_'}" in (ROOT / file).read_text(encoding="utf-8"), name


def test_the_bounds_are_the_defaults() -> None:
    deployment = {f"CIRCADIAN_{name.upper()}": value for name, value in Deployment()}
    defaults = {**dict(Settings()), **deployment}
    rows = [
        (row[1], float(row[2].removesuffix(" s").replace(",", ""))) for row in ACTING.rows("bound")
    ]
    assert len(rows) == 8
    assert rows == [(name, defaults[name]) for name, _ in rows]


def test_categories_components_placeholders_and_insulation_are_the_codes() -> None:
    assert [row[0] for row in EXTENDING.rows("category")] == list(ToolCategory)
    shown = dict(re.findall(r"\| (\d+) \| (\w+) ", EXTENDING.text))
    assert shown == {str(id_): one.key for id_, one in COMPONENTS.items()}
    assert [name for name in PLACEHOLDERS if f"`{{{name}}}`" not in EXTENDING.text] == []
    insulations = [row[0].partition("`")[0] for row in ACTING.rows("`personality_insulation`")]
    assert set(insulations) == set(PROMPTS)


def test_the_figure_shows_every_node_and_no_arrow_that_is_not_there() -> None:
    graphs = {"awake": awake, "sleep": sleep}
    nodes = {node for graph in graphs.values() for node in _nodes(graph)} - {"hand_back"}
    arrows = {arrow for graph in graphs.values() for arrow in _arrows(graph)}
    shown = ARCHITECTURE.figure()
    assert nodes - {node for arrow in shown for node in arrow} == set()
    inside = {arrow for arrow in shown if set(arrow) <= nodes | {"hand_back"}}
    assert inside - arrows == set()
    assert len(inside) > 15


@pytest.mark.parametrize("name", PAGES)
def test_files_that_a_page_names_exist(name: str) -> None:
    named = Page(name).named()
    missing = [
        one for one in named if not ((ROOT / one).exists() or (ROOT / "docs" / one).exists())
    ]
    assert missing == []


def tried(page: Page, folder: Path) -> str:
    """Run the Python blocks, then the commands with the modules that the page shows; their output.

    A block whose first line is a comment with a file's name is that file.
    """
    told = page.told()
    assert printed([code for code, _ in told], folder) == [text for _, text in told]
    for code, _ in told:
        if named := re.match(r"# (\w+\.py)\n", code):
            (folder / named[1]).write_text(code)
    done = run_shell(page.commands(), folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def _nodes(graph: CompiledStateGraph[Any, Any, Any, Any]) -> set[str]:
    return {name for name in graph.get_graph().nodes if not name.startswith("__")}


def _arrows(graph: CompiledStateGraph[Any, Any, Any, Any]) -> set[tuple[str, str]]:
    return {(edge.source, edge.target) for edge in graph.get_graph().edges}


@pytest.mark.parametrize("block", README.of_kind("python"))
def test_a_python_block_runs_and_prints(block: str, tmp_path: Path) -> None:
    done = run([forked_python(), "-c", block], tmp_path)
    assert done.returncode == 0, done.stderr
    assert "The glass arrives on Friday." in done.stdout


def test_the_commands_run_in_order_and_recall_what_was_said(tmp_path: Path) -> None:
    assert len(SHOWN) >= 4
    outputs = []
    for line in SHOWN:
        words = shlex.split(line)[1:]
        done = run([forked_python(), "-m", "graph.cli", *words], tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"
        outputs.append(done.stdout)
    recalled = outputs[[line.split()[1] for line in SHOWN].index("recall")]
    assert "walnuts" in recalled


def test_demo_and_test_stand_with_their_output_in_the_first_thirty_lines() -> None:
    first = "\n".join(README.text.splitlines()[:30])
    assert "make demo" in first
    assert re.search(r"make test\n.*\d+ passed", first)


def error_types() -> dict[str, str]:
    known, found = {"CircadianError"}, {"CircadianError": "RuntimeError"}
    classes = [
        made.groups()
        for folder in ("memory", "tools", "nodes", "graph")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for made in re.finditer(r"^class (\w+)\((\w+)\):", path.read_text("utf-8"), re.MULTILINE)
    ]
    while new := {name for name, base in classes if base in known} - found.keys():
        found |= {name: base for name, base in classes if name in new and base in known}
        known |= new
    return found


def test_the_page_lists_each_error_with_its_base() -> None:
    rows = ERRORS.rows("error")
    assert {row[0]: row[1] for row in rows} == error_types()
    assert vars(errors).keys() >= error_types().keys()
    assert [row for row in rows if not row[2]] == []


def test_all_errors_are_defined_in_one_module() -> None:
    found = {
        made.group(1): path.relative_to(ROOT).as_posix()
        for folder in ("memory", "tools", "nodes", "graph")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for made in re.finditer(
            r"^class (\w+)\(\w*(?:Error|Exception)\):", path.read_text("utf-8"), re.M
        )
    }
    # `RetryableError` never leaves the module that tries a call again.
    assert found.pop("RetryableError") == "memory/models/retry.py"
    assert {*found.values()} == {"memory/errors.py"}


def test_the_import_on_the_page_of_errors_works() -> None:
    [code] = ERRORS.of_kind("python")
    names: dict[str, Any] = {}
    exec(code, names)
    assert set(names) - {"__builtins__"} <= error_types().keys()
