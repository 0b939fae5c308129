"""A day with 40 % junk, and a model that tries to store all of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from memory.messages import prompt_lines
from tests.support.agents import EXTRACTING, WHEN
from tests.support.scripted import calls

PEOPLE = ("Ada", "Ben", "Cleo")
THINGS = (
    ("planted twelve rows of beans behind the mill", "planted", "beans"),
    ("sold the grey horse to the miller of Ardo", "sold", "horse"),
    ("repaired the western gate with oak boards", "repaired", "gate"),
    ("wants to visit the glass works in Murano", "wants", "glass"),
    ("lent the long ladder to the schoolmaster", "lent", "ladder"),
    ("found a silver coin under the old bridge", "found", "coin"),
    ("cooks lentil soup on the first of each month", "cooks", "soup"),
    ("owes the baker nine copper pieces", "owes", "copper"),
    ("teaches the twins to swim in the lake", "teaches", "twins"),
    ("keeps bees on the roof of the chapel", "keeps", "bees"),
)
REAL = [
    (f"{who}-{n}", who, f"{who} {thing} number {n}.")
    for n, (thing, _, _) in enumerate(THINGS * 2)
    for who in (PEOPLE[n % 3],)
]
"""(event id, sender, text): what people say."""
CHATTER = (
    "Happy to help with that, just ask whenever something comes up!",
    "Thanks for sharing this wonderful news, it sounds really exciting.",
    "A short overview of everything discussed so far will follow tomorrow morning.",
    "Everything mentioned has been noted carefully for later use.",
)
"""What the agent says back."""
_ITEM = re.compile(rf"^-? ?\[([^\]]+)\] ({WHEN}|\S+) (?:(.*?): )?(.*)$")


@dataclass
class Greedy:
    """Stores everything it is shown: what was said, and as much of the rest."""

    wanted: list[str] = field(default_factory=list)
    """Every text of junk that it tried to store, with repetitions."""
    real: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    """What it answered."""
    _turn: int = 0

    def __call__(self, messages: list[BaseMessage], tools: list[str]) -> AIMessage | str:
        match tools:
            case ["Scores"]:
                given = [{"id": id_, "importance": 7} for id_, _, _ in items(messages)]
                return calls(("Scores", {"scores": given}))
            case ["Dream"]:
                rules = [one for one in _sentences(str(messages[0].text))]
                shown = [{"fact": id_, "context": rules[0]} for id_, _, _ in items(messages)]
                self.wanted += [rules[0]] * len(shown)
                return calls(("Dream", {"relations": [], "contexts": shown}))
            case ["Attributes"]:
                return calls(("Attributes", {"attributes": self._attributes(messages)}))
            case ["Questions"]:
                asked = ["What did Ada do?", "How does Ben live?", "What does Cleo own?"]
                return calls(("Questions", {"questions": asked}))
            case ["Insights"]:
                return calls(("Insights", {"insights": self._insights(messages)}))
        if tools == EXTRACTING:
            return self._extract(messages)
        if "store_memory" in tools and "update_goal" not in tools:
            return self._night(messages)
        return self._tick(messages) if "update_goal" in tools else CHATTER[2]

    def _tick(self, messages: Sequence[BaseMessage]) -> AIMessage | str:
        """First look at the memory and the system, then store all that is shown."""
        last = max(n for n, one in enumerate(messages) if isinstance(one, HumanMessage))
        answered = [one for one in messages[last:] if isinstance(one, ToolMessage)]
        if not answered:
            self._turn += 1
            looks = [("recall_memories", {"query": "Ada Ben Cleo"}), ("get_system_status", {})]
            return calls(*looks)
        if len(answered) > 2:
            self.said.append(CHATTER[self._turn % len(CHATTER)])
            return self.said[-1]
        junk = self._junk(messages, self._turn)
        self.wanted += [*junk, *junk, *junk, *junk[:1]]
        return calls(
            ("store_memory", {"facts": [{"text": one} for one in junk]}),
            *(("add_journal_entry", {"content": one, "importance": 8}) for one in junk),
            *(
                ("update_entity_observation", {"entity": "the mill", "observation": one})
                for one in junk
            ),
            ("add_session_memory", {"memory_type": "fact", "content": junk[0]}),
        )

    def _night(self, messages: Sequence[BaseMessage]) -> AIMessage:
        """Each entry as a fact, and two thirds as many pieces of junk on the same sources."""
        if any(isinstance(one, ToolMessage) for one in messages):
            return calls(("noop", {}))
        said = items(messages)
        facts: list[dict[str, Any]] = [
            {"text": text, "source_ids": [id_], "speaker": who} for id_, who, text in said
        ]
        self.real += [text for _, _, text in said]
        pool = self._junk(messages, 0, most=-(-2 * len(said) // 3))
        self.wanted += pool
        junk = [
            {"text": one, "source_ids": [said[n % len(said)][0]], "speaker": said[n % len(said)][1]}
            for n, one in enumerate(pool)
        ]
        note = {"content": pool[-1], "importance": 9, "tags": ["event"]}
        self.wanted.append(pool[-1])
        return calls(("store_memory", {"facts": [*facts, *junk]}), ("add_journal_entry", note))

    def _extract(self, messages: Sequence[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return calls(("noop", {}))
        junk = self._junk(messages, 1)
        self.wanted += junk
        return calls(*(("add_journal_entry", {"content": one}) for one in junk))

    def _attributes(self, messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
        ids = re.findall(r"\[(entity_[0-9a-f]+)\]", str(messages[-1].text))
        seen = re.findall(r"\[(observation_[0-9a-f]+)\]", str(messages[-1].text))
        self.wanted += [CHATTER[0]] * len(ids)
        return [
            {"entity": one, "name": "note", "value": CHATTER[0], "evidence": seen} for one in ids
        ]

    def _insights(self, messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
        rule = next(iter(_sentences(str(messages[0].text))))
        ids = [id_ for id_, _, _ in items(messages)]
        self.wanted.append(rule)
        return [{"text": rule, "evidence": ids[:3], "importance": 9}]

    def _junk(self, messages: Sequence[BaseMessage], turn: int, most: int = 4) -> list[str]:
        """Recalled lines, rules, echoes of tools and its own replies, in turn."""
        system = str(messages[0].text)
        shown = map(prompt_lines.read_shown, system.splitlines())
        recalled = [line.text for line in shown if line is not None]
        rules = _sentences(system.split("<semantic_memories>")[0])
        echoes = [line for one in messages if isinstance(one, ToolMessage) for line in _echo(one)]
        replies = [str(o.text) for o in messages if isinstance(o, AIMessage) and str(o.text)]
        kinds = [one for one in (recalled, rules, echoes, replies or self.said) if one]
        return [
            one[(turn + n // len(kinds)) % len(one)]
            for n in range(most)
            for one in (kinds[n % len(kinds)],)
        ]


def items(messages: Sequence[BaseMessage]) -> list[tuple[str, str, str]]:
    """The items in the first human message: (id, speaker, text)."""
    text = next(str(one.text) for one in messages if isinstance(one, HumanMessage))
    found = (_ITEM.match(line) for line in text.splitlines())
    return [(one[1], one[3] or "-", one[4]) for one in found if one]


def _echo(message: ToolMessage) -> list[str]:
    text = str(message.text).split("\n", 1)[-1].rsplit("\n", 1)[0]
    return [text[at : at + 400] for at in range(0, min(len(text), 1_200), 400)]


def _sentences(text: str) -> list[str]:
    plain = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    return [one for one in re.split(r"(?<=[.:!?])\s+", plain) if len(one.split()) > 5]
