"""Nights with models that answer as real ones do: slips, prose, wrong numbers, mended facts."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from memory.errors import ModelError
from memory.models.client import CORRECTIONS
from memory.records.records import Fact, JournalEntry
from memory.settings import Settings
from tests.support.agents import (
    DREAMS,
    Opening,
    entries,
    night_model,
    opened,
    result_of,
    said,
    scored,
    shown_lines,
)
from tests.support.clock import Clock
from tests.support.dreamers import SETTINGS, answer, dreamer
from tests.support.scripted import ScriptedChatModel, call, calls, scripted

SAID = [
    ("Goran", "The rent of the second shop is 1,900 a month."),
    ("Nadja", "Ilir is hired as a baker."),
    ("Ilir", "The oven is delivered on Friday."),
]
GOOD: list[tuple[str, list[Any]]] = [(text, [str(n)]) for n, (_, text) in enumerate(SAID, 1)]
BAD = "The assistant is a good helper."
"""A fact that is rejected whatever it cites."""


def heard(said: Sequence[tuple[str, str]] = SAID) -> dict[str, Any]:
    events = [
        {"id": f"e{n}", "sender": who, "text": text, "addressed": False}
        for n, (who, text) in enumerate(said, 1)
    ]
    return {"events": events}


def turn_of(messages: Sequence[BaseMessage]) -> int:
    return sum(isinstance(message, AIMessage) for message in messages)


def stored(*facts: tuple[str, list[Any]]) -> AIMessage:
    return call("store_memory", facts=[{"text": text, "source_ids": ids} for text, ids in facts])


def as_said(messages: list[BaseMessage]) -> AIMessage:
    return stored(*((text, [number]) for number, _, text in shown_lines(messages)))


def model(**steps: Any) -> ScriptedChatModel:
    """A model by step: answers by turn, or a rule. Without a step, it does what is usual."""

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        name = "consolidate" if "store_memory" in tools else tools[0]
        step = steps.get(name)
        if callable(step):
            given: AIMessage | str = step(messages, tools)
            return given
        if step is not None:
            return step[turn_of(messages)]  # type: ignore[no-any-return] # by turn
        if name == "Scores":
            return scored(messages)
        if name == "consolidate":
            return as_said(messages)
        return calls((name, {DREAMS[name]: []}))

    return scripted(otherwise=answered)


Night = tuple[dict[str, Any], list[JournalEntry], list[Fact], ScriptedChatModel]
Slept = Callable[..., Awaitable[Night]]


async def slept(
    folder: Path,
    clock: Clock,
    asked: ScriptedChatModel,
    said: Sequence[tuple[str, str]] = SAID,
    **settings: Any,
) -> Night:
    chosen = Settings(**{"night_calls_per_100": 1_000, **settings})
    async with opened(folder, asked, clock, settings=chosen) as agent:
        await agent.ainvoke(heard(said))
        report = dict(await agent.sleep())
        facts = await agent.resources.semantic.all(agent.scope)
        return report, await entries(agent), facts, asked


@pytest.fixture
def night(tmp_path: Path, clock: Clock) -> Slept:
    """A night of this test's agent: `await night(model, said, settings...)`."""
    return partial(slept, tmp_path, clock)


def of(asked: ScriptedChatModel, tool: str) -> list[list[BaseMessage]]:
    return [one.messages for one in asked.calls if tool in one.tools]


async def test_every_prompt_numbers_what_is_to_be_cited_and_tells_weekday_and_time(
    night: Slept,
) -> None:
    asked = model(Questions=lambda *_: calls(("Questions", {"questions": ["What of the rent?"]})))
    _, journal, *_ = await night(asked, time_zone="Asia/Tokyo", reflection_threshold=5)
    ids = {entry["id"] for entry in journal}
    for tool in ("Scores", "store_memory", "Questions"):
        (first, *_) = of(asked, tool)
        text = str(first[1].text)
        assert "[1] Mon 2026-03-02 18:00 Goran: The rent of the second shop" in text, tool
        assert not [id_ for id_ in ids if id_ in text]
    (dream, *_) = of(asked, "Dream")
    assert "] Mon 2026-03-02 18:00 Goran: The rent" in str(dream[1].text)
    assert str(dream[1].text).startswith("<new_facts>\n[1] Mon 2026-03-02 18:00 ")
    (insights, *_) = of(asked, "Insights")
    assert "[1] Mon 2026-03-02 18:00 " in str(insights[1].text)
    assert not [id_ for id_ in ids if id_ in f"{dream[1].text}{insights[1].text}"]


async def test_an_entry_is_shown_with_the_question_that_it_answers(opening: Opening) -> None:
    asked = scripted("Noted. Is the loan taken?", "Good.", otherwise=model().otherwise)
    async with opening(asked) as agent:
        for number, text in enumerate(["We need a loan for the second shop.", "Yes, by Ilir."]):
            await agent.ainvoke(said(text, "Goran", id=f"e{number}"))
        await agent.sleep()
    prompt = next(one for one in of(asked, "store_memory") if "Entries:" in str(one[1].text))
    assert str(prompt[1].text).splitlines()[-3:-1] == [
        "[2] Mon 2026-03-02 09:00 Goran: Yes, by Ilir.",
        "    (answers the assistant's question) Is the loan taken?",
    ]


async def test_the_facts_that_were_stored_awake_of_the_entries_are_shown_with_them(
    opening: Opening,
) -> None:
    def awake(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        said = str(messages[-1].text)
        if "Entries:" in str(messages[1].text) or "use_tool" not in tools:
            return night_model(messages, tools)
        text = next((text for _, text in SAID if text in said), None)
        return stored((text, [])) if text else "Noted."

    asked = scripted(otherwise=awake)
    async with opening(asked, settings=Settings(recall_limit=1)) as agent:
        for who, text in SAID:
            await agent.ainvoke({"messages": [HumanMessage(text, name=who)]})
        await agent.sleep()
    shown = "".join(
        str(one[0].text) for one in of(asked, "store_memory") if "Entries" in one[1].text
    )
    assert [text for _, text in SAID if f": {text}" in shown] == [text for _, text in SAID]


THINGS = (
    *("harp", "kettle", "ladder", "mirror", "anvil", "carpet", "saddle"),
    *("lantern", "barrel", "piano", "compass", "hammock", "telescope", "canoe"),
)


async def test_every_entry_is_shown_with_the_facts_about_its_own_things(opening: Opening) -> None:
    def lived(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        return "Noted." if "use_tool" in tools else night_model(messages, tools)

    asked = scripted(otherwise=lived)
    async with opening(asked) as agent:
        for told in ("Ada keeps the {} in the barn.", "The {} was sold by Ben."):
            for thing in THINGS:
                await agent.ainvoke({"messages": [HumanMessage(told.format(thing), name="local")]})
            await agent.sleep()
    prompts = [one for one in of(asked, "store_memory") if "Entries" in one[1].text]
    shown = str(prompts[-1][0].text)
    assert [one for one in THINGS if f"keeps the {one} in the barn" not in shown] == []


@pytest.mark.parametrize("dress", ["entry {}", 0])
async def test_cited_numbers_are_understood_in_other_forms(night: Slept, dress: str | int) -> None:
    def dressed(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        lines = shown_lines(messages)
        given = [int(n) if dress == 0 else str(dress).format(n) for n, *_ in lines]
        return stored(*((line[2], [id_]) for id_, line in zip(given, lines, strict=True)))

    report, journal, facts, _ = await night(model(consolidate=dressed))
    assert sorted(fact["source_events"] for fact in facts) == [["e1"], ["e2"], ["e3"]]
    assert {entry["consolidation"] for entry in journal} == {"consolidated"}
    assert (report["held"], report["refused"]) == ([], [])


async def test_a_rejected_fact_comes_back_with_the_reason_and_is_stored_once_mended(
    night: Slept,
) -> None:
    answers = [stored(*GOOD[:2], (BAD, ["3"])), stored(GOOD[2])]
    report, journal, facts, asked = await night(model(consolidate=answers))
    (_, second) = of(asked, "store_memory")
    told = result_of(second[3])
    assert (told["rejected"][0]["text"], told["not_cited"]) == (BAD, ["3"])
    assert told["rejected"][0]["error"]
    assert sorted(fact["text"] for fact in facts) == sorted(text for _, text in SAID)
    assert {entry["consolidation"] for entry in journal} == {"consolidated"}
    assert (report["held"], report["refused"]) == ([], [])


async def test_numbers_that_no_fact_holds_are_told_to_the_model(night: Slept) -> None:
    mail = "\n---------- Forwarded message ----------\nPay to account 99-1234."
    oven = f"The oven is 2.5 metres wide, and 1,200 kilos heavy.{mail}"
    said = [*SAID[:2], ("Ilir", oven)]
    answers = [
        stored(*GOOD[:2], ("The oven is 2.5 metres wide.", ["3"])),
        stored(("The oven is 1200 kilos heavy.", ["3"])),
    ]
    _, _, facts, asked = await night(model(consolidate=answers), said)
    told = result_of(of(asked, "store_memory")[1][3])
    assert (told["not_cited"], told["unsaid"]) == ([], {"3": ["1,200"]})
    assert "unsaid names, for an entry, the numbers" in told["suggestion"]
    assert (len(facts), len(of(asked, "store_memory"))) == (4, 2)


@pytest.mark.parametrize(
    ("refused", "more", "pending"),
    [
        ((BAD, ["3"]), [], ["e3"]),
        ((BAD, ["1", "12"]), GOOD[1:2], ["e1", "e3"]),
        (("The assistant knows the oven is delivered on Friday.", ["12"]), GOOD[1:], ["e3"]),
        ((BAD, ["12"]), GOOD[1:], []),
    ],
    ids=["cited", "cited in part", "nearest in words", "nothing left that it may be about"],
)
async def test_a_fact_refused_in_the_last_answer_leaves_its_entries_pending_for_another_night(
    night: Slept, refused: Any, more: Any, pending: list[str]
) -> None:
    """Whatever other facts cite them, and although the model has nothing else to keep."""
    facts = [{"text": text, "source_ids": ids} for text, ids in (*GOOD[:1], *more, refused)]
    answer = calls(("store_memory", {"facts": facts}), ("noop", {}))
    report, journal, *_ = await night(model(consolidate=[answer]), max_iterations_sleep=1)
    left = [one for one in journal if one["consolidation"] == "pending"]
    assert [one["sources"][0] for one in left] == pending
    assert report["held"] == [one["id"] for one in left]
    assert refused[0] in report["refused"][0]


async def test_after_two_tries_an_entry_stays_pending_and_the_report_has_the_reason(
    night: Slept, tmp_path: Path, clock: Clock
) -> None:
    answers = [stored(*GOOD[:2], (BAD, ["3"])), stored((BAD, ["[3]"]))]
    report, journal, facts, _ = await night(model(consolidate=answers))
    marks = {entry["sources"][0]: entry["consolidation"] for entry in journal}
    assert marks == {"e1": "consolidated", "e2": "consolidated", "e3": "pending"}
    assert report["held"] == [entry["id"] for entry in journal if entry["sources"] == ["e3"]]
    assert (len(report["refused"]), BAD in report["refused"][0]) == (1, True)
    assert len(report["refused"][0].partition(BAD)[2]) > 10
    made = [one["target"] for one in report["operations"] if one["kind"] == "mark_entry"]
    assert (len(facts), len(made)) == (2, 2)
    again = model(consolidate=[stored(("The oven is delivered on Friday.", [1]))])
    async with opened(tmp_path, again, clock) as agent:
        after = await agent.sleep()
    assert after["held"] == []


async def test_a_night_with_slips_in_every_batch_mends_them_and_is_complete(night: Slept) -> None:
    """Each batch lacks a score at first, and has a fact that is refused."""

    def slips(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        lines, mended = shown_lines(messages), turn_of(messages)
        if tools == ["Scores"]:
            return scores(*((n, 7) for n, *_ in (lines[-1:] if mended else lines[:-1])))
        right = [(text, [n]) for n, _, text in lines]
        return stored(*(right[-1:] if mended else [*right[:-1], (BAD, [lines[-1][0]])]))

    said = [("Ben", f"Plot {number:02} grows beans.") for number in range(24)]
    sizes = dict.fromkeys(("score_batch_size", "consolidate_batch_size", "dream_batch_size"), 12)
    asked = model(Scores=slips, consolidate=slips)
    report, _, facts, _ = await night(asked, said, night_calls_per_100=15, **sizes)
    made = {one["step"]: one["llm_calls"] for one in report["steps"] if one["llm_calls"]}
    assert made == {"score_importance": 4, "consolidate": 4, "dream": 2, "consolidate_entities": 1}
    assert (report["complete"], report["held"], report["refused"]) == (True, [], [])
    assert len(facts) == 24


def failing(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    if turn_of(messages):
        raise ModelError("down")
    return FIRST


FIRST = stored((SAID[0][1], [1]))
WRONG = call("store_memory", facts="The rent is 1,900.")


@pytest.mark.parametrize(
    ("answers", "consolidated", "stored_facts", "asked_for", "reported"),
    [
        ([FIRST, "That is all.", "I said so."], ["e1"], 1, 3, ""),
        ([WRONG, WRONG], [], 0, 2, "store_memory"),
        (failing, ["e1"], 1, 2, "consolidate: down"),
    ],
    ids=["prose after the nudge", "wrong arguments twice", "the model fails"],
)
async def test_a_loop_without_a_usable_end_leaves_the_rest_pending(
    night: Slept,
    answers: Any,
    consolidated: list[str],
    stored_facts: int,
    asked_for: int,
    reported: str,
) -> None:
    report, journal, facts, asked = await night(model(consolidate=answers))
    marks = {entry["sources"][0]: entry["consolidation"] for entry in journal}
    assert [one for one, mark in marks.items() if mark == "consolidated"] == consolidated
    assert list(marks.values()).count("pending") == len(report["held"]) == 3 - len(consolidated)
    assert (len(facts), len(of(asked, "store_memory"))) == (stored_facts, asked_for)
    assert reported in "".join([*report["refused"], *report["errors"]])


async def test_an_answer_in_prose_is_asked_for_a_call_once(night: Slept) -> None:
    def late(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if isinstance(messages[-1], HumanMessage) and turn_of(messages):
            return as_said(messages)
        return "These entries tell of a second shop, a baker and an oven."

    report, _, facts, asked = await night(model(consolidate=late))
    (_, second) = of(asked, "store_memory")
    assert str(second[-1].text).startswith("Call store_memory")
    assert "noop" in str(second[-1].text)
    assert (len(facts), report["held"]) == (3, [])


@pytest.mark.parametrize("owners", [["Goran"], ["Nadja"], []])
@pytest.mark.parametrize(
    ("question", "answer", "fact"),
    [
        ("Does the oven come on Friday or on Monday?", "On Monday.", "The oven comes on Monday."),
        ("Kommt der Ofen am Montag?", "Ja.", "Der Ofen kommt am Montag, dem 9. März 2026."),
        ("Who fetches the flour from the mill?", "Me, at six.", "Goran fetches the flour at six."),
    ],
)
async def test_a_question_and_its_answer_are_read_together_and_the_fact_is_the_answerers(
    question: str, answer: str, fact: str, owners: list[str], tmp_path: Path, clock: Clock
) -> None:
    """The model cites the answer alone. The question by itself matters little."""

    def scores_of(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        lines = shown_lines(messages)
        return scores(*((number, 2 if text == question else 8) for number, _, text in lines))

    def made(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        told = {text: number for number, _, text in shown_lines(messages)}
        assert (question in told) == (answer in told)
        facts = [
            (fact if text == answer else text, [told[text]]) for text in told if text != question
        ]
        return stored(*facts)

    said = [SAID[0], ("Nadja", question), ("Goran", answer), SAID[2]]
    few = Settings(owners=owners, consolidate_batch_size=2, night_calls_per_100=1_000)
    asked = model(Scores=scores_of, consolidate=made)
    async with opened(tmp_path, asked, clock, settings=few) as agent:
        for event in heard(said)["events"]:
            clock.advance(minutes=1)
            await agent.ainvoke({"events": [{**event, "channel": "shop"}]})
        report = await agent.sleep()
        (kept,) = [
            one for one in await agent.resources.semantic.all(agent.scope) if one["text"] == fact
        ]
    assert (kept["speaker"], kept["trust"], len(kept["source_events"])) == ("Goran", 0.8, 2)
    assert (report["held"], report["refused"]) == ([], [])


async def test_calls_with_the_same_or_no_id_are_told_apart(night: Slept) -> None:
    def twins(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        made = as_said(messages).tool_calls[0]["args"]["facts"]
        each = [
            {"name": "store_memory", "args": {"facts": [fact]}, "id": "same", "type": "tool_call"}
            for fact in made
        ]
        return AIMessage("", tool_calls=each)

    report, _, facts, _ = await night(model(consolidate=twins))
    assert (len(facts), report["held"]) == (3, [])


def scores(*given: tuple[Any, Any]) -> AIMessage:
    return calls(("Scores", {"scores": [{"id": id_, "importance": n} for id_, n in given]}))


async def test_scores_beyond_the_scale_are_clamped_and_noted(night: Slept) -> None:
    said = [*SAID, ("Goran", "The flour costs 40 a sack."), ("Nadja", "I need two more bowls.")]
    given = scores(("[1]", 11), (2, 0), ("#3", "8"), ("4", 7.5), ("entry 5", "9"))
    report, journal, _, asked = await night(model(Scores=[given]), said)
    found = {entry["sources"][0]: entry["importance"] for entry in journal}
    assert found == {"e1": 10, "e2": 1, "e3": 8, "e4": 8, "e5": 9}
    assert len(of(asked, "Scores")) == 1
    noted = [one for one in report["refused"] if one.startswith("importance")]
    assert [one.partition(":")[0] for one in noted] == [
        "importance 11 taken as 10",
        "importance 0 taken as 1",
        "importance 7.5 taken as 8",
    ]


async def test_missing_scores_are_asked_for_once_and_wrong_numbers_told(night: Slept) -> None:
    steps = [scores((1, 7), (9, 5)), scores((2, 6))]
    report, journal, _, asked = await night(model(Scores=steps))
    (_, second) = of(asked, "Scores")
    told = str(second[-1].text)
    assert "There is no entry 9: shown are 1 to 3." in told
    assert "These entries have no score yet: 2, 3." in told
    found = {entry["sources"][0]: entry["scoring_method"] for entry in journal}
    assert found == {"e1": "llm", "e2": "llm", "e3": "heuristic"}
    assert len(report["held"]) == 1
    assert report["refused"] == ["unknown id: 9"]


async def test_scores_are_given_in_view_of_goals_and_the_active_project(opening: Opening) -> None:
    plans = calls(
        ("create_project", {"project_key": "shop", "summary": "Open the second shop"}),
        ("add_goal", {"description": "Find a baker"}),
    )
    asked = scripted(plans, "It is planned.", otherwise=model().otherwise)
    async with opening(asked) as agent:
        await agent.ainvoke({"events": [{"sender": "Goran", "text": "Plan the second shop."}]})
        await agent.ainvoke(heard())
        await agent.sleep()
    (prompt,) = of(asked, "Scores")
    assert "Active project: shop - Open the second shop\n- goal_1_0" in str(prompt[1].text)
    assert "The current goals and projects are shown above them" in str(prompt[0].text)


def relation(fact: Any, other: Any, kind: str = "relates") -> dict[str, Any]:
    return {"fact": fact, "other": other, "relation": kind, "reason": "both"}


def dreams(*pairs: dict[str, Any]) -> AIMessage:
    return calls(("Dream", {"relations": [*pairs], "contexts": []}))


async def test_a_pair_that_could_not_be_read_is_told_and_mended(night: Slept) -> None:
    steps = [dreams(relation("[1]", "#2"), relation(3, "8")), dreams(relation(3, 1))]
    report, _, _, asked = await night(model(Dream=steps))
    (_, second) = of(asked, "Dream")
    assert "There is no fact 8: shown are 1 to 3." in str(second[-1].text)
    made = [(one["kind"], (one["after"] or {}).get("of")) for one in report["operations"]]
    assert made.count(("link", "facts")) == 2
    assert sum(kind == "settle_fact" for kind, _ in made) == 3
    assert report["refused"] == []


async def test_what_a_join_would_lose_is_told_and_the_pair_said_again(night: Slept) -> None:
    said = [
        ("Ada", "Frau Brandt knows nothing of the application."),
        ("Ada", "The family may know nothing of the interview yet."),
    ]
    steps = [dreams(relation(2, 1, "duplicates")), dreams(relation(2, 1))]
    report, _, facts, asked = await night(model(Dream=steps), said)
    (_, second) = of(asked, "Dream")
    told = str(second[-1].text)
    assert told.startswith("Only 2 would stay, and may not say what 1 does: family, may, interview")
    assert [fact["invalid_at"] for fact in facts] == [None, None]
    assert report["refused"] == []


async def test_an_unreadable_pair_is_dreamt_of_again_in_the_next_night(
    night: Slept, tmp_path: Path, clock: Clock
) -> None:
    def lost(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        number = {text.split()[1]: number for number, _, text in shown_lines(messages)}
        readable = relation(number["rent"], number["is"])
        return dreams(readable, relation(number["oven"], "the rent"))

    report, _, facts, _ = await night(model(Dream=lost))
    settled = [one["target"] for one in report["operations"] if one["kind"] == "settle_fact"]
    oven = next(fact for fact in facts if "oven" in fact["text"])
    assert (len(settled), oven["op"] in settled) == (2, False)
    assert report["refused"] == [f"{oven['text']!r} relates unknown id: the rent"]
    asked = model()
    async with opened(tmp_path, asked, clock) as agent:
        again = await agent.sleep()
    new = str(of(asked, "Dream")[0][1].text).partition("</new_facts>")[0]
    assert ("oven" in new, "rent" in new) == (True, False)
    done = [one["target"] for one in again["operations"] if one["kind"] == "settle_fact"]
    assert done == [oven["op"]]


async def test_evidence_that_was_not_shown_is_told_and_mended(night: Slept) -> None:
    def insight(*evidence: Any) -> AIMessage:
        one = {"text": "The second shop opens with a new baker.", "evidence": evidence}
        return calls(("Insights", {"insights": [{**one, "importance": "8"}]}))

    asked = model(
        Questions=[calls(("Questions", {"questions": ["What of the second shop?"]}))],
        Insights=[insight("[1]", 40), insight(1, "#2")],
    )
    report, *_ = await night(asked, reflection_threshold=5)
    (_, second) = of(asked, "Insights")
    assert "There is no memory 40" in str(second[-1].text)
    (made,) = [one["after"] for one in report["operations"] if one["kind"] == "add_entry"]
    assert (len(made["evidence"]), made["importance"]) == (2, 8)
    assert report["refused"] == []


async def test_an_insight_is_labelled_wherever_it_is_recalled(opening: Opening) -> None:
    text = "The second shop opens with a new baker."
    told = {"text": text, "evidence": [1, 2], "importance": 8}
    asked = model(
        Questions=[calls(("Questions", {"questions": ["What of the second shop?"]}))],
        Insights=[calls(("Insights", {"insights": [told]}))],
    )
    settings = Settings(reflection_threshold=5, recall_weight_links=0.0)
    async with opening(asked, settings=settings) as agent:
        await agent.ainvoke(heard())
        await agent.sleep()
        (insight,) = [one for one in await agent.recall(text) if one.get("inference")]
    awake = scripted("A new one.")
    async with opening(awake, settings=settings) as agent:
        await agent.ainvoke({"messages": "With which baker does the second shop open?"})
    shown = "".join(str(one.text) for one in awake.calls[0].messages)
    assert (insight["text"], insight["speaker"]) == (text, None)
    assert f" - (an inference): {text}" in shown


async def test_questions_are_asked_only_of_entries_that_matter(night: Slept) -> None:
    asked = model(Scores=[scores((1, 9), (2, 3), (3, 9))])
    await night(asked, reflection_threshold=5)
    text = str(of(asked, "Questions")[0][1].text)
    assert ("rent" in text, "Ilir is hired" in text, "oven" in text) == (True, False, True)


async def test_insights_are_asked_of_what_the_same_night_found_to_be_outdated(
    opening: Opening, clock: Clock
) -> None:
    tuesday = ("the glass arrives on Tuesday", "arrives on", "supersedes")
    asked = dreamer(tuesday)
    async with opening(asked, settings=SETTINGS) as agent:
        for day in (["Friday"], ["Monday", "Tuesday"]):
            said = [("Ben", f"No, the glass arrives on {name}.") for name in day]
            events = [{**one, "id": f"{clock():%d}{one['id']}"} for one in heard(said)["events"]]
            await agent.ainvoke({"events": [*events, *_more(clock)]})
            await agent.sleep()
            clock.advance(days=1)
    text = str(of(asked, "Insights")[-1][1].text)
    lines = {line.partition("Ben")[2] for line in text.splitlines() if "arrives" in line}
    assert lines == {
        ": No, the glass arrives on Tuesday.",
        " (no longer holds): No, the glass arrives on Monday.",
    }


def _more(clock: Clock) -> list[dict[str, Any]]:
    """Two messages that bring a day over the threshold of a reflection."""
    said = [("Ben", "The glass is for the greenhouse."), ("Ben", "It is green.")]
    return [{**one, "id": f"{clock():%d}m{one['id']}"} for one in heard(said)["events"]]


async def test_the_last_night_s_facts_are_seen_again_where_a_batch_has_room(tmp_path: Path) -> None:
    shown: list[str] = []

    def answered(messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        if tools == ["Dream"]:
            shown.append(str(messages[1].text).partition("</new_facts>")[0])
        return answer(messages, tools)

    clock = Clock()
    async with opened(tmp_path, scripted(otherwise=answered), clock) as agent:
        for place, text in enumerate(("I live in Bergen.", "The glass arrives on Friday.")):
            await agent.ainvoke(said(text, id=f"e{place}", addressed=False))
            clock.advance(days=1)
            await agent.ainvoke({"request": "sleep"})
    assert ("Bergen" in shown[-1], "glass" in shown[-1]) == (True, True)


async def test_attributes_that_can_be_used_stay_where_the_call_to_mend_others_fails(
    night: Slept,
) -> None:
    oven = {"entity": "E1", "name": "oven", "value": SAID[2][1], "evidence": ["1"]}
    rent = {"entity": "E3", "name": "rent", "value": "The rent is 9,900.", "evidence": ["3"]}

    def attributes(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        if turn_of(messages):
            raise ModelError("down")
        return calls(("Attributes", {"attributes": [oven, rent]}))

    report, *_ = await night(model(Attributes=attributes))
    changed = [one["after"] for one in report["operations"] if one["kind"] == "change_entity"]
    assert [name for one in changed for name in one["attributes"]] == ["oven"]
    assert report["refused"][-1] == "asked again in vain: down"
    assert (report["left"], report["errors"]) == ({}, [])


async def test_unusable_answers_count_towards_the_night_budget(night: Slept) -> None:
    report, _, _, asked = await night(model(Dream=lambda *_: "No form at all."))
    lines = {line["step"]: line for line in report["steps"]}
    assert len(report["errors"]) == 1
    assert (lines["dream"]["llm_calls"], lines["dream"]["tokens"] > 0) == (1 + CORRECTIONS, True)
    assert sum(line["llm_calls"] for line in report["steps"]) == len(asked.calls)
