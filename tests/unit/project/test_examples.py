"""The programs under examples/ run as they are, and print what they promise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.forked import forked_python
from tests.support.pages import Page
from tests.support.source_files import ROOT

PROGRAMS = ROOT / "examples" / "embedding"
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], run_name='__main__')"
PRINTED = {
    "failures.py": [
        "failed: the model call failed: ValueError: the service has no answer",
        "answered: Good morning, Ada.",
    ],
    "own_models.py": ["The bakery opens at seven."],
    "own_persistence.py": [
        "blocking: From this conversation, you: I am allergic to walnuts.",
        "checkpoints: True",
        "asynchronous: tick 1",
    ],
    "own_tools.py": ["asks: Run water(bed=3, litres=10)", "says: Bed 3 is watered."],
    "streaming.py": ["The| |bakery| |opens| |at| |seven.|"],
    "web_handler.py": [
        "ada 200 From this conversation, ada: I am allergic to walnuts.",
        "ben 200 From this conversation, ben: I am allergic to peaches.",
    ],
}


@pytest.mark.parametrize("name", sorted(path.name for path in PROGRAMS.glob("*.py")))
def test_an_example_prints_what_it_promises(name: str, tmp_path: Path) -> None:
    done = run(["-c", RUN, str(PROGRAMS / name)], tmp_path, python=forked_python())
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == PRINTED[name]


def test_the_page_names_every_example() -> None:
    named = {Path(one).name for one in Page("docs/embedding.md").named() if one.endswith(".py")}
    assert {path.name for path in PROGRAMS.glob("*.py")} <= named


def test_a_module_called_tools_hides_ours_unless_python_leaves_its_folder_out(
    tmp_path: Path,
) -> None:
    (tmp_path / "tools.py").write_text("hammer = 1\n")
    (tmp_path / "shop.py").write_text("import tools.answers\nprint('opened')\n")
    hidden = run(["shop.py"], tmp_path)
    assert "'tools' is not a package" in hidden.stderr
    assert run(["-P", "shop.py"], tmp_path).stdout == "opened\n"


def run(
    arguments: list[str], folder: Path, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Run Python on a program, with the offline model's defaults and this tree's packages."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("CIRCADIAN_")}
    return subprocess.run(
        [python, *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
