"""The offline model's rules: what a sentence must look like to become a tool call.

One table, read from top to bottom; the first rule that fits wins. A sentence is matched whole and
in any case, without its greeting, "please", "can you" and final mark. To teach the offline model a
phrase, add a row: its example is a test.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from memory.models import offline_builders as to
from memory.models.offline_builders import Build, Given

_THE = r"(?:the |this |that |my |our )?"
_START = r"(?:start|create|begin|make|launch|set up|add)"
_NEW_PROJECT = rf"(?:{_START} (?:a |an |another |the |my |our )?(?:new )?|new )project"
_COLON = r"(?:\s*:\s*|\s+[-\u2013]\s+)"
_SWITCH_TO = r"(?:(?:switch|swap|change|move|go|get|come|return) (?:back )?(?:over )?to|back to)"
_GO_ON_WITH = r"(?:resume|continue with|continue|work on|pick up|open)"
_DONE = r"(?:all )?(?:done|finished|completed?)"
_PERCENT = r"(?P<n>\d{1,3}) ?(?:%|percent)"
_PRIORITY = r"(?:(?P<priority>high|medium|low|urgent)(?:[- ]priority)? )?"
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
        to.create_project,
        "Start a project to build a shed in the garden",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+?){_COLON}(?P<summary>.+)",
        to.create_project,
        "Create a project garden shed: build a shed behind the house",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+?),? (?:to|for|about) (?P<summary>.+)",
        to.create_project,
        "Create a project garden shed to build a shed behind the house",
    ),
    Rule(
        "create_project",
        rf"{_NEW_PROJECT}(?: called| named|:)? (?P<name>[^:]+)",
        to.create_project,
        "Begin a new project called garden shed",
    ),
    Rule(
        "create_project",
        rf"{_START} (?:a |an |another |the |my |our )(?:new )?(?P<name>[\w' -]{{2,40}}?) project"
        rf"(?:(?:{_COLON}|, | (?:to|for|about) )(?P<summary>.+))?",
        to.create_project,
        "Start a garden shed project: build a shed behind the house",
    ),
    Rule(
        "list_projects",
        rf"{_SHOW}(?: all)?(?: of)? {_THE}(?:your |all )?(?:open |current |other )?projects\b.*"
        r"|(?:what|which) projects .+",
        to.as_it_is("list_projects"),
        "List my projects",
    ),
    Rule(
        "swap_project",
        rf"{_SWITCH_TO} {_THE}(?P<name>[^:;]+?)(?P<word> project)?(?:\s*[:;]\s*(?P<update>.+))?",
        to.swap_project,
        "Switch back to the garden project: the kitchen walls are painted",
    ),
    Rule(
        "swap_project",
        rf"{_GO_ON_WITH} {_THE}(?P<name>[^:;]+?)(?P<word> project)(?: again)?"
        r"(?:\s*[:;]\s*(?P<update>.+))?",
        to.swap_project,
        "Resume the garden project",
    ),
    Rule(
        "update_project",
        rf"(?:(?:add|make|take|save|put) )?(?:a )?note (?:on|for|in|to|about) {_THE}"
        rf"(?P<name>[^:]*?)\s*project(?:{_COLON}|, | that )(?P<update>.+)",
        to.update_project,
        "Note on the project: the wood is ordered",
    ),
    Rule(
        "update_project",
        rf"(?:update|log)(?: on)? {_THE}(?P<name>[^:]*?)\s*project(?:{_COLON}|, | with | that )"
        r"(?P<update>.+)",
        to.update_project,
        "Update the project: the wood is ordered",
    ),
    Rule(
        "update_project",
        r"project (?:note|update|status)\s*:\s*(?P<update>.+)",
        to.update_project,
        "Project update: the wood is ordered",
    ),
    Rule(
        "update_project",
        rf"(?:the|this|our|my) (?P<name>[^:]*?)\s*project is (?:now )?(?P<done>{_DONE}|over)",
        to.update_project,
        "The project is finished",
    ),
    # Goals
    Rule(
        "add_goal",
        rf"(?:add|create|make) (?:a|another) (?:new )?(?:sub-?task|sub-?goal|step)"
        rf" (?:to|of|for|under) (?P<parent>[^:]+?){_COLON}(?P<what>.+)",
        to.add_goal,
        "Add a subtask to the garden shed: paint the door",
    ),
    Rule(
        "add_goal",
        rf"(?:add|set|create|make|track) (?:a |an |another |the |me a |this )?(?:new )?{_PRIORITY}"
        rf"goal(?: for me| for us)?(?:{_COLON}|,? (?:to|of|that|called) | )(?P<what>.+)",
        to.add_goal,
        "Add a high-priority goal: fix the roof",
    ),
    Rule(
        "add_goal",
        rf"(?:my|our) (?:new |main |next |other |biggest )?{_PRIORITY}goal"
        rf"(?: for [\w ]+?)? is(?: to| that)?:? (?P<what>(?!(?:\w+ )?{_DONE}|\D{{0,10}}\d+ ?%).+)",
        to.add_goal,
        "My goal is to fix the roof by May",
    ),
    Rule(
        "add_goal",
        rf"(?:new |next |my )?{_PRIORITY}goal\s*:\s*(?P<what>.+)",
        to.add_goal,
        "New goal: fix the roof",
    ),
    Rule(
        "decompose_goal",
        r"(?:break|split|divide) (?P<goal>.+?) (?:down|up)(?: (?:in|into) .+)?",
        to.decompose_goal,
        "Break the garden shed goal down into steps",
    ),
    Rule(
        "decompose_goal",
        r"(?:break down|break up|split up|divide up|decompose) (?P<goal>.+?)(?: (?:in|into) .+)?",
        to.decompose_goal,
        "Break down the garden shed goal",
    ),
    # Memory
    Rule(
        "add_session_memory",
        r"(?:(?:remember|note|learn|save) )?(?:the |this |a )?pattern(?: that|:)\s*(?P<what>.+)",
        to.remember_pattern,
        "Remember this pattern: people ask for help late in the day",
    ),
    Rule(
        "add_session_memory",
        r"(?:remember|don'?t forget|do not forget|keep in mind|bear in mind|note|make a note)"
        r"(?: that |,? ?:\s*| also that )(?P<what>.+)",
        to.remember_fact,
        "Remember that my sister is allergic to nuts",
    ),
    Rule(
        "add_session_memory",
        r"(?:remember|don'?t forget|do not forget)"
        r" (?P<what>(?:to|i|i'm|i've|we|my|our|the(?! time)|his|her|their)\b.+)",
        to.remember_fact,
        "Don't forget to call Ana on Friday",
    ),
    Rule(
        "recall_memories",
        r"(?:recall|look up|search (?:your |the )?memor(?:y|ies) for|look in your memory for"
        r"|(?:tell me )?what (?:do )?you (?:still )?(?:remember|recall|know) about)"
        r" (?P<query>.+)",
        to.as_it_is("recall_memories"),
        "What do you remember about Ana",
    ),
    Rule(
        "add_journal_entry",
        r"(?:(?:write|put|note) (?:this )?(?:in|into) your journal(?: that|:)|journal:)"
        r" ?(?P<what>.+)",
        to.add_journal_entry,
        "Write in your journal: the roof leaks",
    ),
    Rule(
        "update_entity_observation",
        r"(?:(?:make|take|write|keep) )?(?:a )?note (?:about|on) (?!.*\bproject:)"
        r"(?P<entity>[\w'.@ -]{2,60}?): ?(?P<observation>.+)",
        to.observe_entity,
        "Make a note about Bea: she likes tulips",
    ),
    # Progress of goals: last, since these forms take any "... is done"
    Rule(
        "update_goal",
        r"(?P<goal>.+?)(?: is| are|'s|:| stands)(?: now| about| already| at)*"
        rf" {_PERCENT}(?: (?:{_DONE}|ready|through|there))?",
        to.set_progress,
        "The garden shed is 40% done",
    ),
    Rule(
        "update_goal",
        r"(?:i am|i'm|we are|we're)(?: now| about| already)* "
        rf"{_PERCENT} (?:{_DONE}|through|of the way|along)(?: with| through| on)? (?P<goal>.+)",
        to.set_progress,
        "I'm 40% done with the garden shed",
    ),
    Rule(
        "update_goal",
        rf"(?:set|put|move|update|mark) (?:the progress (?:of|on|for) )?(?P<goal>.+?)"
        rf" (?:to|at|as) {_PERCENT}.*",
        to.set_progress,
        "Set the garden shed to 40%",
    ),
    Rule(
        "update_goal",
        rf"progress (?:on|for|of) (?P<goal>.+?)(?:\s*:| is| =| at)(?: now| at)* {_PERCENT}.*",
        to.set_progress,
        "Progress on the garden shed: 40%",
    ),
    Rule(
        "update_goal",
        rf"(?P<goal>.+?)(?: is| are|'s)(?: now| already| finally)* {_DONE}(?: now| today)?",
        to.complete_goal,
        "The garden shed is finished",
    ),
    Rule(
        "update_goal",
        r"(?:(?:i|we)(?:'ve| have)?(?: just| finally| now| already)* (?:finished|completed|done)"
        r"(?: with)?|(?:i'm|i am|we're|we are) (?:done|finished) with) (?P<goal>.+)",
        to.complete_goal,
        "I have finished the garden shed",
    ),
    Rule(
        "update_goal",
        rf"mark (?P<goal>.+?) (?:as )?{_DONE}",
        to.complete_goal,
        "Mark the garden shed as done",
    ),
    Rule(
        "update_goal",
        r"(?:drop|abandon|give up(?: on)?|cancel) (?P<goal>.*\bgoal\b.*)",
        to.abandon_goal,
        "Abandon the garden shed goal",
    ),
    Rule(
        "update_goal",
        r"re-?open (?P<goal>.*\bgoal\b.*)",
        to.reopen_goal,
        "Reopen the garden shed goal",
    ),
    # The assistant itself
    Rule(
        "get_system_status",
        r"(?:show |show me |tell me |give me |what is |what's |report )?(?:your |the )?"
        r"(?:system |current )*status(?: report| please)?"
        r"|how (?:full|much) (?:is|of) your context.*|how much context .+",
        to.as_it_is("get_system_status"),
        "Show me your system status",
    ),
)
