"""Prompts as text, and the prefixes that they share: what a provider's cache can reuse."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

from langchain_core.messages import SystemMessage
from langchain_core.messages.utils import convert_to_openai_messages, count_tokens_approximately

from benchmarks.models import Sent
from memory.text import approximate_tokens


class Repeated(NamedTuple):
    """Characters that repeat the beginning of the previous call, and all characters."""

    same: int = 0
    total: int = 0

    @property
    def share(self) -> float:
        """The repeated share, 0..1."""
        return self.same / max(1, self.total)


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The approximate tokens of a tick's first call, by part."""

    tools: int
    system: int
    history: int
    """Without the newest message."""
    newest: int
    """The blocks in front of the newest event, and the event."""
    uncached: int
    """What does not repeat the beginning of the call before."""

    @property
    def whole(self) -> int:
        """The whole prompt."""
        return self.tools + self.system + self.history + self.newest


def parts(before: Sent, sent: Sent) -> Parts:
    """The parts of a call; `before` is the call before it."""
    system = int(isinstance(sent.messages[0], SystemMessage))
    same = repeated(wire(before), wire(sent))
    made = Parts(
        tools=count_tokens_approximately([], tools=[*sent.tools]),
        system=approximate_tokens(sent.messages[:system]),
        history=approximate_tokens(sent.messages[system:-1]),
        newest=approximate_tokens(sent.messages[-1:]),
        uncached=0,
    )
    return replace(made, uncached=round(made.whole * (1 - same.share)))


def tokens(sent: Sent) -> int:
    """Approximate tokens of a call: messages and tool schemas."""
    return approximate_tokens(sent.messages) + count_tokens_approximately([], tools=[*sent.tools])


def wire(sent: Sent) -> str:
    """A call as JSON lines in reading order: system, tools, messages.

    Only ASCII, so that characters count as bytes.
    """
    messages = convert_to_openai_messages(sent.messages)
    system = isinstance(sent.messages[0], SystemMessage)
    parts = [*messages[:system], *sent.tools, *messages[system:]]
    return "".join(f"{json.dumps(part)}\n" for part in parts)


def repeated(before: str, prompt: str) -> Repeated:
    """How much of `prompt` repeats the beginning of `before`; zero of zero without `before`."""
    if not before:
        return Repeated()
    unlike = (
        at for at, (one, other) in enumerate(zip(before, prompt, strict=False)) if one != other
    )
    return Repeated(next(unlike, min(len(before), len(prompt))), len(prompt))


def added(parts: Iterable[Repeated]) -> Repeated:
    """The sum of all parts."""
    listed = list(parts)
    return Repeated(sum(one.same for one in listed), sum(one.total for one in listed))
