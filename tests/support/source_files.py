"""The product's source files and what their syntax trees import."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

ROOT = next(one for one in Path(__file__).resolve().parents if (one / "pyproject.toml").exists())
"""The repository."""

GOLDEN = ROOT / "tests" / "golden"
FIXTURES = ROOT / "tests" / "fixtures"

LAYERS = ("memory", "tools", "nodes", "graph")
"""Each may import itself and those before it."""


@dataclass(frozen=True, eq=False)
class Source:
    """One file: its path below the repository's root, and its text."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, str(self.path))

    @property
    def layer(self) -> str:
        return self.path.parts[0]

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def imports(self) -> list[tuple[int, str]]:
        """Line and dotted name of every module imported, wherever in the file it is."""
        found: list[tuple[int, str]] = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [(node.lineno, alias.name) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                found.append((node.lineno, "." * node.level + (node.module or "")))
        return found

    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        """Every function and method, nested ones too."""
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return [node for node in self.nodes if isinstance(node, kinds)]


@cache
def sources() -> Sequence[Source]:
    """Every Python file of the four packages, sorted by path; read once."""
    files = sorted(file for layer in LAYERS for file in (ROOT / layer).rglob("*.py"))
    return tuple(
        Source(PurePosixPath(file.relative_to(ROOT).as_posix()), file.read_text()) for file in files
    )
