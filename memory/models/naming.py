"""What a model is called, for records of what it did."""

from __future__ import annotations

from langchain_core.language_models import BaseChatModel


def called(model: BaseChatModel) -> str:
    """`provider:name`, as `openai:gpt-4o-mini`; the provider alone where it has no more to say."""
    return ":".join(named(model))


def named(model: BaseChatModel) -> list[str]:
    """[provider, name], or [provider]."""
    provider = model._llm_type.removesuffix("-chat")
    for attribute in ("model_name", "model", "model_id"):
        value = getattr(model, attribute, None)
        if isinstance(value, str) and value:
            return [provider, value]
    return [provider]
