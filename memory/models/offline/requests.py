"""What a message asks for: sentences that become tool calls, or a plain refusal. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from memory.messages import GoalLine
from memory.models.offline.prompt import Call, Prompt
from memory.models.offline.replies import NOT_OFFLINE, about_itself
from memory.models.offline.scene import (
    Later,
    Scene,
    Step,
    Unclear,
    find_goal,
    find_project,
    key_of,
)
from memory.models.offline.sentences import (
    is_command,
    is_greeting,
    is_question,
    is_thanks,
    third_person,
)
from memory.text import content_stems, sentences

# What a matched sentence becomes.

Given = Mapping[str, str]
"""The named parts of the sentence, outer white space cut; "" where a part is not there."""

Build = Callable[[Given, Scene], Step | None]
"""None: the sentence fits the form, but means something else."""

_PRIORITY = re.compile(
    r"[,;(]*\s*\b(?:with |at |of )?(?P<level>high|medium|low)[- ]priority\b\)?|\(urgent\)",
    re.IGNORECASE,
)


def create_project(given: Given, scene: Scene) -> Step:
    """A key from the name, or else from the first words of the summary that carry meaning."""
    summary = given.get("summary") or given["name"]
    telling = [word for word in re.findall(r"[^\W_]+", summary) if content_stems(word)]
    key = key_of(given.get("name") or " ".join(telling[:3]))
    context = scene.remarks or summary
    return Call(
        "create_project", {"project_key": key, "summary": summary, "initial_context": context}
    )


def swap_project(given: Given, scene: Scene) -> Step | None:
    """Switch to a known project, or to a name that the sentence calls a project."""
    found = find_project(given["name"], scene)
    if isinstance(found, Unclear):
        return found
    if found is None and not given["word"]:
        return None
    args: dict[str, Any] = {"project_key": found.key if found else key_of(given["name"])}
    if given.get("update"):
        args["current_project_update"] = _with_context(given["update"], scene)
    return Call("swap_project", args)


def update_project(given: Given, scene: Scene) -> Step:
    """Add a line to the active project's context, or complete the project."""
    found = find_project(given["name"], scene) if given.get("name") else None
    if isinstance(found, Unclear):
        return found
    active = scene.prompt.active_project
    if found is not None and active is not None and found != active:
        return Unclear(
            f"{found.key} is not the active project ({active.key} is): switch to it first."
        )
    if given.get("done"):
        return Call("update_project", {"status": "completed"})
    return Call("update_project", {"context_update": _with_context(given["update"], scene)})


def add_goal(given: Given, scene: Scene) -> Step | None:
    """Description, priority (also from within the description) and parent."""
    what, args = given["what"], dict[str, Any]()
    level = given.get("priority", "")
    if found := _PRIORITY.search(what):
        level = found["level"] or "high"
        what = (what[: found.start()] + what[found.end() :]).strip(" ,;")
    if level:
        args["priority"] = "high" if level.lower() == "urgent" else level.lower()
    if given.get("parent"):
        parent = find_goal(given["parent"], scene)
        if not isinstance(parent, GoalLine):
            return parent or Unclear(f"I know no goal like '{given['parent']}'.")
        args["parent_id"] = parent.id
    return Call("add_goal", {"description": what[:1].upper() + what[1:], **args}) if what else None


def decompose_goal(given: Given, scene: Scene) -> Step | None:
    """Split the goal that is meant; ask which one if "it" has no goal before it."""
    found = _goal(given, scene)
    if isinstance(found, GoalLine):
        return Call("decompose_goal", {"goal_id": found.id})
    pointer = given["goal"].lower() in ("it", "that", "this")
    return Unclear("Which goal do you mean?") if found is None and pointer else found


def set_progress(given: Given, scene: Scene) -> Step | None:
    """Set the progress in percent; 100 completes the goal."""
    progress = int(given["n"])
    if progress > 100:
        return Unclear(f"Progress is between 0 and 100 %, not {progress} %.")
    change = {"status": "completed"} if progress == 100 else {"progress": progress}
    return _update_goal(given, scene, **change)


def set_status(status: str) -> Build:
    """Give the goal that is meant this status."""
    return lambda given, scene: _update_goal(given, scene, status=status)


def remember(given: Given, scene: Scene) -> Step:
    """Rewrite the sentence in the third person: session memory has no speaker."""
    what = given["what"]
    what = f"I need {what}" if what.lower().startswith("to ") else what
    content = third_person(what, scene.person)
    return Call("add_session_memory", {"memory_type": "fact", "content": content})


def write_file(given: Given, scene: Scene) -> Step:
    """Write the text word for word."""
    return Call("write_file", {"file_path": given["path"], "text": given["text"]})


def observe_entity(given: Given, scene: Scene) -> Step:
    """Rewrite the sentence in the third person: a profile is about somebody else."""
    noticed = third_person(given["observation"], scene.person)
    return Call("update_entity_observation", {"entity": given["entity"], "observation": noticed})


def as_it_is(tool: str) -> Build:
    """Use the parts of the sentence as the arguments."""
    return lambda given, scene: Call(tool, dict(given))


def _update_goal(given: Given, scene: Scene, **change: Any) -> Step | None:
    found = _goal(given, scene)
    if isinstance(found, GoalLine):
        return Call("update_goal", {"goal_id": found.id, **change})
    return found


def _goal(given: Given, scene: Scene) -> GoalLine | Unclear | Later | None:
    found = find_goal(given["goal"], scene)
    if isinstance(found, GoalLine):
        scene.pointed = found
    return found


def _with_context(update: str, scene: Scene) -> str:
    """The active project's context with a line added, since the tools replace it whole."""
    active = scene.prompt.active_project
    lines = active.context if active else ()
    made = [done.args for done in scene.prompt.done if done.name == "create_project"]
    made = made or [call.args for call in scene.planned if call.tool == "create_project"]
    if made:
        lines = (str(made[-1].get("initial_context", "")),)
    return "\n".join([*(line for line in lines if line and line != update), update])


# The rules. To teach the offline model a phrase, add a rule: its example is a test.

_THE = r"(?:the |this |that |my |our )?"
_START = r"(?:start|create|begin|make|launch|set up|add)"
_NEW_PROJECT = rf"(?:{_START} (?:a |an |another |the |my |our )?(?:new )?|new )project"
_COLON = r"(?:\s*:\s*|\s+[-\u2013]\s+)"
_SWITCH_TO = r"(?:(?:switch|swap|change|move|go|get|come|return) (?:back )?(?:over )?to|back to)"
_NOTE_ON = r"(?:(?:add|make|take|save|put) )?(?:a )?note (?:on|for|in|to|about)"
_DONE = r"(?:all )?(?:done|finished|completed?)"
_LEVEL = r"(?:(?P<priority>high|medium|low|urgent)(?:[- ]priority)? )?"
_SHOW = r"(?:list|show|show me|tell me|what are|which are|name)"


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
        "Start a project to build a shed in the garden",
        rf"{_NEW_PROJECT} (?:to|for|about|on) (?P<summary>.+)",
    ),
    Rule(
        "create_project",
        create_project,
        "Create a project garden shed: build a shed behind the house",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+?)"
        rf"(?:(?:{_COLON}|,? (?:to|for|about) )(?P<summary>.+))?",
    ),
    Rule(
        "list_projects",
        as_it_is("list_projects"),
        "List my projects",
        rf"{_SHOW}(?: all)?(?: of)? {_THE}(?:your |all )?(?:open |current |other )?projects\b.*"
        r"|(?:what|which) projects .+",
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
        "Add a subtask to the garden shed: paint the door",
        r"(?:add|create|make) (?:a|another) (?:new )?(?:sub-?task|sub-?goal|step)"
        rf" (?:to|of|for|under) (?P<parent>[^:]+?){_COLON}(?P<what>.+)",
    ),
    Rule(
        "add_goal",
        add_goal,
        "Add a high-priority goal: fix the roof",
        rf"(?:add|set|create|make|track) (?:a |an |another |the |me a |this )?(?:new )?{_LEVEL}"
        rf"goal(?: for me| for us)?(?:{_COLON}|,? (?:to|of|that|called) | )(?P<what>.+)",
    ),
    Rule(
        "add_goal",
        add_goal,
        "My goal is to fix the roof by May",
        rf"(?:my|our) (?:new |main |next |other |biggest )?{_LEVEL}goal(?: for [\w ]+?)? is"
        rf"(?: to| that)?:? (?P<what>(?!(?:\w+ )?{_DONE}|\D{{0,10}}\d+ ?%).+)",
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
        r"(?:remember|don'?t forget|do not forget|keep in mind|bear in mind|note|make a note)"
        r"(?: that |,? ?:\s*| also that )(?P<what>.+)",
    ),
    Rule(
        "add_session_memory",
        remember,
        "Don't forget to call Ana on Friday",
        r"(?:remember|don'?t forget|do not forget)"
        r" (?P<what>(?:to|i|i'm|i've|we|my|our|the(?! time)|his|her|their)\b.+)",
    ),
    Rule(
        "recall_memories",
        as_it_is("recall_memories"),
        "What do you remember about Ana",
        r"(?:recall|look up|search (?:your |the )?memor(?:y|ies) for|look in your memory for"
        r"|(?:tell me )?what (?:do )?you (?:still )?(?:remember|recall|know) about)"
        r" (?P<query>.+)",
    ),
    Rule(
        "update_entity_observation",
        observe_entity,
        "Make a note about Bea: she likes tulips",
        r"(?:(?:make|take|write|keep) )?(?:a )?note (?:about|on) (?!.*\bproject:)"
        r"(?P<entity>[\w'.@ -]{2,60}?): ?(?P<observation>.+)",
    ),
    Rule(
        "write_file",
        write_file,
        "Write a file tulips.txt: twelve bulbs for Bea",
        r"(?:write|create|make|save) (?:a |an |the |me a )?(?:new )?(?:text )?file"
        r"(?: called| named)? (?P<path>[\w./-]+\.\w{1,8})(?:\s*:\s*| with | saying )(?P<text>.+)",
    ),
    Rule(
        "read_file",
        lambda given, scene: Call("read_file", {"file_path": given["path"]}),
        "Read the file tulips.txt",
        r"(?:read|open|show|show me) (?:the |my )?file (?P<path>[\w./-]+\.\w{1,8})",
    ),
    # Progress of goals: last, since these forms take any "... is done".
    Rule(
        "update_goal",
        set_progress,
        "The garden shed is 40% done",
        r"(?:progress (?:on|for|of) )?(?P<goal>.+?)(?: is| are|'s|:| =| stands)(?: now| about"
        rf"| already| at)* (?P<n>\d{{1,3}}) ?(?:%|percent)(?: (?:{_DONE}|ready|through|there))?",
    ),
    Rule(
        "update_goal",
        set_status("completed"),
        "The garden shed is finished",
        rf"(?P<goal>.+?)(?: is| are|'s)(?: now| already| finally)* {_DONE}(?: now| today)?",
    ),
    Rule(
        "update_goal",
        set_status("completed"),
        "I have finished the garden shed",
        r"(?:(?:i|we)(?:'ve| have)?(?: just| finally| now| already)* (?:finished|completed|done)"
        r"(?: with)?|(?:i'm|i am|we're|we are) (?:done|finished) with) (?P<goal>.+)",
    ),
    Rule(
        "update_goal",
        set_status("abandoned"),
        "Abandon the garden shed goal",
        r"(?:drop|abandon|give up(?: on)?|cancel|delete|remove) (?P<goal>.*\bgoal\b.*)",
    ),
)
"""The order counts: the first rule that fits the sentence and makes sense wins."""

REFUSALS: tuple[tuple[str, str], ...] = (
    (
        r"(?:delete|remove|erase) .*\bproject\b.*",
        "I cannot delete a project. To close it, say: The NAME project is finished.",
    ),
    (
        r"(?:delete|remove|erase|forget) (?!it$|about it$).+",
        "I cannot erase a memory. A person does that: circadian forget, see its --help.",
    ),
    (
        r"(?:remind|wake|alert|notify) (?:me|us)\b.*"
        r"|set (?:an? |the |my )?(?:alarm|timer|reminder).*",
        "I cannot remind you at a set time. I can keep it as a goal: say, My goal is to ...",
    ),
)
"""Orders that no tool carries out: the form of the sentence, and the reply."""


# Sentences of a message: each is a request, question, small talk or remark.

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
    """The calls in the order of the message, without those that wait for a result."""
    unclear: list[str] = field(default_factory=list)
    impossible: list[str] = field(default_factory=list)
    """Tools that a request needs and that are not at hand."""
    questions: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    small_talk: list[str] = field(default_factory=list)


def _refusal(part: str) -> str | None:
    """The reply to an order that no rule carries out; None for any other sentence."""
    bare = _bare(part)
    for form, text in REFUSALS:
        if re.fullmatch(form, bare, re.IGNORECASE | re.DOTALL):
            return text
    return NOT_OFFLINE if is_command(_opened(part)) or is_command(bare) else None


def read_wishes(prompt: Prompt, tools: Collection[str]) -> Wishes:
    """Read the newest human message sentence by sentence."""
    wishes = Wishes()
    parts = [part for sentence in sentences(prompt.human) for part in _parts(sentence)]
    remarks = [part for part in parts if not _rules_for(part) and not is_question(part)]
    said = [one for one in remarks if not is_greeting(one) and not is_thanks(one)]
    scene = Scene(prompt, remarks=" ".join(said))
    for part in parts:
        if not _carry_out(part, scene, wishes, tools):
            _sort(part, wishes, prompt)
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
        elif isinstance(step, Call):  # and not Later, which waits for a result
            scene.plan(step)
            wishes.calls.append(step)
        return True
    return False


def _sort(part: str, wishes: Wishes, prompt: Prompt) -> None:
    if is_greeting(part) or is_thanks(part):
        wishes.small_talk.append(part)
    elif about_itself(part, prompt) is not None:
        wishes.questions.append(part)
    elif (refusal := _refusal(part)) and not (is_question(part) and refusal == NOT_OFFLINE):
        wishes.unclear.append(refusal)
    elif is_question(part):
        wishes.questions.append(part)
    else:
        wishes.remarks.append(part)


def _rules_for(part: str) -> list[tuple[Rule, Given]]:
    bare = _bare(part)
    if len(bare) > _LONGEST_REQUEST:
        return []
    fits = [(rule, rule.match(bare)) for rule in RULES]
    return [(rule, given) for rule, given in fits if given is not None]


def _opened(part: str) -> str:
    """The sentence without a greeting or the like before it."""
    text = part.strip()
    opening = _OPENING.match(text)
    return text[opening.end() :].strip() if opening else text


def _bare(part: str) -> str:
    """The sentence without opening, politeness and final mark."""
    text = _opened(part)
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
