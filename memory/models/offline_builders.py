"""How a matched rule becomes a tool call: its parts, and what they mean in the scene. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from memory.models.offline_prompt import GoalLine
from memory.models.offline_scene import (
    Call,
    Later,
    Scene,
    Step,
    Unclear,
    find_goal,
    find_project,
    key_of,
)
from memory.models.third_person import third_person
from memory.models.words import content_stems

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
