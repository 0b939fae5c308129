"""What is kept of texts is bounded: long ones are looked at anew."""

from __future__ import annotations

from memory.text.words import LONGEST, cached_by_text


def test_short_texts_are_cached_and_long_ones_are_not() -> None:
    seen = list[str]()

    @cached_by_text(2)
    def counted(text: str) -> int:
        seen.append(text)
        return len(text)

    short, long = "x" * LONGEST, "x" * (LONGEST + 1)
    assert [counted(short), counted(short), counted(long), counted(long)] == [
        LONGEST,
        LONGEST,
        LONGEST + 1,
        LONGEST + 1,
    ]
    assert seen == [short, long, long]


def test_the_cache_drops_the_oldest_text() -> None:
    seen = list[str]()

    @cached_by_text(2)
    def counted(text: str) -> None:
        seen.append(text)

    for text in "abca":
        counted(text)
    assert seen == ["a", "b", "c", "a"]
