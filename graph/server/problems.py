"""Errors in one shape, whoever answers with them: problem details for HTTP APIs (RFC 9457).

Errors come from our routes, from the framework, from authentication and from the limits on
requests. `Problems` stands around all of them and rewrites what is not in this shape yet.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any

import orjson
from fastapi import APIRouter, HTTPException, Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from langgraph_sdk.errors import APIStatusError
from pydantic import BaseModel, Field
from starlette import types as asgi
from starlette.datastructures import MutableHeaders
from starlette.responses import JSONResponse, Response

from graph.inspector import STATUSES, problem_page, shielded
from graph.server.settings import INSPECT
from memory.errors import BusyError, CircadianError, explained

Handler = Callable[[Request], Coroutine[Any, Any, Response]]

MEDIA_TYPE = "application/problem+json"

OURS = "/circadian/"
"""The paths whose errors have this shape; other routes keep LangGraph Server's."""

LARGEST_BODY, LARGEST_IMPORT = 2**24, 2**28
"""Bytes of a request's body. It is read whole."""

RETRY_SECONDS = 1
"""When an agent that is busy may be asked again."""


class Problem(BaseModel):
    """What went wrong with a request (RFC 9457)."""

    type: str = Field(description="The kind of problem: `urn:circadian:` and a name.")
    title: str
    status: int
    detail: str = Field(description="One sentence: what is wrong, and what to do.")
    errors: list[str] = Field(default=[], description="Of an invalid request, each `PLACE: WHY`.")


SCHEMA = {"$ref": "#/components/schemas/Problem"}

RESPONSES: dict[int | str, dict[str, Any]] = {
    status: {"description": HTTPStatus(status).phrase, "content": {MEDIA_TYPE: {"schema": SCHEMA}}}
    for status in (400, 401, 403, 404, 405, 409, 412, 413, 422, 429, 503, 507)
}
"""For the OpenAPI document."""


class StrictRoute(APIRoute):
    """A route that refuses large bodies, query parameters it does not know, conditions on a change.

    Otherwise a misspelt `preview` would erase, and a misspelt filter would show everything. What a
    change is about has no tag that a condition could name (RFC 9110, 13.1).
    """

    def get_route_handler(self) -> Handler:
        """The handler, behind these checks."""
        handle = super().get_route_handler()
        known = _query_names(self.dependant)
        most = LARGEST_IMPORT if self.path.endswith("/import") else LARGEST_BODY

        async def strict(request: Request) -> Response:
            if unknown := set(request.query_params) - known:
                takes = f"the parameters here are {', '.join(sorted(known)) or 'none'}"
                raise RequestValidationError(
                    [{"loc": ("query", name), "msg": takes} for name in sorted(unknown)]
                )
            if request.method != "GET" and {"if-match", "if-none-match"} & set(request.headers):
                raise HTTPException(412, "a change compares no tags: send it without a condition")
            return await handle(Request(request.scope, _bounded(request.receive, most)))

        return strict


def _bounded(receive: asgi.Receive, most: int) -> asgi.Receive:
    """`receive`, which raises 413 once a body has more than `most` bytes."""
    left = most

    async def receiving() -> asgi.Message:
        nonlocal left
        message = await receive()
        left -= len(message.get("body", b""))
        if left < 0:
            raise HTTPException(413, f"a body here has at most {most:,} bytes")
        return message

    return receiving


def _query_names(dependant: Dependant) -> set[str]:
    names = {field.alias for field in dependant.query_params}
    return names.union(*(_query_names(inner) for inner in dependant.dependencies))


api_router = partial(
    APIRouter,
    responses=RESPONSES,
    route_class=StrictRoute,
    # The name of a route's function, which a generated client takes for its method's.
    generate_unique_id_function=lambda route: route.name,
)
"""What all routers share."""


def answer(
    status: int,
    detail: str,
    *,
    kind: str = "",
    errors: Sequence[str] = (),
    headers: dict[str, str] | None = None,
) -> Response:
    """A problem as a response; by default the status decides its kind."""
    title = HTTPStatus(status).phrase
    urn = f"urn:circadian:{kind or title.lower().replace(' ', '-')}"
    found = Problem(type=urn, title=title, status=status, detail=detail, errors=[*errors])
    return JSONResponse(found.model_dump(), status, headers=headers, media_type=MEDIA_TYPE)


async def of_product(request: Request, error: Exception) -> Response:
    """An error that the product raises on purpose: its own line, and the status of its kind."""
    assert isinstance(error, CircadianError)
    kind, status = next((kind, status) for kind, status in STATUSES if isinstance(error, kind))
    name = kind.__name__.removesuffix("Error").lower()
    busy = {"Retry-After": str(RETRY_SECONDS)} if kind is BusyError else None
    return answer(status, error.without_commands, kind=name, headers=busy)


async def of_server(request: Request, error: Exception) -> Response:
    """A refusal of the server itself, such as of a run that is over a limit."""
    assert isinstance(error, APIStatusError)
    return answer(error.status_code, error.message)


async def of_request(request: Request, error: Exception) -> Response:
    """A request that does not fit its route's form."""
    assert isinstance(error, RequestValidationError)
    errors = explained(error.errors())
    return answer(422, "; ".join(errors) or "the request is not valid", errors=errors)


class Problems:
    """Turns errors under `/circadian` into problem details, and those of pages into pages.

    HEAD is answered as GET: the web server leaves the body out.
    """

    def __init__(self, app: asgi.ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: asgi.Scope, receive: asgi.Receive, send: asgi.Send) -> None:
        """Serve a request."""
        path = str(scope.get("path", ""))
        if scope["type"] != "http" or not f"{path}/".startswith(OURS):
            await self._app(scope, receive, send)
            return
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        if path.startswith(f"{INSPECT}/"):
            seen = Request({**scope, "root_path": f"{scope.get('root_path', '')}{INSPECT}"})
            answering = _Rewritten(shielded(scope, send), partial(problem_page, seen))
        else:
            answering = _Rewritten(send, answer)
        await self._app(scope, receive, answering)


class _Rewritten:
    """Sends a response; an error in another shape is held back until its body is whole."""

    def __init__(self, send: asgi.Send, make: Callable[[int, str], Response]) -> None:
        """`make`: makes the response, given the status and what is wrong."""
        self._send, self._make = send, make
        self._start: asgi.Message | None = None
        self._body = b""

    async def __call__(self, message: asgi.Message) -> None:
        if message["type"] == "http.response.start" and self._is_foreign(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)

    def _is_foreign(self, start: asgi.Message) -> bool:
        type_ = MutableHeaders(raw=list(start["headers"])).get("content-type", "")
        return start["status"] >= 400 and not type_.startswith((MEDIA_TYPE, "text/html"))

    async def _finish(self, start: asgi.Message) -> None:
        body, detail = self._body, _detail(self._body)
        headers = MutableHeaders(raw=list(start["headers"]))
        if detail is not None:
            made = self._make(start["status"], detail)
            body = bytes(made.body)
            headers.update(made.headers)
        await self._send({**start, "headers": headers.raw})
        await self._send({"type": "http.response.body", "body": body})


def _detail(body: bytes) -> str | None:
    """What an error says, as LangGraph Server and Starlette word it; None for another document."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError:
        return body.decode(errors="replace")
    return str(found["detail"]) if isinstance(found, dict) and "detail" in found else None
