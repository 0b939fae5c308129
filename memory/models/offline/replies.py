"""Answers of the offline model to questions: the lines that share most words, quoted. Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from memory.models.offline.prompt import Done, GoalLine, Prompt, Source, sources
from memory.text import STOP_WORDS, content_stems, sentences, shortened, stem, words

_MONTHS = "january february march april may june july august september october november december"


_DAYS = "monday tuesday wednesday thursday friday saturday sunday"


_ASKING = re.compile(
    r"(?:and |but |so |well,? |hey,? |ok,? )?(?:who|whom|whose|what|when|where|which|why|how|do"
    r"|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should|shall|may|might)"
    r"(?:'s|'re|n't)?\b(?!,)",
    re.IGNORECASE,
)


_GREETING = re.compile(
    r"(?:hi|hey|hello|hiya|howdy|greetings|good (?:morning|afternoon|evening|night|day)"
    r"|welcome back|good to (?:see|hear from) you|nice to (?:see|meet) you|long time no see"
    r"|bye|goodbye|see you|talk (?:to you )?(?:soon|later)|take care"
    r"|have a (?:nice|good|great|lovely))\b.{0,40}",
    re.IGNORECASE,
)


_THANKS = re.compile(
    r"(?:many |a lot of )?(?:thanks|thank you|thx|cheers|much obliged"
    r"|i appreciate (?:it|that|you))\b.{0,60}",
    re.IGNORECASE,
)


_SMALL_TALK = """
    wow oh ah yeah yes yep yup no nope ok okay sure right exactly absolutely definitely totally
    great good nice cool awesome amazing wonderful fantastic lovely sweet fun perfect brilliant
    incredible excellent terrific super fine well glad happy sorry sad hear heard sound look know
    think guess agree see hope wish luck congrats congratulation haha lol hey hi hello bye thanks
    thank welcome problem worry course indeed true bet thing lot way got get keep going go take care
    soon later enjoy proud impressed impress appreciate love excited excite wait mean pleasure
    question kind idea point fair enough believe matter always forward back
"""


_CHATTER = frozenset(stem(word) for word in _SMALL_TALK.split())


_ABOUT_ONESELF = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll|my|our|mine|ours)\b", re.IGNORECASE
)


_LIFE_WORDS = """
    prefer like love hate enjoy want need plan hope dream intend going will start began move work
    job live have had got bought sold born marri engaged divorc school stud learn goal allergic
    favourite favorite birthday anniversary play paint read run cook travel visit went join sign
    made make lost won met meet decided trying tried always never usually used sister brother
    mother father mom mum dad wife husband partner son daughter kid child friend family grandm
    grandp dog cat pet house home car team
"""


_LIFE = re.compile(rf"\b(?:{'|'.join(_LIFE_WORDS.split())})\w*", re.IGNORECASE)


_TIME = re.compile(
    rf"\d|\b(?:{'|'.join((*_MONTHS.replace(' may ', ' ').split(), *_DAYS.split()))})s?\b"
    r"|\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week(?:end)?|month|year|morning|evening"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)s?\b",
    re.IGNORECASE,
)


_NAME = re.compile(r"(?<![.!?:;\"(\u201c] )(?<!^)\b[A-Z][\w'\u2019-]*(?: [A-Z][\w'\u2019-]*)*")


_NO_NAME = {"i", "i'm", "i've", "i'd", "i'll", "ok", "okay", "tv", "pm", "am", "image"}


def is_question(sentence: str) -> bool:
    """Ends with a question mark, or begins as a question and ends with no mark at all."""
    if sentence.rstrip("\"') ").endswith("?"):
        return True
    return not sentence.endswith((".", "!")) and bool(_ASKING.match(sentence))


def is_greeting(sentence: str) -> bool:
    """A hello or a goodbye, and nothing else."""
    return bool(_GREETING.fullmatch(sentence.strip()))


def is_thanks(sentence: str) -> bool:
    """Thanks, and nothing else."""
    return bool(_THANKS.fullmatch(sentence.strip()))


def states_something(sentence: str) -> bool:
    """Neither question nor greeting nor thanks, and more in it than small talk."""
    if is_question(sentence) or is_greeting(sentence) or is_thanks(sentence):
        return False
    telling = [one for one in words(sentence) if one not in STOP_WORDS]
    kept = [one for one in telling if stem(one) not in _CHATTER]
    about_oneself = bool(_ABOUT_ONESELF.search(sentence))
    return len(kept) >= (1 if about_oneself else 2) or any(one.isdecimal() for one in telling)


def statement(text: str) -> str:
    """The text without its greetings and thanks; "" when no sentence states anything.

    Questions beside a statement stay: they often say what the statement is about.
    """
    parts = sentences(text)
    if not any(states_something(part) for part in parts):
        return ""
    return " ".join(part for part in parts if not is_greeting(part) and not is_thanks(part))


def names(text: str) -> list[str]:
    """Capitalised words within sentences, in order, each once; a first word proves nothing."""
    found = [match.group().rstrip("'\u2019") for match in _NAME.finditer(text)]
    bare = [re.sub(r"['\u2019]s$", "", one) for one in found]
    return list(dict.fromkeys(one for one in bare if one.lower() not in _NO_NAME and len(one) > 1))


def has_particulars(text: str) -> bool:
    """Names, numbers or times."""
    return bool(names(text)) or names_a_time(text)


def names_a_time(text: str) -> bool:
    """A number, a day, a month or the like."""
    return bool(_TIME.search(text))


def tells_of_a_life(text: str) -> bool:
    """A preference, plan, possession, relation or deed of the one who speaks."""
    return bool(_ABOUT_ONESELF.search(text)) and bool(_LIFE.search(text))


def may_tell_of_a_life(text: str) -> bool:
    """The same in a sentence that states something, whoever it is about, or that does not say."""
    return any(states_something(one) and _LIFE.search(one) for one in sentences(text))


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


# What the offline model says of tool results: one sentence a call, from its fields. Pure.


_offline_replies_LONGEST = 200


_MOST_MEMORIES = 3


Result = Mapping[str, Any]


Say = Callable[[Result, Done], str]


def told(done: Done) -> str:
    """The result of one call in a sentence; "" for a noop that went well."""
    result = done.result
    if result is None:
        return f"{done.name} was not carried out."
    if isinstance(result, str):
        return f"{done.name}: {shortened(result, _offline_replies_LONGEST)}"
    if result.get("success") is False or "error" in result:
        return _failed(done, result)
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
    return (
        f"Next is goal {leaf.id} [{leaf.priority}]: {shortened(leaf.description, 120)} "
        f"({leaf.progress}% done)."
    )


def _failed(done: Done, result: Result) -> str:
    error = shortened(str(result.get("error", "it failed")), _offline_replies_LONGEST).rstrip(".")
    suggestion = shortened(str(result.get("suggestion") or ""), _offline_replies_LONGEST)
    return f"{done.name} did not work: {error}." + (f" {suggestion}" if suggestion else "")


def _create_project(result: Result, done: Done) -> str:
    key = result.get("project_key") or done.args.get("project_key")
    return f"Started project {key}: {shortened(str(done.args.get('summary', '')), _offline_replies_LONGEST)}."


def _list_projects(result: Result, done: Done) -> str:
    found = result.get("projects")
    if isinstance(found, Mapping):
        found = [{"key": key, **value} for key, value in found.items()]
    rows = [one for one in found or [] if isinstance(one, Mapping)]
    if not rows:
        return "There is no project yet."
    lines = [
        f"- {one.get('key') or one.get('project_key')} ({one.get('status')}): "
        f"{shortened(str(one.get('summary', '')), _offline_replies_LONGEST)}"
        for one in rows
    ]
    return "\n".join(["Projects:", *lines])


def _swap_project(result: Result, done: Done) -> str:
    new, old = result.get("new_project"), result.get("old_project")
    context = shortened(str(result.get("new_project_context") or ""), _offline_replies_LONGEST)
    moved = f"Switched from {old} to {new}" if old and old != new else f"{new} is active"
    summary = shortened(str(result.get("new_project_summary", "")), _offline_replies_LONGEST)
    return f"{moved}: {summary}." + (f" Where it stands: {context}" if context else "")


def _update_project(result: Result, done: Done) -> str:
    if done.args.get("status"):
        return f"The project is {done.args['status']}."
    return "Saved the note on the project."


def _add_goal(result: Result, done: Done) -> str:
    what = shortened(str(done.args.get("description", "")), _offline_replies_LONGEST)
    return f"Added goal {result.get('goal_id')}: {what}."


def _decompose_goal(result: Result, done: Done) -> str:
    rows = [one for one in result.get("subtasks") or [] if isinstance(one, Mapping)]
    lines = [f"- {one.get('id')}: {one.get('description')}" for one in rows]
    goal = result.get("goal_id") or done.args.get("goal_id")
    return "\n".join([f"Split goal {goal} into {len(rows)} subtasks:", *lines])


def _update_goal(result: Result, done: Done) -> str:
    status, progress = done.args.get("status"), done.args.get("progress")
    change = {"completed": "is completed", "abandoned": "is abandoned", "active": "is open again"}
    said = change.get(str(status)) or f"is at {progress}%"
    others = ", ".join(str(one) for one in result.get("also_changed") or [])
    return f"Goal {done.args.get('goal_id')} {said}." + (f" With it: {others}." if others else "")


def _add_session_memory(result: Result, done: Done) -> str:
    added = result.get("added")
    return f"I will remember: {added}." if added else str(result.get("message", "Known already."))


def _observed(result: Result, done: Done) -> str:
    about, known = result.get("entity"), result.get("total_observations")
    return f"Noted about {about}: {done.args.get('observation')} ({known} in all)."


def _status(result: Result, done: Done) -> str:
    usage = result.get("token_usage") or {}
    advice = result.get("token_advisory") or {}
    metrics = result.get("session_metrics") or {}
    return (
        f"Context {usage.get('usage_percentage')}% used ({advice.get('level')}); tool calls in "
        f"this session: {metrics.get('total_tool_calls')}, failed: {metrics.get('failed_calls')}."
    )


def _recalled(result: Result, done: Done) -> str:
    lists = [value for value in result.values() if isinstance(value, list)]
    rows = [one for one in (lists[0] if lists else []) if isinstance(one, Mapping)]
    texts = [(one, str(one.get("text") or one.get("content") or "")) for one in rows]
    quotes = [
        quote(Source(_memory_label(one), text)) for one, text in texts[:_MOST_MEMORIES] if text
    ]
    return "\n".join(quotes) or NOT_KNOWN


def _memory_label(row: Result) -> str:
    at = str(row.get("at") or row.get("timestamp") or "")[:10]
    speaker = row.get("speaker")
    return ", ".join(part for part in (f"memory [{row.get('id')}]", at, speaker) if part)


def _noop(result: Result, done: Done) -> str:
    return ""


def _any(result: Result, done: Done) -> str:
    fields = {name: value for name, value in result.items() if name != "success"}
    message = fields.get("message") or ", ".join(f"{name}: {one}" for name, one in fields.items())
    return f"{done.name}: {shortened(str(message) or 'done', _offline_replies_LONGEST)}"


_SAY: dict[str, Say] = {
    "create_project": _create_project,
    "list_projects": _list_projects,
    "swap_project": _swap_project,
    "update_project": _update_project,
    "add_goal": _add_goal,
    "decompose_goal": _decompose_goal,
    "update_goal": _update_goal,
    "add_session_memory": _add_session_memory,
    "update_entity_observation": _observed,
    "get_system_status": _status,
    "recall_memories": _recalled,
    "noop": _noop,
}
