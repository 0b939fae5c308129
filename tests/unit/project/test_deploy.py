"""What a deployment is made from: langgraph.json, the image's recipe, and what stays out of it."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from tests.support.source_files import ROOT

CONFIG: dict[str, Any] = json.loads((ROOT / "langgraph.json").read_text(encoding="utf-8"))
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]


def langgraph(*args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "langgraph_cli", *args],
        cwd=ROOT,
        env={**os.environ, "LANGGRAPH_CLI_NO_ANALYTICS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def dockerfile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("image") / "Dockerfile"
    langgraph("dockerfile", str(path), "--config", str(ROOT / "langgraph.json"))
    return path.read_text(encoding="utf-8")


def test_the_configuration_is_valid() -> None:
    assert "1 graph found" in langgraph("validate", "--config", str(ROOT / "langgraph.json"))


def test_every_object_of_the_server_configuration_exists() -> None:
    paths = [CONFIG["graphs"]["agent"]["path"], CONFIG["http"]["app"]]
    paths += [CONFIG[part]["path"] for part in ("checkpointer", "store", "auth")]
    for path in paths:
        file, _, name = path.partition(":")
        defined = rf"^(?:(?:async )?def |class )?{name}\b"
        assert re.search(defined, (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), path


def test_custom_routes_and_studio_are_authenticated_too() -> None:
    assert CONFIG["auth"]["disable_studio_auth"] is True
    assert CONFIG["http"]["enable_custom_route_auth"] is True
    assert CONFIG["http"]["middleware_order"] == "auth_first"


def test_the_image_has_what_a_server_needs(dockerfile: str) -> None:
    listed = {named(one): Requirement(one) for one in CONFIG["dependencies"][1:]}
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    versions = dict(line.lower().split("==") for line in pinned if "==" in line)
    for needed in {*EXTRAS["server"], *EXTRAS["postgres"]} - {"langgraph-sdk>=0.4.6"}:
        given = listed[named(needed)]
        assert versions[given.name] in given.specifier
        assert str(given) in dockerfile
    for variable in ("CHECKPOINTER", "STORE", "AUTH", "HTTP"):
        assert f"ENV LANGGRAPH_{variable}=" in dockerfile


def test_the_shell_takes_no_version_for_a_file_to_write_to(dockerfile: str) -> None:
    # The command line writes the requirements into the image's shell unquoted.
    [line] = [line for line in dockerfile.splitlines() if "httpx" in line]
    assert set("<>;&|$") & set(line) == set()


THE_TOOLS_OWN = ("DL3020", "DL3003", "DL3059", "SC2102")
"""What hadolint says of lines that `langgraph dockerfile` writes: `ADD`, `cd`, several `RUN`, and
the brackets of extras, which the shell leaves as they are."""


def test_hadolint_finds_nothing_else_in_the_image_s_recipe(dockerfile: str) -> None:
    found = linted(dockerfile)
    assert {one["code"] for one in found} <= set(THE_TOOLS_OWN), found
    wrong = linted(f"{dockerfile}\nRUN sudo true\n")
    assert "DL3004" in {one["code"] for one in wrong}


def linted(text: str) -> list[dict[str, Any]]:
    command = [str(Path(sys.executable).parent / "hadolint"), "--no-fail", "--format", "json", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def named(requirement: str) -> str:
    parsed = Requirement(requirement)
    return f"{parsed.name}[{','.join(sorted(parsed.extras))}]"


def test_the_image_gets_the_product_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    let_in = {rule[1:] for rule in rules if rule.startswith("!")}
    packages = {"graph", "memory", "nodes", "tools"}
    assert packages < let_in
    assert all((ROOT / name).exists() for name in let_in)
    assert let_in.isdisjoint({".env", ".git", ".venv", ".circadian", "tests", "benchmarks"})
    assert Path("README.md").name in let_in  # the package's description
