"""The systems that search conversations: the product's recall, and others to compare with.

Each learns the turns of one conversation, and answers a question with turn ids, best first.
"""

from __future__ import annotations

import asyncio
import math
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

from benchmarks.conversations import Conversation, events_of, sessions, spoken
from graph.api import AsyncAgent, open_agent
from memory.facts.semantic import settle_mem0
from memory.settings import Settings
from memory.text import terms

Ask = Callable[[str], Awaitable[list[str]]]
"""Question -> turn ids, best first."""


@dataclass
class Notes:
    """Facts and model calls of a system."""

    facts: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    """Model calls by step."""


Searcher = Callable[[Conversation, Notes], AbstractAsyncContextManager[Ask]]
"""Learns a conversation, and answers about it."""

DEPTH = 100
"""Turns or memories that each system returns at most."""
SATURATION, LENGTH_PART = 1.2, 0.75
"""BM25's k1 and b (Robertson and Zaragoza 2009, "The Probabilistic Relevance Framework")."""


class Shared(Embeddings):
    """An embedder with a cache that several systems share."""

    def __init__(self, embeddings: Embeddings) -> None:
        self._embeddings = embeddings
        self._known: dict[str, list[float]] = {}

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embeddings.embed_documents(new), strict=True))
        return [self._known[text] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a question, which the embedder may treat differently from a text."""
        key = f"?{text}"
        if key not in self._known:
            self._known[key] = self._embeddings.embed_query(text)
        return self._known[key]


def circadian(
    embedder: Embeddings | str, *, model: str, nights: bool, links: bool = True
) -> Searcher:
    """The product, overhearing the turns. With `nights` it sleeps after each session.

    Without `links` recall does not follow the links that nights make.
    """
    settings = Settings() if links else Settings(recall_weight_links=0.0)

    @asynccontextmanager
    async def searcher(conversation: Conversation, notes: Notes) -> AsyncIterator[Ask]:
        clock = [datetime.now(UTC)]

        async def ask(question: str) -> list[str]:
            hits = await agent.recall(question, DEPTH)
            return [source for hit in hits for source in hit["sources"]]

        with tempfile.TemporaryDirectory() as folder:
            opening = open_agent(
                Path(folder) / "data",
                model=model,
                embedder=embedder,
                settings=settings,
                clock=lambda: clock[0],
            )
            async with opening as agent:
                for session in sessions(conversation):
                    clock[0] = session.start
                    await agent.ainvoke({"events": events_of(session)})
                    if nights:
                        clock[0] = session.start + timedelta(hours=8)
                        notes.calls.update(await _night(agent))
                notes.facts += await agent.resources.semantic.count(agent.scope)
                yield ask

    return searcher


async def _night(agent: AsyncAgent) -> Counter[str]:
    """Run a night; returns model calls by step."""
    slept = await agent.ainvoke({"request": "sleep"})
    steps = slept["report"]["night"]["steps"]
    return Counter({step["step"]: step["llm_calls"] for step in steps if step["llm_calls"]})


@asynccontextmanager
async def by_words(conversation: Conversation, notes: Notes) -> AsyncIterator[Ask]:
    """BM25 over stems, without stop words."""
    index = Bm25(spoken(conversation))

    async def ask(question: str) -> list[str]:
        return index.search(question)

    yield ask


class Bm25:
    """Okapi BM25 over the product's own index terms."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._counts = {id_: Counter(terms(text)) for id_, text in texts.items()}
        self._mean = sum(c.total() for c in self._counts.values()) / max(1, len(texts))
        self._having = Counter(term for counts in self._counts.values() for term in counts)

    def search(self, query: str) -> list[str]:
        """Ids of texts that share a term with `query`, best first, at most DEPTH."""
        scores = self.scores(query)
        matching = [id_ for id_, score in scores.items() if score > 0]
        return sorted(matching, key=lambda id_: -scores[id_])[:DEPTH]

    def scores(self, query: str) -> dict[str, float]:
        """The score of every text, by id."""
        wanted = set(terms(query))
        return {id_: self._score(wanted, counts) for id_, counts in self._counts.items()}

    def _score(self, wanted: set[str], counts: Counter[str]) -> float:
        damping = SATURATION * (1 - LENGTH_PART + LENGTH_PART * counts.total() / self._mean)
        return sum(
            self._rarity(term) * counts[term] * (SATURATION + 1) / (counts[term] + damping)
            for term in wanted & counts.keys()
        )

    def _rarity(self, term: str) -> float:
        having, every = self._having[term], len(self._counts)
        return math.log(1 + (every - having + 0.5) / (having + 0.5))


def by_meaning(embeddings: Embeddings) -> Searcher:
    """Search by cosine alone."""

    @asynccontextmanager
    async def searcher(conversation: Conversation, notes: Notes) -> AsyncIterator[Ask]:
        turns = spoken(conversation)
        ids = list(turns)
        table = np.array(await embeddings.aembed_documents(list(turns.values())))

        async def ask(question: str) -> list[str]:
            scores = table @ np.array(await embeddings.aembed_query(question))
            return [ids[place] for place in np.argsort(-scores)[:DEPTH]]

        yield ask

    return searcher


def by_both(embeddings: Embeddings) -> Searcher:
    """The sum of BM25 and cosine, each scaled to 0..1 over all turns."""

    @asynccontextmanager
    async def searcher(conversation: Conversation, notes: Notes) -> AsyncIterator[Ask]:
        turns = spoken(conversation)
        ids, index = list(turns), Bm25(turns)
        table = np.array(await embeddings.aembed_documents(list(turns.values())))

        async def ask(question: str) -> list[str]:
            cosines = table @ np.array(await embeddings.aembed_query(question))
            worded = index.scores(question)
            words = np.array([worded[id_] for id_ in ids])
            scores = _scaled(words) + _scaled(cosines)
            return [ids[place] for place in np.argsort(-scores)[:DEPTH]]

        yield ask

    return searcher


def _scaled(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    span = float(values.max() - values.min())
    return (values - values.min()) / span if span else np.zeros_like(values)


def by_mem0(embeddings: Embeddings) -> Searcher:
    """Mem0's own search over its own FAISS provider, one store per conversation."""

    @asynccontextmanager
    async def searcher(conversation: Conversation, notes: Notes) -> AsyncIterator[Ask]:
        def learn() -> None:
            for turn, text in spoken(conversation).items():
                mem0_own.add(memory, text, turn=turn)

        async def ask(question: str) -> list[str]:
            found = await asyncio.to_thread(mem0_own.search, memory, question, DEPTH)
            return [hit["metadata"]["turn"] for hit in found]

        with tempfile.TemporaryDirectory() as folder:
            settle_mem0(Path(folder))
            # Slow to import, so only where it is measured.
            from benchmarks import mem0_own

            dimension = len(await embeddings.aembed_query("dimension"))
            with mem0_own.opened(Path(folder), embeddings, dimension) as memory:
                await asyncio.to_thread(learn)
                yield ask

    return searcher
