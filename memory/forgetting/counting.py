"""Summary of a forget for a person: counts by kind, and some of the texts that go. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from memory.forgetting.erasure import Erasure
from memory.forgetting.store_changes import StoreChanges
from memory.journal import by_time
from memory.models.words import shortened

EXAMPLES = 5
"""Texts in a preview."""
QUOTED = 100
"""Most characters of each."""

_OF_THE_STORE = {
    "profiles": ("entities",),
    "links": ("links",),
    "inbox": ("inbox", "set_aside"),
    "nights": ("nights",),
    "audit": ("audit",),
    "answers": ("answers", "deeds", "passed_over"),
}
_WITH_OTHERS = frozenset(
    ("journal", "pending", "archives", "unindexed", "entity_names", "handled", "night", "runs")
)
"""Kinds that are counted together with others."""


def counts(
    erasure: Erasure, before: Mapping[str, Any], after: Mapping[str, Any], store: StoreChanges
) -> dict[str, int]:
    """Number of records that go or change, by kind, including zeros."""
    of_store = {
        name: sum(store.removed[kind] + store.rewritten[kind] for kind in kinds)
        for name, kinds in _OF_THE_STORE.items()
    }
    named = {kind for kinds in _OF_THE_STORE.values() for kind in kinds} | _WITH_OTHERS
    rest = Counter(store.removed) + Counter(store.rewritten)
    return {
        "events": len(erasure.events),
        "journal": sum(left is None for left in erasure.entries.values()),
        "journal_rewritten": len(erasure.rewritten),
        "facts": len(erasure.facts),
        **_of_state(before, after),
        **of_store,
        "other": sum(number for kind, number in rest.items() if kind not in named),
    }


def examples(erasure: Erasure) -> list[str]:
    """Beginnings of some texts that go: the newest entries, then facts."""
    going = [one for id_, one in erasure.before.items() if erasure.entries[id_] is None]
    texts = [one["content"] for one in reversed(by_time(going))]
    texts = [*texts[: EXAMPLES - 2], *(fact["text"] for fact in erasure.facts.values())]
    return [shortened(one, QUOTED) for one in dict.fromkeys(texts)][:EXAMPLES]


def _of_state(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, int]:
    old, new = before.get("messages", []), after.get("messages", [])
    left = {one.id: one for one in new}
    return {
        "messages": sum(one.id not in left for one in old),
        "messages_rewritten": sum(one.id in left and left[one.id] != one for one in old),
        "goals": _changed(before, after, "goals"),
        "projects": _changed(
            (before.get("projects") or {}), (after.get("projects") or {}), "slots"
        ),
        "session_memory": _texts_changed(before, after),
        "conversations": _changed(before, after, "conversations"),
        "overheard": _gone(before, after, "context_buffer"),
        "questions": _gone(before, after, "parked"),
        "prompt_versions": _gone(
            before.get("assistant_prompt", {}), after.get("assistant_prompt", {}), "versions"
        ),
    }


def _changed(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> int:
    old, new = before.get(key) or {}, after.get(key) or {}
    return sum(new.get(id_) != one for id_, one in old.items())


def _gone(before: Mapping[str, Any], after: Mapping[str, Any], key: str) -> int:
    new: Sequence[Any] = after.get(key) or []
    return sum(one not in new for one in before.get(key) or [])


def _texts_changed(before: Mapping[str, Any], after: Mapping[str, Any]) -> int:
    old, new = before.get("session_memory") or {}, after.get("session_memory") or {}
    lists = ("key_facts", "learned_patterns", "completed_tasks")
    return sum(_gone(old, new, one) for one in lists)
