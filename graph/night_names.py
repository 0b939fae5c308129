"""What the ids in a night's operations stand for, so that a person can read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from memory import entities, journal, links
from memory.models.words import shortened
from memory.operations import told
from memory.records import Operation

if TYPE_CHECKING:
    from graph.handle import AsyncAgent

QUOTED = 60
"""Characters of a text that names its memory."""


@dataclass
class Names:
    """Memories by id; facts by operation id, too."""

    facts: dict[str, dict[str, Any]] = field(default_factory=dict)
    """`text`, `speaker` and `valid_from` at least."""
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    profiles: dict[str, str] = field(default_factory=dict)
    """Names of people and things."""

    @classmethod
    def told_by(cls, operations: Sequence[Operation]) -> Names:
        """What the operations themselves tell. Pure."""
        found = cls()
        for one in told(operations):
            value = one["after"] or one["before"]
            if one["kind"] in ("add_fact", "remove_fact"):
                found.facts[one["target"]] = value
            elif one["kind"] in ("add_entry", "prune_entry"):
                found.entries[one["target"]] = value
            elif one["kind"] == "observe_entity":
                found.profiles[one["target"]] = value["name"]
        return found

    def fact(self, op: str) -> dict[str, Any]:
        """A fact; one that is known no more says so."""
        unknown = {"text": f"(a fact that is gone, {op[:8]})", "speaker": None, "valid_from": None}
        return self.facts.get(op) or unknown

    def of(self, id_: str) -> str:
        """One line for whatever has this id."""
        if id_ in self.facts:
            return f'the fact "{_quoted(self.facts[id_]["text"])}"'
        if id_ in self.entries:
            return f'{id_} "{_quoted(self.entries[id_]["content"])}"'
        if id_ in self.profiles:
            return f"what is known of {self.profiles[id_]}"
        return "insights that were stored" if id_ == "reflection" else id_


async def names_of(
    agent: AsyncAgent, operations: Sequence[Operation], also: Iterable[str] = ()
) -> Names:
    """Look up everything that `operations` are about, and the ids in `also`."""
    names = Names.told_by(operations)
    wanted = [*dict.fromkeys([*also, *_named(operations)])]
    store, scope, semantic = agent.store, agent.scope, agent.resources.semantic
    read = await journal.read_many(store, scope, wanted)
    names.entries |= {id_: dict(entry) for id_, entry in read.items() if id_ not in names.entries}
    profiles = await entities.read(store, scope, wanted)
    names.profiles |= {id_: one["name"] for id_, one in profiles.items()}
    left = [one for one in wanted if one not in names.entries | names.facts | names.profiles]
    facts = await semantic.by_op(scope, left)
    names.facts |= {op: dict(fact) for op, fact in facts.items()}
    for id_ in (one for one in left if one not in facts):
        fact = await semantic.get(scope, id_)
        if fact is not None:
            names.facts[id_] = dict(fact)
    return names


def _named(operations: Sequence[Operation]) -> Iterable[str]:
    for one in told(operations):
        yield one["target"]
        value = one["after"] or one["before"]
        if one["kind"] in ("link", "unlink"):
            yield value["other"]
            yield from links.fact_ops(one)
        elif one["kind"] == "change_fact":
            for side in (one["before"], one["after"]):
                yield from (op for op in [(side or {}).get("superseded_by")] if op)
                yield from (side or {}).get("disputed", ())


def _quoted(text: str) -> str:
    return shortened(" ".join(text.split()), QUOTED)
