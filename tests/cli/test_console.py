"""What is printed: words broken between words, text cleaned, numbers counted."""

import io

import pytest
from rich.console import Console

from graph.console import Screen, Words, bar, clean, counted, date, day, short_id


def screen(*, terminal: bool, width: int = 20) -> Screen:
    found = Screen(json=False)
    found.out = Console(
        file=io.StringIO(), force_terminal=terminal, width=width, color_system=None, markup=False
    )
    return found


def printed(found: Screen) -> str:
    assert isinstance(found.out.file, io.StringIO)
    return found.out.file.getvalue()


@pytest.mark.parametrize(
    ("terminal", "pieces", "shown"),
    [
        (True, "The quick br|own fox ju|mps| the\ndog", "The quick brown fox \njumps the\ndog\n"),
        (False, "The quick brown| fox jumps\n\n  over", "The quick brown fox jumps\n\n  over\n"),
        (True, "see |" + "x" * 25, "see \n" + "x" * 25 + "\n"),
    ],
)
def test_a_reply_breaks_between_words_and_on_a_terminal_alone(
    terminal: bool, pieces: str, shown: str
) -> None:
    found = screen(terminal=terminal)
    words = Words(found)
    for piece in pieces.split("|"):
        words.add(piece)
    words.end()
    assert printed(found) == shown


@pytest.mark.parametrize("evil", ["\x1b[2J", "\x07", "\r", "\x9b31m", "\u202e", "\x00"])
def test_clean_removes_control_characters(evil: str) -> None:
    assert evil[0] not in clean(f"a{evil}b")
    assert clean("a\tb\nc ünïcödé 🌱") == "a\tb\nc ünïcödé 🌱"


@pytest.mark.parametrize(
    ("percentage", "full"), [(-5, 0), (0, 0), (4, 0), (50, 5), (100, 10), (250, 10)]
)
def test_a_bar_is_as_full_as_its_percentage(percentage: float, full: int) -> None:
    assert bar(percentage, "green", width=10).plain == "█" * full + "░" * (10 - full)


def test_dates_counts_and_ids_are_short() -> None:
    ids = ("aea331bb-2018-45d5-a134-62abc8dcead0", "sat-03")
    assert [*map(short_id, ids)] == ["aea331bb…", "sat-03"]
    assert day("2026-05-02T08:00:00+00:00") == "Saturday 2 May 2026"
    assert date("2026-05-02T08:00:00+00:00") == "2 May 2026"
    assert [counted(n, "entry", "entries") for n in (0, 1, 1200)] == [
        *("0 entries", "1 entry", "1,200 entries")
    ]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_note_stays_clear_of_a_spinner_on_the_same_terminal(terminal: bool) -> None:
    shown, err = screen(terminal=True, width=60), io.StringIO()
    shown.err = Console(file=err, force_terminal=terminal, width=60)
    with shown.progress():
        shown.note("waiting for process 1")
    assert ("waiting for process 1" in printed(shown)) is terminal
    assert ("waiting for process 1" in err.getvalue()) is not terminal
