"""The changes of a night, grouped by kind. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from rich.text import Text

from graph.cli.views.console import counted, date, one_line, short_id
from graph.night_names import Names
from memory.models.words import shortened
from memory.operations import told
from memory.records import Operation

Operations = Sequence[Operation]


class ChangeRow(NamedTuple):
    """One line: a sign and a text."""

    sign: Text
    text: Text


class Section(NamedTuple):
    """The changes of one kind."""

    title: str
    rows: list[ChangeRow]
    lines: int = 1
    """Rows per change: two where something takes the place of something else."""
    found: int = 0
    """Changes counted in the title, where some have their row in another section."""


KNOWN_BY = 100
"""Characters of a linked fact that are shown."""
MARKED = {"consolidated": "made into facts", "below_threshold": "not important enough for that"}


def sections(operations: Operations, names: Names) -> list[Section]:
    """The changes by kind, the weightiest first, without empty kinds."""
    told_of = told(operations)
    made = (section(told_of, names) for section in SECTIONS)
    return [section for section in made if section.rows or section.found]


def taken_back(operations: Operations, names: Names) -> str:
    """One line on what undoing a night took back; empty if the night had done nothing."""
    titles = (re.split("[,:]", section.title)[0] for section in sections(operations, names))
    did = [f"{title[0].lower()}{title[1:]}" for title in titles if re.search(r"\d", title)]
    again = sum(operation["kind"] == "mark_entry" for operation in operations)
    wait = f"{_entries(again)} {'waits' if again == 1 else 'wait'} for the next night again"
    parts = [f"Taken back: {', '.join(did)}."] if did else []
    return " ".join([*parts, f"{wait}."] if again else parts)


def _learned(operations: Operations, names: Names) -> Section:
    """New facts. Those that supersede others, or are superseded, stand in those sections."""
    changes = _of_kind(operations, "change_fact")
    pairs = ((change["target"], change["after"].get("superseded_by")) for change in changes)
    below = {op for pair in pairs if pair[1] for op in pair}
    facts = _of_kind(operations, "add_fact")
    rows = [
        ChangeRow(Text("•", "green"), _fact(fact["after"], sources=True))
        for fact in facts
        if fact["target"] not in below
    ]
    with_others = f", {len(facts) - len(rows):,} of them below" if len(facts) > len(rows) else ""
    return Section(f"Learned {counted(len(facts), 'fact')}{with_others}", rows, found=len(facts))


def _superseded(operations: Operations, names: Names) -> Section:
    rows = list(_replaced(operations, names, merged=False))
    return Section(f"Superseded {counted(len(rows) // 2, 'fact')}", rows, 2)


def _merged(operations: Operations, names: Names) -> Section:
    rows = list(_replaced(operations, names, merged=True))
    return Section(f"Merged {counted(len(rows) // 2, 'fact')} with what says the same", rows, 2)


def _replaced(operations: Operations, names: Names, *, merged: bool) -> Iterator[ChangeRow]:
    """The fact that goes and the fact in its place: `merged` ones say the same."""
    duplicates = {
        frozenset((link["target"], link["after"]["other"]))
        for link in _links(operations, "duplicates")
    }
    for change in _of_kind(operations, "change_fact"):
        by = (change["after"] or {}).get("superseded_by")
        if by and (frozenset((change["target"], by)) in duplicates) == merged:
            yield ChangeRow(Text("-", "red"), _fact(names.fact(change["target"]), gone=True))
            new = _because(_fact(names.fact(by)), change["reason"])
            yield ChangeRow(Text("=" if merged else "+", "green"), new)


def _disputed(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for link in _links(operations, "contradicts"):
        other = _because(_fact(names.fact(link["after"]["other"])), link["reason"])
        rows.append(ChangeRow(Text("?", "yellow"), _fact(names.fact(link["target"]))))
        rows.append(ChangeRow(Text("?", "yellow"), other))
    many = counted(len(rows) // 2, "contradiction")
    return Section(f"Left open {many}: both are recalled, marked", rows, 2)


def _attributes(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "change_entity"):
        who = one_line(names.profiles.get(change["target"], change["target"]))
        for name, now in change["after"]["attributes"].items():
            was = change["before"]["attributes"].get(name)
            text = Text.assemble((who, "bold"), f" {one_line(name).replace('_', ' ')}: ")
            if was and now and was["value"] != now["value"]:
                text.append(one_line(was["value"]), "strike").append(" → ")
            text.append(one_line(now["value"]) if now else "nothing")
            seen = counted(len(now["evidence"]) if now else 0, "observation")
            rows.append(ChangeRow(Text("•", "cyan"), text.append(f" ({seen})", "dim")))
    return Section("Knows of people and things", rows)


def _noticed(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "observe_entity"):
        seen = change["after"]["observation"]
        text = Text.assemble((one_line(change["after"]["name"]), "bold"), ": ")
        text.append(one_line(seen["text"])).append(_by(seen["speaker"]), "dim")
        rows.append(ChangeRow(Text("•", "cyan"), text))
    return Section(f"Noted {counted(len(rows), 'observation')}", rows)


def _insights(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for entry in _of_kind(operations, "add_entry"):
        if evidence := entry["after"].get("evidence"):
            seen = f" (from {counted(len(evidence), 'memory', 'memories')})"
            text = Text.assemble(one_line(entry["after"]["content"]), (seen, "dim"))
            rows.append(ChangeRow(Text("✦", "magenta"), text))
    return Section(f"Concluded {counted(len(rows), 'insight')}", rows)


def _journaled(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for entry in _of_kind(operations, "add_entry"):
        if not entry["after"].get("evidence"):
            content, reason = one_line(entry["after"]["content"]), f" ({entry['reason']})"
            rows.append(ChangeRow(Text("•"), Text.assemble(content, (reason, "dim"))))
    return Section(f"Journaled {counted(len(rows), 'entry', 'entries')}", rows)


def _linked(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for link in _links(operations, "relates"):
        first, other = (
            Text(shortened(one_line(names.fact(op)["text"]), KNOWN_BY))
            for op in (link["target"], link["after"]["other"])
        )
        rows.append(ChangeRow(Text("~", "cyan"), first))
        rows.append(ChangeRow(Text(), _because(other, link["reason"])))
    return Section(f"Linked {counted(len(rows) // 2, 'pair')} of facts", rows, 2)


def _described(operations: Operations, names: Names) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "change_fact"):
        if "context" in change["after"]:
            text = Text(one_line(names.fact(change["target"])["text"]))
            tags = ", ".join(map(one_line, change["after"].get("tags") or ()))
            context = one_line(change["after"]["context"] or "")
            text.append(f" — {context}" if context else "", "italic")
            rows.append(
                ChangeRow(Text("•", "dim"), text.append(f" [{tags}]" if tags else "", "dim"))
            )
    return Section(f"Saw {counted(len(rows), 'fact')} in a new light", rows)


def _pruned(operations: Operations, names: Names) -> Section:
    rows = [
        ChangeRow(Text("-", "red"), _because(_entry(change["before"]), change["reason"]))
        for change in _of_kind(operations, "prune_entry")
    ]
    return Section(f"Forgot {_entries(len(rows))}", rows)


def _scored(operations: Operations, names: Names) -> Section:
    rows = list[tuple[int, ChangeRow]]()
    for change in _of_kind(operations, "score_entry"):
        was, now = change["before"]["importance"], change["after"]["importance"]
        entry = names.entries.get(change["target"])
        text = _entry(entry) if entry else Text(one_line(change["target"]))
        sign = f"{was} → {now}" if was != now else f"{now}"
        rows.append((now, ChangeRow(Text(sign, "cyan", justify="right"), text)))
    rows.sort(key=lambda row: -row[0])
    return Section(f"Weighed {_entries(len(rows))}", [row for _, row in rows])


def _settled(operations: Operations, names: Names) -> Section:
    changes = _of_kind(operations, "mark_entry")
    marks = Counter(change["after"]["consolidation"] for change in changes)
    lines = [f"{_entries(number)} {MARKED.get(mark, mark)}" for mark, number in marks.items()]
    if orphans := len(_of_kind(operations, "unlink")):
        gone = counted(orphans, "link that led nowhere", "links that led nowhere")
        lines.append(f"{gone} taken away")
    return Section("Settled", [ChangeRow(Text("✓", "dim"), Text(line, "dim")) for line in lines])


SECTIONS: Sequence[Callable[[Operations, Names], Section]] = (
    *(_learned, _superseded, _merged, _disputed, _attributes, _noticed, _insights),
    *(_linked, _described, _journaled, _pruned, _scored, _settled),
)


def _of_kind(operations: Operations, kind: str) -> list[Any]:
    """The operations of a kind; what stands in `after` depends on it."""
    return [operation for operation in operations if operation["kind"] == kind]


def _links(operations: Operations, relation: str) -> list[Any]:
    links = (link for link in _of_kind(operations, "link") if link["after"]["of"] == "facts")
    return [link for link in links if link["after"]["relation"] == relation]


def _fact(fact: dict[str, Any], *, gone: bool = False, sources: bool = False) -> Text:
    """A fact's text, speaker and date; crossed out if it is `gone`."""
    origin = [one_line(fact["speaker"])] if fact["speaker"] else []
    origin += [date(fact["valid_from"])] if fact["valid_from"] else []
    if sources:
        origin.append(", ".join(map(short_id, fact["source_events"] or fact["source_entries"])))
    told_by = f" ({', '.join(origin)})" if origin else ""
    return Text.assemble((one_line(fact["text"]), "strike" if gone else ""), (told_by, "dim"))


def _entry(entry: dict[str, Any]) -> Text:
    who = f"{one_line(entry['source_entity'])}, " if entry["source_entity"] else ""
    when = f" ({who}{date(entry['timestamp'])})"
    return Text.assemble(one_line(entry["content"]), (when, "dim"))


def _by(who: str | None) -> str:
    return f" ({one_line(who)})" if who else ""


def _because(text: Text, reason: str) -> Text:
    return text.append(f" — {one_line(reason)}", "italic dim") if reason else text


def _entries(number: int) -> str:
    return counted(number, "journal entry", "journal entries")
