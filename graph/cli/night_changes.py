"""What a night changes, grouped as a person wants to read it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from rich.text import Text

from graph.cli.console import counted, date, one_line, short_id
from graph.night_names import Names
from memory.models.words import shortened
from memory.operations import told
from memory.records import Operation


class Row(NamedTuple):
    """One change: a sign, and what it is."""

    sign: Text
    text: Text


class Section(NamedTuple):
    """Changes of one kind."""

    title: str
    rows: list[Row]
    """A change is one row, or two where something takes the place of something."""
    lines: int = 1
    """Rows of one change."""
    found: int = 0
    """Changes that are told of, where not all have a row of their own."""


KNOWN_BY = 100
"""Characters of a fact that is shown for what it is linked to."""
MARKED = {"consolidated": "made into facts", "below_threshold": "not important enough for that"}


def sections(operations: Sequence[Operation], names: Names) -> list[Section]:
    """The changes by kind, the weightiest first; kinds without any are left out."""
    told_of = told(operations)
    made = (section(told_of, names) for section in SECTIONS)
    return [one for one in made if one.rows or one.found]


def taken_back(operations: Sequence[Operation], names: Names) -> str:
    """What a night that is undone had done, in a line; empty where that was nothing."""
    titles = (re.split("[,:]", one.title)[0] for one in sections(operations, names))
    did = [f"{one[0].lower()}{one[1:]}" for one in titles if re.search(r"\d", one)]
    again = sum(one["kind"] == "mark_entry" for one in operations)
    wait = f"{_entries(again)} {'waits' if again == 1 else 'wait'} for the next night again"
    parts = [f"Taken back: {', '.join(did)}."] if did else []
    return " ".join([*parts, f"{wait}."] if again else parts)


def _learned(operations: Sequence[Operation], names: Names) -> Section:
    """New facts; those that take the place of others, or leave for them, stand with these."""
    changes = (one for one in operations if one["kind"] == "change_fact")
    pairs = ((one["target"], one["after"].get("superseded_by")) for one in changes)
    below = {op for pair in pairs if pair[1] for op in pair}
    facts = [one for one in operations if one["kind"] == "add_fact"]
    rows = [
        Row(Text("•", "green"), _fact(fact["after"], sources=True))
        for fact in facts
        if fact["target"] not in below
    ]
    with_others = f", {len(facts) - len(rows):,} of them below" if len(facts) > len(rows) else ""
    return Section(f"Learned {counted(len(facts), 'fact')}{with_others}", rows, found=len(facts))


def _superseded(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[Row]()
    for old, new, reason in _replaced(operations, names, merged=False):
        rows.append(Row(Text("-", "red"), _fact(old, gone=True)))
        rows.append(Row(Text("+", "green"), _because(_fact(new), reason)))
    return Section(f"Superseded {counted(len(rows) // 2, 'fact')}", rows, 2)


def _merged(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[Row]()
    for old, new, reason in _replaced(operations, names, merged=True):
        rows.append(Row(Text("-", "red"), _fact(old, gone=True)))
        rows.append(Row(Text("=", "green"), _because(_fact(new), reason)))
    return Section(f"Merged {counted(len(rows) // 2, 'fact')} with what says the same", rows, 2)


def _replaced(
    operations: Sequence[Operation], names: Names, *, merged: bool
) -> list[tuple[dict[str, Any], dict[str, Any], str]]:
    """What leaves, what holds in its place, and why."""
    duplicates = {
        frozenset((one["target"], one["after"]["other"]))
        for one in operations
        if one["kind"] == "link" and one["after"]["relation"] == "duplicates"
    }
    found = []
    for one in operations:
        by = (one["after"] or {}).get("superseded_by") if one["kind"] == "change_fact" else None
        if by and (frozenset((one["target"], by)) in duplicates) == merged:
            found.append((names.fact(one["target"]), names.fact(by), one["reason"]))
    return found


def _disputed(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[Row]()
    for one in _links(operations, "contradicts"):
        rows.append(Row(Text("?", "yellow"), _fact(names.fact(one["target"]))))
        other = _fact(names.fact(one["after"]["other"]))
        rows.append(Row(Text("?", "yellow"), _because(other, one["reason"])))
    many = counted(len(rows) // 2, "contradiction")
    return Section(f"Left open {many}: both are recalled, marked", rows, 2)


def _attributes(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[Row]()
    for one in operations:
        if one["kind"] != "change_entity":
            continue
        for name, now in one["after"]["attributes"].items():
            was = one["before"]["attributes"].get(name)
            who = one_line(names.profiles.get(one["target"], one["target"]))
            text = Text.assemble((who, "bold"), f" {one_line(name).replace('_', ' ')}: ")
            if was and now and was["value"] != now["value"]:
                text.append(one_line(was["value"]), "strike").append(" → ")
            text.append(one_line(now["value"]) if now else "nothing")
            seen = counted(len(now["evidence"]) if now else 0, "observation")
            rows.append(Row(Text("•", "cyan"), text.append(f" ({seen})", "dim")))
    return Section("Knows of people and things", rows)


def _noticed(operations: Sequence[Operation], names: Names) -> Section:
    rows = []
    for one in operations:
        if one["kind"] == "observe_entity":
            seen = one["after"]["observation"]
            text = Text.assemble((one_line(one["after"]["name"]), "bold"), ": ")
            text.append(one_line(seen["text"])).append(_by(seen["speaker"]), "dim")
            rows.append(Row(Text("•", "cyan"), text))
    return Section(f"Noted {counted(len(rows), 'observation')}", rows)


def _insights(operations: Sequence[Operation], names: Names) -> Section:
    rows = []
    for one in operations:
        if one["kind"] == "add_entry" and one["after"].get("evidence"):
            seen = counted(len(one["after"]["evidence"]), "memory", "memories")
            text = Text.assemble(one_line(one["after"]["content"]), (f" (from {seen})", "dim"))
            rows.append(Row(Text("✦", "magenta"), text))
    return Section(f"Concluded {counted(len(rows), 'insight')}", rows)


def _journaled(operations: Sequence[Operation], names: Names) -> Section:
    rows = []
    for one in operations:
        if one["kind"] == "add_entry" and not one["after"].get("evidence"):
            text = Text.assemble(one_line(one["after"]["content"]), (f" ({one['reason']})", "dim"))
            rows.append(Row(Text("•"), text))
    return Section(f"Journaled {counted(len(rows), 'entry', 'entries')}", rows)


def _linked(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[Row]()
    for one in _links(operations, "relates"):
        first, other = (names.fact(op)["text"] for op in (one["target"], one["after"]["other"]))
        rows.append(Row(Text("~", "cyan"), Text(_begun(first))))
        rows.append(Row(Text(), _because(Text(_begun(other)), one["reason"])))
    return Section(f"Linked {counted(len(rows) // 2, 'pair')} of facts", rows, 2)


def _described(operations: Sequence[Operation], names: Names) -> Section:
    rows = []
    for one in operations:
        if one["kind"] == "change_fact" and "context" in one["after"]:
            text = Text(one_line(names.fact(one["target"])["text"]))
            tags = ", ".join(map(one_line, one["after"].get("tags") or ()))
            context = one_line(one["after"]["context"] or "")
            text.append(f" — {context}" if context else "", "italic")
            rows.append(Row(Text("•", "dim"), text.append(f" [{tags}]" if tags else "", "dim")))
    return Section(f"Saw {counted(len(rows), 'fact')} in a new light", rows)


def _pruned(operations: Sequence[Operation], names: Names) -> Section:
    rows = []
    for one in operations:
        if one["kind"] == "prune_entry":
            rows.append(Row(Text("-", "red"), _because(_entry(one["before"]), one["reason"])))
    many = counted(len(rows), "journal entry", "journal entries")
    return Section(f"Forgot {many}", rows)


def _scored(operations: Sequence[Operation], names: Names) -> Section:
    rows = list[tuple[int, Row]]()
    for one in operations:
        if one["kind"] == "score_entry":
            was, now = one["before"]["importance"], one["after"]["importance"]
            entry = names.entries.get(one["target"])
            text = _entry(entry) if entry else Text(one_line(one["target"]))
            sign = f"{was} → {now}" if was != now else f"{now}"
            rows.append((now, Row(Text(sign, "cyan", justify="right"), text)))
    rows.sort(key=lambda row: -row[0])
    many = counted(len(rows), "journal entry", "journal entries")
    return Section(f"Weighed {many}", [row for _, row in rows])


def _settled(operations: Sequence[Operation], names: Names) -> Section:
    marks = Counter(
        one["after"]["consolidation"] for one in operations if one["kind"] == "mark_entry"
    )
    orphans = sum(one["kind"] == "unlink" for one in operations)
    rows = [
        Row(Text("✓", "dim"), Text(f"{_entries(number)} {MARKED.get(mark, mark)}", "dim"))
        for mark, number in marks.items()
    ]
    if orphans:
        gone = counted(orphans, "link that led nowhere", "links that led nowhere")
        rows.append(Row(Text("✓", "dim"), Text(f"{gone} taken away", "dim")))
    return Section("Settled", rows)


SECTIONS: Sequence[Callable[[Sequence[Operation], Names], Section]] = (
    *(_learned, _superseded, _merged, _disputed, _attributes, _noticed, _insights),
    *(_linked, _described, _journaled, _pruned, _scored, _settled),
)


def _links(operations: Sequence[Operation], relation: str) -> list[Operation]:
    links = (one for one in operations if one["kind"] == "link" and one["after"]["of"] == "facts")
    return [one for one in links if one["after"]["relation"] == relation]


def _fact(fact: dict[str, Any], *, gone: bool = False, sources: bool = False) -> Text:
    """Its text, who said it and when; crossed out where it is `gone`."""
    origin = [one_line(fact["speaker"])] if fact["speaker"] else []
    origin += [date(fact["valid_from"])] if fact["valid_from"] else []
    if sources:
        origin.append(", ".join(map(short_id, fact["source_events"] or fact["source_entries"])))
    told_by = f" ({', '.join(origin)})" if origin else ""
    return Text.assemble((one_line(fact["text"]), "strike" if gone else ""), (told_by, "dim"))


def _begun(text: str) -> str:
    """How a fact begins: enough to know it by."""
    return shortened(one_line(text), KNOWN_BY)


def _entry(entry: dict[str, Any]) -> Text:
    origin = f"{_by(entry['source_entity'])[2:-1]}, " if entry["source_entity"] else ""
    when = f" ({origin}{date(entry['timestamp'])})"
    return Text.assemble(one_line(entry["content"]), (when, "dim"))


def _by(who: str | None) -> str:
    return f" ({one_line(who)})" if who else ""


def _because(text: Text, reason: str) -> Text:
    return text.append(f" — {one_line(reason)}", "italic dim") if reason else text


def _entries(number: int) -> str:
    return counted(number, "journal entry", "journal entries")
