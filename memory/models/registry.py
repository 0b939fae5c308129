"""Chat models and embedders by name, and the one place where embedders are called.

Nothing heavy is imported before it is asked for.

Chat models: `offline`, `openai:<model>` (any OpenAI-compatible server through OPENAI_BASE_URL),
`<provider>:<model>` through LangChain's own loader. Embedders: the same forms, such as
`huggingface:<model>`, and `fastembed:<model>`.
"""

from __future__ import annotations

import importlib
import math
import os
from collections import Counter
from collections.abc import Sequence
from functools import cache, lru_cache, partial
from hashlib import blake2b
from operator import mul
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from langchain_core.embeddings import Embeddings
from pydantic import SecretStr

from memory.errors import InputError, ModelError
from memory.models.retry import USUAL, Breaker, RetryPolicy, Service, once, with_retries
from memory.telemetry import called
from memory.text import content_stems, shortened, stem, words

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel
    from langchain_core.outputs import ChatGenerationChunk


class FastEmbedEmbeddings(Embeddings):
    """A model of fastembed; the first use downloads it. Raises ImportError or ValueError."""

    def __init__(self, model: str) -> None:
        fastembed: Any = importlib.import_module("fastembed")
        try:
            self._model = fastembed.TextEmbedding(model_name=model)
        except OSError as error:
            raise ValueError(f"its files cannot be fetched: {error}") from error

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        return [vector.tolist() for vector in self._model.embed(texts)]

    def embed_query(self, text: str) -> list[float]:
        """The vector of a query: some models embed those in another way than documents."""
        vector: list[float] = next(iter(self._model.query_embed(text))).tolist()
        return vector


# The offline embedder: feature hashing, no model, no network.
#
# It compares words and parts of words, not meanings: "car" and "automobile" are strangers to it.
# Method: Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning".

DIMENSION = 256

_STEM_WEIGHT = 1.0

_TRIGRAM_WEIGHT = 0.25

FEW = 4
"""Texts that are embedded in less time than a hand-off to a thread takes."""


class HashingEmbeddings(Embeddings):
    """Signed hashing of word stems and character trigrams to 256 dimensions.

    Deterministic; sublinear weights; stop words dropped unless nothing else is there; L2 norm 1.
    A text without a word is the zero vector, which is like nothing.
    """

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector per text, in order."""
        return [_vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """One vector; a question and a document are embedded alike."""
        return _vector(text)

    async def aembed_query(self, text: str) -> list[float]:
        """The same at once: LangChain would hand it to a thread, which takes longer."""
        return _vector(text)

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """A few at once, likewise; many in a thread."""
        if len(texts) <= FEW:
            return self.embed_documents(texts)
        return await super().aembed_documents(texts)


def _vector(text: str) -> list[float]:
    stems = content_stems(text) or [stem(word) for word in words(text)]
    vector = [0.0] * DIMENSION
    for word, count in Counter(stems).items():
        weight = 1.0 + math.log(count)
        for index, signed in _features(word):
            vector[index] += weight * signed
    norm = math.sqrt(math.fsum(map(mul, vector, vector)))
    return [value / norm for value in vector] if norm else vector


@lru_cache(maxsize=65_536)
def _features(word: str) -> tuple[tuple[int, float], ...]:
    """(index, signed weight) of a stem and of its trigrams, the ends of the word marked."""
    padded = f"^{word}$"
    trigrams = [padded[at : at + 3] for at in range(len(padded) - 2)]
    share = _TRIGRAM_WEIGHT / math.sqrt(len(trigrams))
    return (_hashed(f"w:{word}", _STEM_WEIGHT), *(_hashed(f"t:{t}", share) for t in trigrams))


def _hashed(feature: str, weight: float) -> tuple[int, float]:
    digest = int.from_bytes(blake2b(feature.encode(), digest_size=8).digest(), "big")
    return digest % DIMENSION, weight if digest >> 63 else -weight


async def embed_query(
    embeddings: Embeddings,
    text: str,
    policy: RetryPolicy = USUAL,
    *,
    breaker: Breaker | None = None,
) -> list[float]:
    """The vector of a query. Raises ModelError when the embedder gives none."""
    return await with_retries(
        lambda: embeddings.aembed_query(text),
        policy,
        whom=partial(Service.of, embeddings, "embedder"),
        breaker=breaker,
    )


async def embed_texts(
    embeddings: Embeddings,
    texts: Sequence[str],
    policy: RetryPolicy = USUAL,
    *,
    breaker: Breaker | None = None,
) -> list[list[float]]:
    """The vectors of `texts`, in order, in one call. Raises ModelError when any is missing."""
    vectors = await with_retries(
        lambda: embeddings.aembed_documents(list(texts)),
        policy,
        whom=partial(Service.of, embeddings, "embedder"),
        breaker=breaker,
    )
    if len(vectors) != len(texts):
        raise ModelError(f"the embedder gave {len(vectors)} vectors for {len(texts)} texts")
    return vectors


OFFLINE = "offline"
DEFAULT_CHAT = "openai:gpt-4o-mini"
DEFAULT_EMBEDDER = "openai:text-embedding-3-small"
_KEY = "OPENAI_API_KEY"
_BASE_URLS = ("OPENAI_API_BASE", "OPENAI_BASE_URL")
_NO_KEY = "none"
"""Sent if a base URL is set without a key: most local servers ask for none."""
_EACH_ITS_OWN = {"connection": "close"}
"""A connection kept open would bind the client, which LangChain shares, to one event loop."""
_FORMS = "`offline`, `openai:<model>` or `<provider>:<model>`"
_DIMENSIONS = {
    "openai:text-embedding-3-small": 1536,
    "openai:text-embedding-3-large": 3072,
    "openai:text-embedding-ada-002": 1536,
}

_CONNECT_SECONDS = 5.0
"""Seconds to connect; `model_timeout` bounds the whole call."""


def load_chat_model(name: str) -> BaseChatModel:
    """The chat model called `name`. Nothing is called or downloaded. Raises InputError."""
    if name == OFFLINE:
        from memory.models.offline import OfflineChatModel

        return OfflineChatModel()
    provider, model = _parts(name)
    if provider == "openai":
        from httpx import Timeout

        # Only memory.models.ask retries and limits the time of calls.
        return _openai_chat_model()(
            model=model,
            api_key=_openai_key(name),
            max_retries=0,
            timeout=Timeout(None, connect=_CONNECT_SECONDS),
            default_headers=_EACH_ITS_OWN,
        )
    return cast(
        "BaseChatModel", _through_langchain("chat_models", "init_chat_model", name, max_retries=0)
    )


def choose_model(name: str | None, *, offline: bool = False) -> BaseChatModel:
    """The named model; without a name OpenAI's default, or the offline one without a key."""
    return load_chat_model(_chosen(name, DEFAULT_CHAT, offline=offline))


_NO_TOOL = {"name": "noop", "description": "Nothing.", "parameters": {"type": "object"}}


def checked_model(model: object) -> BaseChatModel:
    """Check a model that a program gives, without calling it."""
    from langchain_core.language_models import BaseChatModel

    kind = type(model).__name__
    if not isinstance(model, BaseChatModel):
        raise InputError(f"model must be a name or a LangChain chat model; got {kind}")
    try:
        model.bind_tools([_NO_TOOL])
    except NotImplementedError:
        raise InputError(
            f"the model {kind} cannot call tools: it has no bind_tools; write one, or give a chat "
            "model that has it"
        ) from None
    return model


def is_offline(model: BaseChatModel) -> bool:
    """Whether it is the offline model: embedded rules, and no language model."""
    from memory.models.offline import OfflineChatModel

    return isinstance(model, OfflineChatModel)


def model_name(model: BaseChatModel) -> str:
    """How to show a model to a person."""
    if is_offline(model):
        return "offline (embedded rules, not a language model)"
    return called(model)


def load_embedder(name: str) -> Embeddings:
    """The embedder called `name`. Errors as `load_chat_model`."""
    if name == OFFLINE:
        return HashingEmbeddings()
    provider, model = _parts(name)
    if provider == "openai":
        from langchain_openai import OpenAIEmbeddings

        # The length check would download a tokenizer. Retries: see load_chat_model.
        return OpenAIEmbeddings(
            model=model,
            openai_api_key=_openai_key(name),
            check_embedding_ctx_length=False,
            max_retries=0,
            default_headers=_EACH_ITS_OWN,
        )
    if provider == "fastembed":
        try:
            return FastEmbedEmbeddings(model)
        except ImportError as error:
            raise InputError(f"{name} needs a package: pip install fastembed") from error
        except ValueError as error:
            raise InputError(f"{name} cannot be loaded: {shortened(str(error), 200)}") from error
    return cast(Embeddings, _through_langchain("embeddings", "init_embeddings", name))


def choose_embedder(name: str | None, *, offline: bool = False) -> str:
    """The name of the embedder for a new data folder, by the rule of `choose_model`."""
    return _chosen(name, DEFAULT_EMBEDDER, offline=offline)


def embedding_dimension(name: str, embeddings: Embeddings) -> int:
    """The length of the embedder's vectors: known, or found by embedding one word (blocking)."""
    if name == OFFLINE:
        return DIMENSION
    whom = partial(Service.of, embeddings, "embedder")
    return _DIMENSIONS.get(name) or len(
        once(lambda: embeddings.embed_query("dimension"), whom=whom)
    )


def _chosen(name: str | None, default: str, *, offline: bool) -> str:
    if name:
        return name
    return default if os.environ.get(_KEY) and not offline else OFFLINE


def _parts(name: str) -> tuple[str, str]:
    provider, _, model = name.partition(":")
    if not provider or not model:
        raise InputError(f"unknown model name {name!r}: use {_FORMS}")
    return provider, model


def _openai_key(name: str) -> SecretStr:
    """Raises InputError where there is no key, or where the address is none."""
    for variable in filter(os.environ.get, _BASE_URLS):
        if not _is_address(os.environ[variable]):
            raise InputError(f"{variable} is no address: http://HOST:PORT/v1 is meant")
    key = os.environ.get(_KEY)
    if not key and not any(os.environ.get(variable) for variable in _BASE_URLS):
        raise InputError(
            f"{name} needs a key: set {_KEY} (or OPENAI_BASE_URL for a server of your own)"
        )
    return SecretStr(key or _NO_KEY)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that does not close
        return False


@cache
def _openai_chat_model() -> type[BaseChatModel]:
    """LangChain's client, extended to keep the reason of a refusal in a stream."""
    from langchain_openai import ChatOpenAI

    class OpenAIChatModel(ChatOpenAI):
        def _convert_chunk_to_generation_chunk(
            self, chunk: dict[str, Any], *args: Any, **kwargs: Any
        ) -> ChatGenerationChunk | None:
            made = super()._convert_chunk_to_generation_chunk(chunk, *args, **kwargs)
            told = [one.get("delta") or {} for one in chunk.get("choices") or []]
            if made is not None and told and told[0].get("refusal"):
                made.message.additional_kwargs["refusal"] = told[0]["refusal"]
            return made

    return OpenAIChatModel


def _through_langchain(module: str, function: str, name: str, **options: Any) -> Any:
    """LangChain's own loader; it says which provider package is missing."""
    try:
        loader = getattr(importlib.import_module(f"langchain.{module}"), function)
    except ImportError as error:
        raise InputError(
            f"{name} needs LangChain's loader and the provider's package: "
            f"pip install langchain langchain-{name.partition(':')[0]}"
        ) from error
    try:
        return loader(name, **options)
    except (ImportError, ValueError) as error:
        raise InputError(f"{name} cannot be loaded: {shortened(str(error), 200)}") from error
