"""Times are shown in a zone, with the weekday; near dates stand out."""

import pytest
import tzlocal
from pydantic import ValidationError

from memory.errors import InputError
from memory.settings import Settings
from memory.text import clock_line, shown_day, shown_time, with_nearness, zone_name

VIENNA = Settings(time_zone="Europe/Vienna").zone
NOW = "2026-11-22T14:09:00+00:00"


def test_the_clock_names_weekday_date_time_and_zone() -> None:
    assert clock_line(NOW, VIENNA) == "Now: Sunday 2026-11-22 15:09 (Europe/Vienna)"


def test_a_time_is_shown_in_the_zone_and_a_date_stays_that_date() -> None:
    assert shown_time("2026-11-22T23:30:00+00:00", VIENNA) == "Mon 2026-11-23 00:30"
    assert shown_time("2026-11-22T23:30:00", VIENNA) == "Mon 2026-11-23 00:30"
    assert shown_time("2026-11-22", Settings(time_zone="America/Lima").zone) == "Sun 2026-11-22"
    assert shown_day("2026-11-22T23:30:00+00:00", VIENNA) == "Mon 2026-11-23"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Pay by 2026-11-24T10:00 at last", "Pay by 2026-11-24T10:00 (in 2 days) at last"),
        ("due on 23.11.2026.", "due on 23.11.2026 (tomorrow)."),
        ("on Nov 25, 2026", "on Nov 25, 2026 (in 3 days)"),
        ("the 22nd of November", "the 22nd of November (today)"),
        ("due 24 November", "due 24 November (in 2 days)"),
        ("entro il 24 novembre 2026.", "entro il 24 novembre 2026 (in 2 days)."),
        ("op 23 november, uiterlijk", "op 23 november (tomorrow), uiterlijk"),
        ("el 24 de noviembre de 2026", "el 24 de noviembre de 2026 (in 2 days)"),
        ("avant le 24 novembre 2026", "avant le 24 novembre 2026 (in 2 days)"),
        ("24 Kas\u0131m 2026'da", "24 Kas\u0131m 2026'da (in 2 days)"),
        ("23 kas\u0131m'a kadar", "23 kas\u0131m'a (tomorrow) kadar"),
        ("al 24 nov. 2026 und am 22. Nov.", "al 24 nov. 2026 (in 2 days) und am 22. Nov (today)."),
        ("25 November 2027, 2026-11-26, 21 November", "25 November 2027, 2026-11-26, 21 November"),
        ("version 1.24.11.2026, 2026-11-245, 31 November", None),
        ("May 3 people come? 40 November 2026", None),
    ],
)
def test_a_date_within_three_days_says_how_near_it_is(text: str, shown: str | None) -> None:
    assert with_nearness(text, NOW, VIENNA, said="2026-11-20T08:00:00+00:00") == (shown or text)


def test_a_date_without_a_year_is_the_first_such_day_since_it_was_said() -> None:
    text = "The fair is on 24 November"
    assert with_nearness(text, NOW, VIENNA, said="2025-11-20") == text
    assert with_nearness(text, NOW, VIENNA, said="2025-12-01") == f"{text} (in 2 days)"


@pytest.mark.parametrize(
    "text", ["il 1° dicembre", "1º de diciembre", "1er décembre", "1 Aral\u0131k", "1. Dezember"]
)
def test_the_first_of_a_month_is_one_in_each_language(text: str) -> None:
    assert with_nearness(text, "2026-11-30", VIENNA, said="2026-11-20") == f"{text} (tomorrow)"


def test_the_zone_is_the_machines_unless_it_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    tzlocal.reload_localzone()
    try:
        assert zone_name(Settings().zone) == "Asia/Tokyo"
        assert zone_name(Settings(time_zone="UTC").zone) == "UTC"
    finally:
        monkeypatch.undo()
        tzlocal.reload_localzone()


def test_a_machine_whose_zone_does_not_exist_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused() -> None:
        raise ValueError("no such zone")

    monkeypatch.setattr(tzlocal, "get_localzone", refused)
    with pytest.raises(InputError, match="set TZ or the setting time_zone, such as Europe/Vienna"):
        _ = Settings().zone


def test_a_zone_that_does_not_exist_is_one_clear_error() -> None:
    with pytest.raises(ValidationError, match="no time zone is called 'Mars/Olympus'"):
        Settings(time_zone="Mars/Olympus")
