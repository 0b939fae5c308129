"""The package builds, and its wheel brings what runs: installed into an empty environment."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.source_files import LAYERS, ROOT

SECONDS = 900


def run(*command: str | Path, folder: Path) -> str:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CIRCADIAN_", "PYTHONPATH"))
    }
    done = subprocess.run(
        [str(one) for one in command],
        cwd=folder,
        env=kept,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What git knows of the tree: a build leaves files beside its sources."""
    folder = tmp_path_factory.mktemp("clone")
    run("git", "-C", ROOT, "checkout-index", "-a", f"--prefix={folder}/", folder=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    run(sys.executable, "-m", "build", "--outdir", "built", folder=checkout)
    [made] = (checkout / "built").glob("*.whl")
    return made


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_the_wheel_has_every_file_of_the_packages(checkout: Path, wheel: Path) -> None:
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    kept = {
        str(path.relative_to(checkout))
        for name in LAYERS
        for path in (checkout / name).rglob("*")
        if path.is_file()
    }
    assert packed == kept
    checked = run(
        sys.executable, "-m", "twine", "check", "--strict", *wheel.parent.iterdir(), folder=checkout
    )
    assert checked.count("PASSED") == 2


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
def test_the_demo_runs_from_the_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", "empty", folder=tmp_path)
    python, pinned = tmp_path / "empty" / "bin" / "python", ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "--no-compile", "-c", pinned, wheel, folder=tmp_path)
    played = json.loads(run(python.with_name("circadian"), "demo", "--json", folder=tmp_path))
    assert played["recalled"]
    assert run(python, "-c", "import graph; print(graph.__file__)", folder=tmp_path).startswith(
        str(tmp_path)
    )
