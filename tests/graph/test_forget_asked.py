"""An owner asks in a conversation to forget something: a person approves, and it is gone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graph.api import AsyncAgent
from graph.cli.status_view import status_view
from graph.use_cases import run, status
from memory import entities, forgetting, pages
from memory.errors import MemoryStoreError
from memory.facts import SemanticMemory
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.facts import draft
from tests.support.screens import plain
from tests.support.scripted import ScriptedChatModel, call, scripted
from tools.builtin.assistant import WITH_IT

CODE = "The code of Ruth's bike lock is 4711."
ASKED = "Forget that I told you the code of my bike lock."
SETTINGS = Settings(owners=["Ruth"])
LOOK = call("recall_memories", query="code of the bike lock")


async def told(agent: AsyncAgent, model: ScriptedChatModel) -> str:
    """Ruth tells the code, and a fact is made of it; returns its id."""
    model.steps += [call("add_goal", description="Mend the bike"), "Noted.", "Noted."]
    await agent.ainvoke(said(CODE, "Ruth", id="code"))
    await agent.ainvoke(said("The bike is green.", "Ruth", id="bike"))
    entry = "event_20260302_code"
    fact = draft("lock", CODE, speaker="Ruth", source_entries=[entry], source_events=["code"])
    await agent.resources.semantic.add(agent.scope, [fact])
    return (await agent.resources.semantic.all(agent.scope))[0]["id"]


def forget(fact: str) -> Any:
    return call("use_tool", name="forget_memory", arguments={"memory_id": fact[:8]})


async def everything(agent: AsyncAgent) -> str:
    values = (await agent.aget_state()).values
    return f"{await agent.everything()} {values['messages']} {values['parked']}"


@pytest.mark.parametrize("shown", ["recalled", "on a page"])
async def test_it_waits_for_a_person_and_is_gone_once_approved(shown: str, tmp_path: Path) -> None:
    model, looks = scripted(), [LOOK] if shown == "recalled" else []
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        fact = await told(agent, model)
        if not looks:
            [ruth] = await entities.everyone(agent.store, agent.scope)
            page = {"id": ruth["id"], "lines": [{"attribute": None, "facts": ["lock"]}]}
            await agent.store.aput(agent.scope.namespace(pages.PAGES), ruth["id"], page)
        model.steps += [*looks, forget(fact), "It is being erased."]
        out = await agent.ainvoke(said(ASKED, "Ruth"))
        [question] = out["report"]["questions"]
        assert (question["tool"], question["difference"]) == (
            "forget_memory",
            f"- {CODE} {WITH_IT}",
        )
        assert "4711" in await everything(agent)
        seen: Any = await status(agent.context)
        assert f"- {CODE}" in " ".join(plain(status_view(seen, "default", [])).split())
        out = await agent.approve(question["id"])
        assert all(one["ok"] for one in out["report"]["ticks"][0]["tools"])
        assert "4711" not in await everything(agent)
        assert {one["text"] for one in await agent.everything()} == {ASKED, "The bike is green."}
        assert await forgetting.unfinished(agent.store, agent.scope) is None
    assert all(b"4711" not in one.read_bytes() for one in (tmp_path / "data").rglob("*.db*"))


async def test_refused_it_stays(tmp_path: Path) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        model.steps += [LOOK, forget(await told(agent, model)), "It stays."]
        [question] = (await agent.ainvoke(said(ASKED, "Ruth")))["report"]["questions"]
        await agent.refuse(question["id"])
        assert CODE in {one["text"] for one in await agent.everything()}


@pytest.mark.parametrize("case", ["a stranger", "not recalled", "its own tick"])
async def test_nobody_is_asked_for_what_no_owner_wants_or_was_not_shown(
    case: str, tmp_path: Path
) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        fact = await told(agent, model)
        wanted = forget(fact)
        model.steps += [wanted, "No."] if case == "not recalled" else [LOOK, wanted, "No."]
        given: Any = {"request": "tick"} if case == "its own tick" else said(ASKED, "Ruth")
        out = await agent.ainvoke(said(ASKED, "Olaf") if case == "a stranger" else given)
        assert out["report"]["questions"] == []
        assert not out["report"]["ticks"][0]["tools"][-1]["ok"]
        assert CODE in {one["text"] for one in await agent.everything()}


async def test_on_a_server_the_model_is_told_how_a_person_can_erase_it(tmp_path: Path) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        model.steps += [LOOK, forget(await told(agent, model)), "A person can."]
        served = replace(agent.resources, served=True, user="Ruth")
        context = replace(agent.context, resources=served)
        out = await run(context, {"messages": ASKED})
        assert out["report"]["questions"] == []
        assert "circadian forget --fact ID" in str(out["messages"])


async def test_what_could_not_be_erased_is_after_the_next_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = scripted()
    async with opened(tmp_path / "data", model, Clock(), settings=SETTINGS) as agent:
        model.steps += [LOOK, forget(await told(agent, model)), "It is being erased.", "Hello."]
        [question] = (await agent.ainvoke(said(ASKED, "Ruth")))["report"]["questions"]

        async def busy(semantic: SemanticMemory) -> None:
            raise MemoryStoreError("another process reads the file")

        with monkeypatch.context() as patched:
            patched.setattr(SemanticMemory, "scrub", busy)
            await agent.approve(question["id"])
        assert await forgetting.unfinished(agent.store, agent.scope) is not None
        await agent.ainvoke(said("Hello", "Ruth"))
        assert await forgetting.unfinished(agent.store, agent.scope) is None
        assert "4711" not in await everything(agent)
