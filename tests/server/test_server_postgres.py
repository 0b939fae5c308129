"""LangGraph's own server on PostgreSQL: one setting, and several servers share what they know."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient

from graph.agent import open_agent
from memory.errors import BusyError
from memory.records.records import LOCAL_USER, thread_id
from tests.support.agents import replies
from tests.support.server import Server

AGENT = thread_id(LOCAL_USER, "default")
NINA = "My sister Nina lives in Lisbon with her dog Rex"


@pytest.fixture
def server(tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("CIRCADIAN_DATABASE_URL", postgres_url)
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "0.1")
    with Server(tmp_path / "one") as running:
        yield running


def run(client: SyncLangGraphClient, *texts: str, **more: Any) -> dict[str, Any]:
    """One run of the agent that the command line has, too; what it returns."""
    client.threads.create(thread_id=AGENT, if_exists="do_nothing", graph_id="agent")
    said = [{"type": "human", "content": text, "name": "Ada"} for text in texts]
    given: Any = {"messages": said, **more}
    return cast(dict[str, Any], client.runs.wait(AGENT, "agent", input=given))


def test_a_server_on_a_database_meets_the_same_agent_as_python(server: Server) -> None:
    with get_sync_client(url=server.url) as client:
        assert len(replies(run(client, NINA))) == 1
        assert run(client, request="sleep")["report"]["night"]["complete"]
        with open_agent() as agent:
            agent.post({"id": "posted", "text": "I moved to Porto", "sender": "Ada"})
            with pytest.raises(BusyError, match=r"in use by process \d+ \(server\)"):
                agent.invoke(None)
            assert [hit["text"] for hit in agent.recall("dog", limit=1)] == [NINA]
        handled = run(client, "What do you remember about my sister?")
        assert "Nina lives in Lisbon" in replies(handled)[-1]
        assert handled["report"]["ticks"][0]["event_id"] == "posted"
    server.kill()
    with open_agent() as agent:
        assert agent.get_state().values["tick"] == 3
        assert len(replies(agent.invoke({"events": [{"text": "Hello", "sender": "Ada"}]}))) == 1
    assert not server.data.exists()
    log = server.log()
    for words in ("BlockingError", "checkpointer missing", "checkpointer does not", "Traceback"):
        assert words not in log


@pytest.mark.slow
def test_two_servers_share_a_database_and_survive_a_kill_of_either(
    server: Server, tmp_path: Path
) -> None:
    with (
        Server(tmp_path / "two") as other,
        get_sync_client(url=server.url) as one,
        get_sync_client(url=other.url) as two,
    ):
        run(one, NINA)
        assert run(one, request="sleep")["report"]["night"]["complete"]
        assert "Lisbon" in replies(run(two, "What do you remember about my sister?"))[0]
        server.kill()
        with open_agent() as agent, pytest.raises(BusyError, match=r"\(server\)"):
            agent.invoke(None)
        assert run(two, "Hello")["report"]["ticks"][0]["tick"] == 3
    with open_agent() as agent:
        assert agent.get_state().values["tick"] == 3
        agent.invoke(None)
