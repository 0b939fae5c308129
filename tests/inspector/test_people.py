"""The pages of people and things."""

import pytest

from graph.inspector import visits
from memory import entities
from tests.support.clock import Clock
from tests.support.visiting import Visitor, text_of


async def id_of(visitor: Visitor, name: str) -> str:
    found = await entities.everyone(visitor.agent.store, visitor.agent.scope)
    return next(one["id"] for one in found if one["name"] == name)


async def test_everybody_is_listed_and_found_by_name(visitor: Visitor) -> None:
    everybody = text_of(await visitor.get("/people"))
    assert "Ada" in everybody
    assert "Ben" in everybody
    found = text_of(await visitor.get("/people", q="be"))
    assert "Ben" in found
    assert "Ada" not in found


async def test_a_profile_has_what_holds_with_its_sources(visitor: Visitor) -> None:
    page = await visitor.get(f"/people/{await id_of(visitor, 'Ben')}")
    shown = text_of(page)
    for words in ("What holds now", "Rex is afraid of thunder", "favourability 0.19 of 1"):
        assert words in shown
    assert "/default/memory/" in page
    assert "<polyline" in page


async def test_an_attribute_whose_fact_was_corrected_says_what_holds_instead(
    visitor: Visitor,
) -> None:
    """Undoing the night that took a correction up brings the attribute back as it was."""
    context, id_ = visitor.agent.context, await id_of(visitor, "Ada")
    old = next(one for one in await context.semantic.all(context.scope) if "Paris" in one["text"])
    profile = (await entities.read(context.store, context.scope, [id_]))[id_]
    home = {"value": "Paris", "at": old["created"], "evidence": [old["op"]], "replaced": []}
    flat = {**home, "value": "a flat", "evidence": ["obs_1"], "replaced": [home]}
    value = {**profile, "attributes": {"home": {**home, "trust": 0.9}, "flat": flat}}
    await context.store.aput(context.scope.namespace(entities.ENTITIES), id_, value)
    page = await visitor.get(f"/people/{id_}")
    assert "Paris no longer holds" not in text_of(page)
    assert '<span class="words">Paris</span>' in page
    await visitor.agent.correct(old["id"], "Ada lives in Oslo.")
    page = await visitor.get(f"/people/{id_}")
    assert 'noted earlier: <span class="words ended">Paris</span>' in page
    shown = text_of(page)
    assert "home Paris no longer holds instead: Ada lives in Oslo." in shown
    assert "Ada lives in Oslo. you 4 Mar 2026 new: the next night takes it up" in shown


async def test_forgetting_somebody_says_first_what_goes(visitor: Visitor) -> None:
    id_ = await id_of(visitor, "Ben")
    form = text_of(await visitor.get(f"/people/{id_}/forget"))
    assert "What would be forgotten with Ben" in form
    assert "cannot be taken back" in form
    assert "Rex" in form
    await visitor.get(f"/people/{id_}")
    await visitor.post(f"/people/{id_}/forget")
    await visitor.wait()
    assert "Ben" not in text_of(await visitor.get("/progress"))
    await visitor.get(f"/people/{id_}", 404)
    assert "Rex" not in text_of(await visitor.get("/memory"))


async def test_what_goes_is_looked_for_in_a_large_memory_while_others_go_on(
    visitor: Visitor, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/people/{await id_of(visitor, 'Ben')}/forget"
    [fact, *_] = await visitor.agent.context.semantic.all(visitor.agent.scope)
    at_once, of_fact = await visitor.get(path), await visitor.get(f"/forget/{fact['id']}")
    monkeypatch.setattr(visits, "SMALL", 1)
    for late in (False, True, False):  # what was found is shown once, and soon: memory goes on
        await visitor.get(path, 303)
        assert "Looking for all of Ben" in text_of(await visitor.get("/progress"))
        await visitor.wait()
        assert path in await visitor.get("/progress")
        clock.advance(minutes=2 * late)
        assert late or await visitor.get(path) == at_once
    await visitor.get(f"/forget/{fact['id']}", 303)
    await visitor.wait()
    assert await visitor.get(f"/forget/{fact['id']}") == of_fact


async def test_nobody_of_that_name_is_said(visitor: Visitor) -> None:
    await visitor.get("/people/entity_0000000000000000", 404)
    assert "Nobody and nothing" in text_of(await visitor.get("/people", q="Zoe"))
