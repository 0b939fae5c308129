"""How a matched rule becomes a tool call: its parts, and what they mean in the scene. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from memory.models.offline.night import third_person
from memory.models.offline.prompt import (
    Call,
    GoalLine,
    Later,
    Prompt,
    Scene,
    Step,
    Unclear,
    find_goal,
    find_project,
    key_of,
)
from memory.models.offline.replies import is_greeting, is_question, is_thanks
from memory.text import content_stems, sentences

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
    """A project that is known, or one that the sentence calls a project."""
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
    """A line more in the active project's context, or its end."""
    found = find_project(given["name"], scene) if given.get("name") else None
    if isinstance(found, Unclear):
        return found
    if found is not None and scene.active is not None and found != scene.active:
        return Unclear(
            f"{found.key} is not the active project ({scene.active.key} is): switch to it first."
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
    """The goal meant; "it" without a goal before is asked back."""
    found = _goal(given, scene)
    if isinstance(found, GoalLine):
        return Call("decompose_goal", {"goal_id": found.id})
    pointer = given["goal"].lower() in ("it", "that", "this")
    return Unclear("Which goal do you mean?") if found is None and pointer else found


def set_progress(given: Given, scene: Scene) -> Step | None:
    """A percentage; 100 completes."""
    progress = int(given["n"])
    if progress == 100:
        return _update_goal(given, scene, status="completed")
    if progress > 100:
        return Unclear(f"Progress is between 0 and 100 %, not {progress} %.")
    return _update_goal(given, scene, progress=progress)


def complete_goal(given: Given, scene: Scene) -> Step | None:
    """The tool sets the progress to 100."""
    return _update_goal(given, scene, status="completed")


def abandon_goal(given: Given, scene: Scene) -> Step | None:
    """Given up, not done."""
    return _update_goal(given, scene, status="abandoned")


def reopen_goal(given: Given, scene: Scene) -> Step | None:
    """Active again."""
    return _update_goal(given, scene, status="active")


def remember_fact(given: Given, scene: Scene) -> Step:
    """Told in the third person: session memory has no speaker."""
    what = given["what"]
    return _remember("fact", f"I need {what}" if what.lower().startswith("to ") else what, scene)


def remember_pattern(given: Given, scene: Scene) -> Step:
    """As a fact, but about behaviour."""
    return _remember("pattern", given["what"], scene)


def add_journal_entry(given: Given, scene: Scene) -> Step:
    """The words as they are, with who said them."""
    return Call("add_journal_entry", {"content": given["what"], "source_entity": scene.person})


def observe_entity(given: Given, scene: Scene) -> Step:
    """Told in the third person: a profile is about someone else than who speaks."""
    noticed = third_person(given["observation"], scene.person)
    return Call("update_entity_observation", {"entity": given["entity"], "observation": noticed})


def as_it_is(tool: str) -> Build:
    """The parts of the sentence are the arguments."""
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


def _remember(kind: str, what: str, scene: Scene) -> Call:
    content = third_person(what, scene.person)
    return Call("add_session_memory", {"memory_type": kind, "content": content})


def _with_context(update: str, scene: Scene) -> str:
    """The active project's context with a line added, since the tools replace it whole."""
    lines = scene.active.context if scene.active else ()
    made = [done.args for done in scene.prompt.done if done.name == "create_project"]
    made = made or [call.args for call in scene.planned if call.tool == "create_project"]
    if made:
        lines = (str(made[-1].get("initial_context", "")),)
    return "\n".join([*(line for line in lines if line and line != update), update])


# The offline model's rules: what a sentence must look like to become a tool call.
#
# One table, read from top to bottom; the first rule that fits wins. A sentence is matched whole and
# in any case, without its greeting, "please", "can you" and final mark. To teach the offline model a
# phrase, add a row: its example is a test.


_THE = r"(?:the |this |that |my |our )?"


_START = r"(?:start|create|begin|make|launch|set up|add)"


_NEW_PROJECT = rf"(?:{_START} (?:a |an |another |the |my |our )?(?:new )?|new )project"


_COLON = r"(?:\s*:\s*|\s+[-\u2013]\s+)"


_SWITCH_TO = r"(?:(?:switch|swap|change|move|go|get|come|return) (?:back )?(?:over )?to|back to)"


_GO_ON_WITH = r"(?:resume|continue with|continue|work on|pick up|open)"


_DONE = r"(?:all )?(?:done|finished|completed?)"


_PERCENT = r"(?P<n>\d{1,3}) ?(?:%|percent)"


_offline_rules_PRIORITY = r"(?:(?P<priority>high|medium|low|urgent)(?:[- ]priority)? )?"


_SHOW = r"(?:list|show|show me|tell me|what are|which are|name)"


@dataclass(frozen=True)
class Rule:
    """A row of the table."""

    tool: str
    form: str
    """A regular expression for the whole sentence."""
    build: Build
    example: str

    def match(self, sentence: str) -> Given | None:
        """The sentence's named parts, or None when it does not have this form."""
        found = re.fullmatch(self.form, sentence, re.IGNORECASE | re.DOTALL)
        parts = found.groupdict() if found else None
        return parts and {name: (part or "").strip() for name, part in parts.items()}


RULES: tuple[Rule, ...] = (
    # Projects
    Rule(
        "create_project",
        rf"{_NEW_PROJECT} (?:to|for|about|on) (?P<summary>.+)",
        create_project,
        "Start a project to build a shed in the garden",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+?){_COLON}(?P<summary>.+)",
        create_project,
        "Create a project garden shed: build a shed behind the house",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+?),? (?:to|for|about) (?P<summary>.+)",
        create_project,
        "Create a project garden shed to build a shed behind the house",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+)",
        create_project,
        "Begin a new project called garden shed",
    ),
    Rule(
        "create_project",
        rf"{_START} (?:a |an |another |the |my |our )(?:new )?(?P<name>[\w' -]{{2,40}}?) project"
        rf"(?:(?:{_COLON}|, | (?:to|for|about) )(?P<summary>.+))?",
        create_project,
        "Start a garden shed project: build a shed behind the house",
    ),
    Rule(
        "list_projects",
        rf"{_SHOW}(?: all)?(?: of)? {_THE}(?:your |all )?(?:open |current |other )?projects\b.*"
        r"|(?:what|which) projects .+",
        as_it_is("list_projects"),
        "List my projects",
    ),
    Rule(
        "swap_project",
        rf"{_SWITCH_TO} {_THE}(?P<name>[^:;]+?)(?P<word> project)?(?:\s*[:;]\s*(?P<update>.+))?",
        swap_project,
        "Switch back to the garden project: the kitchen walls are painted",
    ),
    Rule(
        "swap_project",
        rf"{_GO_ON_WITH} {_THE}(?P<name>[^:;]+?)(?P<word> project)(?: again)?"
        r"(?:\s*[:;]\s*(?P<update>.+))?",
        swap_project,
        "Resume the garden project",
    ),
    Rule(
        "update_project",
        rf"(?:(?:add|make|take|save|put) )?(?:a )?note (?:on|for|in|to|about) {_THE}"
        rf"(?P<name>[^:]*?)\s*project(?:{_COLON}|, | that )(?P<update>.+)",
        update_project,
        "Note on the project: the wood is ordered",
    ),
    Rule(
        "update_project",
        rf"(?:update|log)(?: on)? {_THE}(?P<name>[^:]*?)\s*project(?:{_COLON}|, | with | that )"
        r"(?P<update>.+)",
        update_project,
        "Update the project: the wood is ordered",
    ),
    Rule(
        "update_project",
        r"project (?:note|update|status)\s*:\s*(?P<update>.+)",
        update_project,
        "Project update: the wood is ordered",
    ),
    Rule(
        "update_project",
        rf"(?:the|this|our|my) (?P<name>[^:]*?)\s*project is (?:now )?(?P<done>{_DONE}|over)",
        update_project,
        "The project is finished",
    ),
    # Goals
    Rule(
        "add_goal",
        rf"(?:add|create|make) (?:a|another) (?:new )?(?:sub-?task|sub-?goal|step)"
        rf" (?:to|of|for|under) (?P<parent>[^:]+?){_COLON}(?P<what>.+)",
        add_goal,
        "Add a subtask to the garden shed: paint the door",
    ),
    Rule(
        "add_goal",
        rf"(?:add|set|create|make|track) (?:a |an |another |the |me a |this )?(?:new )?{_offline_rules_PRIORITY}"
        rf"goal(?: for me| for us)?(?:{_COLON}|,? (?:to|of|that|called) | )(?P<what>.+)",
        add_goal,
        "Add a high-priority goal: fix the roof",
    ),
    Rule(
        "add_goal",
        rf"(?:my|our) (?:new |main |next |other |biggest )?{_offline_rules_PRIORITY}goal"
        rf"(?: for [\w ]+?)? is(?: to| that)?:? (?P<what>(?!(?:\w+ )?{_DONE}|\D{{0,10}}\d+ ?%).+)",
        add_goal,
        "My goal is to fix the roof by May",
    ),
    Rule(
        "add_goal",
        rf"(?:new |next |my )?{_offline_rules_PRIORITY}goal\s*:\s*(?P<what>.+)",
        add_goal,
        "New goal: fix the roof",
    ),
    Rule(
        "decompose_goal",
        r"(?:break|split|divide) (?P<goal>.+?) (?:down|up)(?: (?:in|into) .+)?",
        decompose_goal,
        "Break the garden shed goal down into steps",
    ),
    Rule(
        "decompose_goal",
        r"(?:break down|break up|split up|divide up|decompose) (?P<goal>.+?)(?: (?:in|into) .+)?",
        decompose_goal,
        "Break down the garden shed goal",
    ),
    # Memory
    Rule(
        "add_session_memory",
        r"(?:(?:remember|note|learn|save) )?(?:the |this |a )?pattern(?: that|:)\s*(?P<what>.+)",
        remember_pattern,
        "Remember this pattern: people ask for help late in the day",
    ),
    Rule(
        "add_session_memory",
        r"(?:remember|don'?t forget|do not forget|keep in mind|bear in mind|note|make a note)"
        r"(?: that |,? ?:\s*| also that )(?P<what>.+)",
        remember_fact,
        "Remember that my sister is allergic to nuts",
    ),
    Rule(
        "add_session_memory",
        r"(?:remember|don'?t forget|do not forget)"
        r" (?P<what>(?:to|i|i'm|i've|we|my|our|the(?! time)|his|her|their)\b.+)",
        remember_fact,
        "Don't forget to call Ana on Friday",
    ),
    Rule(
        "recall_memories",
        r"(?:recall|look up|search (?:your |the )?memor(?:y|ies) for|look in your memory for"
        r"|(?:tell me )?what (?:do )?you (?:still )?(?:remember|recall|know) about)"
        r" (?P<query>.+)",
        as_it_is("recall_memories"),
        "What do you remember about Ana",
    ),
    Rule(
        "add_journal_entry",
        r"(?:(?:write|put|note) (?:this )?(?:in|into) your journal(?: that|:)|journal:)"
        r" ?(?P<what>.+)",
        add_journal_entry,
        "Write in your journal: the roof leaks",
    ),
    Rule(
        "update_entity_observation",
        r"(?:(?:make|take|write|keep) )?(?:a )?note (?:about|on) (?!.*\bproject:)"
        r"(?P<entity>[\w'.@ -]{2,60}?): ?(?P<observation>.+)",
        observe_entity,
        "Make a note about Bea: she likes tulips",
    ),
    # Progress of goals: last, since these forms take any "... is done"
    Rule(
        "update_goal",
        r"(?P<goal>.+?)(?: is| are|'s|:| stands)(?: now| about| already| at)*"
        rf" {_PERCENT}(?: (?:{_DONE}|ready|through|there))?",
        set_progress,
        "The garden shed is 40% done",
    ),
    Rule(
        "update_goal",
        r"(?:i am|i'm|we are|we're)(?: now| about| already)* "
        rf"{_PERCENT} (?:{_DONE}|through|of the way|along)(?: with| through| on)? (?P<goal>.+)",
        set_progress,
        "I'm 40% done with the garden shed",
    ),
    Rule(
        "update_goal",
        rf"(?:set|put|move|update|mark) (?:the progress (?:of|on|for) )?(?P<goal>.+?)"
        rf" (?:to|at|as) {_PERCENT}.*",
        set_progress,
        "Set the garden shed to 40%",
    ),
    Rule(
        "update_goal",
        rf"progress (?:on|for|of) (?P<goal>.+?)(?:\s*:| is| =| at)(?: now| at)* {_PERCENT}.*",
        set_progress,
        "Progress on the garden shed: 40%",
    ),
    Rule(
        "update_goal",
        rf"(?P<goal>.+?)(?: is| are|'s)(?: now| already| finally)* {_DONE}(?: now| today)?",
        complete_goal,
        "The garden shed is finished",
    ),
    Rule(
        "update_goal",
        r"(?:(?:i|we)(?:'ve| have)?(?: just| finally| now| already)* (?:finished|completed|done)"
        r"(?: with)?|(?:i'm|i am|we're|we are) (?:done|finished) with) (?P<goal>.+)",
        complete_goal,
        "I have finished the garden shed",
    ),
    Rule(
        "update_goal",
        rf"mark (?P<goal>.+?) (?:as )?{_DONE}",
        complete_goal,
        "Mark the garden shed as done",
    ),
    Rule(
        "update_goal",
        r"(?:drop|abandon|give up(?: on)?|cancel) (?P<goal>.*\bgoal\b.*)",
        abandon_goal,
        "Abandon the garden shed goal",
    ),
    Rule(
        "update_goal",
        r"re-?open (?P<goal>.*\bgoal\b.*)",
        reopen_goal,
        "Reopen the garden shed goal",
    ),
    # The assistant itself
    Rule(
        "get_system_status",
        r"(?:show |show me |tell me |give me |what is |what's |report )?(?:your |the )?"
        r"(?:system |current )*status(?: report| please)?"
        r"|how (?:full|much) (?:is|of) your context.*|how much context .+",
        as_it_is("get_system_status"),
        "Show me your system status",
    ),
)


# What a message asks for: each sentence is a request, question, small talk or remark. Pure.


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
