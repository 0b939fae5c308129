"""What the server's app does with requests, before and after its end."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from graph.server.ending import Ending, EndingApp

SCOPE: dict[str, Any] = {
    "type": "http",
    "method": "POST",
    "path": "/",
    "root_path": "",
    "query_string": b"",
    "headers": [],
}


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
