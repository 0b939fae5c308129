"""Tools for CIRCADIAN_EXTENSIONS, a dangerous one and one that fails; and models that ask for them.

What was launched is a line each in the file that the variable LAUNCHED names.
"""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.openai_server import Reply
from tools.registry import registered


def launch(target: str, reasoning: str | None = None) -> str:
    """Launch a rocket."""
    with Path(os.environ["LAUNCHED"]).open("a") as file:
        file.write(f"{target}\n")
    return f"launched to {target}"


def explode() -> str:
    """Fail."""
    raise OSError("it broke")


tools = [registered(launch, "dangerous"), registered(explode, "safe_chain")]


class Launches:
    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def done(self) -> list[str]:
        return self._file.read_text().splitlines() if self._file.exists() else []


def set_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Launches:
    """Offer the tool, to a model that `serve` serves."""
    launches = Launches(tmp_path / "launched")
    monkeypatch.setenv("LAUNCHED", str(tmp_path / "launched"))
    monkeypatch.setenv("CIRCADIAN_EXTENSIONS", __name__)
    monkeypatch.setenv("CIRCADIAN_MODEL", "openai:none")
    monkeypatch.setenv("CIRCADIAN_EMBEDDER", "offline")
    return launches


def asking(*calls: tuple[str, dict[str, Any]], said: str | None = None) -> Reply:
    made = tuple({"name": name, "arguments": json.dumps(args)} for name, args in calls)
    return Reply(content=said, tool_calls=made)


LAUNCH = asking(("launch", {"target": "the moon", "reasoning": "Ada wants it"}))
