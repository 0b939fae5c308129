"""`circadian log`: what was done, for people and as JSON; and which times it takes."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import pytest

from graph.cli.commands.status import parse_since
from graph.cli.status_view import _DID, log_view
from graph.persistence import open_store
from memory import audit
from memory.audit import AuditEntry, Outcome, What
from memory.errors import InputError
from memory.installation.folder import open_folder
from memory.records.records import LOCAL_USER, Scope, thread_id
from tests.support.commandline import Run
from tests.support.screens import plain, styled
from tests.unit.memory.telemetry.test_audit import AT, PLACE, called

NOW = datetime(2026, 3, 4, 15, 30, tzinfo=UTC)
MINE = Scope(LOCAL_USER, thread_id(LOCAL_USER, "default"))


def keep(data: Path, *entries: AuditEntry) -> None:
    async def run() -> None:
        folder = open_folder(data, embedder="offline")
        async with open_store(folder) as store:
            await audit.write(store, MINE, entries)

    asyncio.run(run())


def calls(*times: datetime) -> list[AuditEntry]:
    return [audit.of_calls([called()], at=at, tick=1, origin=None)[0] for at in times]


def test_log_shows_what_a_message_caused(run: Run) -> None:
    run("send", "Add a goal: mend the fence")
    done = run("log")
    assert done.status == 0
    _, first, second = done.out.splitlines()
    assert "✓ agent called add_goal ·" in first
    assert "✓ agent made goal goal_1_0 · Mend the fence · tick 1" in second
    assert done.err == ""


def test_log_as_json_is_a_list_of_entries_oldest_first(run: Run, data: Path) -> None:
    entries = calls(AT, AT + timedelta(days=1), AT + timedelta(days=2))
    keep(data, *entries)
    assert run("log", "--json").document == entries
    newest = run("log", "-n", "1", "--json")
    assert newest.document == entries[-1:]
    assert newest.err == ""


def test_since_a_time_and_the_newest_of_many(run: Run, data: Path) -> None:
    keep(data, *calls(*(AT + timedelta(minutes=n) for n in range(60))))
    shown = run("log")
    assert len(shown.out.splitlines()) == 1 + 50
    assert shown.error == "the newest 50; -n 200 shows more"
    every = run("log", "--since", "2026-03-02")
    assert (len(every.out.splitlines()), every.err) == (1 + 60, "")
    late = run("log", "--since", "2026-03-02T09:58", "--json")
    assert [one["at"][11:16] for one in late.document] == ["09:58", "09:59"]


def test_an_empty_log_says_so(run: Run, data: Path) -> None:
    keep(data, *calls(AT))
    done = run("log", "--since", "2h")
    assert (done.status, done.out) == (0, "Nothing is logged.\n")
    assert run("log", "--since", "2h", "--json").document == []


def test_times_are_shown_and_read_in_the_setting_s_zone(run: Run, data: Path) -> None:
    keep(data, *calls(AT))
    shown = run("log", "--set", "time_zone=Asia/Tokyo").out
    assert shown.splitlines()[0].startswith("Monday 2 Mar 2026 (JST)")
    assert shown.splitlines()[1].startswith("18:00:00")
    (data / "circadian.toml").write_text('time_zone = "Asia/Tokyo"\n')
    assert run("log").out == shown
    for since, found in [("2026-03-02T18:00", 1), ("2026-03-02T18:01", 0)]:
        late = run("log", "--since", since, "--json").document
        assert len(late) == found
    assert "(UTC)" in run("log", "--set", "time_zone=UTC").out


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("30m", NOW - timedelta(minutes=30)),
        ("2h", NOW - timedelta(hours=2)),
        (" 3 D ", NOW - timedelta(days=3)),
        ("1w", NOW - timedelta(days=7)),
        ("90s", NOW - timedelta(seconds=90)),
        ("today", datetime(2026, 3, 4, tzinfo=UTC)),
        ("Yesterday", datetime(2026, 3, 3, tzinfo=UTC)),
        ("2026-03-02", datetime(2026, 3, 2, tzinfo=UTC)),
        ("2026-03-02T09:00", datetime(2026, 3, 2, 9, tzinfo=UTC)),
        ("2026-03-02 09:00:00+02:00", datetime(2026, 3, 2, 7, tzinfo=UTC)),
        ("2026-03-02T09:00:00Z", datetime(2026, 3, 2, 9, tzinfo=UTC)),
    ],
)
def test_since_understands_times(given: str, meant: datetime) -> None:
    assert parse_since(given, NOW) == meant
    assert parse_since(given, NOW).tzinfo is UTC


@pytest.mark.parametrize(
    "given",
    ["", "3", "3 fortnights", "-2h", "h", "2026-13-01", "999999999w", "0001-01-01T00:00+23:00"],
)
def test_since_refuses_other_text(given: str) -> None:
    with pytest.raises(InputError, match="is not a time"):
        parse_since(given, NOW)


def test_each_day_has_its_head_and_each_entry_its_sentence() -> None:
    failed = called(ok=False, error="Goal does not exist", reasoning=None, duration_ms=2_345)
    first, second = audit.of_calls([failed, called("noop", cached=True, duration_ms=0)], **PLACE)
    stop = audit.of_stop("5 failures in a row", at=AT + timedelta(days=1), tick=None, who="Ada")
    lines = plain(log_view([first, second, stop])).splitlines()
    assert [line.rstrip("─ ") for line in lines] == [
        "Monday 2 Mar 2026 (UTC)",
        "09:00:00 ✗ agent called add_goal · Goal does not exist · 2.3 s · tick 3",
        "09:00:00 ✓ agent called noop · cached · “Ada asked for it” · tick 3",
        "Tuesday 3 Mar 2026 (UTC)",
        "09:00:00 ✓ Ada set the emergency stop · “5 failures in a row”",
    ]


def test_outcomes_have_colours_on_a_terminal_only() -> None:
    told = audit.of_calls([called(), called(ok=False, error="broken")], **PLACE)
    assert "\x1b[" not in plain(log_view(told))
    shown = styled(log_view(told))
    assert "\x1b[32m✓" in shown
    assert "\x1b[31m✗" in shown


def test_text_that_would_steer_a_terminal_is_cleaned() -> None:
    evil = called("add\x1b[2J_goal", reasoning="a\x1b]0;title\x07\nb", error="x\x9b31m", ok=False)
    shown = plain(log_view(audit.of_calls([evil], **PLACE)))
    assert "add[2J_goal" in shown
    for character in ("\x1b", "\x07", "\x9b"):
        assert character not in shown


def test_long_texts_are_cut_and_break_within_their_column() -> None:
    told = audit.of_calls([called(reasoning="word " * 200)], **PLACE)
    lines = plain(log_view(told), 60).splitlines()
    assert len(lines) < 8
    assert all(line.startswith(" " * 11) for line in lines[2:])


@pytest.mark.parametrize("what", get_args(What))
def test_every_kind_of_entry_has_a_sentence(what: Any) -> None:
    for outcome in get_args(Outcome):
        entry: AuditEntry = {**calls(AT)[0], "what": what, "outcome": outcome}
        assert f" agent {_DID[entry['what']]} add_goal" in plain(
            log_view([{**entry, "detail": {"cut": "{"}}])
        )
