"""Whole agents side by side in one home: what one of them does, is told or forgets is its own.

Events, people, questions and operations have the same ids for all of them. Each agent's texts
carry a word of its own; nothing that another agent gives or keeps may hold it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from graph.agent import builder
from graph.api import AsyncAgent
from graph.blocking import Streams
from graph.persistence import open_saver, open_store
from graph.use_cases import export_memory
from graph.use_cases.context import AgentContext
from graph.use_cases.forgetting import forget, forget_fact
from graph.use_cases.memories import correct
from graph.use_cases.status import status
from memory.entities import entities
from memory.errors import InputError
from memory.events import inbox
from memory.installation.opening import Installation
from memory.journal import entries as journal
from memory.messages.trust import event_text
from memory.records.records import Scope, thread_id
from memory.runtime import Resources
from memory.settings import Settings
from memory.storage.access import shelves
from tests.support.agents import night_model
from tests.support.clock import Clock
from tests.support.dangerous import Launches
from tests.support.scripted import ScriptedChatModel, calls
from tests.support.writers import Where

WHO, WHICH, NUMBERS = st.integers(0, 3), st.integers(0, 20), st.integers(0, 2)


def answer(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """Writes into every memory that there is, in the words that it was given."""
    if "Entries:" in str(messages[1].text):
        return night_model(messages, tools)
    newest = max(at for at, one in enumerate(messages) if isinstance(one, HumanMessage))
    if any(isinstance(one, ToolMessage) for one in messages[newest:]):
        return "It is done."
    said = event_text(messages[newest])
    word = said.split()[-1]
    if said.startswith("Launch"):
        return calls(("launch", {"target": word}))
    return calls(
        ("store_memory", {"facts": [{"text": f"Mia sells lamps of {word}.", "speaker": "Mia"}]}),
        ("update_entity_observation", {"entity": "Mia", "observation": f"Mia likes {word}."}),
        ("add_journal_entry", {"content": f"Mia spoke of {word}."}),
    )


class Agents(RuleBasedStateMachine):
    def __init__(self, world: World, example: int) -> None:
        super().__init__()
        self.world = world
        users = (f"ana{example}", f"ben{example}")
        scopes = [Scope(user, thread_id(user, name)) for user in users for name in ("one", "two")]
        self.agents = [world.agent(scope) for scope in scopes]
        self.words = [f"word{example}of{number}" for number in range(len(scopes))]
        self.known = [self.held(number) for number in range(len(scopes))]
        """What each held when it was last looked at; nothing of it changes between operations."""

    @initialize()
    def each_has_lived_a_little(self) -> None:
        """So that there is something of each to find, to answer and to forget."""
        for who in range(len(self.agents)):
            self.hears(who, 0)
            self.is_asked_to_launch(who, 0)
            held = self.known[who]
            assert [fact["text"] for fact in held["facts"]] == [
                f"Mia sells lamps of {self.words[who]}."
            ]
            [mia] = [one for *labels, _, one in held["store"] if labels == ["entities"]]
            assert [one["text"] for one in mia["observations"]] == [f"Mia likes {self.words[who]}."]
            assert len(held["state"]["parked"]) == 1

    def does(self, who: int, work: Coroutine[Any, Any, Any]) -> Any:
        """Let one agent do something; what it gives, which is nobody else's. No other is touched.

        A refusal is an answer, too.
        """
        before = self.known
        try:
            given = self.world.run(work)
        except InputError as error:
            given = str(error)
        self.known = [self.held(number) for number in range(len(self.agents))]
        told = json.dumps([given, self.known[who]], default=str)
        for number in range(len(self.agents)):
            if number == who:
                continue
            assert self.known[number] == before[number]
            assert self.words[number] not in told
            assert self.agents[number].scope.user not in told or self.same_user(who, number)
        return given

    def same_user(self, who: int, other: int) -> bool:
        return self.agents[who].scope.user == self.agents[other].scope.user

    def held(self, who: int) -> dict[str, Any]:
        return self.world.run(self.world.held(self.agents[who]))

    def facts_of_all(self) -> list[str]:
        return [fact["id"] for held in self.known for fact in held["facts"]] or ["nobody's"]

    @rule(who=WHO, number=NUMBERS)
    def hears(self, who: int, number: int) -> None:
        event = {
            "id": f"e{number}",
            "sender": "Mia",
            "text": f"I like and sell lamps of {self.words[who]}",
        }
        self.does(who, self.agents[who].ainvoke({"events": [event]}))

    @rule(who=WHO, number=NUMBERS)
    def is_asked_to_launch(self, who: int, number: int) -> None:
        event = {"id": f"l{number}", "sender": "Mia", "text": f"Launch to {self.words[who]}"}
        self.does(who, self.agents[who].ainvoke({"events": [event]}))

    @rule(who=WHO, whose=WHO, yes=st.booleans())
    def answers_a_question(self, who: int, whose: int, yes: bool) -> None:
        asked = self.world.run(status(self.agents[whose].context))["approvals"]
        ids = [one["id"] for one in asked] or ["ask_0"]
        decide = self.agents[who].approve if yes else self.agents[who].refuse
        launched = list(self.world.launches.done)
        self.does(who, decide(ids[0]))
        assert set(self.world.launches.done[len(launched) :]) <= {self.words[who]}

    @rule(who=WHO, number=NUMBERS)
    def gets_mail(self, who: int, number: int) -> None:
        event = {"id": f"p{number}", "sender": "Mia", "text": f"Posted {self.words[who]}"}
        self.does(who, self.agents[who].post(event))

    @rule(who=WHO)
    def sleeps(self, who: int) -> None:
        self.does(who, self.agents[who].ainvoke({"request": "sleep"}))

    @rule(who=WHO, whose=WHO)
    def looks_for(self, who: int, whose: int) -> None:
        word = self.words[whose]
        hits, noted, *_ = self.does(who, looked_for(self.agents[who], word))
        known = json.dumps(self.known[who], default=str)
        assert all(hit["id"] in known for hit in hits)
        assert who == whose or noted == []

    @rule(who=WHO, which=WHICH)
    def corrects(self, who: int, which: int) -> None:
        ids = self.facts_of_all()
        text = f"Mia sells {self.words[who]} chairs."
        self.does(who, correct(self.agents[who].context, ids[which % len(ids)], text))

    @rule(who=WHO, which=WHICH)
    def forgets_a_fact(self, who: int, which: int) -> None:
        ids = self.facts_of_all()
        self.does(who, forget_fact(self.agents[who].context, ids[which % len(ids)]))

    @rule(who=WHO)
    def forgets_mia(self, who: int) -> None:
        self.does(who, forget(self.agents[who].context, "Mia"))
        assert "Mia" not in json.dumps(self.known[who], default=str)


class World:
    """One home, and what agents of it are made of."""

    def __init__(self, runner: asyncio.Runner, where: Where) -> None:
        self.run = runner.run
        self.stack = AsyncExitStack()
        self.launches = Launches()
        self.clock = Clock()
        self.home: Installation = where.open()
        self.stack.callback(self.home.close)
        self.saver = self.run(self.stack.enter_async_context(open_saver(self.home)))
        self.store = self.run(self.stack.enter_async_context(open_store(self.home)))

    def agent(self, scope: Scope) -> AsyncAgent:
        model = ScriptedChatModel(otherwise=answer)
        resources = Resources(
            model=lambda: model,
            semantic=self.home.semantic,
            clock=self.clock,
            user=scope.user,
            tools=(self.launches.tool,),
        )
        graph = builder.compile(checkpointer=self.saver, store=self.store)
        lock = partial(self.home.agent_lock, scope.thread)
        context = AgentContext(
            lambda: graph, self.saver, self.store, resources, Settings(), scope, lock
        )
        return AsyncAgent(context, Streams())

    async def held(self, agent: AsyncAgent) -> dict[str, Any]:
        """All that an agent keeps: facts, everything in the store, and its state."""
        found = [shelf async for shelf in shelves(self.store, agent.scope)]
        return {
            "facts": await self.home.semantic.all(agent.scope),
            "store": [[*one.labels, item.key, item.value] for one in found for item in one.items],
            "state": (await agent.aget_state()).values,
        }


async def looked_for(agent: AsyncAgent, word: str) -> list[Any]:
    """All ways to find something: hits, entries, people, status, inbox, export."""
    return [
        await agent.recall(f"Which {word} lamps does Mia sell?", 50),
        await journal.newest(agent.store, agent.scope, query=word, limit=50),
        await entities.named(agent.store, agent.scope, ["Mia", word]),
        await status(agent.context),
        await inbox.waiting(agent.store, agent.scope),
        [line async for line in export_memory(agent.context)],
    ]


@pytest.fixture(params=["a folder", "a database"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    url = request.getfixturevalue("postgres_url") if request.param == "a database" else None
    with asyncio.Runner() as runner:
        made = World(runner, Where(tmp_path, url))
        yield made
        runner.run(made.stack.aclose())


def test_every_operation_of_one_agent_leaves_the_others_alone(world: World) -> None:
    agents = Agents(world, 0)
    agents.each_has_lived_a_little()
    for whose in (1, 2, 0):
        agents.looks_for(0, whose)
        agents.answers_a_question(0, whose, yes=True)
    assert world.launches.done == [agents.words[0]]
    for which in range(len(agents.agents)):
        agents.corrects(0, which)
    agents.gets_mail(0, 0)
    agents.gets_mail(1, 0)
    agents.sleeps(0)
    for which in range(len(agents.facts_of_all())):
        agents.forgets_a_fact(1, which)
    assert agents.known[1]["facts"] == []
    agents.forgets_mia(2)
    agents.forgets_mia(0)
    agents.answers_a_question(3, 3, yes=False)
    agents.hears(0, 1)
    for who in range(len(agents.agents)):
        agents.looks_for(who, who)


@pytest.mark.slow
def test_agents_and_users_are_closed_to_each_other(world: World) -> None:
    numbers = count()
    steps = settings(
        max_examples=15,
        stateful_step_count=20,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    # Its annotation says a class; it calls what it is given.
    factory = cast(type[RuleBasedStateMachine], lambda: Agents(world, next(numbers)))
    run_state_machine_as_test(factory, settings=steps)
    assert next(numbers) >= 15
