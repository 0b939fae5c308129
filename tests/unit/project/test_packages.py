"""The four packages have common names: what is imported under them stands in this repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source_files import LAYERS, ROOT

WHERE = (
    "import importlib, json;"
    f"print(json.dumps([importlib.import_module(name).__file__ for name in {LAYERS!r}]))"
)


def test_the_packages_resolve_inside_the_repository_from_any_folder(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WHERE]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [str(ROOT / name / "__init__.py") for name in LAYERS]


@pytest.mark.parametrize("name", LAYERS)
def test_every_folder_with_code_is_a_package_and_so_is_installed(name: str) -> None:
    folders = {file.parent for file in (ROOT / name).rglob("*.py")}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
