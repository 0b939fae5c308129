"""Visiting the inspector without a browser: its application, signed in, with a memory to see."""

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx

from graph.api import AsyncAgent, open_agents
from graph.inspector.app import OneAgent, local_inspector
from memory.installation import Installation
from memory.models.offline.model import OfflineChatModel
from tests.support.clock import Clock

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
TOKEN = "one-time"
OURS = {"sec-fetch-site": "same-origin"}


@dataclass
class Visitor:
    """A browser's stand-in, and the agent whose pages it sees."""

    client: httpx.AsyncClient
    agent: AsyncAgent
    host: OneAgent
    home: Installation

    async def get(self, path: str, status: int = 200, **query: Any) -> str:
        answer = await self.client.get(f"/default{path}", params=query)
        assert answer.status_code == status, answer.text
        return answer.text

    async def post(self, path: str, status: int = 303, **fields: str) -> httpx.Response:
        """Send a form as our own page does."""
        answer = await self.client.post(f"/default{path}", data=fields, headers=OURS)
        assert answer.status_code == status, answer.text
        return answer

    async def after(self, answer: httpx.Response) -> str:
        found = await self.client.get(answer.headers["location"])
        assert found.status_code == 200, found.text
        return found.text

    async def wait(self) -> None:
        job = self.host.jobs.current(self.agent.scope)
        assert job is not None
        assert job.task is not None
        await job.task


@asynccontextmanager
async def visiting(
    data: Path, clock: Clock, *, sign_in: bool = True, agent: str = "default"
) -> AsyncIterator[Visitor]:
    async with open_agents(
        data, model=OfflineChatModel(), embedder="offline", clock=clock
    ) as agents:
        host = OneAgent(replace(agents, lock_timeout=0.1).agent(agent).context)
        app = local_inspector(host, token=TOKEN, port=PORT)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=ADDRESS) as client:
            if sign_in:
                await client.get("/", params={"token": TOKEN})
            yield Visitor(client, agents.agent(agent), host, agents.home)
            await host.jobs.stop()


def text_of(page: str) -> str:
    body = page.partition("<body")[2]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())
