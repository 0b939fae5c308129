"""A night as a difference: what it changed in memory, in groups, before and after. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from graph.console import counted
from graph.use_cases import Labels
from memory.records import Operation, with_values


class Side(NamedTuple):
    """A memory before or after a change."""

    text: str
    speaker: str | None = None
    at: str | None = None
    """When it came to hold, or was said; ISO 8601, UTC."""
    sources: Sequence[str] = ()
    id: str | None = None
    """Its id, if it can be looked up."""


class Change(NamedTuple):
    """One change, for people."""

    before: Side | None
    after: Side | None
    note: str = ""
    stays: bool = False
    """Whether both sides hold, and neither replaces the other."""
    gone: bool = False
    """Whether the side before no longer holds or exists."""


class ChangeGroup(NamedTuple):
    """Changes of one kind."""

    key: str
    title: str
    changes: list[Change]
    note: str = ""
    """What the group says besides its changes."""

    @property
    def replaced(self) -> bool:
        """Whether some changes replace one side with the other."""
        pairs = (change for change in self.changes if not change.stays)
        return any(change.before and change.after for change in pairs)


MARKS = {
    "consolidated": "made into facts",
    "below_threshold": "not important enough for facts",
    "faded": "faded: old and of little importance",
}
"""What became of journal entries, by their mark."""


class NightChanges(NamedTuple):
    """A night's operations, and the names behind their ids."""

    operations: Sequence[Operation]
    names: Labels
    ids: Mapping[str, str] = {}
    """Ids by operation id, of the facts that exist."""
    ended: Collection[str] = ()
    """Operation ids of the facts that no longer hold."""
    applied: bool = True
    """Whether the night is in force. A preview, or a night that was undone, ends nothing."""

    def of(self, *kinds: str) -> Iterator[Any]:
        """The operations of these kinds. Any, because the kind determines the keys of `after`."""
        return (one for one in with_values(self.operations) if one["kind"] in kinds)

    def links(self, relation: str) -> list[Any]:
        """The operations that link two facts by this relation."""
        of_facts = (link for link in self.of("link") if link["after"]["of"] == "facts")
        return [link for link in of_facts if link["after"]["relation"] == relation]

    def related(self, relation: str) -> list[Change]:
        """Both facts of each link by this relation; both stay."""
        return [
            self.pair(link["target"], link["after"]["other"], link["reason"], stays=True)
            for link in self.links(relation)
        ]

    def fact(self, op: str) -> Side:
        """A fact by its operation id."""
        fact = self.names.fact(op)
        return Side(fact["text"], fact["speaker"], fact["valid_from"], id=self.ids.get(op))

    def pair(self, before: str, after: str, note: str, *, stays: bool = False) -> Change:
        """Two facts; the second replaces the first unless both stay."""
        gone = not stays and before in self.ended
        return Change(self.fact(before), self.fact(after), note, stays, gone)


def differences(night: NightChanges) -> list[ChangeGroup]:
    """What a night changed, the weightiest first, without empty groups."""
    groups = [
        _learned(night),
        _changed(night),
        _joined(night),
        _open(night),
        _people(night),
        _concluded(night),
        _written(night),
        _linked(night),
        _faded(night),
        _scored(night),
        _settled(night),
    ]
    return [group for group in groups if group.changes or group.note]


def taken_back(groups: Sequence[ChangeGroup]) -> str:
    """What undoing a night took back, as one sentence; empty if it had changed nothing."""
    titles = [group.title for group in groups if group.changes and group.key != "people"]
    did = [f"{title[0].lower()}{title[1:]}" for title in titles]
    return f"Undone: the night had {', '.join(did)}." if did else ""


def _replacements(night: NightChanges, *, joined: bool) -> list[tuple[str, str, str]]:
    """(fact, its successor, why) of pairs that say the same if `joined`, else of all others."""
    links = night.links("duplicates")
    duplicates = {frozenset((link["target"], link["after"]["other"])) for link in links}
    found = [
        (change["target"], by, change["reason"])
        for change in night.of("change_fact")
        if (by := (change["after"] or {}).get("superseded_by"))
    ]
    return [one for one in found if (frozenset(one[:2]) in duplicates) == joined]


def _learned(night: NightChanges) -> ChangeGroup:
    """New facts, except facts that replace others or were replaced at once."""
    pairs = [*_replacements(night, joined=False), *_replacements(night, joined=True)]
    shown_elsewhere = {op for pair in pairs for op in pair[:2]}
    facts = list(night.of("add_fact"))
    changes = []
    for op, fact in ((one["target"], one["after"]) for one in facts):
        if op in shown_elsewhere:
            continue
        cited = fact["source_events"] or fact["source_entries"]
        side = Side(fact["text"], fact["speaker"], fact["valid_from"], cited, night.ids.get(op))
        changes.append(Change(None, side))
    more = len(facts) - len(changes)
    note = f"{more:,} of them {'is' if more == 1 else 'are'} in the changes below."
    heading = f"Learned {counted(len(facts), 'fact')}"
    return ChangeGroup("learned", heading, changes, note if more else "")


def _changed(night: NightChanges) -> ChangeGroup:
    changes = [night.pair(*found) for found in _replacements(night, joined=False)]
    return ChangeGroup("changed", f"Changed {counted(len(changes), 'fact')}", changes)


def _joined(night: NightChanges) -> ChangeGroup:
    changes = [
        # What the first fact said still holds: the second one says it too.
        night.pair(before, after, why or "both say the same")._replace(gone=False)
        for before, after, why in _replacements(night, joined=True)
    ]
    pairs = counted(len(changes), "pair that says", "pairs that say")
    return ChangeGroup("joined", f"Joined {pairs} the same", changes)


def _open(night: NightChanges) -> ChangeGroup:
    changes = night.related("contradicts")
    title = f"Left open {counted(len(changes), 'contradiction')}"
    return ChangeGroup("open", title, changes, "Both are recalled, marked." if changes else "")


def _people(night: NightChanges) -> ChangeGroup:
    changes = []
    for operation in night.of("change_entity"):
        about = night.names.profiles.get(operation["target"], operation["target"])
        for name, now in operation["after"]["attributes"].items():
            was = operation["before"]["attributes"].get(name)
            if was and now and was["value"] == now["value"]:
                continue
            before, after = (
                Side(f"{about}, {name.replace('_', ' ')}: {value['value']}") if value else None
                for value in (was, now)
            )
            changes.append(Change(before, after, "" if now else "no longer holds"))
    for operation in night.of("observe_entity"):
        name, seen = operation["after"]["name"], operation["after"]["observation"]
        changes.append(Change(None, Side(f"{name}: {seen['text']}", seen["speaker"])))
    pages = len(list(night.of("write_page")))
    note = f"Rewrote {counted(pages, 'page')} of what holds now." if pages else ""
    return ChangeGroup("people", "Changed what is known of people and things", changes, note)


def _concluded(night: NightChanges) -> ChangeGroup:
    changes = []
    for added in night.of("add_entry"):
        if evidence := added["after"].get("evidence"):
            note = f"from {counted(len(evidence), 'memory', 'memories')}"
            changes.append(Change(None, Side(added["after"]["content"], id=added["target"]), note))
    return ChangeGroup("concluded", f"Concluded {counted(len(changes), 'insight')}", changes)


def _written(night: NightChanges) -> ChangeGroup:
    changes = [
        Change(None, Side(added["after"]["content"], id=added["target"]), added["reason"])
        for added in night.of("add_entry")
        if not added["after"].get("evidence")
    ]
    return ChangeGroup("written", f"Wrote {_entries(len(changes))}", changes)


def _linked(night: NightChanges) -> ChangeGroup:
    changes = night.related("relates")
    title = f"Linked {counted(len(changes), 'pair')} of facts"
    described = [one for one in night.of("change_fact") if "context" in one["after"]]
    for operation in described:
        tags = ", ".join(operation["after"].get("tags") or ())
        seen = [operation["after"]["context"] or "", f"[{tags}]" if tags else ""]
        note = f"seen as: {' '.join(filter(None, seen))}"
        changes.append(Change(None, night.fact(operation["target"]), note, stays=True))
    more = f", saw {counted(len(described), 'fact')} in a new light" if described else ""
    return ChangeGroup("linked", title + more, changes)


def _faded(night: NightChanges) -> ChangeGroup:
    changes = [
        Change(_entry(pruned["before"]), None, pruned["reason"], gone=night.applied)
        for pruned in night.of("prune_entry")
    ]
    loose = len(list(night.of("unlink")))
    note = f"Removed {counted(loose, 'link')} to memories that are gone." if loose else ""
    title = f"Let {counted(len(changes), 'memory', 'memories')} fade"
    return ChangeGroup("faded", title, changes, note)


def _scored(night: NightChanges) -> ChangeGroup:
    rows = []
    for operation in night.of("score_entry"):
        was, now = operation["before"]["importance"], operation["after"]["importance"]
        entry = night.names.entries.get(operation["target"])
        side = _entry(entry) if entry else Side(operation["target"])
        note = f"importance {was} → {now}" if was != now else f"importance {now}"
        rows.append((now, Change(None, side._replace(id=operation["target"]), note, stays=True)))
    rows.sort(key=lambda row: -row[0])
    return ChangeGroup("scored", f"Scored {_entries(len(rows))}", [change for _, change in rows])


def _settled(night: NightChanges) -> ChangeGroup:
    cited = {entry for one in night.of("add_fact") for entry in one["after"]["source_entries"]}
    marks = Counter(_mark(one, cited) for one in night.of("mark_entry"))
    lines = [f"{_entries(number)} {mark}" for mark, number in marks.items()]
    return ChangeGroup("settled", "Settled", [], f"{'; '.join(lines)}." if lines else "")


def _mark(operation: Any, cited: Collection[str]) -> str:
    """The outcome for an entry. Only an entry that a fact cites was made into facts."""
    mark = str(operation["after"]["consolidation"])
    if mark == "consolidated" and operation["target"] not in cited:
        return "with nothing to keep"
    return MARKS.get(mark, mark.replace("_", " "))


def _entry(entry: Mapping[str, Any]) -> Side:
    return Side(entry["content"], entry.get("source_entity"), entry.get("timestamp"))


def _entries(number: int) -> str:
    return counted(number, "journal entry", "journal entries")
