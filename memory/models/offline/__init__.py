"""The offline chat model: embedded rules, not a language model."""

from memory.models.offline.model import OfflineChatModel

__all__ = ["OfflineChatModel"]
