"""The rules of the source tree, held over the syntax trees of every file in the four packages."""

import ast
import re
from collections.abc import Callable
from pathlib import PurePosixPath

import pytest

from tests.support.source_files import LAYERS, Source, sources

SQL_MODULES = {"sqlite3", "aiosqlite", "psycopg", "sqlalchemy"}
SQL_TEXT = re.compile(
    r"\s*(SELECT\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s"
    r"|(CREATE|DROP|ALTER)\s+(TABLE|INDEX|VIRTUAL|UNIQUE)\s|PRAGMA\s|BEGIN\s+IMMEDIATE)"
)


def imports_go_up_the_list(source: Source) -> list[str]:
    """A layer imports itself and the layers before it, and no test or benchmark."""
    allowed = LAYERS[: LAYERS.index(source.layer) + 1]
    closed = {*LAYERS, "tests", "benchmarks", "examples"} - set(allowed)
    return [f"{at}: {name}" for at, name in source.imports() if name.split(".")[0] in closed]


def imports_are_absolute(source: Source) -> list[str]:
    return [f"{at}: {name}" for at, name in source.imports() if name.startswith(".")]


def files_are_named_for_what_they_hold(source: Source) -> list[str]:
    """No `utils`, no second version beside the first."""
    bad = re.fullmatch(r"utils?|helpers?|common|misc|.*_v\d+|v\d+", source.path.stem)
    return [f"named {source.path.stem}"] if bad else []


def sql_stands_in_memory_and_persistence(source: Source) -> list[str]:
    """No SQL and no database driver outside `memory/` and `graph/persistence.py`."""
    if source.layer == "memory" or source.path == PurePosixPath("graph/persistence.py"):
        return []
    drivers = [f"{at}: {m}" for at, m in source.imports() if m.split(".")[0] in SQL_MODULES]
    texts = [
        f"{node.lineno}: {node.value[:40]!r}"
        for node in ast.walk(source.tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and SQL_TEXT.match(node.value)
    ]
    return drivers + texts


def a_file_is_named_like_a_node(source: Source) -> list[str]:
    """A file of a package of `nodes/` defines a node of its own name; others may stand beside."""
    inside = source.layer == "nodes" and len(source.path.parts) > 2
    if not inside or source.path.name == "__init__.py":
        return []
    top = [n for n in source.tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    name = source.path.stem
    return [] if any(n.name == name and is_node(n) for n in top) else [f"no node {name}"]


def is_node(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether it has the form of a node: public, async, its first argument `state`.

    A router has it too; what it returns is the name of a node.
    """
    arguments = function.args.posonlyargs + function.args.args
    takes_state = bool(arguments) and arguments[0].arg == "state"
    is_async = isinstance(function, ast.AsyncFunctionDef)
    routes = function.returns is not None and ast.unparse(function.returns).startswith(
        ("Literal[", "str")
    )
    return is_async and takes_state and not routes and not function.name.startswith("_")


Rule = Callable[[Source], list[str]]
RULES: list[Rule] = [
    imports_go_up_the_list,
    imports_are_absolute,
    files_are_named_for_what_they_hold,
    sql_stands_in_memory_and_persistence,
    a_file_is_named_like_a_node,
]

BROKEN: list[tuple[Rule, str, str]] = [
    (imports_go_up_the_list, "memory/a.py", "import tools.registry"),
    (imports_go_up_the_list, "tools/a.py", "def f():\n    from nodes.act import act"),
    (imports_go_up_the_list, "nodes/a.py", "from graph import agent"),
    (imports_go_up_the_list, "graph/a.py", "from tests.support.clock import Clock"),
    (imports_are_absolute, "memory/a.py", "from . import b"),
    (imports_are_absolute, "memory/a.py", "from ..memory.b import c"),
    (files_are_named_for_what_they_hold, "memory/utils.py", ""),
    (files_are_named_for_what_they_hold, "memory/recall_v2.py", ""),
    (sql_stands_in_memory_and_persistence, "nodes/a.py", "import sqlite3"),
    (sql_stands_in_memory_and_persistence, "graph/a.py", "db.execute('SELECT 1 FROM facts')"),
    (sql_stands_in_memory_and_persistence, "tools/a.py", "q = f'DELETE FROM facts WHERE id={i}'"),
    (a_file_is_named_like_a_node, "nodes/tick/act.py", "async def answer(state): ..."),
    (a_file_is_named_like_a_node, "nodes/tick/act.py", "def act(message): ..."),
]

KEPT: list[tuple[Rule, str, str]] = [
    (imports_go_up_the_list, "memory/a.py", "from langgraph.graph import END\nimport memory.b"),
    (imports_go_up_the_list, "graph/a.py", "import memory.a, tools.a, nodes.a, graph.b"),
    (sql_stands_in_memory_and_persistence, "memory/a.py", "import sqlite3"),
    (sql_stands_in_memory_and_persistence, "graph/persistence.py", "x = 'PRAGMA journal_mode=WAL'"),
    (sql_stands_in_memory_and_persistence, "nodes/a.py", "x = 'Select the goals to work on'"),
    (
        a_file_is_named_like_a_node,
        "nodes/tick/act.py",
        "async def act(state): ...\nasync def use_tools(state): ...\ndef cut(state): ...",
    ),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_every_file_keeps_the_rule(rule: Rule) -> None:
    broken = [f"{source.path}: {problem}" for source in sources() for problem in rule(source)]
    assert broken == []


@pytest.mark.parametrize(("rule", "path", "text"), BROKEN)
def test_a_file_that_breaks_a_rule_is_found(rule: Rule, path: str, text: str) -> None:
    assert rule(Source(PurePosixPath(path), text))


@pytest.mark.parametrize(("rule", "path", "text"), KEPT)
def test_a_file_that_keeps_a_rule_is_left_alone(rule: Rule, path: str, text: str) -> None:
    assert rule(Source(PurePosixPath(path), text)) == []


def test_every_rule_is_shown_to_fail_and_every_layer_is_read() -> None:
    assert {rule for rule, _, _ in BROKEN} == set(RULES)
    assert {source.layer for source in sources()} == set(LAYERS)
