"""A web handler for several users: each user gets the reply to their own message.

`uvicorn examples.embedding.web_handler:app` serves it; run as a program, it sends itself messages.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from graph.agent import open_agents
from memory.errors import BusyError, ModelError


@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncIterator[None]:
    """One set of connections for all users, as long as the server runs."""
    async with open_agents(".circadian/web", model="offline") as agents:
        app.state.agents = agents
        yield


async def say(request: Request) -> Response:
    """Answer one message; 202 if the message is safe in the inbox, but has no reply yet."""
    # Take the user from your own authentication, never from the body.
    user, text = request.path_params["user"], (await request.json())["text"]
    agent = request.app.state.agents.agent("default", user=user)
    try:
        out = await agent.ainvoke({"messages": [("human", text)]})
    except (BusyError, ModelError) as error:
        return JSONResponse({"waits": str(error)}, status_code=202)
    if out["reply"] is None:  # a tool call waits for approval
        return JSONResponse({"questions": out["report"]["questions"]}, status_code=202)
    return JSONResponse({"reply": out["reply"]})


app = Starlette(routes=[Route("/users/{user}/messages", say, methods=["POST"])], lifespan=lifespan)


async def main() -> None:
    """Two users, at once, over the application itself."""
    transport = httpx.ASGITransport(app)
    async with lifespan(app), httpx.AsyncClient(transport=transport, base_url="http://app") as web:
        said = {"ada": "I am allergic to walnuts.", "ben": "I am allergic to peaches."}
        for about in (said, dict.fromkeys(said, "What am I allergic to?")):
            answers = await asyncio.gather(
                *(
                    web.post(f"/users/{user}/messages", json={"text": text})
                    for user, text in about.items()
                )
            )
        for user, answer in zip(said, answers, strict=True):
            print(user, answer.status_code, answer.json()["reply"])


if __name__ == "__main__":
    asyncio.run(main())
