"""Pages: which facts are shown of a person, a thing or a project, and in what order.

Store namespace (below `(user, thread)`): `pages` id -> Page, the id of an entity or
`project:<key>`.

A page names facts and attributes and holds no text of its own. So a line whose facts no longer hold
is not shown, also by day, and a forget that erases a fact erases its line.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from memory.facts import SemanticMemory
from memory.records import (
    Attribute,
    EntityProfile,
    Fact,
    Operation,
    Page,
    PageLine,
    Scope,
    told,
)
from memory.storage import list_items
from memory.text import approximate_tokens, shortened

PAGES = "pages"

MOST_TOKENS = 300
"""Tokens of a page, with its heading."""

LONGEST = 240
"""Characters of a line's text."""

_HEADING = 20
"""Tokens kept for the heading."""

_LASTING = 3
"""Points of importance by which an attribute goes before a fact."""

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
    disputed: bool


class ShownPage(NamedTuple):
    """A page as it is shown."""

    id: str
    name: str
    lines: tuple[ShownLine, ...]


def project_id(key: str) -> str:
    """Id of a project's page."""
    return f"project:{key}"


async def read(store: BaseStore, scope: Scope, ids: Iterable[str]) -> dict[str, Page]:
    """The existing pages among `ids`."""
    wanted = list(dict.fromkeys(ids))
    if not wanted:
        return {}
    found = await store.abatch([GetOp(scope.namespace(PAGES), id_) for id_ in wanted])
    items = (item for item in found if isinstance(item, Item))
    return {item.key: cast(Page, item.value) for item in items}


async def everything(store: BaseStore, scope: Scope) -> dict[str, Page]:
    """All pages, by id."""
    items = await list_items(store, scope.namespace(PAGES))
    return {item.key: cast(Page, item.value) for item in items}


async def puts_after(
    store: BaseStore, scope: Scope, operations: Sequence[Operation]
) -> list[PutOp]:
    """Store writes for the operations on pages. A page that was changed meanwhile stays."""
    mine = [one for one in told(operations) if one["kind"] == "write_page"]
    standing = await read(store, scope, [one["target"] for one in mine])
    after: dict[str, Page | None] = dict(standing)
    for one in mine:
        if after.get(one["target"]) == one["before"]:
            after[one["target"]] = one["after"]
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

    Costs one batch of reads, and one query for the facts.
    """
    names = {profile["id"]: profile["name"] for profile in people}
    if project is not None:
        names[project_id(project)] = project
    found = await read(store, scope, names)
    ops = {op for page in found.values() for line in page["lines"] for op in line["facts"]}
    facts = await semantic.by_op(scope, sorted(ops)) if ops else {}
    attributes = {profile["id"]: profile["attributes"] for profile in people}
    pages = (
        ShownPage(id_, name, tuple(lines_of(found[id_], attributes.get(id_, {}), facts)))
        for id_, name in names.items()
        if id_ in found
    )
    return [page for page in pages if page.lines]


def lines_of(
    page: Page, attributes: Mapping[str, Attribute], facts: Mapping[str, Fact]
) -> list[ShownLine]:
    """The lines of a page whose facts hold. Pure. `facts`: by operation id."""
    lines = (_line(line, attributes, facts) for line in page["lines"])
    return [line for line in lines if line is not None]


def _line(
    line: PageLine, attributes: Mapping[str, Attribute], facts: Mapping[str, Fact]
) -> ShownLine | None:
    holding = [facts[op] for op in line["facts"] if op in facts and not facts[op]["invalid_at"]]
    if not holding:
        return None
    text, name = holding[0]["text"], line["attribute"]
    if name is not None:
        if name not in attributes or len(holding) < len(line["facts"]):
            return None
        text = f"{name.replace('_', ' ')}: {attributes[name]['value']}"
    people = {fact["speaker"] for fact in holding}
    return ShownLine(
        text=shortened(text, LONGEST),
        attribute=name,
        at=max(fact["valid_from"] for fact in holding),
        speaker=people.pop() if len(people) == 1 else None,
        ids=tuple(fact["id"] for fact in holding),
        disputed=any(fact.get("disputed") for fact in holding),
    )


def made(id_: str, attributes: Mapping[str, Attribute], facts: Sequence[Fact]) -> Page | None:
    """The page with the lines that are worth most, within the budget; None without any. Pure.

    The attributes come first, then the facts that no attribute stands on, each the newest first.
    Where not all fit, importance and age decide: two weeks weigh as one point of importance.

    Args:
        id_: The page's id.
        attributes: Of the entity.
        facts: The facts that hold of it.
    """
    by_op = {fact["op"]: fact for fact in facts}
    lines = [
        PageLine(attribute=name, facts=[op for op in attribute["evidence"] if op in by_op])
        for name, attribute in attributes.items()
    ]
    lines = [line for line in lines if line["facts"]]
    used = {op for line in lines for op in line["facts"]}
    lines += [PageLine(attribute=None, facts=[op]) for op in by_op if op not in used]
    kept, left = list[PageLine](), MOST_TOKENS - _HEADING
    for line in sorted(lines, key=lambda line: _worth(line, by_op)):
        text = _line(line, attributes, by_op)
        assert text is not None
        left -= approximate_tokens(f"- [12345678] {text.at[:10]} {text.speaker}: {text.text}\n")
        if left < 0:
            break
        kept.append(line)
    kept.sort(key=lambda line: _place(line, by_op))
    return Page(id=id_, lines=kept) if kept else None


def _worth(line: PageLine, facts: Mapping[str, Fact]) -> tuple[float, str, str]:
    """Smaller is worth more."""
    newest = max(line["facts"], key=lambda op: (facts[op]["valid_from"], op))
    day = datetime.fromisoformat(facts[newest]["valid_from"]).timestamp() / 86_400
    importance = max(facts[op]["importance"] for op in line["facts"])
    lasting = 0 if line["attribute"] is None else _LASTING
    return -(importance + lasting + day / _DAYS), newest, line["attribute"] or ""


def _place(line: PageLine, facts: Mapping[str, Fact]) -> tuple[bool, float, str]:
    newest = max(datetime.fromisoformat(facts[op]["valid_from"]) for op in line["facts"])
    return line["attribute"] is None, -newest.timestamp(), line["facts"][0]
