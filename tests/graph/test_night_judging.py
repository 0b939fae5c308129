"""A second look of the model at the facts that a night made."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage

from memory.errors import ModelError
from memory.night.order import LEAST_CALLS
from memory.settings import Settings
from tests.graph.test_night_answers import SAID, Night, model, slept
from tests.support.agents import opened, result_of, shown_lines
from tests.support.clock import Clock
from tests.support.scripted import ScriptedChatModel, call, calls

TWO = SAID[:2]
RENT = SAID[0][1]
PARAPHRASE = "Die Miete des zweiten Ladens beträgt 1.900 im Monat."
WRONG = "Die Eltern von Goran besitzen den zweiten Laden."
PLAIN = "Ilir is hired as a baker."

Answer = Callable[[list[BaseMessage]], AIMessage | str]


def verdicts(*given: tuple[Any, bool]) -> AIMessage:
    told = [{"fact": fact, "follows": follows, "why": "nobody said so"} for fact, follows in given]
    return call("Verdicts", verdicts=told)


def stored(*facts: tuple[str, str]) -> AIMessage:
    made = [{"text": text, "source_ids": [number]} for text, number in facts]
    return calls(("store_memory", {"facts": made}), ("noop", {}))


def judged(judge: Answer, *answers: AIMessage) -> ScriptedChatModel:
    return model(Verdicts=lambda messages, tools: judge(messages), consolidate=answers)


async def judging(folder: Path, clock: Clock, asked: ScriptedChatModel, **settings: Any) -> Night:
    return await slept(folder, clock, asked, TWO, **{"judge_facts": True, **settings})


def looks(asked: ScriptedChatModel) -> list[str]:
    return [one.text for one in asked.calls if one.tools == ["Verdicts"]]


async def test_one_call_shows_the_new_facts_and_the_entries_that_they_cite(
    tmp_path: Path, clock: Clock
) -> None:
    asked = judged(
        lambda _: verdicts((1, True), (2, True)), stored((PARAPHRASE, "1"), (PLAIN, "2"))
    )
    report, _, facts, _ = await judging(tmp_path, clock, asked)
    (prompt,) = looks(asked)
    for number, (who, text) in enumerate(TWO, 1):
        assert re.search(
            rf"^\[{number}\] \w{{3}} [\d-]+ [\d:]+ {who}: {text}$", prompt, re.MULTILINE
        )
    assert f"[1] {PARAPHRASE} (from 1)" in prompt
    assert f"[2] {PLAIN} (from 2)" in prompt
    assert sorted(fact["text"] for fact in facts) == sorted([PARAPHRASE, PLAIN])
    step = next(one for one in report["steps"] if one["step"] == "consolidate")
    assert (step["llm_calls"], report["errors"]) == (2, [])


async def test_a_fact_that_does_not_follow_comes_back_and_is_stored_once_mended(
    tmp_path: Path, clock: Clock
) -> None:
    answers = stored((WRONG, "1"), (PLAIN, "2")), stored((RENT, "1"))
    asked = judged(lambda shown: verdicts(("[1]", WRONG not in shown[-1].text)), *answers)
    report, journal, facts, _ = await judging(tmp_path, clock, asked)
    second = [one for one in asked.calls if "store_memory" in one.tools][1]
    told = result_of(second.messages[3])
    assert told["rejected"] == [
        {"text": WRONG, "error": "it does not follow from what it cites: nobody said so"}
    ]
    assert (told["success"], told["stored"]) == (True, 1)
    assert sorted(fact["text"] for fact in facts) == sorted([RENT, PLAIN])
    assert {entry["consolidation"] for entry in journal} == {"consolidated"}
    assert report["refused"] == []


DERIVED = "The rent of the second shop is 22,900 a year."


@pytest.mark.parametrize(
    ("follows", "settings"), [(True, {}), (False, {}), (None, {}), (True, {"judge_facts": False})]
)
async def test_a_verdict_overrules_the_rules(
    tmp_path: Path, clock: Clock, follows: bool | None, settings: dict[str, Any]
) -> None:
    def judge(shown: list[BaseMessage]) -> AIMessage | str:
        return (
            "Fine." if follows is None else verdicts((1, follows or DERIVED not in shown[-1].text))
        )

    kept = follows is True and not settings
    answers = stored((DERIVED, "1")), stored((RENT, "1"))
    asked = judged(judge, *answers)
    _, _, facts, _ = await judging(tmp_path, clock, asked, **settings)
    assert [fact["text"] for fact in facts] == [*[DERIVED] * kept, RENT]
    if not kept:
        second = [one for one in asked.calls if "store_memory" in one.tools][1]
        (told,) = result_of(second.messages[3])["rejected"]
        assert "the fact says 22,900" in told["error"]


async def test_no_verdict_makes_words_somebody_elses(tmp_path: Path, clock: Clock) -> None:
    fact = {"text": RENT, "source_ids": ["1"], "speaker": "Nadja"}
    answer = calls(("store_memory", {"facts": [fact]}), ("noop", {}))
    asked = judged(lambda _: verdicts((1, True)), answer, answer)
    _, _, facts, _ = await judging(tmp_path, clock, asked)
    assert (facts, looks(asked)) == ([], [])


def fails(messages: list[BaseMessage]) -> AIMessage:
    raise ModelError("the model is away")


@pytest.mark.parametrize(
    "judge",
    [
        lambda _: verdicts((9, False)),
        lambda _: verdicts((1, False), (1, True)),
        lambda _: "They are fine.",
        fails,
    ],
    ids=["not_shown", "both", "prose", "fails"],
)
async def test_a_broken_answer_leaves_it_to_the_rules(
    tmp_path: Path, clock: Clock, judge: Answer
) -> None:
    asked = judged(judge, stored((PARAPHRASE, "1"), (PLAIN, "2")))
    report, journal, facts, _ = await judging(tmp_path, clock, asked)
    assert looks(asked)
    assert sorted(fact["text"] for fact in facts) == sorted([PARAPHRASE, PLAIN])
    assert {entry["consolidation"] for entry in journal} == {"consolidated"}
    assert report["held"] == []


@pytest.mark.parametrize("settings", [{"judge_facts": False}, {"night_tokens": 1}])
async def test_no_verdict_is_asked_for_when_disabled_or_out_of_budget(
    tmp_path: Path, clock: Clock, settings: dict[str, Any]
) -> None:
    asked = judged(fails, stored((PARAPHRASE, "1"), (PLAIN, "2")))
    await judging(tmp_path, clock, asked, **settings)
    assert looks(asked) == []


async def test_judging_leaves_the_later_steps_their_calls(tmp_path: Path, clock: Clock) -> None:
    def kept(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
        ((number, _, text),) = shown_lines(messages)
        return stored((text, number))

    asked = model(Verdicts=lambda *_: verdicts((1, True)), consolidate=kept)
    settings = {"judge_facts": True, "consolidate_batch_size": 1, "night_calls_per_100": 15}
    report, _, facts, _ = await slept(tmp_path, clock, asked, SAID, **settings)
    last = [one.tools for one in asked.calls][-2:]
    assert (len(looks(asked)), len(facts), last) == (2, 3, [["Dream"], ["Attributes"]])
    assert sum(one["llm_calls"] for one in report["steps"]) == LEAST_CALLS


async def test_the_judge_is_told_other_names_that_owners_gave(tmp_path: Path, clock: Clock) -> None:
    said = {"sender": "Ana", "text": "My daughter Lena, our Mausi, is seven.", "addressed": True}
    later = {"sender": "Ana", "text": "Mausi's lesson is on Monday.", "addressed": False}
    note = {"entity": "Lena", "observation": "Lena is seven.", "aliases": ["Mausi"]}
    awake = call("update_entity_observation", **note)
    asked = model(Verdicts=lambda *_: verdicts((1, True)), consolidate=_lesson)
    asked.steps += [awake, "Good."]
    settings = Settings(owners=["Ana"], judge_facts=True, night_calls_per_100=1_000)
    async with opened(tmp_path, asked, clock, settings=settings) as agent:
        await agent.ainvoke({"events": [said]})
        await agent.ainvoke({"events": [later]})
        await agent.sleep()
    (prompt,) = looks(asked)
    assert "[1] Lena's lesson is on Monday." in prompt
    assert "Lena is also called Mausi" in prompt


def _lesson(messages: list[BaseMessage], tools: list[str]) -> AIMessage:
    number = next(number for number, _, text in shown_lines(messages) if "lesson" in text)
    return stored(("Lena's lesson is on Monday.", number))
