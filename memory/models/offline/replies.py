"""Replies: questions answered by quoting, and the results of tool calls in words. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory.messages import GoalLine
from memory.models.offline.prompt import Done, Prompt, Quotable, sources
from memory.models.offline.sentences import is_question
from memory.text import content_stems, sentences, shortened, stem

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
    # A mere question knows nothing.
    known = [one for one in sources(prompt) if not all(map(is_question, sentences(one.text)))]
    found = best(question, known, asker=prompt.sender)
    if found:
        return "\n".join(map(quote, found))
    return NOT_OFFLINE if _ASKS_TO_ACT.match(question.strip()) else NOT_KNOWN


def best(question: str, known: Sequence[Quotable], *, asker: str = "") -> list[Quotable]:
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


def quote(source: Quotable) -> str:
    """A line of an answer: where it stands, then its words."""
    return f"From {source.label}: {shortened(source.text, _LONGEST)}"


def _distinct(found: Sequence[Quotable]) -> list[Quotable]:
    """Drop a source whose words contain, or are contained in, those of a better one."""
    kept: list[tuple[str, Quotable]] = []
    for source in found:
        text = " ".join(source.text.lower().split())
        if not any(text in other or other in text for other, _ in kept):
            kept.append((text, source))
    return [source for _, source in kept]


# Questions about the assistant itself: its goals, its clock, what it can do.

_ASKS_TO_ACT = re.compile(
    r"(?:(?:hey|hi|circadian|please)[ ,]+)*(?:can|could|would|will) you (?!remember|recall|know)",
    re.IGNORECASE,
)
_GOALS = r"(?:my |our |your |the |all )*(?:open |active |current )?goals"
_CLOCK = re.compile(
    r".*\b(?:what(?:'s| is) (?:the |today's )?(?:date|time|day)\b|what (?:day|date|time) is it"
    r"|which (?:week)?day is (?:it|today)|what weekday|what day is today).*",
    re.IGNORECASE,
)
_ABILITIES = re.compile(
    r"(?:what can (?:you|i|we) (?:do|ask|say)|what are you able to do|how (?:can|could) you help"
    r"|what do you understand|help)\b.{0,40}",
    re.IGNORECASE,
)
_SHOW_GOALS = re.compile(
    rf"(?:(?:can you |could you |please )*(?:list|show|show me|tell me|what are|which are|name)"
    rf"(?: all)?(?: of)?|what) {_GOALS}\b.{{0,30}}",
    re.IGNORECASE,
)
_COUNT_GOALS = re.compile(rf"how many {_GOALS}\b.*", re.IGNORECASE)


def about_itself(text: str, prompt: Prompt) -> str | None:
    """The answer to a question about the clock, the goals or the abilities; None for others."""
    bare = text.strip(" .!?")
    if _CLOCK.fullmatch(bare):
        return f"It is {prompt.now}." if prompt.now else NOT_KNOWN
    if _COUNT_GOALS.fullmatch(bare) or _SHOW_GOALS.fullmatch(bare):
        return _goals_told(prompt.goals, count=bool(_COUNT_GOALS.fullmatch(bare)))
    return ABILITIES if _ABILITIES.fullmatch(bare) else None


ABILITIES = (
    "I follow fixed rules, without a language model. I keep what you tell me, and quote it when "
    "you ask. I also understand requests such as: Start a project NAME: SUMMARY. Switch to the "
    "NAME project. Add a goal: WHAT. Break the NAME goal down into steps. The NAME goal is 40% "
    "done. List my goals. Remember that ... What do you remember about NAME? Write a file NAME: "
    "TEXT."
)


def _goals_told(goals: Sequence[GoalLine], *, count: bool) -> str:
    roots = [goal for goal in goals if goal.depth == 0 and goal.status == "active"]
    if not roots:
        return "No goal is open."
    lines = [
        f"{'  ' * goal.depth}- {shortened(goal.description, 120)} ({goal.status}, {goal.progress}%)"
        for goal in (roots if count else goals)
    ]
    told = f"{len(roots)} goal{'s are' if len(roots) > 1 else ' is'} open:"
    return "\n".join([told, *lines])


# The results of tool calls, a sentence a call.

Result = Mapping[str, Any]

_TEMPLATES = {
    "create_project": "Started project {project_key}: {summary}.",
    "add_goal": "Added the goal '{description}'.",
    "update_entity_observation": (
        "Noted about {entity}: {observation} ({total_observations} in all)."
    ),
    "settle_dispute": "Settled: {holds}",
    "noop": "",
}
"""Sentence by tool; it is filled with the call's arguments and the result's fields."""

_GOAL_ID = re.compile(r"\bgoal_\d+_\d+\b")


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
        suggestion = _short(result.get("suggestion") or "")
        error = _short(result.get("error", "it failed")).rstrip(".")
        return f"{done.name} did not work: {error}. {suggestion}".rstrip()
    if done.name in _TEMPLATES:
        fields = {name: _short(value) for name, value in {**done.args, **result}.items()}
        return _TEMPLATES[done.name].format_map(defaultdict(lambda: "?", fields))
    return _SAY.get(done.name, _any)(result, done)


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


def _list_projects(result: Result, done: Done) -> str:
    lines = [
        f"- {row['project_key']} ({row['status']}): {_short(row['summary'])}"
        for row in result["projects"]
    ]
    return "\n".join(["Projects:", *lines]) if lines else "There is no project yet."


def _swap_project(result: Result, done: Done) -> str:
    new, old = result.get("new_project"), result.get("old_project")
    context = _short(result.get("new_project_context") or "")
    moved = f"Switched from {old} to {new}" if old and old != new else f"{new} is active"
    where = f" Where it stands: {context}" if context else ""
    return f"{moved}: {_short(result.get('new_project_summary', ''))}.{where}"


def _update_project(result: Result, done: Done) -> str:
    status = done.args.get("status")
    return f"The project is {status}." if status else "Saved the note on the project."


def _decompose_goal(result: Result, done: Done) -> str:
    lines = [f"- {row['description']}" for row in result["subtasks"]]
    return "\n".join([f"Split the goal {result['goal_id']} into {len(lines)} subtasks:", *lines])


def _update_goal(result: Result, done: Done) -> str:
    status, progress = done.args.get("status"), done.args.get("progress")
    change = {"completed": "is completed", "abandoned": "is abandoned", "active": "is open again"}
    said = change.get(str(status)) or f"is at {progress}%"
    others = ", ".join(str(each) for each in result.get("also_changed") or [])
    return f"The goal {done.args.get('goal_id')} {said}." + (
        f" With it: {others}." if others else ""
    )


def _add_session_memory(result: Result, done: Done) -> str:
    added = result.get("added")
    return f"I will remember: {added}." if added else str(result.get("message", "Known already."))


def _recalled(result: Result, done: Done) -> str:
    found = [
        Quotable(", ".join(filter(None, ("memory", row["at"][:10], row["speaker"]))), row["text"])
        for row in result["memories"][:_MOST_RECALLED]
    ]
    return "\n".join(map(quote, found)) or NOT_KNOWN


def _any(result: Result, done: Done) -> str:
    fields = {name: value for name, value in result.items() if name != "success"}
    message = fields.get("message") or ", ".join(f"{name}: {one}" for name, one in fields.items())
    return f"{done.name}: {_short(message or 'done')}"


_SAY: dict[str, Callable[[Result, Done], str]] = {
    "list_projects": _list_projects,
    "swap_project": _swap_project,
    "update_project": _update_project,
    "decompose_goal": _decompose_goal,
    "update_goal": _update_goal,
    "add_session_memory": _add_session_memory,
    "recall_memories": _recalled,
}
