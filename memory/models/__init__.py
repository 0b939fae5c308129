"""Models: chat models and embedders by name, called with retries behind circuit breakers."""

from memory.models.answers import CUT_OFF, MALFORMED, ended_by, sure_words
from memory.models.client import Answer, ask, ask_for, charged, charging, costing, in_vain, total
from memory.models.registry import (
    DIMENSION,
    OFFLINE,
    HashingEmbeddings,
    checked_model,
    choose_embedder,
    choose_model,
    embed_query,
    embed_texts,
    embedding_dimension,
    is_offline,
    load_chat_model,
    load_embedder,
    model_name,
)
from memory.models.retry import Breaker, Breakers, RetryPolicy, breakers_of, guarded

__all__ = [
    "CUT_OFF",
    "DIMENSION",
    "MALFORMED",
    "OFFLINE",
    "Answer",
    "Breaker",
    "Breakers",
    "HashingEmbeddings",
    "RetryPolicy",
    "ask",
    "ask_for",
    "breakers_of",
    "charged",
    "charging",
    "checked_model",
    "choose_embedder",
    "choose_model",
    "costing",
    "embed_query",
    "embed_texts",
    "embedding_dimension",
    "ended_by",
    "guarded",
    "in_vain",
    "is_offline",
    "load_chat_model",
    "load_embedder",
    "model_name",
    "sure_words",
    "total",
]
