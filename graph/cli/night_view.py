"""A night for people: what it changed, what is left, and what it cost. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from graph.console import (
    counted,
    date,
    day,
    here,
    one_line,
    ruled_table,
    short_id,
)
from graph.following import STEP_NAMES
from graph.use_cases import Labels, NightLine
from memory import pages
from memory.records import NightReport, NightStep, Operation, compaction_line, extraction_line, told
from memory.text import shortened

KNOWN_BY = 100
"""Characters of a linked fact that are shown."""

MARKED = {
    "consolidated": "made into facts",
    "below_threshold": "not important enough for that",
    "faded": "faded: old, of little importance, and found when nothing fits better",
}

MOST_FACTS, MOST = 12, 6
"""Learned facts, and changes of any other kind, that are shown; the rest is counted."""

UNKNOWN = ("unknown id", "unknown source_ids", "no evidence among")
"""Words of a refusal that is about ids that were not shown."""

PAGE_NAMES = {
    pages.DISPUTES: "open contradictions",
    pages.DOUBTS: "facts in doubt",
    pages.DATED: "dates",
}

STATUS = {
    "preview": "a preview",
    "held": "held back",
    "undone": "undone",
    "discarded": "discarded",
    "approved": "about to be applied",
    "open": "not ended",
}

Operations = Sequence[Operation]

ChangeRow = tuple[Text, Text]
"""A sign and a text."""


class Section(NamedTuple):
    """The changes of one kind."""

    title: str
    rows: list[ChangeRow]
    lines: int = 1
    """Rows per change: two for a pair of facts."""
    found: int = 0
    """Changes that the title counts, also those with a row in another section."""


# Reports, lists and lines


def night_view(
    report: NightReport,
    names: Labels | None = None,
    *,
    everything: bool = False,
    more: str | None = None,
) -> RenderableType:
    """A night's report: its steps, its changes, what is left and why.

    With `everything` lists are shown at full length; `more` is the command that does so.
    """
    if report["id"] is None:
        return Text("Nothing to do tonight: no model was called.")
    known = names or Labels.told_by(report["operations"])
    parts: list[RenderableType] = [_head(report)]
    if report["steps"]:
        parts.append(steps_view(report["steps"]))
    hidden = 0
    for section in sections(report["operations"], known):
        most = MOST_FACTS if section.title.startswith("Learned") else MOST * section.lines
        shown = section.rows if everything else section.rows[:most]
        hidden += len(section.rows) - len(shown)
        parts += _section(section, shown)
    if hidden:
        how = more or f"circadian night {report['id']} --all"
        parts += [Text(), Text(f"All of it: {how}", style="dim")]
    endings = _endings(report, everything=everything)
    if len(parts) == 1 and not endings:
        parts.append(Text("Nothing in memory had to change."))
    return Group(*parts, *([Text(), *endings] if endings else []))


def steps_view(steps: Sequence[NightStep]) -> Table:
    """The steps of a night, a line each."""
    table = ruled_table("step", right=("done", "left", "calls", "tokens", "seconds"))
    for step in steps:
        table.add_row(
            STEP_NAMES.get(step["step"], step["step"]),
            f"{step['done']:,}",
            f"{step['skipped']:,}",
            f"{step['llm_calls']:,}",
            f"{step['tokens']:,}",
            f"{step['seconds']:.1f}",
        )
    return table


def nights_view(nights: Sequence[NightLine]) -> RenderableType:
    """All nights, a line each, oldest first."""
    if not nights:
        return Text("There has been no night yet; `circadian sleep` goes through one.")
    when = f"when ({here(nights[-1]['started']):%Z})"
    table = ruled_table("night", when, "outcome", right=("changes", "calls", "tokens"))
    table.padding = (0, 1, 0, 0)  # narrow, to fit into 80 columns; the year stands in the id
    for column in table.columns[:2]:
        column.no_wrap = True
    for night in nights:
        table.add_row(
            Text(night["id"], "cyan"),
            f"{date(night['started']).rpartition(' ')[0]} {here(night['started']):%H:%M}",
            _outcome(night),
            f"{night['operations']:,}",
            f"{night['llm_calls']:,}",
            f"{night['tokens']:,}",
        )
    return table


def _outcome(night: NightLine) -> Text:
    status = night["status"]
    if status == "complete":
        if night["left"]:
            return Text(f"applied, {night['left']:,} left", "yellow")
        whole = night["complete"] and not night["stopped"]
        return Text("applied") if whole else Text("applied in part", "yellow")
    style = {"held": "yellow", "preview": "cyan", "open": "yellow"}.get(status, "dim")
    return Text(STATUS[status].removeprefix("a ").removeprefix("about "), style)


def _head(report: NightReport) -> Text:
    early = "ended early" if report.get("stopped") else "complete"
    finished = early if report["complete"] else "not complete"
    if left := len(report["held"]):
        finished += f", {left:,} left for the next night"
    state = STATUS.get(report.get("status", ""), finished)
    return Text.assemble(
        ("☾ ", "blue"),
        (f"Night of {day(report['started'])}", "bold"),
        (f"  {report['id']}, {state}", "dim"),
    )


def _section(section: Section, shown: Sequence[Any]) -> list[RenderableType]:
    rows = Table.grid(padding=(0, 1))
    rows.add_column(no_wrap=True, justify="right")
    rows.add_column()
    for row in shown:
        rows.add_row(*row)
    left = (len(section.rows) - len(shown)) // section.lines
    if left:
        rows.add_row("", Text(f"and {left:,} more", style="dim"))
    return [Text(), Text(section.title, style="bold"), Padding(rows, (0, 0, 0, 1))]


def _endings(report: NightReport, *, everything: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if "compaction" in report:
        parts.append(Text(compaction_line(report["compaction"])))
        if "extraction" in report:
            parts.append(Text(extraction_line(report["extraction"]), style="dim"))
    if report["held"]:
        parts.append(_held(report))
    if why := report.get("stopped"):
        rest = "the next night takes the rest, the most important first"
        parts.append(Text(f"Stopped early: {one_line(why)}; {rest}", style="yellow"))
    if why := (report.get("gate") or {}).get("held"):
        would = "Would be held back" if report["dry_run"] else "Held back for you to decide"
        parts.append(Text(f"{would}: {one_line(why)}", style="yellow"))
    if refused := report.get("refused"):
        most = None if everything else MOST
        parts += (Text(line, style="dim") for line in _refused(refused, most))
    return [*parts, *(Text.assemble(("! ", "red"), one_line(error)) for error in report["errors"])]


def _refused(refused: Sequence[str], most: int | None) -> Iterator[str]:
    """How many claims were refused, how many of them with invented ids, and the first `most`."""
    claims = counted(len(refused), "claim of the model", "claims of the model")
    unknown = sum(any(words in claim.casefold() for words in UNKNOWN) for claim in refused)
    made_up = f", {unknown:,} of them about ids that it was not shown" if unknown else ""
    yield f"Refused: {claims}{made_up}:"
    yield from (f"  {one_line(claim)}" for claim in refused[:most])
    if most is not None and len(refused) > most:
        yield f"  and {len(refused) - most:,} more"


def _held(report: Mapping[str, Any] | NightReport) -> Text:
    number = len(report["held"])
    below = report["errors"] or report.get("stopped") or report.get("refused")
    unsettled = f"the model did not settle {'it' if number == 1 else 'them'}"
    why = "see below" if below else unsettled
    entries = counted(number, "journal entry", "journal entries")
    return Text(f"Left for the next night: {entries} ({why})", style="yellow")


def night_line(report: NightReport | None) -> Text:
    """A night in one line: facts learned, model calls, what is left."""
    if report is None or report["id"] is None:
        return Text("night: nothing to do")
    facts = sum(operation["kind"] == "add_fact" for operation in report["operations"])
    calls = sum(step["llm_calls"] for step in report["steps"])
    line = f"night: {counted(facts, 'fact')} learned, {counted(calls, 'model call')}"
    left = len(report["held"])
    return Text(line + (f", {left:,} left for the next night" if left else ""))


# The changes of a night, a section for each kind


def sections(operations: Operations, names: Labels) -> list[Section]:
    """The sections that are not empty, the weightiest first."""
    told_of = told(operations)
    made = (section(told_of, names) for section in SECTIONS)
    return [section for section in made if section.rows or section.found]


def taken_back(operations: Operations, names: Labels) -> str:
    """One line on what an undo took back; empty if the night had changed nothing."""
    titles = (re.split("[,:]", section.title)[0] for section in sections(operations, names))
    did = [f"{title[0].lower()}{title[1:]}" for title in titles if re.search(r"\d", title)]
    again = sum(operation["kind"] == "mark_entry" for operation in operations)
    wait = f"{_entries(again)} {'waits' if again == 1 else 'wait'} for the next night again"
    parts = [f"Taken back: {', '.join(did)}."] if did else []
    return " ".join([*parts, f"{wait}."] if again else parts)


def _learned(operations: Operations, names: Labels) -> Section:
    """New facts, without those that the sections of superseded and merged facts show."""
    changes = _of_kind(operations, "change_fact")
    pairs = ((change["target"], change["after"].get("superseded_by")) for change in changes)
    below = {op for pair in pairs if pair[1] for op in pair}
    facts = _of_kind(operations, "add_fact")
    rows = [
        (Text("•", "green"), _fact(fact["after"], sources=True))
        for fact in facts
        if fact["target"] not in below
    ]
    with_others = f", {len(facts) - len(rows):,} of them below" if len(facts) > len(rows) else ""
    return Section(f"Learned {counted(len(facts), 'fact')}{with_others}", rows, found=len(facts))


def _superseded(operations: Operations, names: Labels) -> Section:
    rows = list(_replaced(operations, names, merged=False))
    return Section(f"Superseded {counted(len(rows) // 2, 'fact')}", rows, 2)


def _merged(operations: Operations, names: Labels) -> Section:
    rows = list(_replaced(operations, names, merged=True))
    return Section(f"Merged {counted(len(rows) // 2, 'fact')} with what says the same", rows, 2)


def _replaced(operations: Operations, names: Labels, *, merged: bool) -> Iterator[ChangeRow]:
    """Pairs of rows: the fact that goes, and the fact in its place. `merged`: both say the same."""
    duplicates = {
        frozenset((link["target"], link["after"]["other"]))
        for link in _links(operations, "duplicates")
    }
    for change in _of_kind(operations, "change_fact"):
        by = (change["after"] or {}).get("superseded_by")
        if by and (frozenset((change["target"], by)) in duplicates) == merged:
            yield (Text("-", "red"), _fact(names.fact(change["target"]), gone=True))
            new = _because(_fact(names.fact(by)), change["reason"])
            yield (Text("=" if merged else "+", "green"), new)


def _disputed(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for link in _links(operations, "contradicts"):
        other = _because(_fact(names.fact(link["after"]["other"])), link["reason"])
        rows.append((Text("?", "yellow"), _fact(names.fact(link["target"]))))
        rows.append((Text("?", "yellow"), other))
    many = counted(len(rows) // 2, "contradiction")
    return Section(f"Left open {many}: both are recalled, marked", rows, 2)


def _attributes(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "change_entity"):
        who = one_line(names.profiles.get(change["target"], change["target"]))
        for name, now in change["after"]["attributes"].items():
            was = change["before"]["attributes"].get(name)
            if was and now and was["value"] == now["value"]:
                continue
            text = Text.assemble((who, "bold"), f", {one_line(name).replace('_', ' ')}: ")
            if was:
                text.append(one_line(was["value"]), "strike").append(" → " if now else "")
            if now:
                text.append(one_line(now["value"]))
                text.append(f" ({counted(len(now['evidence']), 'source')})", "dim")
            else:
                text.append(" (no longer holds)", "dim")
            rows.append((Text("•", "cyan"), text))
    return Section("Knows of people and things", rows)


def _pages(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "write_page"):
        id_, after = change["target"], (change["after"] or {"lines": []})["lines"]
        new = sum(line not in (change["before"] or {"lines": []})["lines"] for line in after)
        who = PAGE_NAMES.get(id_) or names.profiles.get(id_, id_.replace(":", " ", 1))
        counts = f": {counted(len(after), 'line')}, {new:,} of them new"
        rows.append((Text("•", "cyan"), Text.assemble((one_line(who), "bold"), counts)))
    return Section(f"Rewrote {counted(len(rows), 'page')} of what holds now", rows)


def _noticed(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "observe_entity"):
        seen = change["after"]["observation"]
        text = Text.assemble((one_line(change["after"]["name"]), "bold"), ": ")
        by = f" ({one_line(seen['speaker'])})" if seen["speaker"] else ""
        text.append(one_line(seen["text"])).append(by, "dim")
        rows.append((Text("•", "cyan"), text))
    return Section(f"Noted {counted(len(rows), 'observation')}", rows)


def _insights(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for entry in _of_kind(operations, "add_entry"):
        if evidence := entry["after"].get("evidence"):
            seen = f" (from {counted(len(evidence), 'memory', 'memories')})"
            text = Text.assemble(one_line(entry["after"]["content"]), (seen, "dim"))
            rows.append((Text("✦", "magenta"), text))
    return Section(f"Concluded {counted(len(rows), 'insight')}", rows)


def _journaled(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for entry in _of_kind(operations, "add_entry"):
        if not entry["after"].get("evidence"):
            content, reason = one_line(entry["after"]["content"]), f" ({entry['reason']})"
            rows.append((Text("•"), Text.assemble(content, (reason, "dim"))))
    return Section(f"Journaled {counted(len(rows), 'entry', 'entries')}", rows)


def _linked(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for link in _links(operations, "relates"):
        first, other = (
            Text(shortened(one_line(names.fact(op)["text"]), KNOWN_BY))
            for op in (link["target"], link["after"]["other"])
        )
        rows.append((Text("~", "cyan"), first))
        rows.append((Text(), _because(other, link["reason"])))
    return Section(f"Linked {counted(len(rows) // 2, 'pair')} of facts", rows, 2)


def _described(operations: Operations, names: Labels) -> Section:
    rows = list[ChangeRow]()
    for change in _of_kind(operations, "change_fact"):
        if "context" in change["after"]:
            text = Text(one_line(names.fact(change["target"])["text"]))
            tags = ", ".join(map(one_line, change["after"].get("tags") or ()))
            context = one_line(change["after"]["context"] or "")
            text.append(f" — {context}" if context else "", "italic")
            rows.append((Text("•", "dim"), text.append(f" [{tags}]" if tags else "", "dim")))
    return Section(f"Saw {counted(len(rows), 'fact')} in a new light", rows)


def _pruned(operations: Operations, names: Labels) -> Section:
    rows = [
        (Text("-", "red"), _because(_entry(change["before"]), change["reason"]))
        for change in _of_kind(operations, "prune_entry")
    ]
    return Section(f"Forgot {_entries(len(rows))}", rows)


def _scored(operations: Operations, names: Labels) -> Section:
    rows = list[tuple[int, ChangeRow]]()
    for change in _of_kind(operations, "score_entry"):
        was, now = change["before"]["importance"], change["after"]["importance"]
        entry = names.entries.get(change["target"])
        text = _entry(entry) if entry else Text(one_line(change["target"]))
        sign = f"{was} → {now}" if was != now else f"{now}"
        rows.append((now, (Text(sign, "cyan", justify="right"), text)))
    rows.sort(key=lambda row: -row[0])
    return Section(f"Weighed {_entries(len(rows))}", [row for _, row in rows])


def _settled(operations: Operations, names: Labels) -> Section:
    cited = {
        entry
        for fact in _of_kind(operations, "add_fact")
        for entry in fact["after"]["source_entries"]
    }
    changes = _of_kind(operations, "mark_entry")
    marks = Counter(_mark(change, cited) for change in changes)
    lines = [f"{_entries(number)} {mark}" for mark, number in marks.items()]
    if orphans := len(_of_kind(operations, "unlink")):
        gone = counted(orphans, "link that led nowhere", "links that led nowhere")
        lines.append(f"{gone} taken away")
    return Section("Settled", [(Text("✓", "dim"), Text(line, "dim")) for line in lines])


def _mark(change: Any, cited: Collection[str]) -> str:
    """The outcome for an entry. Only an entry that a fact cites was made into facts."""
    mark = str(change["after"]["consolidation"])
    if mark == "consolidated" and change["target"] not in cited:
        return "with nothing to keep"
    return MARKED.get(mark, mark)


SECTIONS: Sequence[Callable[[Operations, Labels], Section]] = (
    *(_learned, _superseded, _merged, _disputed, _attributes, _noticed, _insights),
    *(_pages, _linked, _described, _journaled, _pruned, _scored, _settled),
)


def _of_kind(operations: Operations, kind: str) -> list[Any]:
    """The operations of a kind. Any, because the kind determines the keys of `after`."""
    return [operation for operation in operations if operation["kind"] == kind]


def _links(operations: Operations, relation: str) -> list[Any]:
    links = (link for link in _of_kind(operations, "link") if link["after"]["of"] == "facts")
    return [link for link in links if link["after"]["relation"] == relation]


def _fact(fact: dict[str, Any], *, gone: bool = False, sources: bool = False) -> Text:
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


def _because(text: Text, reason: str) -> Text:
    return text.append(f" — {one_line(reason)}", "italic dim") if reason else text


def _entries(number: int) -> str:
    return counted(number, "journal entry", "journal entries")
