"""Answers of the offline model to questions: the lines that share most words, quoted. Pure."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from memory.models.offline_prompt import Prompt, Source, sources
from memory.models.offline_speech import is_question
from memory.models.words import content_stems, sentences, shortened, stem

NOT_KNOWN = "I do not know that yet."

_LEAST_SHARE = 0.4
"""Of the weight of the question's words, the part that a line must have."""
_NEAR_BEST = 0.75
"""A further line is quoted when its share is at least this part of the best one's."""
_MOST_QUOTES = 5
_LONGEST = 300
_ASKING_WORDS = {
    stem(one) for one in ("know", "remember", "recall", "say", "think", "work", "current")
}


def answer(question: str, prompt: Prompt) -> str:
    """The best lines with their sources, or that nothing is known."""
    found = best(question, _quotable(sources(prompt)), asker=prompt.sender)
    return "\n".join(quote(one) for one in found) or NOT_KNOWN


def best(question: str, known: Sequence[Source], *, asker: str = "") -> list[Source]:
    """At most five sources, best first, by the share of the question's words found in each.

    Rare words weigh more. Words of the label (speaker, "goal", "project") count where the text
    itself shares a word too, or where the question has no other words.
    """
    asked = set(content_stems(question)) - _ASKING_WORDS
    if not asked or not known:
        return []
    texts = [set(content_stems(one.text)) for one in known]
    labels = [set(content_stems(one.label)) for one in known]
    spread = Counter(one for text, label in zip(texts, labels, strict=True) for one in text | label)
    weight = {one: math.log(1 + len(known) / max(1, spread[one])) + 0.1 for one in asked}
    total = sum(weight.values())
    own = set(content_stems(asker))
    rated: list[tuple[float, float, int]] = []
    for at, (text, label) in enumerate(zip(texts, labels, strict=True)):
        hit = asked & (text | label)
        if not asked & text and hit != asked:
            continue
        share = sum(weight[one] for one in hit) / total
        rated.append((share, 0.01 if own & label else 0.0, -at))
    rated = sorted((one for one in rated if one[0] >= _LEAST_SHARE), reverse=True)
    enough = rated[0][0] * _NEAR_BEST if rated else 0.0
    return _distinct([known[-at] for share, _, at in rated if share >= enough])[:_MOST_QUOTES]


def quote(source: Source) -> str:
    """A line of an answer: where it stands, then its words."""
    return f"From {source.label}: {shortened(source.text, _LONGEST)}"


def _distinct(found: Sequence[Source]) -> list[Source]:
    """Without those whose words stand within a better one's, or around them."""
    kept: list[tuple[str, Source]] = []
    for one in found:
        text = " ".join(one.text.lower().split())
        if not any(text in other or other in text for other, _ in kept):
            kept.append((text, one))
    return [one for _, one in kept]


def _quotable(found: Sequence[Source]) -> list[Source]:
    """No mere questions: they know nothing."""
    return [one for one in found if not all(map(is_question, sentences(one.text)))]
