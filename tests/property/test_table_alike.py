"""Both tables of memories side by side: the same operations, the same answers, the same order."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.facts.table import MemoryTable, Row
from memory.storage.postgres.connections import BlockingPool
from tests.support.tables import Open, miscounted, nearest, payload, random_vectors, scope

DIMENSION = 5
VECTORS = random_vectors(6, DIMENSION)
AGENTS = ("one", "two")
OPS = [f"op{number}" for number in range(8)]
NOW = datetime(2026, 3, 2, 9, tzinfo=UTC)
WORDS = ["fox", "whale", "owl", "it's", "Ünïcode", "\U0001f6a4", "two words", "漢字", "a_b", "%s"]

texts = st.lists(st.sampled_from(WORDS), max_size=6)
vectors = st.none() | st.sampled_from(range(len(VECTORS)))
fields = st.fixed_dictionaries(
    {"kind": st.sampled_from(["fact", "episode"]), "invalid_at": st.none() | st.just("2026-03-02")},
    optional={
        "terms": st.lists(st.sampled_from(WORDS), max_size=6),
        "session": st.sampled_from("abc"),
        "valid_from": st.sampled_from("123"),
        "trust": st.sampled_from([0.3, 0.6, 0.9]),
        "embed": st.sampled_from(["this", "that"]),
    },
)
agents = st.sampled_from(AGENTS)
ops = st.sampled_from(OPS)
written = st.tuples(agents, ops, texts, vectors, fields)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), written),
        st.tuples(st.just("insert"), written),
        st.tuples(st.just("update"), written),
        st.tuples(st.just("embed"), written),
        st.tuples(st.just("touch"), written),
        st.tuples(st.just("alias"), written),
        st.tuples(st.just("delete"), written),
    ),
    min_size=1,
    max_size=25,
)
_users = count()


def do(table: MemoryTable, user: str, step: str, written: Any) -> None:
    """One write. A row's id is that of its agent and operation."""
    agent, op, words, chosen, fields = written
    row_id = f"{user}-{agent}-{op}"
    vector = None if chosen is None else VECTORS[chosen]
    given = {**payload(user, op, " ".join(words)), "agent_id": agent, **fields}
    match step:
        case "insert":
            if not table.select({"id": row_id}):
                table.insert(row_id, vector, given)
        case "update":
            # The operation stays: another row may have been made by this one.
            kept = [row.payload["op"] for row in table.select({"id": row_id})]
            table.update(row_id, vector, {**given, "op": [*kept, op][0], "kind": "fact"})
        case "embed":
            table.set_vectors({} if vector is None else {row_id: vector})
        case "touch":
            table.touch([row_id], NOW + timedelta(seconds=len(words)))
        case "alias":
            table.alias(row_id, f"alias{len(words)}")
        case "delete":
            table.delete({**scope(user, agent), "op": op, "kind": fields["kind"]})


def seen(rows: Sequence[Row]) -> list[tuple[Any, ...]]:
    """Rows but for their numbers, which need not be alike."""
    return [tuple(row)[1:] for row in rows]


def scored(found: Sequence[tuple[Row, float]], places: int) -> list[tuple[str, float]]:
    """Ids with scores, of equal ones by id: databases round in other places."""
    return sorted(((row.id, round(score, places)) for row, score in found), key=_best_first)


def _best_first(one: tuple[str, float]) -> tuple[float, str]:
    return -one[1], one[0]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, query=st.lists(st.sampled_from(WORDS), max_size=4), chosen=vectors)
def test_the_same_operations_give_the_same_answers(
    open_sqlite: Open,
    open_postgres: Open,
    postgres_pool: BlockingPool,
    steps: list[tuple[str, Any]],
    query: list[str],
    chosen: int | None,
) -> None:
    user = f"user{next(_users)}"
    tables = [opener(dimension=DIMENSION) for opener in (open_sqlite, open_postgres)]
    for step, one in steps:
        for table in tables:
            do(table, user, step, one)
    asked: list[dict[str, Any]] = [
        {"user_id": user},
        *(scope(user, agent) for agent in AGENTS),
        {**scope(user, "one"), "kind": ["fact"], "invalid_at": None},
        {**scope(user, "two"), "trust": {"gte": 0.6}, "session": ["a", "b"]},
    ]
    for filters in asked:
        sqlite, postgres = (_answers(table, filters, query, chosen or 0) for table in tables)
        assert sqlite == postgres
    assert miscounted(postgres_pool) == []


def _answers(
    table: MemoryTable, filters: dict[str, Any], query: list[str], chosen: int
) -> dict[str, Any]:
    place = {row.seq: row.id for row in table.select(filters)}
    aliases = [f"alias{number}" for number in range(7)]
    timeline = table.timeline(filters, ["c", "a"])
    return {
        "select": seen(table.select(filters)),
        "count": table.count(filters),
        "numbered": seen([table.numbered(place)[seq] for seq in place]),
        "keywords": scored(table.keywords(query, filters, 100), 9),
        "best": [round(score, 9) for _, score in table.keywords(query, filters, 2)],
        "nearest": scored(nearest(table, VECTORS[chosen], filters, 100), 5),
        "timeline": [(one.session, place[one.seq]) for one in timeline],
        "beside": [{*map(place.get, table.beside(filters, [seq], 2))} for seq in place],
        "made": {op: row.id for op, row in table.made(filters, [*OPS, *aliases]).items()},
        "unembedded": table.unembedded(filters, 100),
        "waiting": table.count_unembedded(filters),
        "vectors": [table.vector(row_id) is None for row_id in place.values()],
    }
