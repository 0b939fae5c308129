"""The command `circadian`, run inside the test's own process."""

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from graph.cli.__main__ import main


class Done(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        (line,) = self.err.splitlines()
        return line


Run = Callable[..., Done]
"""Runs the command on the test's own data folder."""


def circadian(capsys: pytest.CaptureFixture[str], *args: str | Path) -> Done:
    """Run it; the logging that it sets up ends with it."""
    root, ours = logging.getLogger(), [logging.getLogger(name) for name in ("circadian", "memory")]
    handlers, level, levels = root.handlers[:], root.level, [one.level for one in ours]
    capsys.readouterr()
    try:
        status = main([str(one) for one in args])
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for one, before in zip(ours, levels, strict=True):
            one.setLevel(before)
    printed = capsys.readouterr()
    return Done(status, printed.out, printed.err)
