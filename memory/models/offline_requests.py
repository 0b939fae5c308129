"""What a message asks for: each sentence is a request, question, small talk or remark. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from memory.models.offline_builders import Given
from memory.models.offline_prompt import Prompt
from memory.models.offline_rules import RULES, Rule
from memory.models.offline_scene import Call, Later, Scene, Unclear
from memory.models.offline_speech import is_greeting, is_question, is_thanks
from memory.models.words import sentences

_OPENING = re.compile(
    r"(?:(?:hi|hey|hello|ok|okay|so|well|great|good|thanks|thank you|yes|yeah|sure|and|then|also"
    r"|now|oh|first|next|finally)\b(?: there| circadian)?[ ,!:-]+)+",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"(?:circadian[ ,:]+)?(?:(?:can|could|would|will) you (?:please )?|please,? "
    r"|i(?:'d| would) like (?:you )?to |i (?:want|need) you to |let'?s |let us |we should "
    r"|go ahead and )?",
    re.IGNORECASE,
)
_JOINT = re.compile(r"(?:[,;]\s*|\s+)(?:and|then|and then|and also|also)\s+|;\s*", re.IGNORECASE)
_LONGEST_REQUEST = 500
"""Characters. A longer sentence is something told, and not worth the matching."""
_STATES = {"update_goal"}
"""Tools whose forms are plain statements: behind "and" they count only beside their like."""


@dataclass
class Wishes:
    """A message, read."""

    calls: list[Call] = field(default_factory=list)
    """In the order of the message; those that wait for a result are not in it yet."""
    waiting: bool = False
    unclear: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)
    """Tools that a request needs and that are not at hand."""
    questions: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    small_talk: list[str] = field(default_factory=list)


def read_wishes(prompt: Prompt, tools: Collection[str]) -> Wishes:
    """Read the newest human message sentence by sentence."""
    wishes = Wishes()
    parts = [part for sentence in sentences(prompt.human) for part in _parts(sentence)]
    remarks = [part for part in parts if not _rules_for(part) and not is_question(part)]
    said = [one for one in remarks if not is_greeting(one) and not is_thanks(one)]
    scene = Scene(prompt, remarks=" ".join(said))
    for part in parts:
        if not _carry_out(part, scene, wishes, tools):
            _sort(part, wishes)
    return wishes


def _carry_out(part: str, scene: Scene, wishes: Wishes, tools: Collection[str]) -> bool:
    """Whether a rule takes the sentence."""
    for rule, given in _rules_for(part):
        step = rule.build(given, scene)
        if step is None:
            continue
        if isinstance(step, Unclear):
            wishes.unclear.append(step.text)
        elif rule.tool not in tools:
            wishes.impossible.append(rule.tool)
        elif isinstance(step, Later):
            wishes.waiting = True
        else:
            scene.plan(step)
            wishes.calls.append(step)
        return True
    return False


def _sort(part: str, wishes: Wishes) -> None:
    if is_greeting(part) or is_thanks(part):
        wishes.small_talk.append(part)
    elif is_question(part):
        wishes.questions.append(part)
    else:
        wishes.remarks.append(part)


def _rules_for(part: str) -> list[tuple[Rule, Given]]:
    """The rules whose form the sentence has, in the table's order."""
    bare = _bare(part)
    if len(bare) > _LONGEST_REQUEST:
        return []
    fits = [(rule, rule.match(bare)) for rule in RULES]
    return [(rule, given) for rule, given in fits if given is not None]


def _bare(part: str) -> str:
    """The sentence without opening, politeness and final mark."""
    text = _OPENING.sub("", part.strip(), count=1) if _OPENING.match(part.strip()) else part.strip()
    asking = _ASKING.match(text)
    text = text[asking.end() :] if asking else text
    return re.sub(r",? please$", "", text.rstrip(" .!?"), flags=re.IGNORECASE).strip()


def _parts(sentence: str) -> list[str]:
    """The sentence, cut at each joint behind which another request stands."""
    if len(sentence) > _LONGEST_REQUEST:
        return [sentence]
    for joint in _JOINT.finditer(sentence):
        left, right = sentence[: joint.start()], sentence[joint.end() :]
        if left.strip() and _joins(left, right):
            return [left, *_parts(right)]
    return [sentence]


def _joins(left: str, right: str) -> bool:
    behind = {rule.tool for rule, _ in _rules_for(right)}
    before = {rule.tool for rule, _ in _rules_for(left)}
    return bool(behind - _STATES) or bool(behind & before & _STATES)
