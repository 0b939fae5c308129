"""Replacing a schedule's crons, without a server."""

from typing import Any, cast
from zoneinfo import ZoneInfo

import httpcore
import httpx
import pytest

from graph.cli.commands.server import MARK, install
from tests.support.commandline import circadian

OLD = {"tick": "*/15 * * * *", "sleep": "0 2 * * *"}
NEW = {"tick": "*/30 * * * *", "sleep": "30 3 * * *"}


def test_a_server_that_does_not_answer_is_asked_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def connect(self: Any, host: str, *_: Any, **__: Any) -> Any:
        asked.append(host)
        raise httpcore.ConnectError("refused")

    monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", connect)
    done = circadian(capsys, "schedule", "--url", "http://gone:9")
    assert (done.status, asked) == (1, ["gone"])
    assert done.error == "circadian: http://gone:9 does not answer: refused"


class Crons:
    """A server's crons; of each kind of call, the one numbered in `failing` is refused."""

    def __init__(self) -> None:
        self.failing, self.standing = dict[str, int](), dict[str, dict[str, Any]]()
        self.crons, self.asked = self, dict[str, int]()
        self.numbered = 0

    def _ask(self, what: str) -> None:
        self.asked[what] = self.asked.get(what, 0) + 1
        if self.asked[what] == self.failing.get(what):
            request = httpx.Request("POST", "http://server")
            answer = httpx.Response(503, request=request)
            raise httpx.HTTPStatusError(what, request=request, response=answer)

    async def search(self, **_: Any) -> list[dict[str, Any]]:
        return list(self.standing.values())

    async def create_for_thread(
        self, thread: str, graph: str, *, schedule: str, metadata: dict[str, str], **_: Any
    ) -> dict[str, Any]:
        self._ask("create")
        self.numbered += 1
        one = {"cron_id": f"c{self.numbered}", "thread_id": thread, "schedule": schedule}
        self.standing[f"c{self.numbered}"] = {**one, "metadata": metadata}
        return self.standing[f"c{self.numbered}"]

    async def delete(self, cron_id: str) -> None:
        self._ask("delete")
        del self.standing[cron_id]

    @property
    def schedules(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for one in self.standing.values():
            found.setdefault(one["metadata"][MARK], []).append(one["schedule"])
        return found


@pytest.mark.parametrize(("what", "nth"), [("create", 1), ("create", 2), ("delete", 1)])
async def test_a_failed_installation_leaves_every_request_scheduled_and_can_be_repeated(
    what: str, nth: int
) -> None:
    server, zone = Crons(), ZoneInfo("UTC")
    client = cast(Any, server)
    await install(client, "t", OLD, zone)
    server.asked.clear()
    server.failing[what] = nth
    with pytest.raises(httpx.HTTPStatusError, match=what):
        await install(client, "t", NEW, zone)
    assert server.schedules.keys() == NEW.keys()
    await install(client, "t", NEW, zone)
    assert server.schedules == {request: [cron] for request, cron in NEW.items()}
