"""The structure of the source tree: packages with one front door, no cycles, sizes within limits.

The limits stand in `structure.toml` beside `pyproject.toml`. They are the tree's best so far: a
change may lower a limit, and may not raise one.
"""

from __future__ import annotations

import ast
import statistics
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import PurePosixPath

import pytest

from tests.support.source_files import LAYERS, ROOT, Source, sources

LIMITS = tomllib.loads((ROOT / "structure.toml").read_text())


class Tree:
    """Modules, packages and imports of a set of source files.

    An import is a pair (importing module, imported module or package). Imports inside functions and
    under `TYPE_CHECKING` count, and what is taken from a package that is imported as a whole.
    """

    def __init__(self, files: Iterable[Source]) -> None:
        self.files = {_module(source.path): source for source in files}
        self.packages = {
            name for name, source in self.files.items() if source.path.name == "__init__.py"
        }
        self.modules = self.files.keys() - self.packages

    def package_of(self, name: str) -> str:
        """The package that owns a module; a package owns itself."""
        return name if name in self.packages else name.rpartition(".")[0]

    def imports(self, name: str) -> Iterator[tuple[int, str, str]]:
        """Line, imported module or package, and imported name ("" for the whole)."""
        for node in self.files[name].nodes:
            if isinstance(node, ast.Import):
                yield from ((node.lineno, alias.name, "") for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    if whole in self.files and alias.name not in self.public(node.module):
                        yield node.lineno, whole, ""
                        yield from self._taken(name, whole, alias.asname or alias.name)
                    else:
                        yield node.lineno, node.module, alias.name

    def _taken(self, name: str, package: str, called: str) -> Iterator[tuple[int, str, str]]:
        """What a module takes from a package that it imports as a whole: `called.taken`."""
        for node in self.files[name].nodes if self.public(package) else ():
            match node:
                case ast.Attribute(ast.Name(id=id_), attr=attr) if id_ == called:
                    if attr in self.public(package):
                        yield node.lineno, package, attr

    @cache  # noqa: B019  # a tree lives as long as the test run
    def public(self, package: str) -> frozenset[str]:
        """The names in a package's `__all__`."""
        if package not in self.packages:
            return frozenset()
        for node in self.files[package].tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                return frozenset(ast.literal_eval(node.value))
        return frozenset()

    def edges(self) -> Mapping[str, set[str]]:
        """Module to modules: a name imported through a front door leads to its module."""
        found = defaultdict[str, set[str]](set)
        for module in self.modules:
            for _, target, name in self.imports(module):
                owner = self.owner(target, name)
                if owner in self.modules and owner != module:
                    found[module].add(owner)
        return found

    def owner(self, target: str, name: str) -> str:
        """The module that defines what `from target import name` brings."""
        if target not in self.packages or not name:
            return target
        if name not in self.public(target) and f"{target}.{name}" in self.files:
            return f"{target}.{name}"
        for _, module, public in self.imports(target):
            if public == name:
                inner = f"{target}.{name}"
                return inner if module == target else self.owner(module, name)
        return target

    def package_edges(self) -> Mapping[str, set[str]]:
        """Package to packages; a module directly in a layer stands for itself."""
        found = defaultdict[str, set[str]](set)
        for module, targets in self.edges().items():
            for target in targets:
                if self._room(module) != self._room(target):
                    found[self._room(module)].add(self._room(target))
        return found

    def _room(self, module: str) -> str:
        package = self.package_of(module)
        return module if package in LAYERS else package


def _module(path: PurePosixPath) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def past_a_front_door(tree: Tree) -> list[str]:
    """Imports of a package's inside by code outside of that package."""
    found = []
    for importer in sorted(tree.files):
        for line, target, name in tree.imports(importer):
            if target.partition(".")[0] not in LAYERS:
                continue
            package = tree.package_of(target)
            inside = f"{importer}.".startswith(f"{package}.")
            if package in LAYERS or inside:
                continue
            if target in tree.modules:
                found.append(f"{importer}:{line} imports {target}, the inside of {package}")
            elif name and name not in tree.public(package):
                found.append(f"{importer}:{line} imports {name}, which {package} keeps to itself")
    return found


def cycles(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Strongly connected components of more than one member (Tarjan, 1972)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in edges.get(node, ()):
            if target not in index:
                visit(target)
            if target in stack:
                low[node] = min(low[node], low[target])
        if low[node] == index[node]:
            component = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(component) > 1:
                found.append(sorted(component))

    for node in list(edges):
        if node not in index:
            visit(node)
    return found


def front_doors(tree: Tree) -> list[str]:
    """Packages whose `__init__` has code beside imports and `__all__`, or lists other names."""
    found = []
    for package in sorted(tree.packages):
        body = tree.files[package].tree.body[1:]
        names = {
            alias.asname or alias.name
            for node in body
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        if body and names - {"annotations"} != tree.public(package):
            found.append(f"{package}: __all__ and the imported names differ")
        plain = (ast.Import, ast.ImportFrom, ast.Assign)
        found += [f"{package}:{node.lineno}: code" for node in body if not isinstance(node, plain)]
    return found


def class_names_used_twice(tree: Tree) -> list[str]:
    where = defaultdict[str, list[str]](list)
    for name, source in tree.files.items():
        for node in source.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                where[node.name].append(name)
    return [f"{name}: {', '.join(sorted(at))}" for name, at in sorted(where.items()) if len(at) > 1]


@cache
def measures(tree: Tree) -> dict[str, float]:
    lines = {name: len(source.text.splitlines()) for name, source in tree.files.items()}
    importers = defaultdict[str, set[str]](set)
    for module, targets in tree.edges().items():
        for target in targets:
            importers[target].add(module)
    # Nodes are left out: each is a file of its own, and the graph alone imports it.
    counted = [module for module in tree.modules if not module.startswith("nodes.")]
    single = [module for module in counted if len(importers[module]) == 1]
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for source in tree.files.values()
        for node in source.functions()
    )
    sizes = [lines[module] for module in tree.modules]
    tests = (file.read_text().count("\n") for file in (ROOT / "tests").rglob("*.py"))
    return {
        "product_lines": sum(lines.values()),
        "product_files": len(tree.files),
        "modules_with_one_importer_percent": round(100 * len(single) / len(counted), 1),
        "modules_under_60_lines": sum(size < 60 for size in sizes),
        "file_lines_max": max(sizes),
        "function_lines_median": statistics.median(lengths),
        "function_lines_p90": lengths[int(0.9 * len(lengths))],
        "function_lines_max": lengths[-1],
        "modules_in_memory_itself": sum(
            name.count(".") == 1 for name in tree.modules if name.startswith("memory.")
        ),
        "class_names_used_twice": len(class_names_used_twice(tree)),
        "test_lines": sum(tests),
    }


@cache
def product() -> Tree:
    return Tree(sources())


def test_outsiders_import_from_the_front_door_alone() -> None:
    assert past_a_front_door(product()) == []


def test_packages_form_no_cycle() -> None:
    assert cycles(product().package_edges()) == []


def test_modules_form_no_cycle() -> None:
    assert cycles(product().edges()) == []


def test_a_front_door_names_what_is_public_and_does_nothing_else() -> None:
    assert front_doors(product()) == []


@pytest.mark.parametrize("figure", sorted(LIMITS))
def test_a_figure_is_within_its_limit(figure: str) -> None:
    measured = measures(product())[figure]
    assert measured <= LIMITS[figure], class_names_used_twice(product())


def test_every_figure_has_a_limit() -> None:
    assert measures(product()).keys() == LIMITS.keys()


def _tree(**files: str) -> Tree:
    """A tree of made-up files; `a__b` is `memory/a/b.py`."""
    paths = {f"memory/{name.replace('__', '/', 1)}.py": text for name, text in files.items()}
    return Tree([Source(PurePosixPath(path), text) for path, text in paths.items()])


def test_an_import_past_a_front_door_is_found() -> None:
    door = '"""A."""\nfrom memory.a.b import x\n__all__ = ["x"]'
    files = {"a____init__": door, "a__b": "x = y = 1"}
    assert past_a_front_door(_tree(**files, c="from memory.a.b import x"))
    assert past_a_front_door(_tree(**files, c="def f():\n    from memory.a import y"))
    assert past_a_front_door(_tree(**files, c="from memory.a import x")) == []
    assert past_a_front_door(_tree(**{**files, "a__c": "from memory.a.b import y"})) == []


def test_a_cycle_is_found_also_through_a_front_door_and_under_type_checking() -> None:
    lazy = "if TYPE_CHECKING:\n    from memory.c import z"
    door = '"""A."""\nfrom memory.a.b import x\n__all__ = ["x"]'
    tree = _tree(a____init__=door, a__b=lazy, c="from memory.a import x")
    assert cycles(tree.edges()) == [["memory.a.b", "memory.c"]]
    assert cycles(tree.package_edges()) == [["memory.a", "memory.c"]]


def test_a_front_door_with_code_or_a_name_too_many_is_found() -> None:
    assert front_doors(_tree(a____init__='"""A."""\nfrom memory.a.b import x\n__all__ = ["y"]'))
    assert front_doors(_tree(a____init__='"""A."""\ndef f(): ...'))
