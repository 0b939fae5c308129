"""The offline model's night work: scores, facts, attributes, facts that end, summaries. Pure.

It is extractive: every word comes from the prompt. Rules draw no conclusions, so extraction and
reflection add nothing. An entity's newest observation is its attribute `noticed_last`.

Of two facts by one speaker the newer one ends the older one if

- both have the same words (`duplicates`);
- both have mostly the same words, and the newer one corrects or changes one value;
- points for shared rare words, changed values and words of change reach `_ENOUGH`.

Facts of two speakers never end each other, and no fact is said to relate to or contradict another:
links by words alone would bring memories into an answer that share no word with the question.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import lru_cache
from typing import Any

from memory.events import MOST_COMPLEX, complexity_of
from memory.guards import days_of, fold, in_digits, is_of_another, weekdays_in
from memory.messages import MARK as SUMMARY
from memory.messages import DatedLine, data_in, prompt_lines
from memory.models.offline.prompt import (
    Call,
    Prompt,
    has_particulars,
    may_tell_of_a_life,
    names,
    states_something,
    tells_of_a_life,
    told_stems,
)
from memory.models.offline.requests import statement
from memory.records import OPENING
from memory.text import WEEKDAYS, content_stems, regex, sentences, shortened, stem, words

_LONG = 60
"""Characters from which an entry counts as detailed."""
_SUMMARY_SHARE = 0.3
_SENTENCE = 220
"""Characters of one sentence in a summary."""
_FEWEST, _MOST = 3, 7
_STAGES = (
    "Clarify what '{goal}' needs",
    "Plan '{goal}'",
    "Do the first part of '{goal}'",
    "Complete '{goal}'",
    "Check the result of '{goal}'",
)


def task_assessment(prompt: Prompt) -> dict[str, Any]:
    """Counts as the heuristic assessment does, and so recommends no less than that."""
    task = data_in(prompt.human, "pending_event")
    score, counted = complexity_of(prompt.human if task is None else task)
    return {
        "complexity": score,
        "recommended_mode": None if score == MOST_COMPLEX else "react_loop",
        "recommended_iterations": 10,
        "reasoning": f"Counted: {counted}.",
    }


def importance(text: str) -> int:
    """1..10: 3, +2 for names, numbers or dates, +2 for life facts and plans, +1 if long.

    A text that states nothing is a 2, one that states something at least a 4. A life fact that
    leaves out whose it is ("Still working on it.") counts 1. A request tells what somebody needs.
    """
    said = statement(text) or asked(text)
    if not said:
        return 2
    life = 2 if tells_of_a_life(said) else int(may_tell_of_a_life(said))
    score = 3 + 2 * has_particulars(said) + life + (len(said) >= _LONG)
    return max(4, score) if statement(text) else score


def asked(text: str) -> str:
    """The text of a question or request with particulars, or of some length; else ""."""
    return text if has_particulars(text) or len(text) >= _LONG else ""


def scores(prompt: Prompt) -> dict[str, Any]:
    """An importance for every entry shown."""
    found = prompt_lines.read_entries(prompt.human)
    return {"scores": [{"id": entry.id, "importance": importance(entry.text)} for entry in found]}


def consolidation(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    """One fact per entry that states something, in one call; a noop when some are left out.

    A noop also settles the entries of rejected facts; a call that failed leaves its entries.
    """
    if prompt.done:
        noted = any(done.name == "noop" for done in prompt.done)
        results = [done.result for done in prompt.done if isinstance(done.result, Mapping)]
        if noted or "noop" not in tools or not any(result.get("rejected") for result in results):
            return []
        return [Call("noop", {"reasoning": "The facts that were rejected are not for memory."})]
    batch = prompt_lines.read_entries(prompt.human)
    facts = [_fact(entry, said) for entry in batch if (said := statement(entry.text))]
    calls = [Call("store_memory", {"facts": facts})] if facts else []
    left = len(batch) - len(facts)
    if left and "noop" in tools:
        calls.append(Call("noop", {"reasoning": f"{left} of {len(batch)} entries state nothing."}))
    return calls


def extraction(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    """A noop: every message is in the journal, and rules draw no conclusions from them."""
    if "noop" in tools and all(one.name != "noop" for one in prompt.done):
        return [Call("noop", {"reasoning": "No conclusions beyond the messages."})]
    return []


def summary(text: str) -> str:
    """The first telling sentence of each message, an earlier summary first; at most 30 %."""
    turns = _turns(text)
    room = max(1, int(len(text) * _SUMMARY_SHARE))
    earlier = [said.removeprefix(SUMMARY).strip() for _, said in turns if said.startswith(SUMMARY)]
    lines = [shortened(one, max(1, room * 2 // 3)) for one in earlier[:1]]
    told = [line for who, said in turns if (line := _told(who, said))]
    lines += _that_fit(told, room - sum(len(one) + 1 for one in lines))
    return "\n".join(lines) or shortened(turns[0][1] if turns else text, room) or text[:room]


def subtasks(prompt: Prompt) -> dict[str, Any]:
    """3-7 subtasks: the goal's own list where it has one, else the stages of any work."""
    goal = prompt_lines.read_goal_to_split(prompt.human) or shortened(prompt.human, 100)
    goal = goal.rstrip(".")
    items = _listed(goal)
    if len(items) < _FEWEST:
        items = [stage.format(goal=goal) for stage in _STAGES]
    if len(items) > _MOST:
        items = [*items[: _MOST - 1], ", ".join(items[_MOST - 1 :])]
    return {"subtasks": items}


def _fact(entry: DatedLine, said: str) -> dict[str, Any]:
    fact: dict[str, Any] = {"text": said, "source_ids": [entry.id]}
    speaker = [entry.speaker] if entry.speaker else []
    if entry.speaker:
        fact["speaker"] = entry.speaker
    if entities := list(dict.fromkeys([*speaker, *names(said)])):
        fact["entities"] = entities
    return fact


def _turns(text: str) -> list[tuple[str, str]]:
    """(who, what) of each message; a line that begins no message goes on with the one before."""
    turns: list[tuple[str, str]] = []
    for line in text.splitlines():
        if turn := prompt_lines.read_turn(line):
            turns.append(turn)
        elif turns and line.strip():
            turns[-1] = (turns[-1][0], f"{turns[-1][1]} {line.strip()}")
    return turns


def _told(who: str, said: str) -> str:
    # Neither tool results, nor ticks and summaries, which begin with a bracket.
    if who == "tool" or said.startswith("["):
        return ""
    first = next((one for one in sentences(said) if states_something(one)), "")
    return f"{who}: {shortened(first, _SENTENCE)}" if first else ""


def _that_fit(lines: Sequence[str], room: int) -> list[str]:
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


NOTHING = "Rules draw no conclusions."
_REFLECTING = frozenset({"noop", "add_journal_entry", "review_journal"})


def reflects(prompt: Prompt, tools: Collection[str]) -> bool:
    """Whether the call is for a reflection, as its tools and its first words say."""
    if set(tools) - _REFLECTING:
        return False
    return "review_journal" in tools or prompt.human.startswith(OPENING)


# Attributes of entities.

_LONGEST_VALUE = 160
"""Characters of an attribute's value."""


def attributes(prompt: Prompt) -> dict[str, Any]:
    """Of each entity in the prompt, its newest observation."""
    name, made = "", dict[str, dict[str, Any]]()
    for line in prompt.data_lines("entities"):
        if found := prompt_lines.read_entity(line):
            entity, name = found
        elif name and (seen := prompt_lines.read_dated(line)):
            own = seen.speaker == name and _FIRST.search(seen.text)
            value = shortened(f"{name} said: {seen.text}" if own else seen.text, _LONGEST_VALUE)
            given = {"entity": entity, "name": "noticed_last", "value": value}
            made[entity] = {**given, "evidence": [seen.id]}
    return {"attributes": list(made.values())}


_FIRST = regex(r"(?:i|we)(?: |(?='m |'re ))", re.IGNORECASE)

# Facts that end.

_OVER = regex(
    r"\b(?:no longer|not any ?more|any ?more|cancell?ed|called off"
    r"|(?<!n't )(?<!not )(?<!never )(?:stopped|quit))\b",
    re.IGNORECASE,
)
_CHANGED = regex(
    rf"{_OVER.pattern}|\b(?:now|moved|changed|instead|postponed|rescheduled|switched)\b",
    re.IGNORECASE,
)
_CORRECTS = regex(
    r"(?:(?:oh|ah|sorry|no|nope|wait)\b[,.:! ]+)*(?:no|nope|sorry|correction)\b[,.:!]",
    re.IGNORECASE,
)
"""How a correction begins."""
_RESET = regex(
    rf"{_CHANGED.pattern}|\b(?:new(?= (?:\w+ ){{0,2}}\d)|after all|changes?|correction|replaced"
    r"|re-?(?:booked|arranged)|(?:from|as of|starting) (?:today|tonight|tomorrow|now|this \w+)"
    r"|new (?:code|date|day|hour|lock|number|offer|plan|price|room|time)|in place of|shifts?"
    r"|same (?:dates?|day|hours?|place|time)|so (?:it's|we)|can't(?! wait)|not (?:today|this \w+)"
    r"|(?:day|week|month)s? (?:later|longer|sooner|earlier)|(?:goes?|gone) (?:up|down)"
    r"|goes to(?= \w+ units?)|becomes|that makes|put off"
    r"|(?:is|are) (?:gone|off)"
    r"|jetzt|doch|stattdessen|verschoben|ge[aä]ndert|[aä]nderung|nicht mehr|ab (?:heute|morgen)"
    r"|ahora|cambio|cambiado|en vez|ya no|desde (?:hoy|ma[nñ]ana)|maintenant|plut[oô]t"
    r"|ne\b.{1,20}\bplus|chang[ée]e?|adesso|invece|cambiato|non pi[uù]|art\wk|de[gğ]i[sş]iklik"
    r"|de[gğ]i[sş]ti|sada|umjesto|promjena|vi[sš]e ne)\b",
    re.IGNORECASE,
)
"""Words of change. Each also occurs where nothing changes."""
_DENIED = regex(
    r"\b(?:not|instead of|in place of|rather than|cannot be|can't be|isn't|nicht|kein|statt|anstatt"
    r"|en vez de|en lugar de|pas|au lieu d[eu]|non|invece d[ie]l?|nije|umjesto)"
    r"(?: (?:on|at|in|with|our|my|the|am|um|bei|auf|mit|den|el|la|le|il|u|les))* (?P<what>[\w.:]+)"
    r"|\b(?:no|cancelled) (?P<none>\w+(?: \w+){0,2})"
    r"|\b(?P<off>[\w.:]+(?: \w+)?) (?:(?:is|are|has|have) (?:off|out|died|run off|cancelled)"
    r"|f[aä]llt aus|de[gğ]il)\b",
    re.IGNORECASE,
)
"""Words that name a value that no longer holds, or a thing that is over."""
_PROGRESS = regex(
    r"(?P<what>.{3,80}?) (?:is|are) (?P<state>(?:\d+ ?% )?(?:done|finished|completed?|ready))\b",
    re.IGNORECASE,
)
"""How far something has come: a later state ends the one before."""
_KINDS = {
    "day": regex(r"(?<![\w.,:])(\d{1,2})(?=(?:st|nd|rd|th)\b|\.(?= ?[a-z])|\. ?\d)"),
    "time": regex(r"(?<![\w.,])(\d{1,2}[:.h]\d\d)\b"),
    "number": regex(r"(?<![\w.,:])(\d+(?:[.,]\d{3})*)(?![\w:]|[.,]\d)"),
}
_ENOUGH = 4
"""Points with which a later fact ends an earlier one."""
_MOST_TELLING = 3
"""Points for rare words in common, at most."""
_MOST_SIGNS = 2
"""Points for words of change, at most."""
_FEW = 4
"""A word is rare if at most this many of the facts shown have it."""
_ALL = 10
"""Points for mostly the same words."""
_AHEAD, _MOST_DAYS = timedelta(days=60), 5
"""How far ahead days are counted; a fact that may name more days names none for certain."""
_LONG_NUMBER = 4
"""A number with this many digits names one thing: a code, an account."""
_CHANGE_STEMS = frozenset(
    content_stems(
        "longer anymore cancelled canceled called stopped quit changed instead postponed "
        "rescheduled switched"
    )
)
_ONESELF = regex(r"\b(?:i|my|mine|we|our|ours)\b", re.IGNORECASE)
_WHOSE = regex(r"\b(?:[Mm]y|[Oo]ur) (?:[a-z]+ ){1,3}(?=[A-Z])")
"""Whose somebody is: "my sister Ines" is about Ines."""
_NAME = regex(r"\b[A-Z][\w'\u2019-]+")
_EVERYDAY = frozenset(
    content_stems(
        "ask bring buy call come count find get give go have help hope keep know leave like live "
        "look love make mean meet move need plan put say see sell send stand start take tell think "
        "try use want work good great new old first last same half thing people everybody somebody "
        "nobody mr mrs frau herr euro pound dollar i'm i've i'd it's that's can't one two three "
        "four five six seven eight nine ten eleven twelve second minute hour time till morning "
        "evening night tonight today tomorrow yesterday day way week month year january february "
        "march april may june july august september october november december " + " ".join(WEEKDAYS)
    )
)
"""Words that facts about different things share."""


@dataclass(frozen=True)
class _Facts:
    new: tuple[DatedLine, ...]
    all: Mapping[str, DatedLine]
    names: frozenset[str]
    """Stems that always have a capital letter."""
    having: Mapping[str, int]
    """Number of facts by stem."""


def dream(prompt: Prompt) -> dict[str, Any]:
    """The pairs in which one fact ends the other. A fact ends only those that fit it best."""
    shown = _facts(prompt)
    pairs = dict[frozenset[str], tuple[DatedLine, DatedLine]]()
    for fact in shown.new:
        for other in shown.all.values():
            pairs.setdefault(frozenset((fact.id, other.id)), (fact, other))
    claims = [claim for one, other in pairs.values() if (claim := _ended(one, other, shown))]
    gone, best = set[str](), dict[tuple[str, str], int]()
    relations: list[dict[str, str]] = []
    for points, ends in sorted(claims, key=lambda one: -one[0]):
        least = best.setdefault((ends["fact"], ends["relation"]), points)
        if points >= least and gone.isdisjoint((ends["fact"], ends["other"])):
            gone.add(ends["other"])
            relations.append(ends)
    return {"relations": relations}


def _facts(prompt: Prompt) -> _Facts:
    new, old = (
        [prompt_lines.unmarked(fact) for fact in map(prompt_lines.read_dated, lines) if fact]
        for lines in (prompt.data_lines("new_facts"), prompt.data_lines("facts"))
    )
    every = {fact.id: fact for fact in (*old, *new)}
    capital, small = set[str](), set[str]()
    for fact in every.values():
        capital |= {stem(word) for name in _NAME.findall(fact.text) for word in words(name)}
        small |= set(content_stems(_NAME.sub(" ", fact.text)))
    having = Counter(each for fact in every.values() for each in _stems(fact))
    return _Facts(tuple(new), every, frozenset(capital - small), having)


@lru_cache(maxsize=4_096)
def _stems(fact: DatedLine) -> frozenset[str]:
    said = told_stems(_WHOSE.sub("", fact.text))
    return frozenset(said) - _CHANGE_STEMS - frozenset(content_stems(fact.speaker or ""))


def _ended(fact: DatedLine, other: DatedLine, shown: _Facts) -> tuple[int, dict[str, str]] | None:
    """(points, the pair) if one of the two facts ends the other; None otherwise."""
    if fact.id == other.id or fact.speaker != other.speaker:
        return None
    if words(fact.text) == words(other.text):
        return 2 * _ALL, _pair(other, fact, "duplicates", "the same speaker in the same words")
    # Of two facts of one time the one with words of change is the later one.
    earlier, later = sorted((other, fact), key=lambda each: (each.at, bool(_sign(each))))
    points, sign = _changed(later, earlier, shown)
    if points < _ENOUGH:
        return None
    pair = _pair(later, earlier, "supersedes", f"the later one says '{sign}'")
    return points, {**pair, "remains": _besides(earlier, later)}


_LEANS = regex(
    r"(?:and |but |so |then )?(?:it|he|she|they|this|that|these|those|there|then|er|sie|es|das)\b",
    re.IGNORECASE,
)
"""How a sentence begins that means nothing without the one before."""


def _besides(earlier: DatedLine, later: DatedLine) -> str:
    """The sentences of the earlier fact that the later one does not touch; "" if it touches all."""
    touched = {*told_stems(later.text)} - _CHANGE_STEMS
    told = [part.strip() for part in sentences(earlier.text) if part.strip()]
    left = [part for part in told if touched.isdisjoint(told_stems(part))]
    if len(left) == len(told):
        return ""
    return " ".join(part for part in left if not _LEANS.match(part))


def _changed(later: DatedLine, earlier: DatedLine, shown: _Facts) -> tuple[int, str]:
    """(points for a change, the words that announce it)."""
    states = [_PROGRESS.match(one.text) for one in (later, earlier)]
    if (new := states[0]) and (old := states[1]) and new["what"].lower() == old["what"].lower():
        return (_ALL, new["state"]) if later.at > earlier.at else (0, "")
    shared = (_stems(later) & _stems(earlier)) - _EVERYDAY
    telling = {each for each in shared if shown.having[each] <= _FEW and not each[0].isdigit()}
    leads = {_lead(one, shown) for one in (later, earlier)} - {""}
    if (len(leads) > 1 and not telling & shown.names) or is_of_another(later.text, earlier.text):
        return 0, ""
    if (sign := _sign(later)) and _about_the_same(later, earlier, shown):
        return _ALL, sign
    return _reset(later, earlier, telling) if later.at > earlier.at else (0, "")


def _lead(fact: DatedLine, shown: _Facts) -> str:
    """The name at the beginning of a fact, which is its subject; "" if there is none."""
    match = _NAME.match(fact.text)
    stems = content_stems(match.group()) if match else []
    return stems[0] if stems and stems[0] in shown.names and stems[0] not in _EVERYDAY else ""


def _reset(later: DatedLine, earlier: DatedLine, telling: set[str]) -> tuple[int, str]:
    """(points for a changed value, the words that announce it); (0, "") if none is announced.

    Points: each rare word in common; another value of the same kind; the earlier fact's code in the
    later one, or its day beside another; each word of change; what the later fact denies.
    """
    new, old = _values(later.text), _values(earlier.text)
    differ = any(new[kind] - old[kind] for kind in new.keys() & old.keys())
    values = {value for some in old.values() for value in some}
    digits = in_digits(later.text, "en")
    told = [next(filter(None, match.groups())) for match in _DENIED.finditer(digits)]
    found = [value for one in told for some in _values(one.strip(".:")).values() for value in some]
    over = [
        each
        for each in [*found, *content_stems(" ".join(told))]
        if each in (_stems(earlier) | values)
    ]
    signs = list(dict.fromkeys(match.group().lower() for match in _RESET.finditer(later.text)))
    codes = {each for each in new.get("number", set()) & values if len(each) >= _LONG_NUMBER}
    renamed = 2 if codes else _renamed(later, earlier)
    if not (old and (telling or codes) and (signs or over) and (differ or renamed or over)):
        return 0, ""
    points = min(_MOST_TELLING, len(telling)) + differ + min(_MOST_SIGNS, len(signs)) + renamed
    if any(each not in _EVERYDAY for each in over):
        points += 2
    elif differ:
        points += bool(over)
    return points, f"not {over[0]}" if over else signs[0]


def _renamed(later: DatedLine, earlier: DatedLine) -> int:
    """2 if the later fact names a day or time of the earlier one beside another; 1 if it names
    another day on the earlier one's day; else 0.
    """
    new, old = _values(later.text), _values(earlier.text)
    days, were = _days(later), _days(earlier)
    for kind in (new.keys() & old.keys()) - {"number"}:
        if new[kind] & old[kind] and new[kind] - old[kind]:
            return 2
    if days & were and days - were:
        return 2
    today = date.fromisoformat(later.at[:10])
    return int(today in were and bool(days - were - {today}))


@lru_cache(maxsize=4_096)
def _values(text: str) -> dict[str, set[str]]:
    """The values in a text by kind: weekdays, days of a month, times, numbers."""
    found: dict[str, set[str]] = {}
    digits = in_digits(text.lower(), "en")
    for kind, pattern in _KINDS.items():
        for match in pattern.finditer(digits):
            found.setdefault(kind, set()).add(match[1].replace(",", ""))
    days = {
        WEEKDAYS[one.weekday]
        for one in weekdays_in(fold(text), strict=True)
        if one.weekday is not None
    }
    return {**found, "weekday": days} if days else found


@lru_cache(maxsize=4_096)
def _days(fact: DatedLine) -> frozenset[date]:
    said, text = date.fromisoformat(fact.at[:10]), fold(fact.text)
    ahead = sorted(day for day in days_of(text, [said]).days if said <= day <= said + _AHEAD)
    days = {*{day.day: day for day in reversed(ahead)}.values()}
    weekdays = {one.weekday for one in weekdays_in(text, strict=True)}
    if len(days) >= _MOST_DAYS and weekdays:
        days = {day for day in days if day.weekday() in weekdays}
    return frozenset(days if len(days) <= _MOST_DAYS else ())


def _sign(fact: DatedLine) -> str:
    match = _CHANGED.search(fact.text) or _CORRECTS.match(fact.text)
    return match.group().lower().rstrip(",.:!") if match else ""


def _about_the_same(later: DatedLine, earlier: DatedLine, shown: _Facts) -> bool:
    """Whether two facts have mostly the same words, and differ in a value or in being over."""
    mine, its = _stems(later), _stems(earlier)
    shared = mine & its
    texts = [_WHOSE.sub("", fact.text) for fact in (later, earlier)]
    of_oneself = {bool(_ONESELF.search(text)) for text in texts}
    if not shared - shown.names or len(of_oneself) > 1:
        return False
    if _OVER.search(later.text) and mine <= its:
        return True
    if 2 * len(shared) < max(len(mine), len(its)) or not (mine - its and its - mine):
        return False
    corrected = bool(_CORRECTS.match(later.text))
    return len(shared) > 1 or all(
        rest & shown.names or (corrected and any(map(str.isdecimal, rest)))
        for rest in (mine - its, its - mine)
    )


def _pair(fact: DatedLine, other: DatedLine, relation: str, reason: str) -> dict[str, str]:
    return {"fact": fact.id, "other": other.id, "relation": relation, "reason": reason}
