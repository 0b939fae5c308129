"""A chat model that answers a night's prompts from a life's annotations, as a good model would.

It is told nothing but the annotations of what a prompt shows: it finds the events, facts and people
in the lines of the prompt, and answers with the facts, relations, attributes and insights that the
annotations name for them. It never answers questions: recall does. `noise` is the share of its
answers that are wrong, missing or misquoted, drawn from `seed`.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from textwrap import wrap
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolCall, ToolMessage
from pydantic import PrivateAttr

from benchmarks.models import ToolModel
from memory.messages import prompt_lines, unescaped
from memory.text import content_stems, one_line, stem

MATTERS, PASSES = 7, 2
"""Importance (1..10) of an entry that a fact cites, and of any other."""

EVERYDAY = Path(__file__).with_name("everyday_words.txt")
"""What a chat model knows of everyday English, whatever the life."""
MOST, PHRASE = 15, 80
"""Other words of a fact, and characters of a phrase of them, at most."""

_LINE = re.compile(r"^\s*(?:- )?[\[(#]*(?P<id>[^\])\s:]+)[\])]*[.:]? (?P<rest>.*)$")
_NAMES = re.compile(r"cite the entry that names (.+?),")
_VAIN = re.compile(
    r'^(?:The fact says "?(?P<said>.+?)"?, (?:and|which)|(?P<name>.+?) does not occur)'
)
_CLAIM = "say in the fact whose claim it is"
_NUMBER = re.compile(r"\d+")
_BEFORE = r"(?:\b(?:at|on|in|of|from|for|and|near|with|by|about) (?:the )?)?"
"""What goes with a word that is left out."""

Shown = Mapping[str, str]
"""The id in the annotations -> the id that the prompt shows."""


@dataclass(frozen=True)
class Life:
    """The annotations of a life, by id."""

    given: Mapping[str, Any]

    @cached_property
    def events(self) -> dict[str, str]:
        """Event id -> text on one line."""
        return {one["id"]: one_line(one["text"]) for one in self.given["events"]}

    @cached_property
    def facts(self) -> dict[str, dict[str, Any]]:
        """Fact id -> fact."""
        return {one["id"]: one for one in self.given["facts"]}

    @cached_property
    def texts(self) -> dict[str, str]:
        """Fact id -> text on one line."""
        return {id_: one_line(one["text"]) for id_, one in self.facts.items()}


@dataclass
class Noise:
    """Draws which answers are wrong: of each thing asked the first, the second and so on.

    No draw depends on what else was asked, so that a change of the product moves few of them.
    """

    share: float
    seed: int
    asked: Counter[tuple[str, ...]] = field(default_factory=Counter)
    random: random.Random = field(default_factory=random.Random)

    def spoils(self, *about: str) -> bool:
        """Whether the next answer about this is a bad one."""
        self.asked[about] += 1
        self.random = random.Random(f"{self.seed} {about} {self.asked[about]}")
        return self.random.random() < self.share

    def text(self, text: str) -> str:
        """The text with a wrong number; one without a number loses its second half."""
        numbers = list(_NUMBER.finditer(text))
        if not numbers:
            return text[: len(text) // 2]
        at = self.random.choice(numbers)
        return f"{text[: at.start()]}{int(at.group()) + 1}{text[at.end() :]}"

    def ids(self, ids: Sequence[str], others: Iterable[str]) -> list[str]:
        """Ids with one replaced by another that was shown."""
        known = sorted(set(others) - set(ids))
        return [self.random.choice(known), *ids[1:]] if known else list(ids)


class ReferenceModel(ToolModel):
    """Answers the prompts of a night from annotations."""

    life: Any
    """The life as its file gives it."""
    noise: float = 0.0
    seed: int = 0

    _told: Life = PrivateAttr()
    _noise: Noise = PrivateAttr()
    _given: dict[str, str] = PrivateAttr(default_factory=dict)
    """Text as given -> the fact's id: later prompts show a fact as it was given."""

    def model_post_init(self, context: Any) -> None:
        """Index the annotations."""
        super().model_post_init(context)
        self._told = Life(self.life)
        self._noise = Noise(self.noise, self.seed)

    @property
    def _llm_type(self) -> str:
        return "reference"

    def _answer(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        names = {tool["function"]["name"] for tool in tools}
        forms = {
            "Scores": self._scores,
            "Dream": self._dream,
            "Attributes": self._attributes,
            "Questions": self._questions,
            "Insights": self._insights,
        }
        for name, answered in forms.items():
            if name in names:
                return _calling(name, answered(_prompt(messages)))
        human = _prompt(messages)
        if "store_memory" in names and prompt_lines.ENTRIES in human.splitlines():
            answers = sum(isinstance(one, AIMessage) for one in messages)
            facts = self._mended(human, messages) if answers == 1 else []
            if answers and not facts:
                return _calling("noop", {"reasoning": "The rest is not worth keeping."})
            facts = facts or self._consolidated(human)
            return _calling("store_memory", {"facts": facts}) if facts else _calling("noop", {})
        return AIMessage("I see.")

    def _scores(self, prompt: str) -> dict[str, Any]:
        cited = {id_ for fact in self._told.facts.values() for id_ in fact["sources"]}
        shown = _shown(prompt, self._told.events)
        return {
            "scores": [
                {"id": id_, "importance": MATTERS if event in cited else PASSES}
                for event, id_ in shown.items()
                if not self._noise.spoils("score", event)
            ]
        }

    def _mended(self, prompt: str, messages: Sequence[BaseMessage]) -> list[dict[str, Any]]:
        """The facts that were rejected, once more, with the entry that the reason asks for; and
        those that it left out, of the entries that are named.
        """
        told = [unescaped(str(one.text)) for one in messages if isinstance(one, ToolMessage)]
        results = [json.loads(one[one.index("{") : one.rindex("}") + 1]) for one in told]
        errors = {one["text"]: one["error"] for each in results for one in each.get("rejected", ())}
        left = {id_ for each in results for id_ in (*each["not_cited"], *each.get("unsaid", ()))}
        shown = _shown(prompt, self._told.events)
        again = [event for event, id_ in shown.items() if id_ in left]
        made = self._consolidated(prompt, again, {*self._given.values()})
        for text, error in errors.items():
            fact = self._told.facts.get(self._given.get(text, ""))
            if fact is None:
                continue
            named = _NAMES.search(error)
            beside = [
                id_
                for event, id_ in shown.items()
                if named and named[1] in self._told.events[event]
            ]
            given = self._as_given(fact, shown)
            given["source_ids"] = list(dict.fromkeys([*given["source_ids"], *beside]))
            if not beside and (vain := _VAIN.match(error)):
                given["text"] = _without(given["text"], vain["said"] or vain["name"])
            if _CLAIM in error and fact["speaker"]:
                given["text"] = f"{fact['speaker']} was told: {given['text']}"
            made += self._spoiled(given, shown.values(), fact["id"])
        return made

    def _consolidated(
        self, prompt: str, wanted: Collection[str] | None = None, given: Collection[str] = ()
    ) -> list[dict[str, Any]]:
        """The facts whose newest source is shown, with the sources that are shown.

        `wanted`: of which events alone; `given`: ids of facts to leave out.
        """
        shown = _shown(prompt, self._told.events)
        order = {event: place for place, event in enumerate(self._told.events)}
        made: list[dict[str, Any]] = []
        for fact in self._told.facts.values():
            newest = max(fact["sources"], key=order.__getitem__)
            if newest not in (shown if wanted is None else wanted) or fact["id"] in given:
                continue
            made += self._spoiled(self._as_given(fact, shown), shown.values(), fact["id"])
        return made

    def _as_given(self, fact: Mapping[str, Any], shown: Shown) -> dict[str, Any]:
        """The arguments of a fact, with the sources that are shown."""
        return {
            "text": fact["text"],
            "source_ids": [shown[event] for event in fact["sources"] if event in shown],
            "speaker": fact["speaker"],
            "entities": fact["entities"],
            "other_words": self._other_words(fact),
        }

    def _other_words(self, fact: Mapping[str, Any]) -> list[str]:
        """Nicknames and roles of those that it is about, what its attribute is called, what it
        helps to answer, and everyday words for its own.
        """
        about = {fact["speaker"], *fact["entities"]}
        found = [
            name
            for one in self._told.given.get("aliases", ())
            if one["entity"] in about or one["entity"] in fact["text"]
            for name in one["names"]
        ]
        found += [
            f"{one['entity']} {one['name']}"
            for one in self._told.given["attributes"]
            if fact["id"] in one["facts"]
        ]
        found += [one for one in fact["entities"] if one not in fact["text"]]
        found += [
            one["question"] for one in self._told.given["insights"] if fact["id"] in one["evidence"]
        ]
        own = dict.fromkeys(content_stems(fact["text"]))
        found += [word for each in own for word in _everyday().get(each, ())]
        return wrap(" ".join(", ".join(dict.fromkeys(found)).split()[:MOST]), PHRASE)

    def _spoiled(
        self, given: dict[str, Any], ids: Iterable[str], fact: str
    ) -> list[dict[str, Any]]:
        """The fact as it is; or left out, with a wrong number, or with a wrong source."""
        if self._noise.spoils("fact", fact):
            kind = self._noise.random.choice(("missing", "wrong", "misquoted"))
            if kind == "missing":
                return []
            if kind == "wrong":
                given = {**given, "text": self._noise.text(given["text"])}
            else:
                given = {**given, "source_ids": self._noise.ids(given["source_ids"], ids)}
        self._given[given["text"]] = fact
        return [given]

    def _dream(self, prompt: str) -> dict[str, Any]:
        shown = self._facts_shown(prompt)
        pairs: list[dict[str, str]] = []
        dependent = [
            {"first": one["fact"], "second": one["depends_on"], "kind": "depends_on"}
            | {"reason": one["why"]}
            for one in self._told.given["dependents"]
        ]
        for stated in (*self._told.given["relations"], *dependent):
            if stated["first"] not in shown or stated["second"] not in shown:
                continue
            ids, relation = [shown[stated["first"]], shown[stated["second"]]], stated["kind"]
            if self._noise.spoils(relation, stated["first"], stated["second"]):
                if self._noise.random.random() < 0.5:
                    continue
                ids = self._noise.ids(ids, shown.values())
            pairs.append(
                {"fact": ids[0], "other": ids[1], "relation": relation, "reason": stated["reason"]}
            )
        reasons: dict[str, list[str]] = {}
        for pair in pairs:
            reasons.setdefault(pair["fact"], []).append(pair["reason"])
        contexts = [
            {"fact": id_, "context": f"{'; '.join(some)}.", "tags": []}
            for id_, some in reasons.items()
        ]
        return {"relations": pairs, "contexts": contexts}

    def _attributes(self, prompt: str) -> dict[str, Any]:
        """What the facts shown under an entity come to."""
        shown = self._facts_shown(prompt)
        lines = (line.strip() for line in unescaped(prompt).splitlines())
        entities = filter(None, map(prompt_lines.read_entity, lines))
        ids = {name.casefold(): id_ for id_, name in entities}
        return {
            "attributes": [
                {
                    "entity": ids[one["entity"].casefold()],
                    "name": one["name"],
                    "value": self._noise.text(one["value"])
                    if self._noise.spoils("attribute", one["entity"], one["name"])
                    else one["value"],
                    "evidence": [shown[fact] for fact in one["facts"] if fact in shown],
                }
                for one in self._told.given["attributes"]
                if one["entity"].casefold() in ids and any(fact in shown for fact in one["facts"])
            ]
        }

    def _facts_shown(self, prompt: str) -> Shown:
        """The facts shown, as they are annotated or as they were given."""
        again = _shown(prompt, {text: one_line(text) for text in self._given})
        return {
            **{self._given[text]: id_ for text, id_ in again.items()},
            **_shown(prompt, self._told.texts),
        }

    def _questions(self, prompt: str) -> dict[str, Any]:
        """The questions of insights, those with most of their sources shown first."""
        shown = _shown(prompt, self._told.events)

        def seen(insight: Mapping[str, Any]) -> int:
            facts = (self._told.facts[id_] for id_ in insight["evidence"])
            return sum(any(event in shown for event in fact["sources"]) for fact in facts)

        found = sorted(self._told.given["insights"], key=seen, reverse=True)
        return {"questions": [one["question"] for one in found if seen(one)][:3]}

    def _insights(self, prompt: str) -> dict[str, Any]:
        facts = self._facts_shown(prompt)
        events = _shown(prompt, self._told.events)
        made: list[dict[str, Any]] = []
        for insight in self._told.given["insights"]:
            evidence = list[str]()
            for id_ in insight["evidence"]:
                sources = [events[e] for e in self._told.facts[id_]["sources"] if e in events]
                evidence += [facts[id_]] if id_ in facts else sources[:1]
            if insight["question"] not in prompt or len(evidence) < 2:
                continue
            if not self._noise.spoils("insight", insight["question"]):
                made.append({"text": insight["text"], "evidence": evidence, "importance": 8})
        return {"insights": made}


@cache
def _everyday() -> dict[str, list[str]]:
    """Words that people use for another, by its stem."""
    lines = [line for line in EVERYDAY.read_text().splitlines() if line[0] != "#"]
    found: dict[str, list[str]] = {}
    for word, *others in map(str.split, " ".join(lines).rstrip(";").split(";")):
        found.setdefault(stem(word), []).extend(others)
    return found


def _prompt(messages: Sequence[BaseMessage]) -> str:
    """The first human message, which shows the material."""
    return next((str(one.text) for one in messages if isinstance(one, HumanMessage)), "")


def _shown(prompt: str, texts: Mapping[str, str]) -> dict[str, str]:
    """Annotated id -> shown id, of the texts that stand at the end of a line of the prompt."""
    found: dict[str, str] = {}
    lines = [match for line in unescaped(prompt).splitlines() if (match := _LINE.match(line))]
    for id_, text in texts.items():
        for match in lines:
            rest = match["rest"]
            if text in rest and (rest.endswith(text) or rest.startswith(text)):
                found.setdefault(id_, match["id"])
    return found


def _without(text: str, what: str) -> str:
    """The text without a word, a number or a time, and what leads to it."""
    word = r"\(?(?<!\w)\w*" + re.escape(what.removesuffix("'s"))
    left = re.sub(rf"{word}'s ", "", text, flags=re.IGNORECASE)
    left = re.sub(rf"{_BEFORE}{word}\w*\)?", "", left, flags=re.IGNORECASE)
    return re.sub(r" +(?=[,.; ])", "", left).strip()


def _calling(name: str, args: dict[str, Any]) -> AIMessage:
    call = ToolCall(name=name, args=args, id=f"call_{name}", type="tool_call")
    return AIMessage("", tool_calls=[call])
