"""Replies: questions answered by quoting, and the results of tool calls in words. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from memory.messages import GoalLine
from memory.models.offline.prompt import (
    Done,
    Prompt,
    Quotable,
    is_command,
    is_question,
    sources,
    told_stems,
)
from memory.text import content_stems, regex, sentences, shortened, stem

NOT_KNOWN = "I do not know that yet."
NOT_OFFLINE = (
    "The offline model cannot do that, as it follows fixed rules: for a language model, set "
    "CIRCADIAN_MODEL."
)

_LEAST_SHARE = 0.4
"""Least share of the weight of the question's words that a line must have."""

_NEAR_BEST = 0.75
"""A further line is quoted when its share is at least this part of the best one's."""

_MOST_QUOTES = 5
_MOST_RECALLED = 3
_LONGEST = 300
_LONGEST_FIELD = 200
"""Characters."""

_ASKING_WORDS = {
    stem(word) for word in ("know", "remember", "recall", "say", "think", "work", "current")
}


def answer(question: str, prompt: Prompt) -> str:
    """Answer from the clock or the goals, else quote the best lines, else say a plain no."""
    if (own := about_itself(question, prompt)) is not None:
        return own
    known = [one for one in sources(prompt) if not all(map(_knows_nothing, sentences(one.text)))]
    found = best(question, known, asker=prompt.sender)
    if found:
        return "\n".join(map(quote, found))
    return NOT_OFFLINE if is_command(question) else NOT_KNOWN


def _knows_nothing(sentence: str) -> bool:
    return is_question(sentence) or bool(_FORGET.match(sentence))


def best(question: str, known: Sequence[Quotable], *, asker: str = "") -> list[Quotable]:
    """At most five sources, best first, by the share of the question's words found in each.

    Rare words weigh more. Words of the label (speaker, "goal", "project") count where the text
    itself shares a word too, or where the question has no other words.
    """
    asked = set(content_stems(question)) - _ASKING_WORDS
    if not asked or not known:
        return []
    texts = [set(told_stems(one.text)) for one in known]
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


def quote(source: Quotable) -> str:
    """A line of an answer: where it stands, then its words."""
    return f"From {source.label}: {shortened(source.text, _LONGEST)}"


def _distinct(found: Sequence[Quotable]) -> list[Quotable]:
    kept: list[tuple[str, Quotable]] = []
    for source in found:
        text = " ".join(source.text.lower().split())
        if not any(text in other or other in text for other, _ in kept):
            kept.append((text, source))
    return [source for _, source in kept]


# Questions about the assistant itself: its goals, its clock, what it can do.

_CLOCK = regex(r".*\bwhat(?:'s| is)? (?:the |today's )?(?:date|time|day)\b.*", re.IGNORECASE)
_FORGET = regex(r"(?:please,? )?(?:forget|delete|erase)\b", re.IGNORECASE)
_ABILITIES = regex(r"(?:what can (?:you|i|we) (?:do|ask|say)|help)\b.{0,40}", re.IGNORECASE)
_GOALS = regex(
    r"(?:list|show|show me|what|what are|which|how many)(?: of)?"
    r" (?:my |our |your |the |all |open )*goals\b.*",
    re.IGNORECASE,
)


def about_itself(text: str, prompt: Prompt) -> str | None:
    """The answer to a question about the clock, the goals or the abilities; None for others."""
    bare = text.strip(" .!?")
    if _CLOCK.fullmatch(bare):
        return f"It is {prompt.now}." if prompt.now else NOT_KNOWN
    if _GOALS.fullmatch(bare):
        return _goals_told(prompt.goals)
    return ABILITIES if _ABILITIES.fullmatch(bare) else None


ABILITIES = (
    "I follow fixed rules, without a language model. I keep what you tell me, and quote it when "
    "you ask. I also understand requests such as: Start a project NAME: SUMMARY. Switch to the "
    "NAME project. Add a goal: WHAT. Break the NAME goal down into steps. The NAME goal is 40% "
    "done. List my goals. Remember that ... What do you remember about NAME? Write a file NAME: "
    "TEXT."
)


def _goals_told(goals: Sequence[GoalLine]) -> str:
    lines = [
        f"{'  ' * goal.depth}- {shortened(goal.description, 120)} ({goal.status}, {goal.progress}%)"
        for goal in goals
    ]
    return "\n".join(["Goals:", *lines]) if lines else "No goal is open."


# The results of tool calls, a sentence a call.

_TEMPLATES = {
    "create_project": "Started project {project_key}: {summary}.",
    "swap_project": "{new_project} is active: {new_project_summary}.",
    "update_project": "The project {project_key} is {status}; the note is saved.",
    "add_goal": "Added the goal '{description}'.",
    "update_goal": "The goal {goal_id} is {status}, {progress}% done.",
    "update_entity_observation": "Noted about {entity}: {observation}.",
    "add_session_memory": "I will remember: {content}.",
    "noop": "",
}
"""Sentence by tool; it is filled with the call's arguments and the result's fields."""

_GOAL_ID = regex(r"\bgoal_\d+_\d+\b")


def without_ids(text: str, prompt: Prompt) -> str:
    """The text with the words of a goal in place of its id, where the prompt has them."""
    named = {goal.id: goal.description for goal in prompt.goals}
    for done in prompt.done:
        made = done.result if isinstance(done.result, Mapping) else {}
        rows = [*made.get("subtasks", []), {**done.args, "id": made.get("goal_id")}]
        named |= {row["id"]: row["description"] for row in rows if "description" in row}
    known = {id_: f"'{shortened(words, 60)}'" for id_, words in named.items()}
    return _GOAL_ID.sub(lambda match: known.get(match[0], match[0]), text)


def told(done: Done) -> str:
    """The result of one call in a sentence; "" for a noop that went well."""
    result = done.result
    if result is None:
        return f"{done.name} was not carried out."
    if isinstance(result, str):
        return f"{done.name}: {_short(result)}"
    if result.get("success") is False or "error" in result:
        # The suggestion beside the error is for a model, not for a person.
        error = _short(result.get("error", "it failed")).rstrip(".")
        refused = " refused it" in error
        return f"{'I did not do it' if refused else f'{done.name} did not work'}: {error}."
    if done.name in _TEMPLATES:
        fields = {name: _short(value) for name, value in {**done.args, **result}.items()}
        return _TEMPLATES[done.name].format_map(defaultdict(lambda: "?", fields))
    if done.name == "list_projects":
        rows = [f"{one['project_key']} ({one['status']})" for one in result["projects"]]
        return f"Projects: {', '.join(rows)}." if rows else "There is no project yet."
    if done.name == "decompose_goal":
        lines = [f"- {row['description']}" for row in result["subtasks"]]
        return "\n".join([f"Split the goal {result['goal_id']}:", *lines])
    if done.name == "recall_memories":
        found = [
            Quotable(", ".join(filter(None, ("memory", row["at"], row["speaker"]))), row["text"])
            for row in result["memories"][:_MOST_RECALLED]
        ]
        return "\n".join(map(quote, found)) or NOT_KNOWN
    fields = {name: value for name, value in result.items() if name != "success"}
    return f"{done.name}: {_short(', '.join(f'{name}: {one}' for name, one in fields.items()))}"


def next_step(goals: list[GoalLine]) -> str:
    """The next open goal in a sentence: the first open leaf below the most important root."""
    active = [goal for goal in goals if goal.status == "active"]
    if not active:
        return "No goal is open."
    order = {"high": 0, "medium": 1, "low": 2}
    roots = [goal for goal in active if goal.depth == 0] or active
    root = min(roots, key=lambda goal: order.get(goal.priority, 1))
    leaf = root
    for other in goals[goals.index(root) + 1 :]:
        if other.depth <= leaf.depth:
            break
        if other.status == "active":
            leaf = other
    return f"Next is the goal {leaf.id} ({leaf.priority} priority, {leaf.progress}% done)."


def _short(value: object) -> str:
    return shortened(str(value), _LONGEST_FIELD)
