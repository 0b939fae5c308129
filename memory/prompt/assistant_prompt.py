"""The assistant's own prompt and its versions. Pure.

A version never changes: a rollback is a new version with the text of an earlier one.
"""

from __future__ import annotations

import difflib
import unicodedata
from datetime import datetime

from memory.errors import InputError, Refusal
from memory.records import AssistantPrompt, PromptVersion

KEPT = 20
"""Newest versions kept. The number is small because every checkpoint copies them."""

LONGEST = 8_000
"""Characters of a prompt."""

_JOINERS = "\u200c\u200d"
"""Invisible, but several scripts and many emoji need them."""

_UNSEEN = {"Cc", "Cf", "Co", "Cn", "Cs", "Zl", "Zp"}

_BEYOND = 0xE0000
"""From here on Unicode has only tags and selectors, which can hide text."""


def accepted(prompt: AssistantPrompt, text: str) -> str:
    """`text` as a prompt, with plain line ends. Raises Refusal, as for invisible characters: a
    person confirms what is shown.
    """
    plain = text.replace("\r\n", "\n").strip()
    if not plain:
        raise Refusal("The new prompt is empty", "Give the whole text that is to hold from now on.")
    if len(plain) > LONGEST:
        raise Refusal(
            f"The new prompt has {len(plain):,} characters, more than {LONGEST:,}",
            "Shorten it to the guidelines that matter most.",
        )
    if unseen := sorted({f"U+{ord(one):04X}" for one in plain if _is_unseen(one)}):
        raise Refusal(
            f"The new prompt has characters that nobody can see: {', '.join(unseen[:5])}",
            "Write it in plain characters, spaces and line breaks.",
        )
    if plain == prompt["text"]:
        raise Refusal("The new prompt is the one that holds already", "Nothing is to be done.")
    return plain


def changed(
    prompt: AssistantPrompt, text: str, *, at: datetime, reason: str, by: str
) -> AssistantPrompt:
    """The prompt with `text` as its next version."""
    version: PromptVersion = {
        "version": prompt["version"] + 1,
        "text": text,
        "at": at.isoformat(),
        "reason": reason,
        "by": by,
    }
    return {
        "version": version["version"],
        "text": text,
        "versions": [*prompt["versions"], version][-KEPT:],
    }


def rolled_back(prompt: AssistantPrompt, version: int, *, at: datetime, by: str) -> AssistantPrompt:
    """The prompt with the text of `version` as a new one; 0 is empty. Raises InputError."""
    texts = {0: "", **{one["version"]: one["text"] for one in prompt["versions"]}}
    if version not in texts:
        known = ", ".join(str(one) for one in texts)
        raise InputError(f"the prompt has no version {version}; kept are {known} (0: empty)")
    if texts[version] == prompt["text"]:
        return prompt
    return changed(prompt, texts[version], at=at, reason=f"Rolled back to version {version}", by=by)


def difference(prompt: AssistantPrompt, new_text: str) -> str:
    """The unified diff to `new_text`; empty if nothing changes."""
    lines = difflib.unified_diff(
        prompt["text"].split("\n") if prompt["text"] else [],
        new_text.split("\n") if new_text else [],
        fromfile=f"version {prompt['version']} (in force)",
        tofile=f"version {prompt['version'] + 1} (proposed)",
        lineterm="",
    )
    return "\n".join(lines)


def _is_unseen(character: str) -> bool:
    if character in _JOINERS or character in "\n\t":
        return False
    return unicodedata.category(character) in _UNSEEN or ord(character) >= _BEYOND
