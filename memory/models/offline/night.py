"""Third person: what a person says of themselves, told of them by name. Pure; English; rough."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from memory.events import MOST_COMPLEX, complexity_of
from memory.models.offline.prompt import (
    SUMMARY_MARK,
    Call,
    Done,
    Entry,
    Prompt,
    entries,
    said_by_people,
)
from memory.models.offline.replies import (
    has_particulars,
    is_question,
    may_tell_of_a_life,
    names,
    names_a_time,
    statement,
    states_something,
    tells_of_a_life,
)
from memory.text import PRONOUNS, STOP_WORDS, depends_on_speaker, sentences, shortened, words

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


# What the offline model does in a night: scores, facts, extraction, summaries, subtasks. Pure.
#
# All of it is extractive: it says nothing that does not stand in what it was given.


_LONG = 60
"""Characters from which an entry counts as detailed."""


_MOST_EXTRACTED = 5


_SUMMARY_SHARE = 0.3


_SENTENCE = 220
"""Characters of one sentence in a summary."""


_FEWEST, _MOST = 3, 7


_NOTICED = re.compile(
    r"(?P<name>[A-Z][\w'-]+(?: [A-Z][\w'-]+)?) (?:(?:always|never|often|really|usually) )?"
    r"(?:likes|loves|hates|dislikes|prefers|enjoys|lives|works|plays|studies|teaches|collects"
    r"|owns|wants|needs|is allergic|is afraid|is married|is fond)\b.+"
)
"""A sentence that says what someone or something is like, with the name first."""


_BY_GUARD = re.compile(r"first person|speaks of the assistant")
"""How the persona guard begins its reasons."""


_TURN = re.compile(r"^(?P<role>\w+)(?: \((?P<name>[^)]*)\))?: (?P<text>.*)$")


_STAGES = (
    "Clarify what '{goal}' needs",
    "Plan '{goal}'",
    "Do the first part of '{goal}'",
    "Complete '{goal}'",
    "Check the result of '{goal}'",
)


def task_assessment(prompt: Prompt) -> dict[str, Any]:
    """Counts as the heuristic assessment does, and so recommends no less than that."""
    task = re.search(r"<pending_event>\n(.*)\n</pending_event>", prompt.human, re.DOTALL)
    score, counted = complexity_of(task.group(1) if task else prompt.human)
    return {
        "complexity": score,
        "recommended_mode": None if score == MOST_COMPLEX else "react_loop",
        "recommended_iterations": 10,
        "reasoning": f"Counted: {counted}.",
    }


def importance(text: str) -> int:
    """1..10: base 3; +2 names, numbers, dates; +2 life facts, preferences, plans, goals; +1 length.

    What may be one of those, but leaves out whose it is ("Still working on it."), gets +1.

    What states nothing (questions, greetings, thanks) is a 2.
    """
    said = statement(text)
    if not said:
        return 2
    life = 2 if tells_of_a_life(said) else int(may_tell_of_a_life(said))
    score = 3 + 2 * has_particulars(said) + life + (len(said) >= _LONG)
    return max(1, min(10, score))


def scores(prompt: Prompt) -> dict[str, Any]:
    """An importance for every entry shown."""
    found = entries(prompt.human)
    return {"scores": [{"id": one.id, "importance": importance(one.text)} for one in found]}


def consolidation(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    """One fact per entry that states something, in one call; a noop when some are left out.

    Nothing after that: a second answer would repeat the first. Where the guard refused a fact, a
    noop says that the rest is not for memory; other failures leave the entries pending.
    """
    if prompt.done:
        return _after_storing(prompt, tools)
    batch = entries(prompt.human)
    facts = [_fact(one, said) for one in batch if (said := statement(one.text))]
    calls = [Call("store_memory", {"facts": facts})] if facts else []
    left = len(batch) - len(facts)
    if left and "noop" in tools:
        calls.append(Call("noop", {"reasoning": f"{left} of {len(batch)} entries state nothing."}))
    return calls


def extraction(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    """At most five sentences of people with names, numbers or dates, and at most five that say
    what a named third person is like; then a noop.
    """
    if not prompt.done:
        found = _worth_journaling(prompt) if "add_journal_entry" in tools else []
        found += _noticed(prompt) if "update_entity_observation" in tools else []
        if found:
            return found
    done = {one.name for one in prompt.done}
    if "noop" in tools and "noop" not in done:
        return [Call("noop", {"reasoning": "Nothing more with names, numbers or dates."})]
    return []


def summary(text: str) -> str:
    """The first telling sentence of each message, an earlier summary first; at most 30 %."""
    turns = _turns(text)
    room = max(1, int(len(text) * _SUMMARY_SHARE))
    earlier = [said.removeprefix(SUMMARY_MARK).strip() for _, said in turns if _is_summary(said)]
    lines = [shortened(one, max(1, room * 2 // 3)) for one in earlier[:1]]
    told = [line for who, said in turns if not _is_summary(said) and (line := _told(who, said))]
    lines += _that_fit(told, room - sum(len(one) + 1 for one in lines))
    return "\n".join(lines) or shortened(turns[0][1] if turns else text, room) or text[:room]


def subtasks(prompt: Prompt) -> dict[str, Any]:
    """3-7 subtasks: the goal's own list where it has one, else the stages of any work."""
    found = re.search(r"^Goal: (?P<goal>.+)$", prompt.human, re.MULTILINE)
    goal = found["goal"].strip().rstrip(".") if found else shortened(prompt.human, 100)
    items = _listed(goal)
    if len(items) < _FEWEST:
        items = [stage.format(goal=goal) for stage in _STAGES]
    if len(items) > _MOST:
        items = [*items[: _MOST - 1], ", ".join(items[_MOST - 1 :])]
    return {"subtasks": items}


def _fact(entry: Entry, said: str) -> dict[str, Any]:
    fact: dict[str, Any] = {"text": said, "source_ids": [entry.id]}
    speaker = [entry.speaker] if entry.speaker else []
    if entry.speaker:
        fact["speaker"] = entry.speaker
    if entities := list(dict.fromkeys([*speaker, *names(said)])):
        fact["entities"] = entities
    return fact


def _after_storing(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    if "noop" not in tools or any(one.name == "noop" for one in prompt.done):
        return []
    errors = [error for one in prompt.done for error in _rejections(one)]
    if errors and all(_BY_GUARD.match(error) for error in errors):
        return [Call("noop", {"reasoning": "The facts that were rejected are not for memory."})]
    return []


def _rejections(done: Done) -> list[str]:
    """Why facts were not stored; one reason for a call that failed as a whole."""
    result = done.result
    if not isinstance(result, Mapping):
        return [str(result)]
    rejected = [str(one.get("error")) for one in result.get("rejected", [])]
    return rejected or ([str(result.get("error"))] if not result.get("success", True) else [])


def _worth_journaling(prompt: Prompt) -> list[Call]:
    found: dict[str, Call] = {}
    for text, message in said_by_people(prompt.history):
        for sentence in sentences(text):
            if states_something(sentence) and has_particulars(sentence):
                args: dict[str, Any] = {"content": sentence, "importance": importance(sentence)}
                if message.name:
                    args["source_entity"] = message.name
                found.setdefault(sentence, Call("add_journal_entry", args))
    best = sorted(found.values(), key=lambda call: -int(call.args["importance"]))
    return best[:_MOST_EXTRACTED]


def _noticed(prompt: Prompt) -> list[Call]:
    found: dict[str, Call] = {}
    for text, _ in said_by_people(prompt.history):
        for sentence in sentences(text):
            match = None if is_question(sentence) else _NOTICED.fullmatch(sentence)
            if match and _is_name(match["name"]):
                args = {"entity": match["name"], "observation": sentence}
                found.setdefault(sentence, Call("update_entity_observation", args))
    return list(found.values())[:_MOST_EXTRACTED]


def _is_name(text: str) -> bool:
    """Whether words at the beginning of a sentence may be a name: no pronoun, day or relative."""
    plain = STOP_WORDS | PRONOUNS
    return not (
        names_a_time(text) or depends_on_speaker(text) or any(word in plain for word in words(text))
    )


def _turns(text: str) -> list[tuple[str, str]]:
    """(who, what) of each message; a line that begins no message goes on with the one before."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        if match := _TURN.match(line):
            turns.append((match["name"] or match["role"], match["text"]))
        elif turns and line.strip():
            turns[-1] = (turns[-1][0], f"{turns[-1][1]} {line.strip()}")
    return turns


def _is_summary(said: str) -> bool:
    return said.startswith(SUMMARY_MARK)


def _told(who: str, said: str) -> str:
    if who == "tool" or said.startswith("["):
        return ""
    first = next((one for one in sentences(said) if states_something(one)), "")
    return f"{who}: {shortened(first, _SENTENCE)}" if first else ""


def _that_fit(lines: Sequence[str], room: int) -> list[str]:
    """The most telling lines that fit `room` characters, in their order."""
    order = sorted(range(len(lines)), key=lambda at: (-importance(lines[at]), at))
    taken: list[int] = []
    for at in order:
        if len(lines[at]) + 1 <= room:
            taken.append(at)
            room -= len(lines[at]) + 1
    return [lines[at] for at in sorted(taken)]


def _listed(goal: str) -> list[str]:
    """The parts of a list in a goal; those that are things take the verb of the first part."""
    named = goal.partition(": ")[2] or goal
    parts = [one.strip() for one in re.split(r"\s*[,;]\s*(?:and |then )?|\s+and (?:then )?", named)]
    parts = [one for one in parts if one]
    if parts and all(_is_thing(one) for one in parts[1:]):
        verb = parts[0].split()[0]
        parts = [parts[0], *(f"{verb} {one}" for one in parts[1:])]
    return [one[:1].upper() + one[1:] for one in parts]


def _is_thing(part: str) -> bool:
    first, *rest = part.lower().split()
    return not rest or first in ("a", "an", "the", "my", "our", "some") or first.isdecimal()
