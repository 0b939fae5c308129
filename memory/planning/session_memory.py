"""Session memory: facts and patterns in every prompt. Pure.

Despite its name it is permanent. The persona guard checks every write, with the assistant as the
speaker.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, Literal, cast

from typing_extensions import TypedDict

from memory.errors import Refusal
from memory.guards import ERROR, SUGGESTION, repeats, share, violation
from memory.records import CompletedTask, SessionMemory

MemoryType = Literal["fact", "pattern"]

COMPLETED_KEPT = 200
"""Most completed tasks: every checkpoint copies the whole state."""

KEPT = 0.5
"""Share of an item's words (0..1) that another item must have to say the same."""


def add(
    memory: SessionMemory,
    memory_type: MemoryType,
    content: str,
    *,
    by: str | None = None,
    rests_on: Sequence[str] = (),
    private: bool = False,
) -> tuple[SessionMemory, dict[str, Any]]:
    """Add a fact or pattern, unless it is known; return the new memory and the tool's result.

    `by`: who said it, unless an owner did. `rests_on`: others on whose words it may rest.
    `private`: nobody but owners heard it.
    """
    text = content.strip()
    if not text:
        raise Refusal("Nothing to remember", "Give one fact or pattern as a sentence.")
    _guard([text], rejected=content)
    standing = memory["key_facts"] if memory_type == "fact" else memory["learned_patterns"]
    known = next((item for item in standing if _key(item) == _key(text)), None)
    result: dict[str, Any] = {"memory_type": memory_type, "added": text}
    after = memory
    if known is None:
        after = _with_items(memory, memory_type, [*standing, text])
        after = _with_speakers(after, {text: by}, {text: [*rests_on]})
        after = _with_private(after, [*memory.get("private", ()), *([text] if private else ())])
    else:
        result |= {"added": None, "message": f"Already known, not added twice: {known}"}
    result |= {
        "total_facts": len(after["key_facts"]),
        "total_patterns": len(after["learned_patterns"]),
    }
    return after, result


def compact(
    memory: SessionMemory,
    new_facts: Sequence[str],
    new_patterns: Sequence[str],
    summary: str,
    now: datetime,
    *,
    by: str | None = None,
    rests_on: Mapping[str, Sequence[str]] = MappingProxyType({}),
    private: bool = False,
) -> tuple[SessionMemory, dict[str, Any]]:
    """Replace both lists by consolidated ones, without duplicates; completed tasks stay.

    Returns the new memory and the tool's result. An item keeps its speaker. `by`: who requested
    this, unless an owner did; new items get this name, and what others said stays word for word.
    `rests_on`: item -> those besides owners on whose words it may rest. Unless `private`, the tick
    did not show the private items, and they stay. Raises Refusal for an item about the assistant,
    two empty lists, or the loss of what others said.
    """
    hidden = [] if private else memory.get("private", [])
    facts = _each_once([*(one for one in memory["key_facts"] if one in hidden), *new_facts])
    kept = (one for one in memory["learned_patterns"] if one in hidden)
    patterns = _each_once([*kept, *new_patterns])
    before = _counts(memory)
    if not facts and not patterns and before["facts"] + before["patterns"] > 1:
        raise Refusal(
            "Both lists are empty: everything would be forgotten",
            "Give the facts and patterns that are to stay, consolidated.",
            before=before,
        )
    _guard([*facts, *patterns])
    if by is not None and (lost := _lost(memory, [*facts, *patterns], by)):
        told = "What others said would be lost, and nobody of them asked for it"
        raise Refusal(told, "Keep it word for word, or compact in a tick of your own.", lost=lost)
    after: SessionMemory = {
        **memory,
        "key_facts": facts,
        "learned_patterns": patterns,
        "last_compacted": now.isoformat(),
    }
    items = (*facts, *patterns)
    nearest = {one: _nearest(one, memory) for one in items}
    said, rested = memory.get("said_by", {}), memory.get("origins", {})
    speakers = {one: by if old is None else said.get(old) for one, old in nearest.items()}
    origins = {one: [*rests_on.get(one, rested.get(old or "", ()))] for one, old in nearest.items()}
    after = _with_speakers(after, speakers, origins)
    after = _with_private(after, [one for one in items if _is_private(one, memory, private)])
    return after, {"before": before, "after": _counts(after), "summary": summary}


class CorrectedFact(TypedDict):
    """A fact that somebody corrects."""

    by: str
    texts: tuple[str, str]
    """What the fact said, and what is true."""


def corrected(
    memory: SessionMemory, correction: CorrectedFact, owners: Collection[str]
) -> SessionMemory:
    """The memory with the corrected text in place of the items that repeat the wrong one.

    A corrected text in the first person is left out: an item does not say whose words it is.
    """
    old, said = correction.get("texts", ("", ""))  # an older version kept none
    by = correction["by"]
    standing = (*memory["key_facts"], *memory["learned_patterns"])
    wrong = {one for one in standing if repeats(one, [old])}
    if not wrong:
        return memory
    new = [] if violation(said) else [said]
    lists = (memory["key_facts"], memory["learned_patterns"])
    facts, patterns = (
        _each_once(text for one in texts for text in (new if one in wrong else [one]))
        for texts in lists
    )
    after: SessionMemory = {**memory, "key_facts": facts, "learned_patterns": patterns}
    hidden = memory.get("private", [])
    return _with_private(
        _with_speakers(after, {said: None if by in owners else by}, {said: []}),
        [*hidden, *(new if wrong & {*hidden} else ())],
    )


def without_private(memory: SessionMemory) -> SessionMemory:
    """The memory without private items, for prompts whose answers others than owners read."""
    hidden = memory.get("private", [])
    return {
        **memory,
        "key_facts": [one for one in memory["key_facts"] if one not in hidden],
        "learned_patterns": [one for one in memory["learned_patterns"] if one not in hidden],
    }


def complete(memory: SessionMemory, tasks: Iterable[CompletedTask]) -> SessionMemory:
    """Append completed root goals and projects; the newest COMPLETED_KEPT stay."""
    kept = [*memory["completed_tasks"], *tasks][-COMPLETED_KEPT:]
    return {**memory, "completed_tasks": kept}


def _guard(texts: Iterable[str], *, rejected: str | None = None) -> None:
    """Refuse texts about the assistant; `rejected`: the only text, as it was given."""
    found = [text for text in texts if violation(text)]
    if found:
        content = found if rejected is None else rejected
        raise Refusal(ERROR, SUGGESTION, rejected_content=content)


def _with_items(memory: SessionMemory, memory_type: MemoryType, texts: list[str]) -> SessionMemory:
    if memory_type == "fact":
        return {**memory, "key_facts": texts}
    return {**memory, "learned_patterns": texts}


def _with_speakers(
    memory: SessionMemory, said_by: Mapping[str, str | None], origins: Mapping[str, Sequence[str]]
) -> SessionMemory:
    """The memory with the speakers and origins of its items; removed items lose theirs."""
    standing = {*memory["key_facts"], *memory["learned_patterns"]}
    named: dict[str, Mapping[str, object]] = {
        "said_by": {**memory.get("said_by", {}), **said_by},
        "origins": {**memory.get("origins", {}), **origins},
    }
    left = {
        key: {text: who for text, who in known.items() if text in standing and who}
        for key, known in named.items()
    }
    bare = {key: value for key, value in memory.items() if key not in named}
    return cast(SessionMemory, bare | {key: known for key, known in left.items() if known})


def _with_private(memory: SessionMemory, texts: Iterable[str]) -> SessionMemory:
    """The memory with those of its items marked as private that are among `texts`."""
    standing = (*memory["key_facts"], *memory["learned_patterns"])
    private = [one for one in standing if one in {*texts}]
    bare = cast(SessionMemory, {key: value for key, value in memory.items() if key != "private"})
    return {**bare, "private": private} if private else bare


def _is_private(text: str, memory: SessionMemory, private: bool) -> bool:
    """Whether an item was private, or is new in a tick that only owners hear."""
    hidden = memory.get("private", [])
    if any(share(text, [one]) >= KEPT for one in hidden):
        return True
    return private and _nearest(text, memory) is None


def _nearest(text: str, memory: SessionMemory) -> str | None:
    standing = [*memory["key_facts"], *memory["learned_patterns"]]
    nearest = max(standing, key=lambda item: share(text, [item]), default="")
    return nearest if share(text, [nearest]) >= KEPT else None


def _lost(memory: SessionMemory, left: Sequence[str], by: str) -> list[str]:
    said, kept = memory.get("said_by", {}), {_key(one) for one in left}
    standing = (*memory["key_facts"], *memory["learned_patterns"])
    return [one for one in standing if said.get(one) != by and _key(one) not in kept]


def _counts(memory: SessionMemory) -> dict[str, int]:
    return {"facts": len(memory["key_facts"]), "patterns": len(memory["learned_patterns"])}


def _each_once(texts: Iterable[str]) -> list[str]:
    kept: dict[str, str] = {}
    for text in texts:
        if text.strip():
            kept.setdefault(_key(text), text.strip())
    return list(kept.values())


def _key(text: str) -> str:
    return " ".join(text.casefold().split())
