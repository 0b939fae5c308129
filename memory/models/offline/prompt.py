"""A prompt as the offline model reads it, cut at its newest human message; sentences. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from memory.messages import MARK as SUMMARY
from memory.messages import (
    GoalLine,
    ProjectLine,
    as_said,
    data_in,
    event_text,
    front_of,
    prompt_lines,
    unescaped,
)
from memory.records import LOCAL_USER
from memory.text import (
    MONTHS,
    STOP_WORDS,
    WEEKDAYS,
    content_stems,
    is_small_talk,
    regex,
    sentences,
    stem,
    words,
)

_NOW = regex(r"^Now: (?P<now>.+)$", re.MULTILINE)


@dataclass(frozen=True)
class Call:
    """A tool call to make."""

    tool: str
    args: dict[str, Any]


@dataclass(frozen=True)
class Done:
    """A tool call since the newest human message, and its result once it is there."""

    name: str
    args: dict[str, Any]
    result: Mapping[str, Any] | str | None


@dataclass(frozen=True)
class Quotable:
    """A text that an answer can quote."""

    label: str
    """Where it stands, with date and speaker: "memory, 2026-05-10, Alice"."""
    text: str


@dataclass(frozen=True)
class Prompt:
    """A prompt cut at its newest human message."""

    system: str
    """The system message, and what stands in front of the newest event."""
    human: str
    sender: str
    """Whoever sent it; "the user" when it has no name or the owner's."""
    history: tuple[BaseMessage, ...]
    done: tuple[Done, ...]
    now: str | None = None
    """The time as the prompt's clock shows it: weekday, date, time and zone."""

    def system_lines(self, tag: str) -> list[str]:
        """The lines of a block beside the event."""
        return (data_in(self.system, tag) or "").splitlines()

    def data_lines(self, tag: str) -> list[str]:
        """The lines of a block of the newest human message; all lines if it has no such block."""
        data = data_in(self.human, tag)
        return (unescaped(self.human) if data is None else data).splitlines()

    @property
    def goals(self) -> list[GoalLine]:
        """The goals, each before its subtasks."""
        found = map(prompt_lines.read_goal, self.system_lines("goals"))
        return [goal for goal in found if goal]

    @property
    def projects(self) -> list[ProjectLine]:
        """The active project, if any, first and with its context; then the others."""
        return prompt_lines.read_projects(self.system_lines("projects"))

    @property
    def active_project(self) -> ProjectLine | None:
        """The project whose context is in the prompt."""
        return next((project for project in self.projects if project.status == "active"), None)


def read_prompt(messages: Sequence[BaseMessage]) -> Prompt:
    """Cut the messages at the newest human one. Without one, the event in hand is empty."""
    # A prompt component of the user's is nothing that somebody said.
    places = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    at = places[-1] if places else len(messages)
    newest = messages[at] if places else HumanMessage("")
    system = [str(message.text) for message in messages if isinstance(message, SystemMessage)]
    front = str(newest.text)[: front_of(newest)]
    name = newest.name if newest.name not in (None, "", "local") else None
    return Prompt(
        system="\n".join([*(text for text in system if not text.startswith(SUMMARY)), front]),
        human=event_text(newest).strip(),
        sender=name or "the user",
        history=tuple(messages[:at]),
        done=tuple(_done(messages[at + 1 :])),
        now=clocks[-1].strip() if (clocks := _NOW.findall("\n".join([*system, front]))) else None,
    )


_LISTED = regex(r"^- ([a-zA-Z0-9_-]{1,64})\(", re.MULTILINE)


def known_tools(bound: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of the bound tools, and of those that the description of `use_tool` lists."""
    functions = [one["function"] for one in bound]
    listed = [one["description"] for one in functions if one["name"] == "use_tool"]
    return [one["name"] for one in functions] + _LISTED.findall("\n".join(listed))


def sources(prompt: Prompt) -> list[Quotable]:
    """All that can be quoted: memories, session memory, projects, goals, events, history."""
    found = _shown("memory", prompt.system_lines("semantic_memories"))
    found += _shown("memory", prompt.system_lines("pages"))
    remembered = prompt_lines.read_session_memory(prompt.system_lines("session_memory"))
    found += [Quotable("session memory", text) for text in remembered]
    active = prompt.active_project
    for project in prompt.projects:
        label = f"project {project.key} ({project.status})"
        label = f"the active project {project.key}" if project == active else label
        found += [Quotable(label, text) for text in (project.summary, *project.context) if text]
    for goal in prompt.goals:
        state = f"({goal.status}, {goal.progress}%)"
        found.append(Quotable("goal", f"{goal.description} {state}"))
    found += _shown("what was said nearby", prompt.system_lines("context_buffer"))
    return found + _from_history(prompt)


def _done(messages: Sequence[BaseMessage]) -> list[Done]:
    results = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    return [
        Done(call["name"], call["args"], _result(results.get(call["id"] or "")))
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]


def _result(message: ToolMessage | None) -> Mapping[str, Any] | str | None:
    if message is None:
        return None
    text = event_text(message)
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, dict) else text


def _shown(kind: str, lines: Sequence[str]) -> list[Quotable]:
    found = [line for line in map(prompt_lines.read_shown, lines) if line]
    return [
        Quotable(", ".join(filter(None, (kind, line.at, line.speaker))), line.text)
        for line in found
    ]


def _from_history(prompt: Prompt) -> list[Quotable]:
    found: list[Quotable] = []
    for message in prompt.history:
        text = str(message.text)
        if text.startswith(SUMMARY):
            lines = as_said(text.removeprefix(SUMMARY).strip()).splitlines()
            found += [Quotable("the summary of this conversation", line) for line in lines if line]
    # The newest first: what corrects something comes before it. Ticks begin with a bracket.
    for message in reversed(prompt.history):
        text = event_text(message).strip() if isinstance(message, HumanMessage) else ""
        if text and not text.startswith("["):
            who = "you" if message.name == LOCAL_USER else message.name
            by = f", {who}" if who else ""
            found.append(Quotable(f"this conversation{by}", text))
    return found


_DAYS = [name.lower() for name in (*MONTHS, *WEEKDAYS) if name != "May"]
"""Without "may", which is mostly a verb."""

_ASKING = regex(
    r"(?:and |but |so |well,? |hey,? |ok,? )?(?:who|whom|whose|what|when|where|which|why|how|do"
    r"|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should|shall|may|might)"
    r"(?:'s|'re|n't)?\b(?!,)",
    re.IGNORECASE,
)
_NAMES = ("circadian",)
_STATED = r"(?:\W+\w+){0,2} (?:is|are|was|were|has|had|will|starts?|opens?|closes?|moved)\b"
"""Behind a word that may be a verb or a noun: then it is a noun."""

_MOVED = regex(r"\bmov(?:e|es|ed|ing) (?:back |over |out )?to\b", re.IGNORECASE)

_COMMAND = regex(
    r"(?:(?:hey|hi|circadian|and)\b[ ,:]+)*(?:please,? (?!note\b|know\b|remember|keep in mind)\w+"
    r"|(?:can|could|would|will) you (?!remember|recall|know)"
    r"|i (?:want|need) you to (?!know|remember|note|keep in mind)"
    r"|remove .*\b(?:goal|project|memory|note|fact)|(?:forget|delete|erase|remind|cancel|undo)\b"
    r"|set (?:an? |the )?(?:alarm|timer|reminder)\b|(?:go to sleep|pause|rename|repeat|wake me)\b"
    r"|read (?:me|the file|this)\b|mark .*\bdone\b|add .* to (?:my|our|the) (?:\w+ )?list\b"
    r"|(?:send|e-?mail|phone|text|message|book|order|buy|pay|write|draft|compose|translate"
    r"|summari[sz]e|calculate|compute|search|google|find out|find me|explain|describe|play|open"
    rf"|close|schedule|list|show|tell)\b(?! from\b| of\b|{_STATED}))",
    re.IGNORECASE,
)
_VERBS = """
    activate adjust analy[sz]e answer archive arrange ask assign block build call change check
    choose clean clear close connect convert copy correct count create debug decrease deploy design
    dial dim disable disconnect do download draw drop edit empty enable enter export fetch fill find
    fix format generate get give hide import improve increase inform install invite keep launch lock
    lower make measure merge move mute notify organi[sz]e pick plan prepare press print publish
    raise recommend reduce refresh register reject repair replace reply reserve reset resize restart
    restore return ring run save say share sign silence sing skip solve sort spell split start stop
    submit subscribe suggest switch track transfer turn uninstall unlock unmute unsubscribe update
    upgrade upload use verify wait warn water
"""
_OBJECT = (
    r"(?:the|an?|my|our|your|his|her|their|this|that|these|those|it|them|him|me|us|all|every|each"
    r"|both|some|any|another|everything|old|new|up|off|on|back|down|over|to|for|with|about|at"
    r"|again|whether|if|who|what|where|when|two|three|four|five|ten|\d+|\w+ing|track"
    r"|(?-i:[A-Z]\w+))\b"
)
_ORDER = regex(
    rf"(?:(?:and|then|now|just|go and) )*(?!(?:plan|start) (?:to|on)\b|\w+ a note\b)"
    rf"(?:(?:{'|'.join(_VERBS.split())})(?:(?= {_OBJECT})(?!{_STATED})|\W*$)"
    r"|(?:let|put) \w+ (?:know|on|in)\b|look up\b)(?!.*\b(?:yesterday|ago|last)\b)",
    re.IGNORECASE,
)
"""A verb in its base form and an object behind it: who does it is left out, as in an order."""

_GERMAN = regex(
    r"bitte (?!merk)|(?:kannst|könntest|würdest|willst) du\b|(?:(?:änder|benenn|berechn|bestell"
    r"|bring|buch|druck|erinner|erklär|erstell|find(?=e)|frag|füg|hol|hör|kauf|lösch|mach|öffn"
    r"|plan(?=e)|reservier|ruf|sag|schalt|schick|schließ|schreib|send|setz|speicher|spiel|stell"
    r"|stopp|start(?=e)|such|trag|übersetz|verschieb|wart|weck|wiederhol|zeig)e?"
    r"|vergiss|lies|gib|nimm|hilf|sieh)(?:\W*$|,| (?=(?:mi[rc]h?|uns|ihm|ihr|ihn|sie|es|da[smn]"
    r"|de[rnm]|die|diese\w*|eine?|zwei|drei|\d+|meine?|unsere?|alle|bitte|damit|auf|an|bis|nach"
    r"|nicht|noch)\b|(?-i:[A-ZÄÖÜ])))",
    re.IGNORECASE,
)
"""A German order, as the first word and its object show it."""

_SMALL_TALK = """
    wow oh ah yeah yes yep yup no nope ok okay sure right exactly absolutely definitely totally
    great good nice cool awesome amazing wonderful fantastic lovely sweet fun perfect brilliant
    incredible excellent terrific super fine well glad happy sorry sad hear heard sound look know
    think guess agree see hope wish luck congrats congratulation haha lol hey hi hello bye thanks
    thank welcome problem worry course indeed true bet thing lot way got get keep going go take care
    soon later enjoy proud impressed impress appreciate love excited excite wait mean pleasure
    question kind idea point fair enough believe matter mind always forward back
"""
_CHATTER = frozenset(stem(word) for word in _SMALL_TALK.split())

_ABOUT_ONESELF = regex(
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
_LIFE = regex(rf"\b(?:{'|'.join(_LIFE_WORDS.split())})\w*", re.IGNORECASE)
_TIME = regex(
    rf"\d|\b(?:{'|'.join(_DAYS)})s?\b"
    r"|\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week(?:end)?|month|year|morning|evening"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)s?\b",
    re.IGNORECASE,
)
_NAME = regex(r"(?<![.!?:;\"(\u201c] )(?<!^)\b[A-Z][\w'\u2019-]*(?: [A-Z][\w'\u2019-]*)*")
_NO_NAME = {"i", "i'm", "i've", "i'd", "i'll", "ok", "okay", "tv", "pm", "am", "image"} | {
    form for day in WEEKDAYS for form in (day.lower(), f"{day.lower()}s")
}


def is_question(sentence: str) -> bool:
    """Ends with a question mark, or begins as a question and ends with no mark at all."""
    if sentence.rstrip("\"') ").endswith("?"):
        return True
    return not sentence.endswith((".", "!")) and bool(_ASKING.match(sentence))


def is_command(sentence: str) -> bool:
    """Tells the assistant to do something: an order, and nothing about the world.

    It says "please" or "you" to the assistant, begins with a verb that is rarely anything else, or
    with one that has an object behind it. "Don't forget" and "remember" tell something.
    """
    told = sentence.strip()
    return any(form.match(told) for form in (_COMMAND, _ORDER, _GERMAN))


def is_chatter(sentence: str) -> bool:
    """Small talk, or words of small talk alone: "Of course."."""
    return is_small_talk(sentence, _NAMES, praise=True) or not _telling(sentence)


def states_something(sentence: str) -> bool:
    """Neither question, order, greeting nor thanks, and more in it than small talk."""
    if is_question(sentence) or is_command(sentence) or is_chatter(sentence):
        return False
    kept = _telling(sentence)
    about_oneself = bool(_ABOUT_ONESELF.search(sentence))
    return len(kept) >= (1 if about_oneself else 2) or any(word.isdecimal() for word in kept)


def _telling(sentence: str) -> list[str]:
    kept = [word for word in words(sentence) if word not in STOP_WORDS]
    return [word for word in kept if stem(word) not in _CHATTER]


def names(text: str) -> list[str]:
    """Capitalised words within sentences, in order, each once; a first word proves nothing."""
    found = [match.group().rstrip("'\u2019") for match in _NAME.finditer(text)]
    bare = [re.sub(r"['\u2019]s$", "", name) for name in found]
    return list(
        dict.fromkeys(name for name in bare if name.lower() not in _NO_NAME and len(name) > 1)
    )


def told_stems(text: str) -> list[str]:
    """The stems of a text without stop words; whoever moves to a place lives there."""
    return content_stems(_MOVED.sub("live in", text))


def has_particulars(text: str) -> bool:
    """Names, numbers or times."""
    return bool(names(text) or _TIME.search(text))


def tells_of_a_life(text: str) -> bool:
    """A preference, plan, possession, relation or deed of the one who speaks."""
    return bool(_ABOUT_ONESELF.search(text)) and bool(_LIFE.search(text))


def may_tell_of_a_life(text: str) -> bool:
    """The same in a sentence that states something, whoever it is about."""
    return any(states_something(part) and _LIFE.search(part) for part in sentences(text))
