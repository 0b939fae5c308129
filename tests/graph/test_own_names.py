"""People are one entity under the names that they give for themselves."""

from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from graph.api import AsyncAgent
from memory.entities import everyone, named, names_given
from memory.settings import Settings
from tests.support.agents import Opening, opened, said
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, answer, day, shown, whole
from tests.support.scripted import call, calls, scripted

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


async def test_a_profile_under_an_owner_s_other_name_joins_the_owner_s(opening: Opening) -> None:
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


def about(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
    """A night's answers: of everybody who is shown, each line is an attribute."""
    if tools != ["Attributes"]:
        return answer(messages, tools)
    made = []
    for block in str(messages[1].text).split("Entity [")[1:]:
        for id_, line in shown(block).items():
            value = line.partition(": ")[2]
            one = {"entity": block.partition("]")[0], "name": value.split()[-1].strip(".")}
            made.append({**one, "value": value, "evidence": [id_]})
    return calls(("Attributes", {"attributes": made}))


async def attributes(agent: AsyncAgent) -> dict[str, list[str]]:
    found = await everyone(agent.store, agent.scope)
    return {one["name"]: sorted(one["attributes"]) for one in found if one["attributes"]}


async def test_a_night_joins_the_profiles_of_one_person_and_an_undo_parts_them(
    tmp_path: Path, clock: Clock
) -> None:
    owned = SETTINGS.model_copy(update={"owners": ["Hanna"], "min_observations": 1})
    noted = [
        call("update_entity_observation", entity=who, observation=text, aliases=aliases)
        for who, text, aliases in (
            ("Theresa", "Theresa keeps bees.", []),
            ("Tess", "Tess plays the cello.", []),
            ("Theresa", "Theresa is called Tess.", ["Tess"]),
        )
    ]
    model = scripted(noted[0], "I see.", noted[1], "I see.", otherwise=about)
    async with opened(tmp_path, model, clock, settings=owned) as agent:
        heard = ["Theresa keeps bees.", "Tess plays the cello."]
        await day(agent, clock, [("Goran", one) for one in heard])
        await agent.sleep()
        assert {"Theresa": ["bees"], "Tess": ["cello"]}.items() <= (await attributes(agent)).items()
        clock.advance(days=1)
        await agent.ainvoke({"request": "wake"})
        model.steps = [*[""] * len(model.calls), noted[2], "I see."]
        await agent.ainvoke(said("Theresa is called Tess by everybody.", "Hanna", id="said-9"))
        assert (await profiles(agent))["Theresa"] == ["Tess"]
        apart = await whole(agent)

        tried = await agent.sleep(dry_run=True)
        assert await whole(agent) == apart
        await agent.apply_night("last")
        joined = await profiles(agent)
        assert "Tess" not in joined
        assert {"bees", "cello"} <= {*(await attributes(agent))["Theresa"]}
        (theresa,) = [
            one for one in await everyone(agent.store, agent.scope) if one["name"] == "Theresa"
        ]
        held = {one["id"] for one in theresa["observations"]}
        facts = {one["op"] for one in await agent.resources.semantic.all(agent.scope)}
        assert {*theresa["attributes"]["cello"]["evidence"]} <= held | facts
        assert {one.id for one in (await named(agent.store, agent.scope, ["Tess"]))} == {
            theresa["id"]
        }

        await agent.undo_night(str(tried["id"]))
        assert await whole(agent) == apart


@pytest.mark.parametrize(("sender", "aliases"), [("Hanna", ["Tess"]), ("Mallory", [])])
async def test_only_owners_and_people_themselves_say_who_is_the_same(
    sender: str, aliases: list[str], opening: Opening
) -> None:
    given = {"entity": "Theresa", "observation": "Theresa is Tess."}
    model = scripted(
        call("update_entity_observation", entity="Tess", observation="Tess is here."),
        "Noted.",
        call("update_entity_observation", **given),
        "Noted.",
        call("update_entity_observation", **given, aliases=["Tess"]),
        "Noted.",
    )
    async with opening(model, settings=OWNED) as agent:
        await agent.ainvoke(said("Tess is here.", "Goran"))
        await agent.ainvoke(said("Theresa is here, too.", "Goran"))
        await agent.ainvoke(said("Theresa is Tess.", sender))
        found = await profiles(agent)
    assert (found["Theresa"], "Tess" in found) == (aliases, True)


@pytest.mark.parametrize(("who", "kept"), [("Hanna", True), ("Mallory", False)])
async def test_a_name_that_an_owner_gave_is_the_same_name_in_a_fact(
    opening: Opening, who: str, kept: bool
) -> None:
    note = {"entity": "Lena", "observation": "Lena is seven.", "aliases": ["Mausi"]}
    fact = {"text": "Lena's piano lesson is on Wednesdays."}
    noticed = call("update_entity_observation", **note)
    model = scripted(noticed, "Noted.", call("store_memory", facts=[fact]), "Noted.")
    async with opening(model, settings=OWNED) as agent:
        await agent.ainvoke(said("Lena is seven, we call her Mausi.", who))
        await agent.ainvoke(said("Mausi's piano lesson is on Wednesdays now.", "Hanna"))
        facts = await agent.resources.semantic.all(agent.scope)
        assert await profiles(agent) == {"Hanna": [], who: [], "Lena": ["Mausi"]}
    assert [one["text"] for one in facts] == [fact["text"]] * kept
