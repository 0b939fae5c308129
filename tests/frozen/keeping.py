"""Comparing what the product shows with what is kept in `tests/frozen/kept`."""

import difflib
import inspect
import json
import os
import re
from datetime import datetime
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from graph.agent import open_agent

KEPT = Path(__file__).parent / "kept"
UUID = r"(?<![0-9a-f])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9a-f])"
DERIVED = (
    r"\bcall_[0-9a-f]{24}\b",
    r"(?<=correction_)(?:\d{8}_)?[0-9a-f]{16}\b",
    r"(?<=_)[0-9a-f]{10}\b",
    r"(?<=\[)[0-9a-f]{8}(?=\] )",
)
"""Digests of what has a random id or a measured time in it."""
OPERATION = r"\b[0-9a-f]{32}\b"
"""An operation's id: random only where it comes from an event whose id is random."""
SIZE = re.compile(r"\b\d+\.\d MB")
"""A file's size, which depends on when the database last wrote its log back."""
RANDOM = re.compile("|".join((UUID, *DERIVED)))
ANY = re.compile("|".join((UUID, *DERIVED, OPERATION)))
PREFIXES = ("<fact", "event_", "correction_")
MEASURED = frozenset({"seconds", "duration_ms", "processes"})
"""Keys whose values are times that were measured, or process ids."""


def compare(name: str, seen: str) -> None:
    """Fail with a diff where `seen` is not the text of the kept file `name`."""
    path = KEPT / name
    if os.environ.get("RENEW_FROZEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(seen, encoding="utf-8")
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    if seen != kept:
        lines = difflib.unified_diff(
            kept.splitlines(), seen.splitlines(), str(path), "as it is now", lineterm="", n=8
        )
        pytest.fail(
            "this changed; if it should: RENEW_FROZEN=1 python -m pytest tests/frozen\n"
            + "\n".join(list(lines)[:200]),
            pytrace=False,
        )


def document(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False, sort_keys=True, default=str) + "\n"


class Normaliser:
    """Replaces what differs from run to run; the same id gets the same label everywhere.

    A fact is named after its text, any other random id is numbered by appearance. Lists of ids, and
    the records of an export, are sorted once the facts have names, since random ids order them.
    """

    def __init__(self, *folders: tuple[Path, str]) -> None:
        self._folders = folders
        self._random = ANY
        self._facts: dict[str, str] = {}
        self._labels: dict[str, str] = {}

    def name_facts(self, value: Any) -> None:
        if isinstance(value, dict):
            text, id_ = value.get("text"), value.get("id")
            if isinstance(text, str) and isinstance(id_, str) and re.fullmatch(UUID, id_):
                self._facts.setdefault(id_, self._fact_label(text))
        for inner in value.values() if isinstance(value, dict) else value:
            if isinstance(inner, dict | list):
                self.name_facts(inner)

    def _fact_label(self, text: str) -> str:
        label = f"<fact {text[:32]}>"
        same = sum(known.startswith(label) for known in self._facts.values())
        return f"{label}{same + 1}" if same else label

    def __call__(self, value: Any, *, operations: bool = False) -> Any:
        """`value` with ids named, folders named, measured times blanked and random order gone.

        Numbers are rounded, since vectors are not summed alike on every machine.
        `operations`: their ids are left as they are.
        """
        self._random = RANDOM if operations else ANY
        return self._numbered(_sorted(self._named(value)))

    def _named(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {
                self._named(key): "<measured>" if key in MEASURED else self._named(inner)
                for key, inner in value.items()
            }
        if isinstance(value, list):
            return [self._named(inner) for inner in value]
        if isinstance(value, float):
            return round(value, 6)
        if not isinstance(value, str):
            return value
        for folder, name in self._folders:
            value = value.replace(str(folder), name)
        value = SIZE.sub("<size> MB", value)
        return re.sub(UUID, lambda match: self._facts.get(match[0], match[0]), value)

    def _numbered(self, value: Any) -> Any:
        if isinstance(value, dict):
            pairs = sorted(value.items(), key=lambda pair: _blank(pair[0]))
            return {self._numbered(key): self._numbered(inner) for key, inner in pairs}
        if isinstance(value, list):
            return [self._numbered(inner) for inner in value]
        return self._random.sub(self._label, value) if isinstance(value, str) else value

    def _label(self, match: re.Match[str]) -> str:
        return self._labels.setdefault(match[0], f"<id {len(self._labels) + 1}>")


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    inner = [_sorted(each) for each in value]
    return sorted(inner, key=_blank) if _in_random_order(inner) else inner


def _in_random_order(items: list[Any]) -> bool:
    """Whether these are the lines of an export, or ids of facts and entries."""
    exported = all(isinstance(each, dict) and "type" in each for each in items[1:])
    ids = all(isinstance(each, str) and each.startswith(PREFIXES) for each in items)
    return (exported and len(items) > 2 and "format" in items[0]) or ids


def _blank(value: Any) -> str:
    return ANY.sub("", json.dumps(value, sort_keys=True, ensure_ascii=False))


class WallClock:
    """The product's own wall clock, standing at `now`.

    The function is found as the default of `open_agent`'s clock, and its code is replaced, so that
    whoever imported it, from wherever, sees the same time.
    """

    now: datetime

    def __init__(self, monkeypatch: pytest.MonkeyPatch, now: datetime) -> None:
        clock = inspect.signature(open_agent).parameters["clock"].default
        assert isinstance(clock, FunctionType)
        monkeypatch.setattr(clock, "__code__", _standing.__code__)
        self.set(now)

    def set(self, now: datetime) -> None:
        WallClock.now = now


def _standing() -> datetime:
    from tests.frozen.keeping import WallClock

    return WallClock.now
