"""What the offline model asks and answers when a night reflects: it counts, and quotes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from langchain_core.messages import BaseMessage, HumanMessage

from memory.messages.handles import Handles
from memory.messages.trust import as_data
from memory.models.client import ask_for
from memory.models.offline.model import OfflineChatModel
from memory.records.records import RecallHit
from memory.settings import Settings
from nodes.night.reflect import Insights, Questions, insights_prompt, with_ids
from nodes.night.reflect import insights as reflect_insights
from nodes.night.reflect import questions as reflect_questions
from tests.support.night_memories import NOW, entry

HEARD = [
    ("Ada", "I planted quinces by the wall."),
    ("Ada", "The quinces need water."),
    ("Ben", "My telescope broke on Friday."),
    ("Ada", "Hello!"),
    ("Ben", "A new lens for the telescope costs 90 euros."),
    ("assistant", "The assistant planted the telescope."),
    ("assistant", "The assistant likes quinces."),
    ("assistant", "The assistant likes lists."),
]


def journaled(heard: Sequence[tuple[str, str]]) -> list[BaseMessage]:
    lines = [
        f"[{entry(f'event_1_{n}')['id']}] 2026-05-02T09:00 {who}: {text}"
        for n, (who, text) in enumerate(heard)
    ]
    return [HumanMessage(f"Entries:\n{as_data('entries', chr(10).join(lines))}")]


async def questions(heard: Sequence[tuple[str, str]]) -> list[str]:
    answer, _ = await ask_for(OfflineChatModel(), journaled(heard), Questions, Settings())
    kept, refused = reflect_questions(answer.questions)
    assert (kept, refused) == (answer.questions, [])
    return kept


async def test_it_asks_of_those_who_said_most_and_of_what_they_said_most() -> None:
    asked = await questions(HEARD)
    assert asked == ["What did Ada say about quinces?", "What did Ben say about telescope?"]


async def test_there_are_three_questions_at_most_and_none_of_small_talk() -> None:
    heard = [(who, f"The {what} is {n} years old.") for who in "ABCDE" for n, what in
             enumerate(["barn", "mill", "well"])]  # fmt: skip
    assert len(await questions(heard)) == 3
    assert await questions([("Ada", "Hello!"), ("Ben", "Thanks!")]) == []


def hit(id_: str, speaker: str | None, text: str, day: str = "2026-05-02") -> RecallHit:
    return {
        "id": id_,
        "kind": "fact",
        "text": text,
        "score": 0.5,
        "sources": [f"source-of-{id_}"],
        "at": f"{day}T09:00:00+00:00",
        "speaker": speaker,
    }


async def insights(found: dict[str, list[RecallHit]]) -> list[tuple[str, list[str]]]:
    answer, _ = await ask_for(OfflineChatModel(), insights_prompt(found, UTC), Insights, Settings())
    shown = {one["id"]: one for hits in found.values() for one in hits}
    given = with_ids([answer], Handles(shown))
    made = reflect_insights(given, shown, night="night_1", now=datetime.fromisoformat(NOW))
    assert made.refused == []
    return [(one.text, one.evidence) for one in given]


async def test_an_insight_counts_whose_memories_say_what_and_quotes_the_newest() -> None:
    hits = [
        hit("f1", "Ada", "I planted quinces by the wall."),
        hit("f2", "Ada", 'The "quinces" need water.', "2026-05-03"),
        hit("f3", "Ada", "It rains.", "2026-05-04"),
        hit("f4", "Ben", "The wall is old."),
        hit("f5", "assistant", "The assistant likes quinces."),
    ]
    assert await insights({"What did Ada say about quinces?": hits}) == [
        (
            'Ada speaks of "quinces" in 2 of the 4 memories near to what was asked; '
            "the newest (2026-05-03, Ada): \"The 'quinces' need water.\"",
            ["f1", "f2"],
        )
    ]


async def test_without_a_common_word_it_says_who_said_most_and_else_quotes_one() -> None:
    apart = [hit("f1", "Ada", "It rains."), hit("f2", "Ada", "Lunch was late.", "2026-05-01")]
    [(text, evidence)] = await insights({"What?": apart})
    assert text.startswith("Ada said 2 of the 2 memories near to what was asked; the newest (2026-")
    assert evidence == ["f1", "f2"]
    [(text, evidence)] = await insights({"What?": apart[:1], "Why?": apart[:1]})
    assert text == 'One memory is near to what was asked; the newest (2026-05-02, Ada): "It rains."'
    assert evidence == ["f1"]


async def test_nothing_is_said_of_the_assistant_nor_where_nothing_is_shown() -> None:
    own = [hit(f"f{n}", "Ada", "The assistant helped me with the quinces.") for n in range(3)]
    assert await insights({"What?": own}) == []
    assert await insights({"What?": [hit("f1", "circadian", "Lists are fine.")]}) == []
    assert await insights({"What?": []}) == []


async def test_the_same_memories_under_two_questions_are_one_insight() -> None:
    hits = [hit("f1", "Ada", "The quinces bloom."), hit("f2", "Ada", "The quinces need water.")]
    assert len(await insights({"What?": hits, "Why?": hits})) == 1
