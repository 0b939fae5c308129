"""Pages of nights: the list, one night as a difference, its preview, application and undo.

Below the pages stands how a night's operations become a difference: before and after, in groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from starlette.exceptions import HTTPException
from starlette.responses import Response

from graph.console import counted
from graph.documents import night_page
from graph.following import STEP_NAMES
from graph.inspector.jobs import Tell, Work
from graph.inspector.rendering import plain
from graph.inspector.visits import Visit
from graph.use_cases import Labels, find_night, labels_for, nights
from memory.night import plans_of, report_of, status_of
from memory.records import (
    NightReport,
    NightStatus,
    Operation,
    compaction_line,
    extraction_line,
    told,
)

ON_A_PAGE = 25

MOST_CHANGES = 50
"""Changes of a kind that a night's page shows at first."""


OPEN_TO: Mapping[NightStatus, tuple[str, ...]] = {
    "preview": ("apply", "discard"),
    "held": ("apply", "discard"),
    "approved": ("apply",),
    "complete": ("undo",),
}
"""What can be done with a night of this status."""


async def night_list(visit: Visit) -> Response:
    """All nights, the newest first."""
    paging = visit.paging(ON_A_PAGE)
    listed = await night_page(visit.context, paging=paging)
    return visit.show_list("nights", listed.total, paging, nights=listed.items)


async def one_night(visit: Visit) -> Response:
    """One night: what it changed, its steps and cost, what it refused."""
    return await _night(visit, "night.html", done=visit.asked("done"))


async def night_action_form(visit: Visit) -> Response:
    """What an action would do with a night."""
    return await _night(visit, "night_action.html", name=_action(visit))


async def _night(visit: Visit, template: str, **values: Any) -> Response:
    context = visit.context
    record = await find_night(context, visit.named("id"))
    plans = await plans_of(context.store, context.scope, record["id"])
    report = report_of(record, plans)
    operations = report["operations"]
    names = await labels_for(context, operations)
    facts = await context.semantic.by_op(context.scope, list(names.facts))
    ids = {op: fact["id"] for op, fact in facts.items()}
    ended = {op for op, fact in facts.items() if fact["invalid_at"] is not None}
    state = status_of(record)
    possible = OPEN_TO.get(state, ())
    obstacles = {key: await nights.why_not(context, record, plans, key) for key in possible}
    return visit.show(
        template,
        record=record,
        state=state,
        report=report,
        groups=differences(Reading(operations, names, ids, ended, state == "complete")),
        whole=visit.asked("whole") == "1",
        most=MOST_CHANGES,
        endings=_endings(report),
        steps=STEP_NAMES,
        actions=[key for key, why in obstacles.items() if why is None],
        obstacles=obstacles,
        **values,
    )


def _endings(report: NightReport) -> list[str]:
    """What became of the history."""
    lines = [compaction_line(report["compaction"])] if "compaction" in report else []
    return lines + ([extraction_line(report["extraction"])] if "extraction" in report else [])


def _action(visit: Visit) -> str:
    name = visit.named("action")
    if name not in ("apply", "undo", "discard"):
        raise HTTPException(404, "A night can be applied, undone or discarded.")
    return name


async def night_action(visit: Visit) -> Response:
    """Carry an action out."""
    name = _action(visit)
    night = (await find_night(visit.context, visit.named("id")))["id"]
    if name == "apply":
        visit.host.jobs.start(visit.owner, "Applying a night", _applied(visit, night))
        return visit.go("progress")
    done = nights.undo_night if name == "undo" else nights.discard_night
    await done(visit.context, night)
    return visit.go("nights", night, done=name)


def _applied(visit: Visit, night: str) -> Work:
    async def work(tell: Tell) -> tuple[str, ...]:
        await visit.host.apply(visit, night, tell)
        return ("nights", night)

    return work


# A preview


async def preview_form(visit: Visit) -> Response:
    """What a preview would do, and with which model."""
    return visit.show("preview.html", model=visit.host.model())


async def start_preview(visit: Visit) -> Response:
    """Start a preview; its page shows how far it is."""

    async def work(tell: Tell) -> tuple[str, ...]:
        tell("looking for what is new")
        night = await visit.host.preview(visit, tell)
        if night is None:
            tell("Nothing to do tonight: no model was called.")
            return ("nights",)
        return ("nights", night)

    visit.host.jobs.start(visit.owner, "A preview of the night", work)
    return visit.go("progress")


# A night as a difference


class Change(NamedTuple):
    """One change, for people."""

    after: str | None
    before: str | None = None
    note: str = ""
    ids: tuple[str | None, str | None] = (None, None)
    """Ids of the memories before and after, where they can be looked up."""
    stays: bool = False
    """Whether both stand side by side, and neither takes the other's place."""
    over: bool = False
    """Whether what was before no longer holds, or is gone: it alone is crossed out."""


class Group(NamedTuple):
    """Changes of one kind."""

    key: str
    title: str
    changes: list[Change]
    told: str = ""
    """What the group says besides its changes."""

    @property
    def replaced(self) -> bool:
        """Whether something takes the place of something else, to be put side by side."""
        pairs = (one for one in self.changes if not one.stays)
        return any(one.before is not None and one.after is not None for one in pairs)


MARKS = {
    "consolidated": "settled",
    "below_threshold": "not important enough for facts",
    "faded": "faded: old and of little importance",
}


class Reading(NamedTuple):
    """A night's operations, and the names behind their ids."""

    operations: Sequence[Operation]
    names: Labels
    ids: Mapping[str, str]
    """Fact ids by operation id, of the facts that are there."""
    ended: Collection[str] = ()
    """Operation ids of the facts that no longer hold, whatever ended them."""
    applied: bool = True
    """Whether the night is in force: a preview, or one that was taken back, ends nothing."""

    def of(self, *kinds: str) -> Iterator[Any]:
        """The operations of these kinds. Any, because the kind determines the keys of `after`."""
        return (one for one in told(self.operations) if one["kind"] in kinds)

    def fact(self, op: str) -> str:
        """A fact's words, with who said it."""
        fact = self.names.fact(op)
        speaker = fact.get("speaker")
        return f"{fact['text']} ({speaker})" if speaker else str(fact["text"])

    def links(self, relation: str) -> list[Any]:
        """Operations that link two facts in this way."""
        found = (one for one in self.of("link") if one["after"]["of"] == "facts")
        return [one for one in found if one["after"]["relation"] == relation]

    def pair(self, before: str, after: str, note: str, *, stays: bool = False) -> Change:
        """Two facts, one in the place of the other unless both stay."""
        ids = (self.ids.get(before), self.ids.get(after))
        over = not stays and before in self.ended
        return Change(self.fact(after), self.fact(before), note, ids, stays, over)


def differences(reading: Reading) -> list[Group]:
    """What a night changed, the weightiest first, without empty groups."""
    groups = [
        _learned(reading),
        _changed(reading),
        _open(reading),
        _people(reading),
        _concluded(reading),
        _joined(reading),
        _linked(reading),
        _forgotten(reading),
        _weighed(reading),
        _settled(reading),
    ]
    return [group for group in groups if group.changes or group.told]


def _replacements(reading: Reading) -> list[tuple[str, str, str]]:
    """(fact, the fact in its place, why)."""
    found = []
    for change in reading.of("change_fact"):
        if by := (change["after"] or {}).get("superseded_by"):
            found.append((change["target"], by, change["reason"]))
    return found


def _merged(reading: Reading) -> set[frozenset[str]]:
    return {
        frozenset((one["target"], one["after"]["other"])) for one in reading.links("duplicates")
    }


def _learned(reading: Reading) -> Group:
    below = {op for before, after, _ in _replacements(reading) for op in (before, after)}
    facts = list(reading.of("add_fact"))
    changes = [
        Change(reading.fact(one["target"]), ids=(None, reading.ids.get(one["target"])))
        for one in facts
        if one["target"] not in below
    ]
    more = len(facts) - len(changes)
    note = f"{more} of them stand below." if more else ""
    return Group("learned", f"Learned {counted(len(facts), 'fact')}", changes, note)


def _changed(reading: Reading) -> Group:
    merged = _merged(reading)
    changes = [
        reading.pair(before, after, why)
        for before, after, why in _replacements(reading)
        if frozenset((before, after)) not in merged
    ]
    return Group("changed", f"Changed {counted(len(changes), 'fact')}", changes)


def _open(reading: Reading) -> Group:
    changes = [
        reading.pair(one["target"], one["after"]["other"], one["reason"], stays=True)
        for one in reading.links("contradicts")
    ]
    title = f"Left open {counted(len(changes), 'contradiction')}"
    return Group("open", title, changes, "Both are recalled, marked." if changes else "")


def _people(reading: Reading) -> Group:
    changes = []
    for one in reading.of("change_entity"):
        who = reading.names.profiles.get(one["target"], one["target"])
        for name, now in one["after"]["attributes"].items():
            was = one["before"]["attributes"].get(name)
            if not (was and now and was["value"] == now["value"]):
                about = f"{who}, {plain(name)}: "
                before, after = (f"{about}{side['value']}" if side else None for side in (was, now))
                changes.append(Change(after, before, "" if now else "no longer holds"))
    for one in reading.of("observe_entity"):
        changes.append(Change(f"{one['after']['name']}: {one['after']['observation']['text']}"))
    pages = len(list(reading.of("write_page")))
    note = f"Rewrote {counted(pages, 'page')} of what holds now." if pages else ""
    return Group("people", "People and things", changes, note)


def _concluded(reading: Reading) -> Group:
    changes = [
        Change(one["after"]["content"], note=one["reason"], ids=(None, one["target"]))
        for one in reading.of("add_entry")
    ]
    return Group("concluded", f"Wrote {counted(len(changes), 'entry', 'entries')}", changes)


def _joined(reading: Reading) -> Group:
    merged = _merged(reading)
    changes = [
        # What the first one said still holds: the second one says it too.
        reading.pair(before, after, why or "both say the same")._replace(over=False)
        for before, after, why in _replacements(reading)
        if frozenset((before, after)) in merged
    ]
    title = f"Joined {counted(len(changes), 'pair')} that say the same"
    return Group("joined", title, changes)


def _linked(reading: Reading) -> Group:
    changes = [
        reading.pair(one["target"], one["after"]["other"], one["reason"], stays=True)
        for one in reading.links("relates")
    ]
    pairs = len(changes)
    for one in reading.of("change_fact"):
        if context := (one["after"] or {}).get("context"):
            ids = (None, reading.ids.get(one["target"]))
            text = reading.fact(one["target"])
            changes.append(Change(text, None, f"seen as: {context}", ids, stays=True))
    return Group("linked", f"Linked {counted(pairs, 'pair')} of facts", changes)


def _forgotten(reading: Reading) -> Group:
    changes = [
        Change(None, one["before"]["content"], one["reason"], over=reading.applied)
        for one in reading.of("prune_entry")
    ]
    changes += [
        Change(None, reading.fact(one["target"]), one["reason"], over=reading.applied)
        for one in reading.of("remove_fact")
    ]
    loose = len(list(reading.of("unlink")))
    note = f"{counted(loose, 'link')} that led nowhere taken away." if loose else ""
    return Group(
        "forgotten", f"Forgot {counted(len(changes), 'memory', 'memories')}", changes, note
    )


def _weighed(reading: Reading) -> Group:
    rows = []
    for one in reading.of("score_entry"):
        was, now = one["before"]["importance"], one["after"]["importance"]
        entry = reading.names.entries.get(one["target"])
        text = entry["content"] if entry else one["target"]
        note = f"importance {was} → {now}" if was != now else f"importance {now}"
        rows.append((now, Change(text, None, note, (None, one["target"]), stays=True)))
    rows.sort(key=lambda row: -row[0])
    title = f"Weighed {counted(len(rows), 'entry', 'entries')}"
    return Group("weighed", title, [change for _, change in rows])


def _settled(reading: Reading) -> Group:
    marks = Counter(one["after"]["consolidation"] for one in reading.of("mark_entry"))
    lines = [
        f"{counted(number, 'entry', 'entries')} {MARKS.get(mark, plain(mark))}"
        for mark, number in marks.items()
    ]
    return Group("settled", "Settled", [], f"{'; '.join(lines)}." if lines else "")
