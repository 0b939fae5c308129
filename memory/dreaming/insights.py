"""Insights of the night's reflection (Park et al. 2023; design, ruling 11). Pure.

Its questions are about the world, its people, events and the progress of goals, never about the
assistant. Every insight names its evidence by ids that the model was shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from memory.bearing import Said, from_elsewhere, worded
from memory.importance import TRUST
from memory.operations import add_entry, link_memories, operation_id
from memory.persona import violation
from memory.records import JournalEntry, Operation, RecallHit

QUESTIONS = 3
LEAST, MOST = 8, 9
"""Importance of an insight."""
TAG = "insight"
_ASKS_ITSELF = re.compile(
    r"\b(?:you|your|yourself|circadian|(?:the|this|an?) (?:ai |virtual |digital )?"
    r"(?:assistant|ai|bot|chatbot))\b(?! (?:manager|coach|director|editor|professor|teacher)\b)",
    re.IGNORECASE,
)
"""Names of the assistant in a question, which has more of them than a statement."""


class Insight(NamedTuple):
    """An insight as the model gave it."""

    text: str
    evidence: Sequence[str]
    """Ids of memories, as shown."""
    importance: int


class Reflected(NamedTuple):
    """The operations that an answer leads to, and why parts of it were refused."""

    operations: list[Operation]
    refused: list[str]


def questions(given: Iterable[str]) -> tuple[list[str], list[str]]:
    """(the first three questions that may be asked, why others may not)."""
    kept, refused = list[str](), list[str]()
    for one in given:
        text = " ".join(one.split())
        why = _asked_in_vain(text)
        if why is not None:
            refused.append(why)
        elif text not in kept and len(kept) < QUESTIONS:
            kept.append(text)
    return kept, refused


def _asked_in_vain(text: str) -> str | None:
    if not text:
        return "an empty question"
    asks = _ASKS_ITSELF.search(text)
    return f"asks about the assistant: {asks.group()!r}" if asks else violation(text)


def insights(
    given: Iterable[Insight],
    shown: Mapping[str, RecallHit],
    *,
    night: str,
    now: datetime,
    trust: Mapping[str, float] | None = None,
    rules: str = "",
) -> Reflected:
    """Journal entries for the insights that stand on memories shown, linked to these memories.

    An insight is trusted no more than the least trusted memory it stands on. If all of them are one
    person's words, the insight is from that person.

    Args:
        given: As the model gave them.
        shown: The memories shown, by id.
        night: The night's id.
        now: The night's time.
        trust: Of the memories shown, by id (0..1).
        rules: The prompt's instructions, which are no insight.
    """
    made = Reflected([], [])
    for place, one in enumerate(given):
        text = " ".join(one.text.split())
        evidence = [each for each in dict.fromkeys(one.evidence) if each in shown]
        why = _problem(text, evidence, shown, rules)
        if why is not None:
            made.refused.append(why)
            continue
        made.refused.extend(f"unknown id: {each}" for each in one.evidence if each not in shown)
        entry = _entry(text, evidence, shown, one.importance, night, place, now)
        known = ((trust or {}).get(each, entry["source_trust"]) for each in evidence)
        entry["source_trust"] = min(entry["source_trust"], *known)
        made.operations.append(add_entry(entry, f"insight from {len(evidence)} memories"))
        made.operations.extend(
            link_memories(entry["id"], each, now.isoformat(), "evidence of the insight")
            for each in evidence
        )
    return made


def _problem(
    text: str, evidence: Sequence[str], shown: Mapping[str, RecallHit], rules: str
) -> str | None:
    if not text:
        return "an empty insight"
    if not evidence:
        return f"no evidence among the memories shown: {text[:80]!r}"
    cited = [_worded(shown[each]) for each in evidence]
    others = [_worded(hit) for each, hit in shown.items() if each not in evidence]
    if from_elsewhere(text, cited, [*others, rules]):
        return f"it stands on other memories than it names: {text[:80]!r}"
    return violation(text)


def _worded(hit: RecallHit) -> str:
    return worded(Said(hit["speaker"], hit["text"]))


def _entry(
    text: str,
    evidence: Sequence[str],
    shown: Mapping[str, RecallHit],
    importance: int,
    night: str,
    place: int,
    now: datetime,
) -> JournalEntry:
    said = [Said(shown[each]["speaker"], shown[each]["text"]) for each in evidence]
    events = dict.fromkeys(source for each in evidence for source in shown[each]["sources"])
    return {
        "id": f"insight_{now:%Y%m%d}_{operation_id('insight', night, str(place))[:16]}",
        "timestamp": now.isoformat(),
        "content": text,
        "source_type": "inference",
        "source_trust": TRUST["inference"],
        "source_entity": _told_by(text, said),
        "importance": min(max(importance, LEAST), MOST),
        "scoring_method": "llm",
        "tags": [TAG],
        "related_projects": [],
        "sources": list(events),
        "evidence": list(evidence),
        "channel": None,
        "consolidation": "exempt",
    }


def _told_by(text: str, said: Sequence[Said]) -> str | None:
    """The one person who said all of the evidence, or whose words the insight only repeats."""
    people = {one.speaker for one in said}
    if len(people) == 1:
        return people.pop()
    for one in said:
        if one.speaker and from_elsewhere(text, [o.text for o in said if o is not one], [one.text]):
            return one.speaker
    return None
