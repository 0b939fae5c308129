"""What the server's app does with requests, before and after its end."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from graph.server import ending
from graph.server.ending import Ending, EndingApp
from memory.errors import DatabaseDown, FolderError, NewerError
from memory.stopping import STEPS

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "root_path": "",
    "query_string": b"",
    "headers": [],
}


@pytest.fixture(autouse=True)
def steps_begin_again() -> Iterator[None]:
    """The end of a server is that of its process; here others come after it."""
    yield
    STEPS.start()


class Client:
    """One request, message by message."""

    def __init__(self, app: EndingApp) -> None:
        self.says: asyncio.Queue[Any] = asyncio.Queue()
        self.heard: list[Any] = []
        self.served = asyncio.create_task(app({**SCOPE, "app": app}, self.says.get, self._hear))

    async def _hear(self, message: Any) -> None:
        self.heard.append(message)


def app_of(serve: Any) -> EndingApp:
    app = EndingApp(routes=[Route("/", serve, methods=["POST"])])
    app.state.ending = Ending()
    return app


async def test_a_request_is_read_whole_and_answered_and_a_client_that_left_is_found_out() -> None:
    looked = asyncio.Event()

    async def serve(request: Request) -> Response:
        body = await request.body()
        while not await request.is_disconnected():
            await asyncio.sleep(0)
            looked.set()
        return PlainTextResponse(body)

    client = Client(app_of(serve))
    for part, more in ((b"a", True), (b"b", False)):
        client.says.put_nowait({"type": "http.request", "body": part, "more_body": more})
    await asyncio.wait_for(looked.wait(), 10)
    client.says.put_nowait({"type": "http.disconnect"})
    await asyncio.wait_for(client.served, 10)
    assert client.heard[-1]["body"] == b"ab"


async def test_who_waits_is_hung_up_on_at_the_end_and_hears_nothing_that_looks_whole() -> None:
    async def serve(request: Request) -> Response:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        return PlainTextResponse("This would pass for the answer.")

    app = app_of(serve)
    client = Client(app)
    client.says.put_nowait({"type": "http.request", "body": b""})
    await asyncio.sleep(0.05)
    assert not client.served.done()
    app.state.ending.over.set()
    await asyncio.wait_for(client.served, 10)
    assert client.heard == []


async def looks(monkeypatch: pytest.MonkeyPatch, *found: Exception | None) -> list[int]:
    """What a server looks like from its installation, look by look; the signals that it raised."""
    answers, all_seen = iter(found), asyncio.Event()
    raised: list[int] = []
    loop = asyncio.get_running_loop()

    def check() -> None:
        answer = next(answers, all_seen)
        if answer is all_seen:
            loop.call_soon_threadsafe(all_seen.set)
        elif isinstance(answer, Exception):
            raise answer

    home = SimpleNamespace(check=check)
    monkeypatch.setattr(ending, "LOOK", 0.0)
    monkeypatch.setattr(ending, "process_now", lambda: SimpleNamespace(home=home))
    monkeypatch.setattr("signal.raise_signal", raised.append)
    app = EndingApp()
    async with ending.lifespan(app):
        watch = next(one for one in asyncio.all_tasks() if one.get_name().startswith("is it"))
        seen = asyncio.create_task(all_seen.wait())
        await asyncio.wait({watch, seen}, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        seen.cancel()
        assert watch.done() == bool(raised)
    return raised


NEWER = NewerError("made by a newer Circadian")


@pytest.mark.parametrize(
    "hiccup",
    [
        DatabaseDown("cannot be reached"),
        FolderError("the data folder is not writable"),
        OSError("stale file handle"),
        ValueError("nobody thought of it"),
    ],
)
async def test_only_a_newer_form_ends_a_server_and_after_any_hiccup_it_is_still_seen(
    monkeypatch: pytest.MonkeyPatch, hiccup: Exception
) -> None:
    assert await looks(monkeypatch, hiccup, hiccup, hiccup) == []
    assert await looks(monkeypatch, hiccup, NEWER, hiccup, NEWER) == [signal.SIGTERM]


async def test_a_newer_form_that_is_seen_once_ends_no_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert await looks(monkeypatch, NEWER, None, NEWER, None) == []
