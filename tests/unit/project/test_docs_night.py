"""What docs/night.md shows is run, and its figures are the code's."""

from __future__ import annotations

import re
from pathlib import Path

from graph.cli.program import COMMANDS
from memory.settings import Settings
from tests.support.pages import Page, printed

NIGHT = Page("docs/night.md")


def test_it_prints_what_it_says(tmp_path: Path) -> None:
    told = NIGHT.told()
    assert printed([code for code, _ in told], tmp_path) == [text for _, text in told]


def test_its_settings_and_their_defaults_are_the_codes() -> None:
    shown = dict(re.findall(r"`(\w+)` \(([\d.]+)\)", NIGHT.text))
    defaults = dict(Settings())
    assert len(shown) >= 5
    assert {name: float(value) for name, value in shown.items()} == {
        name: float(defaults[name]) for name in shown
    }


def test_its_commands_exist() -> None:
    names = set(re.findall(r"^\$ circadian ([\w-]+)", NIGHT.text, re.MULTILINE))
    assert names <= COMMANDS.keys()
    assert {"sleep", "nights", "night", "undo"} <= names
