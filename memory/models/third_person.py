"""Third person: what a person says of themselves, told of them by name. Pure; English; rough."""

from __future__ import annotations

import re

_FIXED = {"am": "is", "be": "is", "have": "has", "don't": "does not", "haven't": "has not"}
_PAST_OR_MODAL = """
    is was were had did has does can could will would shall should may might must cannot can't
    won't couldn't wouldn't shouldn't didn't wasn't hadn't went said told bought made got saw came
    took gave found left lost met kept felt thought knew began broke brought built chose drank drove
    ate fell flew forgot grew heard held hurt led let paid put ran read rode sat sent set slept
    spent spoke stood taught understood woke won wore wrote became cut hit quit bet shut
"""
_ADVERBS = "always usually often never really also just still sometimes only now already rarely"
_PRESENT_IN_ED = "need feed bleed breed proceed succeed exceed"
_SUBJECT = re.compile(
    r"\b[Ii]\b(?!\.\w)(?:(?P<short>'m|'ve|'d|'ll)\b|(?P<rest>(?:\s+[\w']+){1,3}))?"
)
_SHORT = {"'m": "is", "'ve": "has", "'d": "would", "'ll": "will"}
_WORDS = (
    (r"\bmy own\b|\bmy\b|\bmine\b|\bours?\b", "{name}'s"),
    (r"\bmyself\b|\bme\b", "{name}"),
    (r"\bwe're\b", "{name} and others are"),
    (r"\bwe've\b", "{name} and others have"),
    (r"\bwe'll\b", "{name} and others will"),
    (r"\bwe'd\b", "{name} and others would"),
    (r"\bwe\b|\bourselves\b", "{name} and others"),
    (r"(?-i:\bus\b)", "{name} and others"),
)


def third_person(text: str, name: str) -> str:
    """`text` with the speaker's "I", "my", "we" replaced by `name`, verbs bent to fit.

    "my sister lives with me and I like tea" by Alice: "Alice's sister lives with Alice and Alice
    likes tea". The first letter becomes a capital, a full stop at the end goes.
    """
    told = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").strip().rstrip(".!").strip()
    told = _SUBJECT.sub(lambda match: _subject(match, name), told)
    for pattern, instead in _WORDS:
        told = re.sub(pattern, instead.format(name=name), told, flags=re.IGNORECASE)
    return told[:1].upper() + told[1:]


def _subject(match: re.Match[str], name: str) -> str:
    if match["short"]:
        return f"{name} {_SHORT[match['short']]}"
    words = (match["rest"] or "").split()
    for at, word in enumerate(words):
        if word.lower() in _ADVERBS.split() or word.endswith("ly"):
            continue
        words[at] = _bent(word)
        break
    return " ".join([name, *words])


def _bent(verb: str) -> str:
    """The verb in the third person singular; past and modal forms stay."""
    low = verb.lower()
    if low in _FIXED:
        return _FIXED[low]
    past = low.endswith("ed") and low not in _PRESENT_IN_ED.split()
    if past or low in _PAST_OR_MODAL.split() or not low.replace("'", "").isalpha():
        return verb
    if low.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"
