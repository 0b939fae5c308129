"""compose.yaml without a Docker engine: the specification, the product in it, and the script."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from graph.server.settings import Serving
from memory.settings import Deployment
from tests.support.pages import Page
from tests.support.source_files import ROOT

SCRIPT = ROOT / ".ci" / "image"
GIVEN = {"LANGGRAPH_CLOUD_LICENSE_KEY": "key", "CIRCADIAN_TOKEN_SECRET": "s" * 32}
CONNECTIONS = 25
"""Of a process of ours, as docs/deploy.md says under Sizing."""


def interpolated(text: str, given: dict[str, str]) -> str:
    """As compose reads it: `${NAME}`, `${NAME:-default}`, `${NAME:?why}`; KeyError: not given."""

    def value(found: re.Match[str]) -> str:
        name, how, rest = found.groups()
        if how == ":-":
            return given.get(name) or rest
        return given[name]

    return re.sub(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", value, text)


TEXT = (ROOT / "compose.yaml").read_text(encoding="utf-8")
COMPOSE: dict[str, Any] = yaml.safe_load(interpolated(TEXT, GIVEN))
SERVICES = COMPOSE["services"]
OURS = SERVICES["circadian"]


def seconds(text: str) -> int:
    return int(re.fullmatch(r"(\d+)s", text)[1])  # type: ignore[index] # an error is one, too


def checked(file: Path) -> subprocess.CompletedProcess[str]:
    """The file against the schema of the compose specification, which the package brings."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    return subprocess.run([*command, str(file)], capture_output=True, text=True, timeout=120)


def test_compose_yaml_is_valid(tmp_path: Path) -> None:
    file, wrong = tmp_path / "compose.json", tmp_path / "wrong.json"
    file.write_text(json.dumps(COMPOSE))
    done = checked(file)
    assert done.returncode == 0, done.stdout
    wrong.write_text(json.dumps(COMPOSE).replace('"retries"', '"retrys"'))
    assert checked(wrong).returncode == 1


def test_services_wait_for_what_is_there_and_can_be_healthy() -> None:
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert how == {"condition": "service_healthy"}
            assert "healthcheck" in SERVICES[needed], (name, needed)
        named = {volume.partition(":")[0] for volume in service.get("volumes", [])}
        assert named <= set(COMPOSE["volumes"])


def test_each_replica_has_a_port_of_the_loopback_address_and_nothing_else_has_one() -> None:
    [ports] = OURS["ports"]
    first, last = map(int, re.fullmatch(r"127\.0\.0\.1:(\d+)-(\d+):8000", ports).groups())  # type: ignore[union-attr]
    assert last - first + 1 == OURS["deploy"]["replicas"]
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["circadian"]


@pytest.mark.parametrize("name", GIVEN)
def test_secrets_of_the_deployment_have_no_default(name: str) -> None:
    with pytest.raises(KeyError, match=name):
        interpolated(TEXT, {key: value for key, value in GIVEN.items() if key != name})


def test_the_products_variables_exist_and_fit_together() -> None:
    variables = {name: str(value) for name, value in OURS["environment"].items()}
    ours = {name for name in variables if name.startswith("CIRCADIAN_")}
    known = {*Deployment.model_fields, *Serving.model_fields}
    assert ours <= {f"CIRCADIAN_{name.upper()}" for name in known}
    assert int(variables["CIRCADIAN_STOP_SECONDS"]) < seconds(OURS["stop_grace_period"])
    server = SERVICES["postgres"]
    user, base = (server["environment"][f"POSTGRES_{name}"] for name in ("USER", "DB"))
    assert re.fullmatch(
        rf"postgresql://{user}:\w+@postgres/{base}", variables["CIRCADIAN_DATABASE_URL"]
    )
    assert not variables["DATABASE_URI"].endswith(f"/{base}"), "LangGraph's tables are elsewhere"
    most = int(server["command"][1].partition("=")[2])
    assert most > OURS["deploy"]["replicas"] * 2 * CONNECTIONS


# The script for a machine with a Docker engine, with stand-ins for what it calls

STAND_INS = {
    "docker": """case "$*" in
	version*) [ -z "$NO_ENGINE" ] && echo 28.0.0 ;;
	*ps*) echo "${EXIT_CODE:-0}" ;;
esac""",
    "langgraph": "true",
    "circadian": "echo a.b.c",
    "curl": """case "$*" in
	*forged* | *8000/circadian/agents | *8001/circadian/agents) printf '%s' "${UNKNOWN:-401}" ;;
	*"-d "*) printf 202 ;;
	*write-out*) printf 200 ;;
	*) echo '{"items": [{"id": "e1"}]}' ;;
esac""",
}


def run(folder: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], list[str]]:
    log = folder / "called"
    for name, text in STAND_INS.items():
        file = folder / name
        file.write_text(f'#!/bin/sh\necho "{name} $*" >>"{log}"\n{text}\n')
        file.chmod(0o755)
    env = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", **variables}
    done = subprocess.run([SCRIPT], env=env, capture_output=True, text=True, timeout=60)
    return done, log.read_text().splitlines()


def test_the_image_script_prints_what_the_page_says_and_cleans_up(tmp_path: Path) -> None:
    done, called = run(tmp_path, LANGGRAPH_CLOUD_LICENSE_KEY="key")
    assert done.returncode == 0, done.stderr
    [shown] = [text for text in Page("docs/deploy.md").of_kind("console") if "test-image" in text]
    assert done.stdout.splitlines() == shown.splitlines()[1:]
    project = "docker compose --project-name circadian-check"
    assert called[-1] == f"{project} down --volumes --timeout 60"
    assert all(one.startswith(project) for one in called if " compose " in one)


@pytest.mark.parametrize(
    ("variables", "why"),
    [
        ({"NO_ENGINE": "1"}, "no Docker engine answers"),
        ({"UNKNOWN": "200"}, "8000, no token: 200, and not 401"),
        ({"EXIT_CODE": "137"}, "a replica had to be killed"),
    ],
)
def test_a_failure_is_one_line_and_leaves_no_service_running(
    tmp_path: Path, variables: dict[str, str], why: str
) -> None:
    done, called = run(tmp_path, LANGGRAPH_CLOUD_LICENSE_KEY="key", **variables)
    assert (done.returncode, f"failed: {why}" in done.stderr.splitlines()) == (1, True), done
    started = any(" up " in one for one in called)
    assert started == any(" down " in one for one in called)


def test_without_a_licence_nothing_is_started(tmp_path: Path) -> None:
    done, called = run(tmp_path)
    assert (done.returncode, "not started" in done.stdout) == (0, True)
    assert not [one for one in called if " up " in one]
