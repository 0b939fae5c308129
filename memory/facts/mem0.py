"""Mem0 on the table of memories. Importing this imports Mem0.

Mem0 stores facts as they are given. Its extraction, which needs a chat model, its search and its
history of changes are not used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, cast

from mem0.configs.base import MemoryConfig
from mem0.configs.vector_stores.faiss import FAISSConfig
from mem0.embeddings.base import EmbeddingBase
from mem0.embeddings.configs import EmbedderConfig
from mem0.llms.base import LLMBase
from mem0.llms.configs import LlmConfig
from mem0.memory import main, telemetry
from mem0.memory.main import Memory
from mem0.utils import spacy_models
from mem0.utils.factory import EmbedderFactory, LlmFactory, VectorStoreFactory
from mem0.vector_stores.base import VectorStoreBase
from mem0.vector_stores.configs import VectorStoreConfig

from memory.errors import InputError, ModelError
from memory.facts.table import MemoryTable, Row, Vector, unit

PROVIDER = "circadian"
"""Mem0's provider name of the embedder and of the model that it must not use."""

COLLECTION = "facts"
"""The one collection. Mem0's own entity collection is not kept."""

KIND = {"kind": "fact"}
"""The only rows of the table that Mem0 sees and writes."""

Embedding = Sequence[float] | Vector


class ReadyVectors(EmbeddingBase):
    """Takes the place of Mem0's embedder: the vectors are made before a write begins."""

    def __init__(self, config: Any) -> None:
        super().__init__(config)
        self._ready: Mapping[str, Embedding | None] = {}

    @contextmanager
    def ready(self, vectors: Mapping[str, Embedding | None]) -> Iterator[None]:
        """Use these vectors inside; None for a text keeps its fact's. For one thread."""
        self._ready = vectors
        try:
            yield
        finally:
            self._ready = {}

    def embed(self, text: str, memory_action: str | None = None) -> Embedding | None:
        """The vector of one text."""
        return self._ready[text]


class NoChatModel(LLMBase):
    """Takes the place of the chat model that Mem0 requires."""

    def generate_response(self, *args: Any, **settings: Any) -> str:
        """Raise ModelError."""
        raise ModelError("Mem0 has no chat model here: facts are stored as they are given")


class FactsConfig(FAISSConfig):
    """Mem0's FAISS settings, with the open table under the store."""

    table: Any


class FactStore(VectorStoreBase):
    """Mem0's vector store on the table of memories, under Mem0's provider name "faiss".

    It does what Mem0 asks for when it adds, updates or deletes a fact. Searching and listing go
    past Mem0, through `SemanticMemory`. Rows of other kinds are never returned, changed or removed.
    """

    def __init__(self, *, collection_name: str, table: MemoryTable, **settings: Any) -> None:
        if collection_name != COLLECTION:
            raise ValueError(f"there is one collection, {COLLECTION!r}, and no {collection_name!r}")
        self._table = table
        self._dimension = int(settings["embedding_model_dims"])

    def insert(
        self,
        vectors: Sequence[Embedding],
        payloads: Sequence[Mapping[str, Any]] | None = None,
        ids: Sequence[str] | None = None,
    ) -> None:
        """Add rows, all or none. A row whose operation id exists in its scope is ignored."""
        if payloads is None or ids is None:
            raise ValueError("a fact needs an id and a payload")
        with self._table.transaction():
            for fact_id, vector, payload in zip(ids, vectors, payloads, strict=True):
                self._table.insert(fact_id, unit(vector, self._dimension), _kept(payload))

    def update(
        self,
        vector_id: str,
        vector: Embedding | None = None,
        payload: Mapping[str, Any] | None = None,
    ) -> None:
        """Replace one fact's vector, payload or both."""
        if self.get(vector_id) is not None:
            given = None if vector is None else unit(vector, self._dimension)
            self._table.update(vector_id, given, None if payload is None else _kept(payload))

    def delete(self, vector_id: str) -> None:
        """Remove one fact."""
        self._table.delete({"id": vector_id, **KIND})

    def get(self, vector_id: str) -> Row | None:
        """One fact, or None. Mem0 reads its id and its payload."""
        return next(iter(self._table.select({"id": vector_id, **KIND})), None)

    def _refuse(self, *args: Any, **settings: Any) -> NoReturn:
        raise InputError(
            "facts are searched, listed and removed through SemanticMemory, not through Mem0"
        )

    create_col = search = keyword_search = list_cols = delete_col = col_info = list = reset = (
        _refuse
    )


def _kept(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A fact's payload without the field that Mem0 derives from others."""
    return {k: v for k, v in payload.items() if k != "text_lemmatized"} | KIND


class NoHistory:
    """Takes the place of Mem0's history: a second copy of every text, which nobody reads."""

    def add_history(self, *args: Any, **details: Any) -> None:
        """Keep nothing."""

    def get_history(self, memory_id: str) -> list[dict[str, Any]]:
        """No changes: none are kept."""
        return []

    def close(self) -> None:
        """Nothing to close."""


@dataclass(frozen=True)
class Mem0:
    """Mem0, with the parts of it that a write prepares."""

    memory: Memory
    table: MemoryTable
    embedder: ReadyVectors

    def add(self, text: str, ids: Mapping[str, str], metadata: dict[str, Any]) -> None:
        """Write one fact as it is given, under Mem0's `user_id` and `agent_id`."""
        self.memory.add([{"role": "user", "content": text}], **ids, metadata=metadata, infer=False)

    def delete(self, fact_id: str) -> None:
        """Remove one fact."""
        forget: Callable[[str], object] = self.memory.delete
        forget(fact_id)


def open_mem0(table: MemoryTable, *, dimension: int, folder: Path) -> Mem0:
    """Mem0 over `table`, with its own files in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    EmbedderFactory.provider_to_class[PROVIDER] = f"{__name__}.{ReadyVectors.__name__}"
    LlmFactory.register_provider(PROVIDER, f"{__name__}.{NoChatModel.__name__}")
    VectorStoreFactory.provider_to_class["faiss"] = f"{__name__}.{FactStore.__name__}"
    # It neither looks for entities in a text nor stores any, and reports nothing to anybody. Where
    # spaCy's model is not installed, it would even download it inside the first write.
    spacy_models._load_failed_full = spacy_models._load_failed_lemma = True
    # Its variable is read where it is imported, which may have been before the product.
    for module in (main, telemetry):
        vars(module)["MEM0_TELEMETRY"] = False
    store: Any = FactsConfig(
        collection_name=COLLECTION,
        path=str(folder),
        distance_strategy="cosine",
        normalize_L2=False,
        embedding_model_dims=dimension,
        table=table,
    )
    model = {"model": None, "embedding_dims": dimension}
    # model_construct: Mem0's validators know only the names of its own providers.
    config = MemoryConfig(
        vector_store=VectorStoreConfig.model_construct(provider="faiss", config=store),
        embedder=EmbedderConfig.model_construct(provider=PROVIDER, config=model),
        llm=LlmConfig.model_construct(provider=PROVIDER, config={"model": None}),
        history_db_path=":memory:",
    )
    memory = Memory(config)
    memory.db.close()
    memory.db = cast(Any, NoHistory())
    return Mem0(memory, table, memory.embedding_model)
