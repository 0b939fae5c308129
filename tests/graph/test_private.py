"""What an owner told in private: no prompt shows it, and no tool, where others read the answer."""

import json
from typing import Any, cast

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from memory import pages
from memory.messages import as_said, data_in, is_summary, marked
from memory.operations import apply_operations
from memory.records import change_fact
from memory.settings import Settings
from memory.state import State, fresh_state
from tests.support.agents import EXTRACTING, Opening, said
from tests.support.clock import Clock
from tests.support.facts import draft
from tests.support.scripted import RecordedCall, call, calls, scripted
from tools.policy import history, without_private

SECRET = "Pilar leaves in June"
GOAL = f"Find a mechanic, because {SECRET}"
PUBLIC = "Open the café by April"


def event(made: RecordedCall) -> str:
    return next(str(one.text) for one in reversed(made.messages) if one.type == "human")


def answers(made: RecordedCall) -> list[dict[str, Any]]:
    asked = max(at for at, one in enumerate(made.messages) if one.type == "human")
    tools = (one for one in made.messages[asked:] if isinstance(one, ToolMessage))
    return [json.loads(as_said(str(one.text))) for one in tools]


async def test_a_goal_from_private_talk_is_shown_in_private_alone(opening: Opening) -> None:
    model = scripted(
        call("add_goal", description=GOAL), "Noted.", call("add_goal", description=PUBLIC), "Set.",
        *["Yes."] * 3,
    )  # fmt: skip
    async with opening(model) as agent:
        await agent.ainvoke(said(f"{SECRET}, find a mechanic", "local"))
        await agent.ainvoke(said("We open the café by April", "local", channel="group"))
        await agent.ainvoke(said("Hello", "Pilar", channel="group"))
        before = len(model.calls)
        await agent.ainvoke(said("Which goals are there?", "Pilar", channel="group"))
        await agent.ainvoke(said("Which goals are there?", "local"))
    public, private = model.calls[before:]
    assert SECRET not in public.text
    assert SECRET in (data_in(event(private), "goals") or "")
    assert PUBLIC in (data_in(event(private), "goals") or "")


async def test_a_goal_made_or_reworded_where_others_listen_is_shown_to_them(
    opening: Opening,
) -> None:
    later = "Open the café in May"
    steps: list[Any] = [call("add_goal", description=PUBLIC), "Set.", "Hello."]
    steps += [call("update_goal", goal_id="goal_1_0", description=GOAL), "Done.", "Hello."]
    model = scripted(*steps, call("update_goal", goal_id="goal_1_0", description=later), "So.")
    async with opening(model, settings=Settings(channel_privacy={"group": "public"})) as agent:
        await agent.ainvoke(said("We open the café by April", "local", channel="group"))
        await agent.ainvoke(said("Hello", "Pilar", channel="group"))
        assert PUBLIC in (data_in(event(model.calls[-1]), "goals") or "")
        await agent.ainvoke(said(f"{SECRET}: find a mechanic instead", "local"))
        await agent.ainvoke(said("Hello", "Pilar", channel="group"))
        assert data_in(event(model.calls[-1]), "goals") is None
        # A public tick cannot reach the goal by its id.
        await agent.ainvoke(said("Move goal_1_0", "local", channel="group"))
    assert answers(model.calls[-1])[0]["available_goals"] == []
    assert SECRET not in model.calls[-1].text


async def test_a_project_from_private_talk_is_hidden_and_cannot_be_changed_unseen(
    opening: Opening,
) -> None:
    secret = {"project_key": "letting_go", "summary": GOAL, "initial_context": "Budget 900 euros"}
    asked = calls(
        ("use_tool", {"name": "list_projects", "arguments": {}}),
        ("update_project", {"context_update": "All new", "replace": True}),
        ("use_tool", {"name": "swap_project", "arguments": {"project_key": "letting_go"}}),
    )
    listed = call("use_tool", name="list_projects", arguments={})
    model = scripted(call("create_project", **secret), "Noted.", listed, "One.", asked, "None.")
    settings = Settings(channel_privacy={"group": "public"})
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("A project, between us", "local"))
        # An answer that is cached in private is not given in public.
        await agent.ainvoke(said("Which projects are there?", "local"))
        await agent.ainvoke(said("Which projects are there?", "local", channel="group"))
        kept = (await agent.aget_state()).values["projects"]
    told, changed, swapped = answers(model.calls[-1])
    assert told["projects"] == []
    assert told["active_project"] is None
    assert "No project is active" in changed["error"]
    assert swapped["available_projects"] == []
    assert not any(word in model.calls[-1].text for word in (SECRET, "900 euros"))
    assert kept["active"] == "letting_go"
    assert kept["slots"]["letting_go"]["context"] == "Budget 900 euros"


async def test_private_lines_of_a_public_project_are_hidden_and_kept(opening: Opening) -> None:
    site = {"project_key": "website", "summary": "New website", "initial_context": "Okan builds it"}
    steps: list[Any] = [call("create_project", **site), "Made."]
    steps += [call("update_project", context_update="Budget 900 euros"), "Noted."]
    steps += [call("update_project", context_update="Pilar paints it", replace=True), "Noted."]
    model = scripted(*steps, "Well.", "Well.")
    settings = Settings(channel_privacy={"group": "public"})
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said("A website; Okan builds it", "local", channel="group"))
        await agent.ainvoke(said("Its budget is 900 euros, between us", "local"))
        await agent.ainvoke(said("Pilar paints it, not Okan", "local", channel="group"))
        replaced = answers(model.calls[-1])[0]
        await agent.ainvoke(said("Tell me of the website", "Okan", channel="group"))
        await agent.ainvoke(said("And me", "local"))
    assert replaced["replaced_context"] == "Okan builds it"
    public, private = (data_in(event(one), "projects") or "" for one in model.calls[-2:])
    assert "900 euros" not in model.calls[-2].text
    assert "Pilar paints it" in public
    assert "900 euros" in private
    assert "Pilar paints it" in private


async def test_of_goals_without_a_mark_those_of_owners_are_hidden(opening: Opening) -> None:
    model = scripted(
        *(step for text in (GOAL, PUBLIC) for step in (call("add_goal", description=text), "Yes.")),
        "Hello.",
    )
    async with opening(model) as agent:
        await agent.ainvoke(said("A goal", "local"))
        await agent.ainvoke(said("A goal of mine", "Bea", channel="group"))
        found = (await agent.aget_state()).values["goals"]
        assert [goal.get("public") for goal in found.values()] == [[], [PUBLIC]]
        bare = {id_: {k: v for k, v in one.items() if k != "public"} for id_, one in found.items()}
        await agent.aupdate_state(None, {"goals": dict.fromkeys(found)})
        await agent.aupdate_state(None, {"goals": bare})
        await agent.ainvoke(said("Which goals are there?", "Bea", channel="group"))
    shown = data_in(event(model.calls[-1]), "goals") or ""
    assert PUBLIC in shown
    assert SECRET not in shown


async def test_a_public_is_not_shown_the_journal_of_an_owners_private_talk(
    opening: Opening,
) -> None:
    review = call("use_tool", name="review_journal", arguments={})
    model = scripted("Noted.", review, "Nothing.", review, "That.")
    async with opening(model) as agent:
        await agent.ainvoke(said(f"Between us: {SECRET}", "local"))
        await agent.ainvoke(said("What happened?", "Bea"))
        assert SECRET not in model.calls[-1].text
        await agent.ainvoke(said("What happened?", "local"))
    assert SECRET in json.dumps(answers(model.calls[-1]))


async def test_a_public_is_not_shown_what_the_assistant_did_on_its_own(opening: Opening) -> None:
    model = scripted(call("add_goal", description=GOAL), "Noted.", f"I asked as {SECRET}.", "Hi.")
    async with opening(model) as agent:
        await agent.ainvoke(said(f"{SECRET}, find a mechanic", "local"))
        await agent.ainvoke({"request": "tick"})
        await agent.ainvoke(said("Hello", "Pilar"))
    assert SECRET in model.calls[-2].text
    assert SECRET not in model.calls[-1].text


@pytest.mark.parametrize(("sender", "shown"), [("local", False), ("Bea", True)])
async def test_a_summary_of_private_talk_is_hidden_from_a_public(
    opening: Opening, sender: str, shown: bool
) -> None:
    def answer(messages: list[Any], tools: list[str]) -> Any:
        if tools == EXTRACTING:
            return call("noop")
        return "I see." if tools else f"They said that {SECRET}."

    settings = Settings(
        max_context_tokens=8_000, compact_preserve_window=4, memory_enabled=False,
        reflection_interval=0,
    )  # fmt: skip
    model = scripted(otherwise=answer)
    async with opening(model, settings=settings) as agent:
        for n in range(9):
            await agent.ainvoke(said(f"{n} {'word ' * 490}", sender))
        await agent.ainvoke({"request": "sleep"})
        await agent.ainvoke({"request": "wake"})
        messages = (await agent.aget_state()).values["messages"]
        await agent.ainvoke(said("Hello", "Pilar"))
    assert is_summary(messages[0])
    history = "\n".join(str(one.text) for one in model.calls[-1].messages[1:-1])
    assert (SECRET in history) is shown


async def test_a_sub_agent_knows_what_its_requesters_audience_may_know(opening: Opening) -> None:
    asked = calls(("delegate_task", {"task": "look"}))
    steps: list[Any] = [call("add_goal", description=GOAL), "Noted.", asked]
    looks = calls(("recall_memories", {"query": SECRET}), ("review_journal", {}))
    model = scripted(*steps, looks, "Nothing.", "Nothing.")
    settings = Settings(sub_agents_enabled=True, personality_insulation="none")
    async with opening(model, settings=settings) as agent:
        await agent.ainvoke(said(f"{SECRET}, find a mechanic", "local"))
        await agent.ainvoke(said("Look it up for me, then plan and build it", "Bea"))
    told = [one.text.replace(f'"query": "{SECRET}"', "") for one in model.calls[3:]]
    assert "<delegated_task>" in told[0]
    assert "tool_result" in told[1]
    assert not any(SECRET in one for one in told)


@pytest.mark.parametrize("addressed", [True, False])
@pytest.mark.parametrize("privacy", [{}, {"group": "private"}])
async def test_an_owner_writes_in_public_where_others_write(
    opening: Opening, clock: Clock, addressed: bool, privacy: dict[str, Any]
) -> None:
    model = scripted(otherwise=lambda *_: "Yes.")
    async with opening(model, settings=Settings(channel_privacy=privacy)) as agent:
        await agent.ainvoke(said("Hello", "local", channel="group"))
        assert 'audience="private"' in event(model.calls[-1])
        clock.advance(minutes=1)
        await agent.ainvoke(said("Hello", "Bea", channel="group", addressed=addressed))
        # A night clears what is open and what was heard.
        clock.advance(hours=9)
        await agent.ainvoke({"request": "sleep"})
        await agent.ainvoke({"request": "wake"})
        for channel, audience in (("group", "public"), ("office", "private"), (None, "private")):
            clock.advance(minutes=1)
            await agent.ainvoke(said("Who is here?", "local", channel=channel))
            expected = "private" if privacy else audience
            assert f'audience="{expected}"' in event(model.calls[-1])


async def test_an_owner_is_answered_in_public_if_others_wrote_before_the_answer(
    opening: Opening,
) -> None:
    """Both wait in one run: the owner's question is older, and both read its answer."""
    model = scripted(otherwise=lambda *_: "Yes.")
    times = zip(("local", "Bea"), ("2026-03-05T12:00:00Z", "2026-03-05T12:01:00Z"), strict=True)
    both = [said("Hello", one, channel="room", at=at)["events"][0] for one, at in times]
    async with opening(model) as agent:
        await agent.ainvoke({"events": both})
    assert ['audience="public"' in event(one) for one in model.calls] == [True, True]


def test_a_tick_whose_beginning_was_cut_off_is_not_shown_to_a_public() -> None:
    answered = marked(AIMessage("The hearing is on Monday", id="a"), tick=3)
    asked = marked(HumanMessage("Hello", id="b"), tick=4, channel="room", audience="public")
    assert without_private([answered, asked], 4) == [asked]
    private = marked(HumanMessage("Hello", id="c"), tick=4, channel="room", audience="private")
    assert without_private([answered, private], 4) == [answered, private]


async def test_a_pet_name_told_in_private_is_shown_in_private_alone(opening: Opening) -> None:
    noted = {"entity": "Lena", "observation": "Lena, called Mausi, is seven.", "aliases": ["Mausi"]}
    model = scripted(call("update_entity_observation", **noted), otherwise="Noted.")
    async with opening(model) as agent:
        await agent.ainvoke(said("My daughter Lena, called Mausi, is seven", "local"))
        asked = len(model.calls)
        await agent.ainvoke(said("Does Lena come to the party?", "Pilar", channel="group"))
        await agent.ainvoke(said("Does Lena come to the party?", "local"))
    shown = [data_in(event(made), "entity_context") or "" for made in model.calls[asked:]]
    assert ["Mausi" in one for one in shown] == [False, True]


def test_what_others_talked_about_in_private_is_not_counted_as_left_out() -> None:
    state = cast(State, {**fresh_state(), "messages": []})
    for tick in range(1, 9):
        words = HumanMessage("The hearing is on Monday " * 9, id=f"p{tick}")
        state["messages"].append(marked(words, tick=tick, channel="den", audience="private"))
    asked = marked(HumanMessage("Hello", id="b"), tick=9, channel="room", audience="public")
    state["messages"].append(asked)
    state["tick"], state["metrics"]["after_tick"] = 9, 8
    settings = Settings(earlier_history_tokens=100)
    assert history(state, settings, "tick_event") == [asked]
    state["messages"][-1] = marked(asked, audience="private")
    assert "older messages" in str(history(state, settings, "tick_event")[0].text)


async def test_what_an_owner_says_on_a_shared_channel_is_no_secret_elsewhere(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(otherwise=lambda *_: "Yes.")
    async with opening(model) as agent:
        for text, sender in (
            ("The wrench lies in the red drawer", "local"),
            ("Good morning to everybody", "Bea"),
            ("The ladder stands behind the red drawer", "local"),
        ):
            await agent.ainvoke(said(text, sender, channel="group"))
            clock.advance(minutes=1)
        await agent.ainvoke(said("What is near the red drawer?", "Carl", channel="shop"))
    assert "The ladder stands" in model.calls[-1].text
    assert "The wrench lies" not in model.calls[-1].text


@pytest.mark.parametrize(
    ("channels", "shown"),
    [((None, None), False), ((None, "group"), False), (("group", None), False),
     (("group", "group"), True)],
)  # fmt: skip
async def test_a_contradiction_is_shown_to_a_public_that_may_know_both_sides(
    channels: tuple[str | None, ...], shown: bool, opening: Opening
) -> None:
    texts = {"a": f"{SECRET}.", "b": "Pilar leaves in July."}
    settings = Settings(channel_privacy={"group": "public"})
    async with opening(model := scripted(otherwise="Well."), settings=settings) as agent:
        semantic = agent.resources.semantic
        for (id_, text), channel in zip(texts.items(), channels, strict=True):
            await agent.ainvoke(said(text, "local", channel=channel, id=id_))
            cited = {"source_entries": [f"event_20260302_{id_}"], "source_events": [id_]}
            await semantic.add(agent.scope, [draft(id_, text, speaker="local", **cited)])
        facts = await semantic.by_op(agent.scope, ["a", "b"])
        disputed = [
            change_fact(facts[one], {"disputed": [other]}, [one, other], "r", place=one)
            for one, other in ("ab", "ba")
        ]
        await apply_operations(disputed, store=agent.store, semantic=semantic, scope=agent.scope)
        page = pages.page_of_disputes(await semantic.all(agent.scope))
        await agent.store.aput(agent.scope.namespace(pages.PAGES), pages.DISPUTES, {**(page or {})})
        await agent.ainvoke(said("Hello all", "local", channel="group"))
        await agent.ainvoke(said("Hello", "local"))
    public, private = (data_in(event(one), "pages") or "" for one in model.calls[-2:])
    assert ("settle_dispute" in public) is (SECRET in public) is shown
    assert "settle_dispute" in private
    assert channels[0] is not None or SECRET not in model.calls[-2].text


async def test_an_owners_note_without_a_channel_is_no_talk_in_a_room(
    opening: Opening, clock: Clock
) -> None:
    model = scripted(otherwise=lambda *_: "Yes.")
    note = "Note to myself: the alarm code of the red shed is 4471"
    async with opening(model) as agent:
        await agent.ainvoke(said(note, "local", addressed=False))
        clock.advance(minutes=1)
        await agent.ainvoke(said("What is the alarm code of the red shed?", "Bea", channel="group"))
        public = model.calls[-1].text
        await agent.ainvoke(said("What is the alarm code of the red shed?", "local"))
    assert "4471" not in public
    assert "4471" in model.calls[-1].text
