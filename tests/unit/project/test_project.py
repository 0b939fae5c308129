"""What the project says of itself agrees: dependencies, versions, settings, targets."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from graph.server.settings import Serving
from memory.settings import Deployment
from tests.support.source_files import LAYERS, ROOT, sources

MODULES = {
    "circuitbreaker": ("circuitbreaker",),
    "langchain-community": ("langchain_community",),
    "langchain-core": ("langchain_core",),
    "langchain-openai": ("langchain_openai",),
    "langgraph": ("langgraph",),
    "langgraph-checkpoint-sqlite": ("langgraph.checkpoint.sqlite", "langgraph.store.sqlite"),
    "mem0ai": ("mem0",),
    "numpy": ("numpy",),
    "opentelemetry-api": ("opentelemetry",),
    "orjson": ("orjson",),
    "ormsgpack": ("ormsgpack",),
    "prometheus-client": ("prometheus_client",),
    "pydantic": ("pydantic",),
    "rich": ("rich",),
    "tenacity": ("tenacity",),
    "text2num": ("text_to_num",),
    "tomlkit": ("tomlkit",),
    "typer": ("typer",),
    "typing-extensions": ("typing_extensions",),
    "tzlocal": ("tzlocal",),
}
"""Runtime distribution -> the modules it brings that the product imports."""

OPTIONAL = {
    "fastapi": ("fastapi",),
    "httpx": ("httpx",),
    "jinja2": ("jinja2", "markupsafe"),
    "langgraph-checkpoint-postgres": ("langgraph.checkpoint.postgres", "langgraph.store.postgres"),
    "langgraph-sdk": ("langgraph_sdk",),
    "limits": ("limits",),
    "pyjwt": ("jwt",),
    "starlette": ("starlette",),
    "uvicorn": ("uvicorn",),
    "psycopg": ("psycopg", "psycopg_pool"),
    "langchain-mcp-adapters": ("langchain_mcp_adapters",),
}
"""The same for the extras; imported only where a user asks for what they bring."""

TARGETS = ("demo", "test", "test-slow", "test-browser", "test-image", "check", "bench", "studio")

# Package registries and their mirrors, and folders of the machine that a file was written on.
# A letter in brackets keeps a pattern from matching its own line here.
REGISTRY = re.compile(
    r"[p]ypi\.(?:org|python)|[p]ythonhosted\.|[a]naconda\.(?:org|com)"
    r"|--(?:extra-)?index-url|--find-link[s]|/simpl[e]/"
)
MACHINE = re.compile(r"(?<![\w.~$}])/(?:root|work|home|Users|opt|mnt)/\w")


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text())


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found, requirement
    return found[0].lower()


def runtime() -> list[str]:
    return [name_of(line) for line in pyproject()["project"]["dependencies"]]


def extra(name: str) -> list[str]:
    return [name_of(line) for line in pyproject()["project"]["optional-dependencies"][name]]


def optional() -> list[str]:
    extras = pyproject()["project"]["optional-dependencies"]
    return [
        name_of(line)
        for name, lines in extras.items()
        if name not in ("dev", "bench")
        for line in lines
    ]


def constraint_lines() -> list[str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def imported() -> set[str]:
    return {name for source in sources() for _, name in source.imports()}


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


def test_every_runtime_dependency_is_imported_by_the_product() -> None:
    assert set(MODULES) == set(runtime())
    used = imported()
    idle = [
        distribution
        for distribution, modules in MODULES.items()
        if not any(within(name, module) for name in used for module in modules)
    ]
    assert idle == []


def test_an_extra_is_known_by_its_modules_and_installed_for_the_tests() -> None:
    assert set(OPTIONAL) == set(optional())
    assert set(optional()) <= set(extra("dev"))


def test_whatever_the_product_imports_is_a_runtime_dependency() -> None:
    known = {**MODULES, **OPTIONAL}
    declared = {*LAYERS, *sys.stdlib_module_names, *(m for ms in known.values() for m in ms)}
    assert [m for m in imported() if not any(within(m, one) for one in declared)] == []


def test_each_dependency_and_nothing_else_has_one_line_saying_what_for() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    told = re.findall(r"^- `([^`]+)`: ", text, re.MULTILINE)
    assert sorted(told) == sorted({*runtime(), *extra("dev"), *extra("bench")})


def test_constraints_pin_every_direct_dependency() -> None:
    pinned = {name_of(line).replace("_", "-") for line in constraint_lines()}
    assert {*runtime(), *extra("dev")} - pinned == set()


def test_constraints_name_versions_and_nothing_else() -> None:
    exact = re.compile(r"[A-Za-z0-9][\w.-]*==[0-9][\w.+!]*")
    assert [line for line in constraint_lines() if not exact.fullmatch(line)] == []


def test_the_changelog_begins_with_the_version() -> None:
    heading = re.search(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading
    assert heading[1] == pyproject()["project"]["version"]


def test_the_example_environment_lists_every_variable_with_its_default() -> None:
    text = (ROOT / ".env.example").read_text()
    listed = dict(re.findall(r"^# (CIRCADIAN_[A-Z_]+)=(.*)$", text, re.MULTILINE))
    both = {**Deployment.model_fields, **Serving.model_fields}
    assert set(listed) == {f"CIRCADIAN_{name.upper()}" for name in both}
    given = {key.removeprefix("CIRCADIAN_").lower(): value for key, value in listed.items()}
    for kind in (Deployment, Serving):
        for name, field in kind.model_fields.items():
            if field.default is not None:
                assert getattr(kind(**{name: given[name]}), name) == field.default


def files_of_the_repository() -> list[Path]:
    """Tracked files, and new ones that are not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("not a git repository")
    files = [ROOT / name for name in done.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def test_no_file_names_a_registry_or_a_folder_of_a_machine() -> None:
    found = []
    for file in files_of_the_repository():
        text = file.read_bytes().decode("utf-8", "replace")
        for number, line in enumerate(text.splitlines(), 1):
            if REGISTRY.search(line) or MACHINE.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}")
    assert found == []


@pytest.mark.parametrize(
    "line", ["{p}.org/x", "--extra-{i} x", "open('{s}root/x')", "file://{s}home/ann"]
)
def test_a_line_that_names_one_is_found(line: str) -> None:
    text = line.format(p="pypi", i="index-url", s="/")
    assert REGISTRY.search(text) or MACHINE.search(text)


make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@make
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_sets_up_the_environment_by_itself(target: str, tmp_path: Path) -> None:
    done = run_make(tmp_path, "--dry-run", target)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    steps = [i for i, line in enumerate(lines) if "-m venv .venv" in line or "pip install" in line]
    assert len(steps) == 2
    assert steps[1] < len(lines) - 1


@make
def test_a_python_that_is_too_old_is_one_clear_error(tmp_path: Path) -> None:
    old = tmp_path / "python3.10"
    old.write_text("#!/bin/sh\nexit 1\n")
    old.chmod(0o755)
    done = run_make(tmp_path, "test", f"PYTHON={old}")
    assert done.returncode != 0
    assert "needs Python 3.11 or newer" in done.stderr
    assert not (tmp_path / ".venv").exists()


def run_make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the project's Makefile in `folder`, as from a shell and not from within `make test`."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, folder)
    env = {
        key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))
    }
    command = ["make", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_the_continuous_check_runs_the_checks_and_the_tests() -> None:
    script = ROOT / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    lines = script.read_text().splitlines()
    assert "set -euo pipefail" in lines
    always = [line for line in lines if line.startswith("make ")]
    assert always == ["make check", "make test"], (
        "the browser's tests alone depend on what is there"
    )
    assert lines.index("make test") < lines.index("\tmake test-browser")
