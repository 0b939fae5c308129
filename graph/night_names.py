"""Labels for the ids in a night's operations, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from graph.context import AgentContext
from memory import entities, journal, links
from memory.models.words import shortened
from memory.operations import told
from memory.records import Operation

QUOTED = 60
"""Most characters of a quoted text."""


@dataclass
class Names:
    """Memories by id; facts also by operation id."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`text`, `speaker` and `valid_from` at least."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    """Names of people and things."""

    @classmethod
    def told_by(cls, operations: Sequence[Operation]) -> Names:
        """What the operations themselves say of their targets. Pure."""
        found = cls()
        for operation in told(operations):
            value = operation["after"] or operation["before"]
            if operation["kind"] in ("add_fact", "remove_fact"):
                found.facts[operation["target"]] = value
            elif operation["kind"] in ("add_entry", "prune_entry"):
                found.entries[operation["target"]] = value
            elif operation["kind"] == "observe_entity":
                found.profiles[operation["target"]] = value["name"]
        return found

    def fact(self, op: str) -> dict[str, Any]:
        """A fact, or a placeholder if it no longer exists."""
        unknown = {"text": f"(a fact that is gone, {op[:8]})", "speaker": None, "valid_from": None}
        return self.facts.get(op) or unknown

    def of(self, id_: str) -> str:
        """A short label for an id of any kind."""
        if id_ in self.facts:
            return f'the fact "{_quoted(self.facts[id_]["text"])}"'
        if id_ in self.entries:
            return f'{id_} "{_quoted(self.entries[id_]["content"])}"'
        if id_ in self.profiles:
            return f"what is known of {self.profiles[id_]}"
        return "insights that were stored" if id_ == "reflection" else id_


async def names_of(
    context: AgentContext, operations: Sequence[Operation], also: Iterable[str] = ()
) -> Names:
    """Look up the targets of `operations`, and the ids in `also`."""
    names = Names.told_by(operations)
    wanted = [*dict.fromkeys([*also, *_named(operations)])]
    store, scope, semantic = context.store, context.scope, context.semantic
    read = await journal.read_many(store, scope, wanted)
    names.entries |= {id_: dict(entry) for id_, entry in read.items() if id_ not in names.entries}
    profiles = await entities.read(store, scope, wanted)
    names.profiles |= {id_: one["name"] for id_, one in profiles.items()}
    known = names.entries | names.facts | names.profiles
    left = [id_ for id_ in wanted if id_ not in known]
    facts = await semantic.by_op(scope, left)
    names.facts |= {op: dict(fact) for op, fact in facts.items()}
    for id_ in (id_ for id_ in left if id_ not in facts):
        fact = await semantic.get(scope, id_)
        if fact is not None:
            names.facts[id_] = dict(fact)
    return names


def _named(operations: Sequence[Operation]) -> Iterable[str]:
    for operation in told(operations):
        yield operation["target"]
        value = operation["after"] or operation["before"]
        if operation["kind"] in ("link", "unlink"):
            yield value["other"]
            yield from links.fact_ops(operation)
        elif operation["kind"] == "change_fact":
            for side in (operation["before"], operation["after"]):
                yield from (op for op in [(side or {}).get("superseded_by")] if op)
                yield from (side or {}).get("disputed", ())


def _quoted(text: str) -> str:
    return shortened(" ".join(text.split()), QUOTED)
