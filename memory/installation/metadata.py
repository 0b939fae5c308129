"""An installation's metadata: its schema and embedder, and the rules for opening it again.

A data folder keeps it in a file, a database in a table.
"""

from __future__ import annotations

from langchain_core.embeddings import Embeddings
from pydantic import BaseModel

from memory.errors import FolderError
from memory.models import DIMENSION as OFFLINE_DIMENSION
from memory.models import OFFLINE, choose_embedder, embedding_dimension, load_embedder

_CUSTOM = "custom:"


class Metadata(BaseModel):
    """The content of the file or the table."""

    schema_version: int
    embedder: str
    """A model's name, or `custom:<class>` for embeddings that Python code gave."""
    dimension: int
    """Numbers in a vector."""


class WantedEmbedder:
    """The embedder that a caller wants: by name, as an object, or the recorded one."""

    def __init__(self, embedder: str | None, offline: bool, embeddings: Embeddings | None) -> None:
        self._offline, self._embeddings = offline, embeddings
        given = None if embeddings is None else f"{_CUSTOM}{type(embeddings).__name__}"
        self.name = given or embedder or (OFFLINE if offline else None)
        """The embedder the caller insists on. None: the recorded one, or else the default."""

    def new(self, schema: int) -> Metadata:
        """The metadata of a new installation. Blocking.

        The default embedder is offline if asked for, or if no OpenAI key is set. An unknown
        dimension is found by embedding one word.
        """
        name = self.name or choose_embedder(None, offline=self._offline)
        return Metadata(schema_version=schema, embedder=name, dimension=self._dimension(name))

    def changed(self, head: Metadata) -> Metadata:
        """`head` with the wanted embedder instead of the recorded one. Raises as `new`."""
        name = self.name or head.embedder
        if name.startswith(_CUSTOM) and self._embeddings is None:
            return head
        return head.model_copy(update={"embedder": name, "dimension": self._dimension(name)})

    def check(self, head: Metadata, where: str) -> None:
        """Raise FolderError if the installation called `where` has another embedder."""
        made = f"{where} was made with the embedder {head.embedder}"
        if self.name is not None and self.name != head.embedder:
            by_name = f"`circadian reindex --embedder {self.name}`"
            way = by_name if self._embeddings is None else "`graph.use_cases.reindex`"
            raise FolderError(f"{made}, not {self.name}; {way} changes it and embeds all anew")
        if head.embedder.startswith(_CUSTOM) and self._embeddings is None:
            raise FolderError(
                f"{where} was made with embeddings given from Python ({head.embedder}); open it "
                "from Python with the same ones, or `circadian reindex --embedder NAME` for others"
            )
        if head.embedder == OFFLINE and head.dimension != OFFLINE_DIMENSION:
            raise FolderError(
                f"{made} when its vectors had {head.dimension} numbers; now they have "
                f"{OFFLINE_DIMENSION}: `circadian reindex --embedder {OFFLINE}` embeds all anew"
            )

    def load(self, name: str) -> Embeddings:
        """The embedder. Raises InputError if it cannot be loaded, as without its key."""
        return self._embeddings if self._embeddings is not None else load_embedder(name)

    def _dimension(self, name: str) -> int:
        return embedding_dimension(name, self.load(name))
