"""Scores, facts, summaries and subtasks. Pure.

They are extractive: every word comes from the prompt. Rules draw no conclusions, so extraction and
reflection add nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from memory.events import MOST_COMPLEX, complexity_of
from memory.messages import MARK as SUMMARY
from memory.messages import DatedLine, data_in, prompt_lines
from memory.models.offline.prompt import Call, Prompt
from memory.models.offline.requests import statement
from memory.models.offline.sentences import (
    has_particulars,
    may_tell_of_a_life,
    names,
    states_something,
    tells_of_a_life,
)
from memory.records import OPENING
from memory.text import sentences, shortened

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

    A second answer would repeat the first. So a noop settles the entries of rejected facts; a call
    that failed leaves its entries pending.
    """
    if prompt.done:
        return _after_storing(prompt, tools)
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


def _after_storing(prompt: Prompt, tools: Sequence[str]) -> list[Call]:
    noted = any(done.name == "noop" for done in prompt.done)
    results = [done.result for done in prompt.done if isinstance(done.result, Mapping)]
    if noted or "noop" not in tools or not any(result.get("rejected") for result in results):
        return []
    return [Call("noop", {"reasoning": "The facts that were rejected are not for memory."})]


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
