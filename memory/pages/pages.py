"""Pages: which facts are shown of a person, a thing or a project, and in what order.

Store namespace (below `(user, thread)`): `pages` id -> Page, the id of an entity or
`project:<key>`.

A page refers to facts and attributes and holds no text. So a line disappears as soon as its facts
no longer hold, or are erased.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, tzinfo
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple, cast

from langgraph.store.base import BaseStore, PutOp

from memory.facts import SemanticMemory
from memory.guards import repeats, rests_on
from memory.messages import prompt_lines
from memory.records import (
    Attribute,
    EntityProfile,
    Fact,
    Operation,
    Page,
    PageLine,
    Scope,
    speaks_as,
    with_values,
)
from memory.storage import list_items, read_values
from memory.text import approximate_tokens, days_named, one_line, shortened, shown_day

PAGES = "pages"

MOST_TOKENS = 300
"""Tokens of a page, with its heading."""

LONGEST = 240
"""Characters of a line's text."""

_HEADING = 20
"""Tokens kept for the heading."""

SHORT_ID, MOST_IDS = 8, 3
"""Characters of a fact's id that are shown, and most ids on a line."""

_LASTING = 3
"""Points of importance that an attribute has over a fact."""

_DAYS = 14.0
"""Days of age that weigh as much as one point of importance."""


class ShownLine(NamedTuple):
    """A line of a page as it is shown."""

    text: str
    attribute: str | None
    """The attribute's name, if it shows one."""
    at: str
    """When it became known, ISO 8601."""
    speaker: str | None
    ids: tuple[str, ...]
    """Ids of the facts that it stands on."""
    sources: tuple[str, ...]
    """Ids of the entries and events behind them."""
    whole: tuple[str, ...]
    """Ids of the facts that it says whole: an attribute may say a part, and long texts are cut."""
    disputed: bool
    doubtful: bool
    """It rests on something that changed."""
    origins: tuple[str, ...] = ()
    """People other than owners on whose words it rests, unless that is the speaker alone."""


class ShownPage(NamedTuple):
    """A page as it is shown."""

    id: str
    name: str
    lines: tuple[ShownLine, ...]


def project_id(key: str) -> str:
    """Id of a project's page."""
    return f"project:{key}"


DISPUTES = "disputes"
"""Id of the page of open contradictions: each line names two facts, the newer one first."""

MOST_DISPUTES = 10
"""Contradictions on that page, the newest."""

DOUBTS = "doubts"
"""Id of the page of doubtful facts: each line names a fact, and the facts behind its doubt."""

MOST_DOUBTS = 10
"""Facts on that page, the newest."""

DATED = "dated"
"""Id of the page of the facts that name a day."""

MOST_DATED = 100
"""Facts on that page, those with the latest days."""


class OpenQuestions(NamedTuple):
    """What only a person can settle, the newest first."""

    disputes: list[tuple[Fact, Fact]]
    """Contradictions; the newer fact of each first."""
    doubts: list[tuple[Fact, Fact]]
    """Facts in doubt, each with the fact behind it that last fell or was contradicted."""


async def open_questions(store: BaseStore, semantic: SemanticMemory, scope: Scope) -> OpenQuestions:
    """The contradictions and doubts that are still open."""
    disputes, doubts = await _facts_of(store, semantic, scope, DISPUTES, DOUBTS)
    return OpenQuestions(_open(disputes, in_dispute), _open(doubts, in_doubt))


def _open(
    lines: Iterable[Sequence[Fact]], asks: Callable[[Fact, Fact], bool]
) -> list[tuple[Fact, Fact]]:
    """The first fact of each line that is still open, with the last other fact that makes it so."""
    pairs = [[(line[0], other) for other in line[1:] if asks(line[0], other)] for line in lines]
    return [of_line[-1] for of_line in pairs if of_line]


async def _facts_of(
    store: BaseStore, semantic: SemanticMemory, scope: Scope, *ids: str
) -> list[list[list[Fact]]]:
    """For each of these pages the facts of its lines. One read of the store, one of the facts."""
    found = await read(store, scope, ids)
    pages = [[one["facts"] for one in found[id_]["lines"]] if id_ in found else [] for id_ in ids]
    ops = dict.fromkeys(op for lines in pages for line in lines for op in line)
    facts = await semantic.by_op(scope, list(ops)) if ops else {}
    return [[[facts[op] for op in line if op in facts] for line in lines] for lines in pages]


def page_of_doubts(facts: Iterable[Fact]) -> Page | None:
    """The page of the doubtful facts among `facts`; None without any. Pure."""
    doubtful = [fact for fact in facts if fact["invalid_at"] is None and fact.get("doubtful")]
    newest = sorted(doubtful, key=lambda one: (one["valid_from"], one["op"]), reverse=True)
    lines = [
        PageLine(attribute=None, facts=[fact["op"], *fact["doubtful"]])
        for fact in newest[:MOST_DOUBTS]
    ]
    return Page(id=DOUBTS, lines=lines) if lines else None


def page_of_disputes(facts: Iterable[Fact]) -> Page | None:
    """The page of the contradictions among `facts`; None without any. Pure."""
    by_op = {fact["op"]: fact for fact in facts}
    pairs = {
        tuple(sorted((op, other), key=lambda one: (by_op[one]["valid_from"], one), reverse=True))
        for op, fact in by_op.items()
        for other in fact.get("disputed", [])
        if other in by_op and in_dispute(fact, by_op[other])
    }
    newest = sorted(pairs, key=lambda pair: (by_op[pair[0]]["valid_from"], pair), reverse=True)
    lines = [PageLine(attribute=None, facts=list(pair)) for pair in newest[:MOST_DISPUTES]]
    return Page(id=DISPUTES, lines=lines) if lines else None


def disputed(fact: Fact, facts: Mapping[str, Fact]) -> bool:
    """Whether another fact that holds contradicts this one; facts not in `facts` count as such."""
    against = fact.get("disputed", ())
    return any(op not in facts or in_dispute(fact, facts[op]) for op in against)


def page_of_dated(facts: Iterable[Fact]) -> Page | None:
    """The page of the facts that name the latest days; None without any. Pure.

    It does not depend on the time of the night, so that a night without news changes nothing.
    """
    days = {
        fact["op"]: max(days_named(fact["text"], UTC, said=fact["valid_from"]), default=None)
        for fact in facts
        if fact["invalid_at"] is None
    }
    dated = sorted(((day, op) for op, day in days.items() if day), reverse=True)[:MOST_DATED]
    lines = [PageLine(attribute=None, facts=[op]) for _, op in dated]
    return Page(id=DATED, lines=lines) if lines else None


async def dated_within(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    first: date,
    last: date,
    zone: tzinfo,
    *,
    also: Iterable[Fact] = (),
) -> list[tuple[date, Fact]]:
    """The facts that hold and name a day from `first` to `last`, by day.

    `also`: facts that are newer than the last night, and so on no page.
    """
    (lines,) = await _facts_of(store, semantic, scope, DATED)
    on_page = (fact for line in lines for fact in line)
    known = {fact["op"]: fact for fact in (*on_page, *also)}
    found = [
        (day, fact)
        for fact in known.values()
        if fact["invalid_at"] is None
        for day in days_named(fact["text"], zone, said=fact["valid_from"])
        if first <= day <= last
    ]
    return sorted(found, key=lambda pair: (pair[0], pair[1]["op"]))


def in_doubt(fact: Fact, behind: Fact) -> bool:
    """Whether a fact that holds is in doubt because of another."""
    return fact["invalid_at"] is None and behind["op"] in fact.get("doubtful", ())


def in_dispute(fact: Fact, other: Fact) -> bool:
    """Whether two facts that hold contradict each other."""
    holds = fact["invalid_at"] is None and other["invalid_at"] is None
    return holds and (
        other["op"] in fact.get("disputed", []) or fact["op"] in other.get("disputed", [])
    )


async def read(store: BaseStore, scope: Scope, ids: Iterable[str]) -> dict[str, Page]:
    """The existing pages among `ids`."""
    namespace = scope.namespace(PAGES)
    return (await read_values(store, {namespace: ids}))[namespace]


async def everything(store: BaseStore, scope: Scope) -> dict[str, Page]:
    """All pages, by id."""
    items = await list_items(store, scope.namespace(PAGES))
    return {item.key: cast(Page, item.value) for item in items}


async def puts_after(
    store: BaseStore, scope: Scope, operations: Sequence[Operation]
) -> list[PutOp]:
    """Store writes for operations on pages, also of an undo. A page changed meanwhile stays."""
    mine = [one for one in with_values(operations) if one["kind"] == "write_page"]
    standing = await read(store, scope, [one["target"] for one in mine])
    after: dict[str, Page | None] = dict(standing)
    for write in mine:
        if after.get(write["target"]) == write["before"]:
            after[write["target"]] = write["after"]
    namespace = scope.namespace(PAGES)
    return [
        PutOp(namespace, id_, cast(dict[str, object] | None, page), index=False)
        for id_, page in after.items()
        if page != standing.get(id_)
    ]


async def shown(
    store: BaseStore,
    semantic: SemanticMemory,
    scope: Scope,
    people: Sequence[EntityProfile],
    project: str | None = None,
) -> list[ShownPage]:
    """The pages of these people and of a project, with the lines that hold now; without empty ones.

    Costs one batch of reads, one query for the facts, and one for what contradicts them.
    """
    names = {profile["id"]: profile["name"] for profile in people}
    if project is not None:
        names[project_id(project)] = project
    found = await read(store, scope, names)
    ops = {op for page in found.values() for line in page["lines"] for op in line["facts"]}
    facts = await semantic.by_op(scope, sorted(ops)) if ops else {}
    against = {op for fact in facts.values() for op in fact.get("disputed", ())} - ops
    facts |= await semantic.by_op(scope, sorted(against)) if against else {}
    attributes = {profile["id"]: profile["attributes"] for profile in people}
    pages = (
        ShownPage(id_, name, tuple(lines_of(found[id_], attributes.get(id_, {}), facts, name)))
        for id_, name in names.items()
        if id_ in found
    )
    return [page for page in pages if page.lines]


def text_of(page: ShownPage, zone: tzinfo) -> str:
    """A page as a prompt shows it: its name, then `- [id] text (speaker, day)` for each line."""
    if page.id != DISPUTES:
        return "\n".join([one_line(page.name), *(_prompt_line(line, zone) for line in page.lines)])
    pairs = zip(page.lines[::2], page.lines[1::2], strict=True)
    told = [
        (_prompt_line(line, zone), _prompt_line(by._replace(doubtful=False), zone), by.doubtful)
        for line, by in pairs
    ]
    return "\n".join(prompt_lines.dispute_lines(told))


def _prompt_line(line: ShownLine, zone: tzinfo) -> str:
    ids = [id_[:SHORT_ID] for id_ in line.ids[-MOST_IDS:]]
    doubt = ", disputed" if line.disputed else ", in doubt" if line.doubtful else ""
    return prompt_lines.page_line(ids, line.text, line.speaker, shown_day(line.at, zone), doubt)


def of_disputes(
    pairs: Sequence[tuple[Fact, Fact]], doubts: Sequence[tuple[Fact, Fact]] = ()
) -> list[ShownPage]:
    """These contradictions and doubts as a page, two lines each; none without any.

    The second line of a doubt, marked as doubtful, is the fact that fell.
    """
    # Revived, because `lines_of` leaves out facts that no longer hold.
    revived = [(fact, {**fallen, "invalid_at": None}) for fact, fallen in doubts]
    facts = [cast(Fact, fact) for pair in (*pairs, *revived) for fact in pair]
    claims = [PageLine(attribute=None, facts=[fact["op"]]) for fact in facts]
    lines = lines_of(Page(id=DISPUTES, lines=claims), {}, {fact["op"]: fact for fact in facts})
    fell = range(2 * len(pairs) + 1, len(lines), 2)
    marked = [line._replace(disputed=False, doubtful=n in fell) for n, line in enumerate(lines)]
    return [ShownPage(DISPUTES, "", tuple(marked))] if marked else []


def lines_of(
    page: Page, attributes: Mapping[str, Attribute], facts: Mapping[str, Fact], name: str = ""
) -> list[ShownLine]:
    """The lines of a page that hold. Pure. `facts`: by operation id; `name`: of the page."""
    lines = (_line(line, attributes, facts, name) for line in page["lines"])
    return [line for line in lines if line is not None]


@lru_cache(maxsize=4_096)
def _says_all(line: str, fact: str, names: tuple[str, ...]) -> bool:
    """Whether a line says all that a fact does. Cached: each prompt asks about the same lines.

    `names`: words that the line need not repeat, because the heading or its label says them.
    """
    return line == fact or repeats(fact, [line], names)


def _line(
    line: PageLine, attributes: Mapping[str, Attribute], facts: Mapping[str, Fact], page: str = ""
) -> ShownLine | None:
    holding = [facts[op] for op in line["facts"] if op in facts and not facts[op]["invalid_at"]]
    if not holding:
        return None
    text, name, names = holding[0]["text"], line["attribute"], tuple[str, ...]()
    if name is not None:
        if name not in attributes or len(holding) < len(line["facts"]):
            return None
        names = (page, name.replace("_", " "))
        text = f"{names[1]}: {attributes[name]['value']}"
    text, people = shortened(text, LONGEST), {fact["speaker"] for fact in holding}
    whole = (one["id"] for one in holding if _says_all(text, one["text"], names))
    return ShownLine(
        text=text,
        attribute=name,
        at=max(fact["valid_from"] for fact in holding),
        speaker=people.pop() if len(people) == 1 else None,
        ids=tuple(fact["id"] for fact in holding),
        whole=tuple(whole),
        sources=tuple(
            id_ for fact in holding for id_ in (*fact["source_entries"], *fact["source_events"])
        ),
        disputed=any(disputed(fact, facts) for fact in holding),
        origins=_origins(attributes[name] if name else None, holding),
        doubtful=any(fact.get("doubtful") for fact in holding),
    )


def _origins(attribute: Attribute | None, holding: Sequence[Fact]) -> tuple[str, ...]:
    """On whose words a line rests; nobody if it rests on its only speaker's alone."""
    people = list(dict.fromkeys(fact["speaker"] for fact in holding if fact["speaker"]))
    named = people if len(people) > 1 else []
    for ground in (*holding, *([attribute] if attribute else [])):
        named += ground.get("origins", ())
    return tuple(dict.fromkeys(named))


def borne_out(
    facts: Iterable[Fact],
    profile: EntityProfile | None,
    senders: Mapping[str, EntityProfile],
    owners: Collection[str],
    known: Mapping[str, Fact] = MappingProxyType({}),
) -> list[Fact]:
    """The facts that may stand on the page of an entity, or of an owner's project. Pure.

    On the page of somebody who speaks for themselves, and of a project, people other than owners
    add no fact that is disputed, that may be anybody's words, or that only strangers say.

    Args:
        profile: Of the entity; None for a project.
        senders: The profiles of all who speak, by sender id.
        known: Facts that contradict `facts`, or did, by operation id.
    """

    def counts(fact: Fact, who: str) -> bool:
        if who in owners or (profile is not None and speaks_as(profile, who)):
            return True
        is_known = who in senders and senders[who]["relationship"]["state"] != "stranger"
        return is_known and not disputed(fact, known)

    def is_borne_out(fact: Fact) -> bool:
        people = rests_on(fact["speaker"], fact, ())
        nobodys = fact["speaker"] is None and "origins" in fact
        return not nobodys and any(counts(fact, who) for who in people)

    # An entity that sends no messages cannot speak for itself: anybody's facts about it count.
    never_speaks = profile is not None and not profile["senders"]
    return [fact for fact in facts if never_speaks or is_borne_out(fact)]


def page_of(id_: str, attributes: Mapping[str, Attribute], facts: Sequence[Fact]) -> Page | None:
    """The page with the lines that are worth most, within the budget; None without any. Pure.

    Attributes come first, then facts that are evidence of no attribute; the newest of each first.
    An attribute in the very words of a fact is shown as that fact. If not all lines fit, importance
    and age decide: two weeks weigh as much as one point of importance. `facts`: those that hold.
    """
    by_op, said = {fact["op"]: fact for fact in facts}, {fact["text"] for fact in facts}
    lines = [
        PageLine(attribute=name, facts=[op for op in attribute["evidence"] if op in by_op])
        for name, attribute in attributes.items()
        if attribute["value"] not in said
    ]
    lines = [line for line in lines if line["facts"]]
    used = {op for line in lines for op in line["facts"]}
    lines += [PageLine(attribute=None, facts=[op]) for op in by_op if op not in used]
    kept, left = list[PageLine](), MOST_TOKENS - _HEADING
    for line in sorted(lines, key=lambda line: _worth_key(line, by_op)):
        shown_line = _line(line, attributes, by_op)
        assert shown_line is not None
        left -= approximate_tokens(_prompt_line(shown_line, UTC) + "\n")
        if left < 0:
            break
        kept.append(line)
    kept.sort(key=lambda line: _shown_key(line, by_op))
    return Page(id=id_, lines=kept) if kept else None


def _worth_key(line: PageLine, facts: Mapping[str, Fact]) -> tuple[float, str, str]:
    """Sort key by which the most valuable line comes first."""
    newest = max(line["facts"], key=lambda op: (facts[op]["valid_from"], op))
    day = datetime.fromisoformat(facts[newest]["valid_from"]).timestamp() / 86_400
    importance = max(facts[op]["importance"] for op in line["facts"])
    lasting = 0 if line["attribute"] is None else _LASTING
    return -(importance + lasting + day / _DAYS), newest, line["attribute"] or ""


def _shown_key(line: PageLine, facts: Mapping[str, Fact]) -> tuple[bool, float, str]:
    newest = max(datetime.fromisoformat(facts[op]["valid_from"]) for op in line["facts"])
    return line["attribute"] is None, -newest.timestamp(), line["facts"][0]
