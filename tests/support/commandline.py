"""The command `circadian`, run inside the test's own process."""

import io
import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
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
    capsys.readouterr()
    with _own_logging():
        status = main([str(one) for one in args])
    printed = capsys.readouterr()
    return Done(status, printed.out, printed.err)


def lived_through(data: Path, *commands: tuple[str, ...]) -> Path:
    """`data`, once these commands have run on it: a beginning that tests copy."""
    for command in commands:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as err, _own_logging():
            assert main([*command, "--data", str(data)]) == 0, err.getvalue()
    return data


def facts(run: Run) -> list[dict[str, Any]]:
    found = run("recall", "--all", "--json").document
    return [one for one in found if one["kind"] == "fact"]


@contextmanager
def _own_logging() -> Iterator[None]:
    root, ours = logging.getLogger(), [logging.getLogger(name) for name in ("circadian", "memory")]
    handlers, level, levels = root.handlers[:], root.level, [one.level for one in ours]
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
        for one, before in zip(ours, levels, strict=True):
            one.setLevel(before)
