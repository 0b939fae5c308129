"""What of a prompt a provider has seen before: prompts as text, and the beginnings they share."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from langchain_core.messages import SystemMessage
from langchain_core.messages.utils import convert_to_openai_messages, count_tokens_approximately

from benchmarks.models import Sent
from memory.text import approximate_tokens


class Repeated(NamedTuple):
    """Characters of prompts that repeat the beginning of the call before, and all characters."""

    same: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """What is repeated, 0..1."""
        return self.same / max(1, self.total)


def tokens(sent: Sent) -> int:
    """Approximate tokens of a call: messages and tool schemas."""
    return approximate_tokens(sent.messages) + count_tokens_approximately([], tools=[*sent.tools])


def wire(sent: Sent) -> str:
    """A call as JSON lines, in the order in which it is read: system, tools, messages.

    ASCII alone: as many characters as bytes.
    """
    messages = convert_to_openai_messages(sent.messages)
    system = isinstance(sent.messages[0], SystemMessage)
    parts = [*messages[:system], *sent.tools, *messages[system:]]
    return "".join(f"{json.dumps(part)}\n" for part in parts)


def repeated(before: str, prompt: str) -> Repeated:
    """What of `prompt` repeats `before`; nothing of either where there was no call before."""
    if not before:
        return Repeated()
    unlike = (
        at for at, (one, other) in enumerate(zip(before, prompt, strict=False)) if one != other
    )
    return Repeated(next(unlike, min(len(before), len(prompt))), len(prompt))


def added(parts: Iterable[Repeated]) -> Repeated:
    """The sum."""
    listed = list(parts)
    return Repeated(sum(one.same for one in listed), sum(one.total for one in listed))
