"""Token budgets of a prompt: which part is shortened first. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

GIVES_WAY_FIRST = (
    # Nobody spoke to the agent there; what matters of it is in the journal too.
    "context_buffer_tokens",
    # Whoever speaks now stands in the message itself, and what they said in journal and facts.
    "entity_tokens",
    # A tool finds them again: recall_memories.
    "recall_tokens",
    # No tool lists them, but each is one line, and the next tick shows it again.
    "goals_tokens",
    # What people asked for once and expect ever after.
    "session_memory_tokens",
    # What is being worked on: without it a long task starts anew.
    "project_tokens",
)
"""The settings that bound the lists of a prompt, in the order in which the lists are shortened.

When the components fill more than their share of the context, the first list shrinks to nothing
before the next is touched. A user's own components come after all of them. The system prompt and
the persona are the user's, and stay whole."""

SHARE = 0.5
"""The share of the context limit for all components of the system message."""


def give_way(
    texts: Mapping[str, str],
    order: Sequence[str],
    render: Callable[[str, int], str],
    over: Callable[[Mapping[str, str]], int],
    size: Callable[[str], int],
) -> dict[str, str]:
    """The texts by name, shortened in `order` until all fit.

    Args:
        texts: By name.
        order: Names, the first to shorten first.
        render: Gives the text of a name in at most so many tokens.
        over: Gives the tokens by which all texts exceed their share.
        size: Gives the tokens of a text.
    """
    shorter = dict(texts)
    for name in order:
        tokens = size(shorter[name])
        while tokens > 0 and (excess := over(shorter)) > 0:
            tokens = max(0, min(tokens, size(shorter[name])) - excess)
            shorter[name] = render(name, tokens)
    return shorter
