"""A browser, and the inspector as a person runs it: a process on loopback, on a life to look at.

Somebody in that life has a name, and says words, that would like to be markup.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from graph.agent import open_agent
from memory.models.offline.model import OfflineChatModel
from tests.support.agents import said
from tests.support.clock import Clock
from tests.support.source_files import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, StorageState

if find_spec("playwright") is None or find_spec("axe_playwright_python") is None:
    collect_ignore_glob = ["test_*.py"]  # make test-browser installs them

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)

HOSTILE = "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>"


class Place(NamedTuple):
    """An inspector that runs, and a page of a browser that has signed in there."""

    base: str
    page: Page
    files: Path

    def go(self, path: str) -> None:
        answer = self.page.goto(f"{self.base}/default/{path}")
        assert answer is not None
        assert answer.status == 200, path

    def shows(self, words: str) -> None:
        self.page.locator("main").get_by_text(words).first.wait_for()


Open = Callable[..., Place]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("chromium is not on PATH: make test-browser says how to get it")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `data`: two nights, three people, a question that waits."""
    folder = tmp_path_factory.mktemp("life")
    (folder / "files").mkdir()
    script = "from tests.browser.conftest import live; import sys; live(sys.argv[1])"
    # A process of its own: the browser's driver has a loop in this one.
    subprocess.run([sys.executable, "-c", script, folder], check=True, env=variables(folder))
    return folder


def live(folder: str) -> None:
    async def days() -> None:
        clock, data, files = Clock(), Path(folder, "data"), Path(folder, "files")
        model = OfflineChatModel()
        opening = open_agent(data, "default", model, "offline", clock=clock, folder=files)
        async with opening as agent:
            await agent.ainvoke(said("I live in Paris and work at the harbour."))
            await agent.ainvoke(said("My dog Rex is afraid of thunder.", "Ben"))
            await agent.ainvoke(said(f"My cat is called {HOSTILE} Mia", f"Eve {HOSTILE}"))
            await agent.ainvoke({"request": "sleep"})
            clock.advance(days=1)
            await agent.ainvoke(said("What is my dog Rex afraid of?", "Ben"))
            await agent.ainvoke(said(f"Add a goal: paint the boat {HOSTILE} before June."))
            await agent.ainvoke({"request": "sleep"})
            clock.advance(days=1)
            await agent.ainvoke(said("My sister Wilma is allergic to walnuts."))
            await agent.ainvoke(said("Please write a file list.txt: paint, brush."))

    asyncio.run(days())


def variables(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "CIRCADIAN_OFFLINE": "1",
        "CIRCADIAN_FOLDER": str(folder / "files"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }


@pytest.fixture(scope="session")
def shared(browser: Browser, life: Path) -> Iterator[Open]:
    """Opens the one inspector that nobody changes anything in, with a browser of one's own."""
    with ExitStack() as ends:
        base, state = serve(life, browser, ends)

        def opened(**how: Any) -> Place:
            context = ends.enter_context(browser.new_context(storage_state=state, **how))
            return Place(base, context.new_page(), life / "files")

        yield opened


@pytest.fixture(scope="module")
def changing(
    browser: Browser, life: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """An inspector on a copy of that life, for changes that do not touch each other."""
    folder = tmp_path_factory.mktemp("changing") / "life"
    shutil.copytree(life, folder)
    with ExitStack() as ends:
        base, state = serve(folder, browser, ends)
        context = ends.enter_context(browser.new_context(storage_state=state))
        yield Place(base, context.new_page(), folder / "files")


@pytest.fixture
def own(browser: Browser, life: Path, tmp_path: Path) -> Iterator[Open]:
    """Opens an inspector on a copy of that life, to change it."""
    shutil.copytree(life, tmp_path / "life")
    with ExitStack() as ends:

        def opened(**how: Any) -> Place:
            base, state = serve(tmp_path / "life", browser, ends)
            context = ends.enter_context(browser.new_context(storage_state=state, **how))
            return Place(base, context.new_page(), tmp_path / "life" / "files")

        yield opened


def serve(folder: Path, browser: Browser, ends: ExitStack) -> tuple[str, StorageState]:
    """`circadian inspect --json` as a process; its origin, and the cookie of who signed in."""
    command = [sys.executable, "-m", "graph.cli", "inspect", "--json"]
    process = ends.enter_context(
        subprocess.Popen(
            [*command, "--data", str(folder / "data")],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=variables(folder),
        )
    )
    ends.callback(process.terminate)
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["url"]
    with browser.new_context() as context:
        context.new_page().goto(address)
        return address.partition("/?")[0], context.storage_state()
