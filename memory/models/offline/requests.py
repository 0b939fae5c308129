"""What a message asks for: sentences that become tool calls. Pure.

To teach the offline model a phrase, add a rule: its example is a test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memory.guards import speaks_of_oneself
from memory.messages import GoalLine, ProjectLine
from memory.models.offline.prompt import (
    Call,
    Prompt,
    is_chatter,
    is_command,
    is_question,
    states_something,
)
from memory.models.offline.replies import NOT_OFFLINE, about_itself
from memory.text import content_stems, regex, sentences, shortened

Given = Mapping[str, str]
"""The named parts of a sentence, outer white space cut; "" where a part is not there."""


class Unclear(NamedTuple):
    """A request that cannot be carried out as it is put, and the reply to it."""

    reply: str


class Later(NamedTuple):
    """A request that waits for the result of a call made before it in the same message."""


Step = Call | Unclear | Later
Build = Callable[[Given, "Scene"], Step | None]
"""None: the sentence fits the form, but means something else."""

_PRIORITY = regex(
    r"[,;(]*\s*\b(?:with |at |of )?(?P<level>high|medium|low)[- ]priority\b\)?", re.IGNORECASE
)
_POINTERS = {"it", "that", "this", "that goal", "this goal", "the goal"}
_OWN_GOAL = regex(r"(?:my|our) ", re.IGNORECASE)
"""A goal that a sentence states rather than asks for."""
_LEAST_SHARE = 0.5
"""Least share of a phrase's words that the goal's description must have."""


@dataclass
class Scene:
    """The knowledge with which the requests of one message are read, in order."""

    prompt: Prompt
    remarks: str
    """The message's sentences that ask for nothing."""
    made: list[GoalLine] = field(default_factory=list)
    """The goals that the message asks for, newest first; without an id until they exist."""

    def plan(self, call: Call) -> None:
        """Remember a request for the requests that follow."""
        if call.tool == "add_goal":
            results = [one.result for one in self.prompt.done if one.args == call.args]
            ids = [one.get("goal_id", "") for one in results if isinstance(one, Mapping)]
            self.made.insert(0, GoalLine("".join(ids[:1]), str(call.args["description"])))


def create_project(given: Given, scene: Scene) -> Step:
    """A key from the name, or else from the first words of the summary that carry meaning."""
    summary = given["purpose"] or given["summary"] or given["name"]
    telling = [word for word in re.findall(r"[^\W_]+", summary) if content_stems(word)]
    args = {"project_key": key_of(given["name"] or " ".join(telling[:3])), "summary": summary}
    return Call("create_project", {**args, "initial_context": scene.remarks or summary})


def swap_project(given: Given, scene: Scene) -> Step | None:
    """Switch to a known project, or to a name that the sentence calls a project."""
    found = find_project(given["name"], scene.prompt.projects)
    if found is None and not given["word"]:
        return None
    args = {"project_key": found.key if found else key_of(given["name"])}
    update = {"current_project_update": given["update"]} if given["update"] else {}
    return Call("swap_project", {**args, **update})


def update_project(given: Given, scene: Scene) -> Step:
    """Add a line to the active project's context, or complete the project."""
    found, active = find_project(given["name"], scene.prompt.projects), scene.prompt.active_project
    if found is not None and active is not None and found != active:
        return Unclear(f"{found.key} is not the active project: switch to it first.")
    done = {"status": "completed"} if given.get("done") else {"context_update": given["update"]}
    return Call("update_project", done)


def add_goal(given: Given, scene: Scene) -> Step:
    """Description and priority, which may stand within the description."""
    what, level = given["what"], given["priority"]
    if found := _PRIORITY.search(what):
        level = found["level"]
        what = (what[: found.start()] + what[found.end() :]).strip(" ,;")
    priority = {"priority": level.lower()} if level else {}
    return Call("add_goal", {"description": what[:1].upper() + what[1:], **priority})


def decompose_goal(given: Given, scene: Scene) -> Step | None:
    """Split the goal that is meant; ask which one if "it" has no goal before it."""
    found = _for_goal("decompose_goal", given, scene)
    pointer = given["goal"].lower() in _POINTERS
    return Unclear("Which goal do you mean?") if found is None and pointer else found


def set_progress(given: Given, scene: Scene) -> Step | None:
    """Set the progress in percent; 100 completes the goal."""
    progress = int(given["n"])
    if progress > 100:
        return Unclear(f"Progress is between 0 and 100 %, not {progress} %.")
    change = {"status": "completed"} if progress == 100 else {"progress": progress}
    return _for_goal("update_goal", given, scene, **change)


def complete_goal(given: Given, scene: Scene) -> Step | None:
    """Complete the goal that is meant."""
    return _for_goal("update_goal", given, scene, status="completed")


def remember(given: Given, scene: Scene) -> Step:
    """Session memory has no speaker: what somebody says of themselves is quoted with their name."""
    what = given["what"]
    content = what[:1].upper() + what[1:]
    if speaks_of_oneself(what):
        content = f'{scene.prompt.sender}: "{what}"'
    return Call("add_session_memory", {"memory_type": "fact", "content": content})


def as_it_is(tool: str) -> Build:
    """Use the parts of the sentence as the arguments."""
    return lambda given, scene: Call(tool, dict(given))


def _for_goal(tool: str, given: Given, scene: Scene, **change: Any) -> Step | None:
    found = find_goal(given["goal"], scene)
    if not isinstance(found, GoalLine):
        return found
    return Call(tool, {"goal_id": found.id, **change}) if found.id else Later()


def find_goal(phrase: str, scene: Scene) -> GoalLine | Unclear | None:
    """The goal that `phrase` means. None: it speaks of no goal that is known."""
    if phrase.strip(" \"'.,:").lower() in _POINTERS:
        return next(iter(scene.made), None)
    known = scene.prompt.goals
    stems = set(content_stems(phrase)) - {"goal"}
    active = [goal for goal in known if goal.status == "active"]
    found = [goal for goal in known if goal.id == phrase]
    found = found or _best(scene.made, stems) or _best(active, stems) or _best(known, stems)
    if not found and re.search(r"\bgoal(?:\b|_)", phrase, re.IGNORECASE):
        return Unclear(f"I know no goal like '{shortened(phrase, 60)}'.")
    named = [goal for goal in found if set(content_stems(goal.description)) <= stems]
    found = named if len(named) == 1 else found
    # A goal stands before its subtasks.
    if all(goal.depth > found[0].depth for goal in found[1:]):
        return found[0] if found else None
    several = "; ".join(f"'{shortened(goal.description, 60)}'" for goal in found[:5])
    return Unclear(f"Which goal do you mean: {several}?")


def _best(candidates: Sequence[GoalLine], stems: set[str]) -> list[GoalLine]:
    words = [stems & set(content_stems(goal.description)) for goal in candidates]
    best = max((len(one) for one in words), default=0)
    return [
        goal
        for goal, shared in zip(candidates, words, strict=True)
        if shared and len(shared) == best >= _LEAST_SHARE * len(stems)
    ]


def find_project(phrase: str, known: Sequence[ProjectLine]) -> ProjectLine | None:
    """The project that `phrase` means: its key, or the first whose key or summary has its words."""
    stems = set(content_stems(phrase)) - {"project"}
    exact = [project for project in known if project.key.lower() == key_of(phrase)]
    near = [
        project
        for project in known
        if stems & set(content_stems(project.key.replace("_", " ")))
        and stems <= set(content_stems(f"{project.key.replace('_', ' ')} {project.summary}"))
    ]
    return next(iter([*exact, *near]), None)


def key_of(phrase: str) -> str:
    """A project key made from a phrase: "the Garden Fence" gives garden_fence."""
    kept = re.findall(r"[^\W_]+", re.sub(r"['\u2019]", "", phrase.lower().replace("_", " ")))
    while kept and kept[0] in ("the", "a", "an", "my", "our"):
        kept = kept[1:]
    return "_".join(kept[:5])


_THE = r"(?:the |this |that |my |our )?"
_START = r"(?:start|create|begin|make|launch|set up|add)"
_NEW_PROJECT = rf"(?:{_START} (?:a |an |another |the |my |our )?(?:new )?|new )project"
_COLON = r"(?:\s*:\s*|\s+[-\u2013]\s+)"
_SWITCH_TO = r"(?:(?:switch|swap|change|move|go|return) (?:back )?(?:over )?to|back to)"
_NOTE_ON = r"(?:(?:add|make|take|save|put) )?(?:a )?note (?:on|for|in|to|about)"
_DONE = r"(?:all )?(?:done|finished|completed?)"
_LEVEL = r"(?:(?P<priority>high|medium|low)(?:[- ]priority)? )?"


class Rule(NamedTuple):
    """The form of a sentence that becomes a call of a tool."""

    tool: str
    build: Build
    example: str
    form: str
    """A regular expression for the whole sentence, in any case."""

    def match(self, sentence: str) -> Given | None:
        """The sentence's named parts, or None when it does not have this form."""
        found = re.fullmatch(self.form, sentence, re.IGNORECASE | re.DOTALL)
        parts = found.groupdict() if found else None
        return parts and {name: (part or "").strip() for name, part in parts.items()}


RULES: tuple[Rule, ...] = (
    Rule(
        "create_project",
        create_project,
        "Create a project garden shed: build a shed behind the house",
        rf"{_NEW_PROJECT}(?: (?:to|for|about|on) (?P<purpose>.+)"
        rf"|(?: called| named|:)? (?P<name>[^:]+?)(?:{_COLON}(?P<summary>.+))?)",
    ),
    Rule(
        "list_projects",
        as_it_is("list_projects"),
        "List my projects",
        rf"(?:list|show|show me|what|what are|which|which are|how many) {_THE}(?:all )?"
        r"(?:open |other )?projects\b.*",
    ),
    Rule(
        "swap_project",
        swap_project,
        "Switch back to the garden project: the kitchen walls are painted",
        rf"{_SWITCH_TO} {_THE}(?P<name>[^:;]+?)(?P<word> project)?(?:\s*[:;]\s*(?P<update>.+))?",
    ),
    Rule(
        "update_project",
        update_project,
        "Note on the project: the wood is ordered",
        rf"{_NOTE_ON} {_THE}(?P<name>[^:]*?)\s*project(?:{_COLON}|, | that )(?P<update>.+)",
    ),
    Rule(
        "update_project",
        update_project,
        "The project is finished",
        rf"(?:the|this|our|my) (?P<name>[^:]*?)\s*project is (?:now )?(?P<done>{_DONE}|over)",
    ),
    Rule(
        "add_goal",
        add_goal,
        "Add a high-priority goal: fix the roof",
        rf"(?:(?:add|set|create|make|track) (?:a |an |another |the )?(?:new )?{_LEVEL}goal"
        rf"(?:{_COLON}|,? (?:to|of|that) )|(?:my|our) (?:\w+ )?goal is(?: to| that)?:? )"
        rf"(?P<what>(?!(?:\w+ )?{_DONE}|\D{{0,10}}\d+ ?%).+)",
    ),
    Rule(
        "decompose_goal",
        decompose_goal,
        "Break the garden shed goal down into steps",
        r"(?:break|split|divide|decompose)(?: down| up)? (?P<goal>.+?)(?: down| up)?"
        r"(?: (?:in|into) .+)?",
    ),
    Rule(
        "add_session_memory",
        remember,
        "Remember that my sister is allergic to nuts",
        r"(?:remember|don'?t forget|keep in mind|note)(?: that |,? ?:\s*)(?P<what>.+)",
    ),
    Rule(
        "recall_memories",
        as_it_is("recall_memories"),
        "What do you remember about Ana",
        r"(?:recall|(?:tell me )?what (?:do )?you (?:still )?(?:remember|recall|know) about"
        r"|tell me (?:(?:all|everything|more) )?about)"
        r" (?P<query>.+)",
    ),
    Rule(
        "update_entity_observation",
        as_it_is("update_entity_observation"),
        "Make a note about Bea: she likes tulips",
        r"(?:(?:make|take|write|keep) )?(?:a )?note (?:about|on) (?!.*\bproject:)"
        r"(?P<entity>[\w'.@ -]{2,60}?): ?(?P<observation>.+)",
    ),
    Rule(
        "write_file",
        as_it_is("write_file"),
        "Write a file tulips.txt: twelve bulbs for Bea",
        r"(?:write|create|make|save) (?:a |the )?(?:new )?(?:text )?file(?: called| named)?"
        r" (?P<file_path>[\w./-]+\.\w{1,8})(?:\s*:\s*| with | saying )(?P<text>.+)",
    ),
    # Progress of goals: last, since these forms take any "... is done".
    Rule(
        "update_goal",
        set_progress,
        "The garden shed is 40% done",
        r"(?P<goal>.+?)(?: is| are|'s|:)(?: now| about| already| at)* (?P<n>\d{1,3})"
        rf" ?(?:%|percent)(?: {_DONE})?",
    ),
    Rule(
        "update_goal",
        complete_goal,
        "The garden shed is finished",
        rf"(?P<goal>.+?)(?: is| are|'s)(?: now| already| finally)* {_DONE}(?: now| today)?",
    ),
    Rule(
        "update_goal",
        complete_goal,
        "I have finished the garden shed",
        r"(?:i|we)(?:'ve| have)?(?: just| finally| now| already)* (?:finished|completed)"
        r" (?P<goal>.+)",
    ),
)
"""The order counts: the first rule that fits the sentence and makes sense wins."""

# Sentences of a message: each is a request, question, small talk or remark.

_OPENING = regex(
    r"(?:(?:hi|hey|hello|ok|okay|so|well|great|good|thanks|thank you|yes|yeah|sure|and|then|also"
    r"|now|oh|first|next|finally)\b(?: there| circadian)?[ ,!:-]+)+",
    re.IGNORECASE,
)
_ASKING = regex(
    r"(?:circadian[ ,:]+)?(?:(?:can|could|would|will) you (?:please )?|please,? "
    r"|i(?:'d| would) like (?:you )?to |i (?:want|need) you to |let'?s |let us )?",
    re.IGNORECASE,
)
_HOW_ARE_YOU = regex(r"how(?: are you|'s it going)\b|what's up\b", re.IGNORECASE)
_LONGEST_REQUEST = 500
"""Characters. A longer sentence is something told, and not worth the matching."""


@dataclass
class Wishes:
    """A message, read."""

    calls: list[Call] = field(default_factory=list)
    """The calls in the order of the message, without those that wait for a result."""
    unclear: list[str] = field(default_factory=list)
    """Replies to what cannot be carried out."""
    questions: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    small_talk: list[str] = field(default_factory=list)


def read_wishes(prompt: Prompt, tools: Collection[str]) -> Wishes:
    """Read the newest human message sentence by sentence."""
    wishes = Wishes()
    parts = sentences(prompt.human)
    told = [one for one in parts if not (_rules_for(one) or is_question(one))]
    said = [one for one in told if not is_chatter(one)]
    scene = Scene(prompt, " ".join(said))
    for part in parts:
        if not _carry_out(part, scene, wishes, tools):
            if _HOW_ARE_YOU.match(part) or (is_chatter(part) and not is_question(part)):
                wishes.small_talk.append(part)
            elif is_question(part) or about_itself(part, prompt) is not None:
                wishes.questions.append(part)
            elif is_command(_opened(part)) or is_command(_bare(part)):
                wishes.unclear.append(NOT_OFFLINE)
            else:
                wishes.remarks.append(part)
    return wishes


_TELLS = {"swap_project": "update", "add_session_memory": "what"}
"""The part of a request that tells something: "Remember that X" tells X."""
_TELLS_ALL = frozenset({"update_goal", "update_project", "update_entity_observation"})


def statement(text: str) -> str:
    """What a text tells, without small talk and requests; "" if it states nothing.

    A question stays before a statement that leans on it: "Where is the saw? It is in the shed."
    """
    parts = sentences(text)
    leans = [_LEANS.match(following) is not None for following in (*parts[1:], "")]
    told = [
        (part if is_leant_on else "") if is_question(part) else _told(part)
        for part, is_leant_on in zip(parts, leans, strict=True)
    ]
    return " ".join(filter(None, told)) if any(map(states_something, told)) else ""


_LEANS = regex(r"(?:yes|no|it|its|that|this|he|she|they|those|these)\b", re.IGNORECASE)


def _told(part: str) -> str:
    rule, given = next(iter(_rules_for(part)), (None, {}))
    if rule is None:
        return "" if is_command(_opened(part)) or is_chatter(part) else part
    if rule.tool in _TELLS_ALL or _OWN_GOAL.match(part):
        return part
    told = given.get(_TELLS.get(rule.tool, ""), "")
    return f"{told[:1].upper()}{told[1:]}{part[-1] if part[-1] in '.!' else ''}" if told else ""


def _carry_out(part: str, scene: Scene, wishes: Wishes, tools: Collection[str]) -> bool:
    for rule, given in _rules_for(part):
        step = rule.build(given, scene)
        if step is None:
            continue
        if isinstance(step, Unclear):
            wishes.unclear.append(step.reply)
        elif rule.tool not in tools:
            tried = any(one.name == rule.tool for one in scene.prompt.done)
            needs = " It needs a folder: set CIRCADIAN_FOLDER." if rule.tool == "write_file" else ""
            reply = f"I cannot do that now: {rule.tool} is not at hand.{needs}"
            wishes.unclear += [] if tried else [reply]
        elif isinstance(step, Call):  # and not Later, which waits for a result
            scene.plan(step)
            wishes.calls.append(step)
        return True
    return False


def _rules_for(part: str) -> list[tuple[Rule, Given]]:
    bare = _bare(part)
    if len(bare) > _LONGEST_REQUEST:
        return []
    fits = [(rule, rule.match(bare)) for rule in RULES]
    return [(rule, given) for rule, given in fits if given is not None]


def _opened(part: str) -> str:
    return _OPENING.sub("", part.strip(), count=1) if _OPENING.match(part.strip()) else part.strip()


def _bare(part: str) -> str:
    text = _opened(part)
    asking = _ASKING.match(text)
    text = text[asking.end() :] if asking else text
    return re.sub(r",? please$", "", text.rstrip(" .!?"), flags=re.IGNORECASE).strip()
