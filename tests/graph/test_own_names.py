"""People are one entity under the names that they give for themselves."""

from __future__ import annotations

import pytest

from graph.api.async_agent import AsyncAgent
from memory.entities import everyone, names_given
from memory.settings import Settings
from tests.support.agents import Opening, said
from tests.support.scripted import call, scripted

OWNED = Settings(owners=["Hanna"])


@pytest.mark.parametrize(
    ("text", "sender", "names"),
    [
        ("Hello, my name is Hanna Berg.", "local", {"Hanna Berg": False}),
        ("Call me Hanni, please.", "Hanna", {"Hanni": False}),
        ("I am Hanna Berg, and I run the mill.", "Hanna", {"Hanna Berg": True}),
        ("Ich heiße Özlem Çelik und wohne hier.", "local", {"Özlem Çelik": False}),
        ("Je m\u2019appelle Zoé.", "local", {"Zoé": False}),
        ("I am Austrian, and I'm Catholic.", "Hanna", {}),
        ("I am Hanna.", "Hanna", {}),
        ("I am Goran Ilic.", "Hanna", {}),
        ("Good morning! I'm Nora Feld, I chair the club.", "local", {"Nora Feld": False}),
        ("I am Austrian.", "local", {}),
        ("Hola, soy Lucía Vega.", "Lucia", {"Lucía Vega": True}),
        ("Guten Tag, hier ist Dieter Brandt.", "Dieter", {"Dieter Brandt": True}),
        ("This is Goran Ilic.", "Dieter", {}),
        ("my name is not important", "Hanna", {}),
        ("Her name is Petra Kern.", "Hanna", {}),
    ],
)
def test_names_that_somebody_gives_for_themselves(
    text: str, sender: str, names: dict[str, bool]
) -> None:
    assert names_given(text, sender) == names


async def profiles(agent: AsyncAgent) -> dict[str, list[str]]:
    return {one["name"]: one["aliases"] for one in await everyone(agent.store, agent.scope)}


async def test_a_profile_under_an_owner_s_other_name_joins_the_owner_s(
    opening: Opening,
) -> None:
    noticed = call("update_entity_observation", entity="Hanna Berg", observation="Runs the mill.")
    model = scripted(noticed, "Noted.", "Welcome.")
    async with opening(model, settings=OWNED) as agent:
        await agent.ainvoke(said("Hanna Berg runs the mill.", "Goran"))
        assert "Hanna Berg" in await profiles(agent)
        await agent.ainvoke(said("I am Hanna Berg.", "Hanna"))
        (hanna,) = [
            one for one in await everyone(agent.store, agent.scope) if one["senders"] == ["Hanna"]
        ]
        assert await profiles(agent) == {"Goran": [], "Hanna": ["Hanna Berg"]}
    assert [one["text"] for one in hanna["observations"]] == ["Runs the mill."]


async def test_nobody_else_takes_a_name_that_is_known(opening: Opening) -> None:
    noticed = call("update_entity_observation", entity="Hanna Berg", observation="Runs the mill.")
    model = scripted(noticed, "Noted.", "Hello.", "Hello.", "Hello.")
    async with opening(model, settings=OWNED) as agent:
        await agent.ainvoke(said("Hanna Berg runs the mill.", "Goran"))
        await agent.ainvoke(said("My name is Hanna Berg.", "Mallory"))
        await agent.ainvoke(said("My name is Hanna Berg.", "Hanna B"))
        await agent.ainvoke(said("I am Goran Ilic.", "Goran"))
        found = await profiles(agent)
    assert found == {"Goran": ["Goran Ilic"], "Hanna Berg": [], "Mallory": [], "Hanna B": []}


async def test_a_person_who_speaks_keeps_the_name(opening: Opening) -> None:
    async with opening(scripted("Hi.", "Hi."), settings=OWNED) as agent:
        await agent.ainvoke(said("Good morning!", "Hanna Berg"))
        await agent.ainvoke(said("I am Hanna Berg.", "Hanna"))
        assert await profiles(agent) == {"Hanna Berg": [], "Hanna": []}


@pytest.mark.parametrize(
    ("text", "sender", "name", "alias", "known"),
    [
        ("I am Nora Feld, I chair it.", "local", "Nora Feld", "local", {"local": ["Nora Feld"]}),
        ("Soy Lucía Vega, la nueva.", "Lucia", "Lucía Vega", "Lucia", {"Lucia": ["Lucía Vega"]}),
        ("I am Nora Feld.", "Mallory", "Nora Feld", None, {"Nora Feld": [], "Mallory": []}),
        ("Nora Feld chairs it.", "local", "Nora Feld", "local", {"local": []}),
    ],
)
async def test_a_given_name_joins_the_profile_of_its_sender(
    text: str,
    sender: str,
    name: str,
    alias: str | None,
    known: dict[str, list[str]],
    opening: Opening,
) -> None:
    given = {"entity": name, "observation": f"{name} is here.", "aliases": [alias] if alias else []}
    model = scripted(call("update_entity_observation", **given), "Noted.")
    async with opening(model, settings=Settings(owners=["local"])) as agent:
        await agent.ainvoke(said(text, sender))
        assert await profiles(agent) == known
