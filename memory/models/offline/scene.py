"""The goals and projects that the requests of a message refer to. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memory.messages import GoalLine, ProjectLine
from memory.models.offline.prompt import Call, Prompt
from memory.text import content_stems, shortened

_GOAL_ID = re.compile(r"\bgoal_\d+_\d+\b")
_POINTERS = {"it", "that", "this", "that one", "this one", "that goal", "this goal"}
_THE_GOAL = {"goal", "the goal", "my goal", "our goal"}

_LEAST_SHARE = 0.5
"""Least share of a phrase's words that the goal's description must have."""


@dataclass(frozen=True)
class Unclear:
    """A request that cannot be carried out as it is put; said in the reply."""

    text: str


@dataclass(frozen=True)
class Later:
    """A request that waits for the result of a call made before it in the same message."""


Step = Call | Unclear | Later


@dataclass
class Scene:
    """The knowledge with which the requests of one message are read, in order."""

    prompt: Prompt
    remarks: str = ""
    """The message's sentences that ask for nothing."""
    planned: list[Call] = field(default_factory=list)
    pointed: GoalLine | None = None
    """The goal that the message spoke of last: what "it" means."""
    awaited: list[Call] = field(default_factory=list)
    """Goals asked for by the requests read so far, and not made yet."""

    def __post_init__(self) -> None:
        self.goals: list[GoalLine] = self.prompt.goals
        """Those in the prompt, and those that the requests read so far have made."""

    def plan(self, call: Call) -> None:
        """Take a request into account for those that follow it."""
        self.planned.append(call)
        if call.tool == "add_goal":
            self.pointed = self._added(call)
            if self.pointed is None:
                self.awaited.append(call)
            else:
                self.goals.append(self.pointed)

    def _added(self, call: Call) -> GoalLine | None:
        for done in self.prompt.done:
            goal_id = done.result.get("goal_id") if isinstance(done.result, Mapping) else None
            if done.name == "add_goal" and done.args == call.args and goal_id:
                return GoalLine(str(goal_id), str(call.args.get("description", "")))
        return None

    @property
    def person(self) -> str:
        """How to call the sender in a sentence."""
        return self.prompt.sender.replace("_", " ")


def find_goal(phrase: str, scene: Scene) -> GoalLine | Unclear | Later | None:
    """The goal that `phrase` means. None: it speaks of no goal that is known."""
    if named := _GOAL_ID.search(phrase):
        known = next((goal for goal in scene.goals if goal.id == named[0]), None)
        return known or Unclear(f"I know no goal {named[0]}.")
    bare = phrase.strip(" \"'.,:").lower()
    if bare in _POINTERS | _THE_GOAL:
        return _pointed(bare, scene)
    stems = set(content_stems(phrase)) - {"goal"}
    if any(_share(stems, call.args["description"]) >= _LEAST_SHARE for call in scene.awaited):
        return Later()
    found = _best([goal for goal in scene.goals if goal.status == "active"], stems)
    found = found or _best(scene.goals, stems)
    if not found and re.search(r"\bgoal\b", phrase, re.IGNORECASE):
        return Unclear(f"I know no goal like '{shortened(phrase, 60)}'.")
    return _only(found, stems, scene.goals)


def find_project(phrase: str, scene: Scene) -> ProjectLine | Unclear | None:
    """The project that `phrase` means, by its key or by words of its key and summary."""
    slug = key_of(phrase)
    known = scene.prompt.projects
    exact = [project for project in known if project.key.lower() in (phrase.lower(), slug)]
    if exact:
        return exact[0]
    stems = set(content_stems(phrase)) - {"project"}
    near = [project for project in known if _is_meant(project, stems)]
    if len(near) > 1:
        return Unclear(f"Which project do you mean: {', '.join(each.key for each in near)}?")
    return near[0] if near else None


def key_of(phrase: str) -> str:
    """A project key made from a phrase: "the Garden Fence" gives garden_fence."""
    kept = re.findall(r"[^\W_]+", re.sub(r"['\u2019]", "", phrase.lower().replace("_", " ")))
    while kept and kept[0] in ("the", "a", "an", "my", "our"):
        kept = kept[1:]
    return "_".join(kept[:5])


def _pointed(bare: str, scene: Scene) -> GoalLine | Unclear | Later | None:
    if scene.awaited:
        return Later()
    if scene.pointed is not None:
        return scene.pointed
    if bare not in _THE_GOAL:
        return None
    roots = [goal for goal in scene.goals if goal.depth == 0 and goal.status == "active"]
    if len(roots) == 1:
        return roots[0]
    return _which(roots) if roots else Unclear("There is no open goal.")


def _best(candidates: Sequence[GoalLine], stems: set[str]) -> list[GoalLine]:
    shares = [(_share(stems, goal.description), goal) for goal in candidates]
    best = max((share for share, _ in shares), default=0.0)
    return [goal for share, goal in shares if share == best >= _LEAST_SHARE]


def _share(stems: set[str], description: str) -> float:
    return len(stems & set(content_stems(description))) / len(stems) if stems else 0.0


def _only(
    found: Sequence[GoalLine],
    stems: set[str],
    all_goals: Sequence[GoalLine],
) -> GoalLine | Unclear | None:
    """The goal meant: the only one, one named in all its words, or the parent of the others."""
    if len(found) <= 1:
        return found[0] if found else None
    complete = [goal for goal in found if set(content_stems(goal.description)) <= stems]
    if len(complete) == 1:
        return complete[0]
    below = _subtree(found[0], all_goals)
    return found[0] if set(found[1:]) <= below else _which(found)


def _subtree(goal: GoalLine, all_goals: Sequence[GoalLine]) -> set[GoalLine]:
    """The goals below `goal`; the prompt shows each goal before its subtasks."""
    below: set[GoalLine] = set()
    for other in all_goals[list(all_goals).index(goal) + 1 :]:
        if other.depth <= goal.depth:
            break
        below.add(other)
    return below


def _which(found: Sequence[GoalLine]) -> Unclear:
    names = "; ".join(f"'{shortened(goal.description, 60)}'" for goal in found[:5])
    return Unclear(f"Which goal do you mean: {names}?")


def _is_meant(project: ProjectLine, stems: set[str]) -> bool:
    """Whether the key has one of the words, and key and summary together have all of them."""
    key = re.sub(r"[_\W]+", " ", project.key)
    return bool(stems & set(content_stems(key))) and stems <= set(
        content_stems(f"{key} {project.summary}")
    )
