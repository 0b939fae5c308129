"""Rules for every test: loopback only; no keys, settings or home of a person; a time limit."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.support.clock import Clock
from tests.support.loopback import sitecustomize
from tests.support.places import in_memory

if TYPE_CHECKING:
    from tests.support.agents import Opening

pytest_plugins = [
    "tests.support.postgres",
    "tests.support.server",
    "tests.support.lock_connections",
    "tests.support.tables",
    "tests.support.memories",
    "tests.support.openai_server",
]

_PREFIXES = ("CIRCADIAN_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "LANGGRAPH_", "XDG_")
# A proxy on loopback would lead to any host.
_SUFFIXES = ("_API_KEY", "_PROXY")
# Where data to test against lies: no setting of the product.
_DATA = ("CIRCADIAN_LOCOMO",)
_HOME = pytest.StashKey[Path]()
_SLOW_SECONDS = 1800
"""Time limit of a slow test, and of a property test with the many examples of the slow run."""

# No deadline and no complaint about slow examples: how fast a machine is proves nothing.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fast", _PATIENT, max_examples=20)
settings.register_profile("thorough", _PATIENT, max_examples=500)
settings.load_profile("fast")


def unwanted_variables() -> list[str]:
    """The variables that would let this machine's settings, keys or proxies into a test."""
    return [
        name
        for name in os.environ
        if name not in _DATA
        and (name.upper().startswith(_PREFIXES) or name.upper().endswith(_SUFFIXES))
    ]


def pytest_configure(config: pytest.Config) -> None:
    """Before any product module is imported: some libraries read their variables then."""
    for name in unwanted_variables():
        del os.environ[name]
    # Times are shown in the machine's zone.
    os.environ["TZ"] = "UTC"
    _heed_interrupts()
    _keep_compiled()
    _keep_files_in_memory()
    home = Path(tempfile.mkdtemp(prefix="circadian-home-"))
    config.stash[_HOME] = home
    os.environ["HOME"] = str(home)
    guard = str(Path(sitecustomize.__file__).parent)
    rest = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    os.environ["PYTHONPATH"] = os.pathsep.join([guard, *(part for part in rest if part != guard)])


def _heed_interrupts() -> None:
    """A shell starts background jobs with SIGINT ignored; tests of Ctrl-C need it in children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _keep_compiled() -> None:
    """Else this process, and each Python that a test starts, compiles every module anew."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False


def _keep_files_in_memory() -> None:
    """Where `tmp_path` is, unless whoever runs the tests says where."""
    place = in_memory()
    if place is not None:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(place))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """What is imported and collected stays: to look for garbage in it takes a fifth of a run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give slow tests more time, unless a mark of their own says how much."""
    thorough = config.getoption("--hypothesis-profile") == "thorough"
    for item in items:
        slow = item.get_closest_marker("slow") or (
            thorough and item.get_closest_marker("hypothesis")
        )
        if slow and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(_SLOW_SECONDS))


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.stash[_HOME], ignore_errors=True)


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an earlier test left in the environment does not reach this one."""
    for name in unwanted_variables():
        monkeypatch.delenv(name)


@pytest.fixture
def clock() -> Clock:
    """A settable clock; it begins at 2026-03-02 09:00 UTC."""
    return Clock()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def opening(data: Path, clock: Clock) -> Opening:
    """Opens the agent of a test: `opening(model, settings=...)`; again, it is the same agent."""
    from tests.support.agents import opened

    return partial(opened, data, clock=clock)
