"""Replaying a file: each line once, on the file's clock, and what a broken line does."""

import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest

from graph.cli.commands.replay import MOST_AT_ONCE, Clock, Step, Tally, steps
from memory.errors import InputError
from memory.records.tick import Report, empty_report
from tests.support.commandline import Run
from tests.support.forked import forked_python
from tests.support.openai_server import Serve, error


def event(number: int, *, day: int = 2, **more: Any) -> dict[str, Any]:
    at = f"2026-05-{day:02d}T{8 + number // 60:02d}:{number % 60:02d}:00Z"
    text = f"I planted {number} beans"
    return {"id": f"e{number}", "at": at, "sender": "Ana", "text": text} | more


def written(path: Path, *lines: dict[str, Any] | str) -> Path:
    rows = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(rows) + "\n")
    return path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "days.jsonl"


Lines = list[dict[str, Any] | str]


def status(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run("status", "--json").document
    return found


def kinds(found: list[Step]) -> list[str | list[str]]:
    return [step.request or [one["id"] for one in step.events] for step in found]


QUIET: dict[str, Any] = {"addressed": False}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (
            [event(1, **QUIET), event(2, **QUIET), event(3), event(4), event(5, **QUIET)],
            [["e1", "e2", "e3"], ["e4"], ["e5"]],
        ),
        ([event(1, **QUIET), {"request": "sleep"}, event(2)], [["e1"], "sleep", ["e2"]]),
        (["\ufeff" + json.dumps(event(1)), "", "  ", event(2)], [["e1"], ["e2"]]),
    ],
)
def test_overheard_events_join_the_addressed_one_after_them(
    file: Path, lines: Lines, found: list[Any]
) -> None:
    assert kinds(list(steps(written(file, *lines)))) == found


def test_a_long_batch_of_overheard_events_is_split(file: Path) -> None:
    written(file, *(event(number, addressed=False) for number in range(MOST_AT_ONCE + 1)))
    assert [len(step.events) for step in steps(file)] == [MOST_AT_ONCE, 1]


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "must be an object"),
        ("17", "must be an object"),
        (json.dumps(event(2) | {"texts": "x"}), "unknown key 'texts'"),
        (json.dumps(event(2) | {"content": []}), "unknown key 'content'"),
        (json.dumps({**event(2), "at": "yesterday"}), "at: "),
        (json.dumps({**event(2), "at": "9999-12-31T23:59:59-05:00"}), "at: .*outside the years"),
        (json.dumps({"request": "sleep", "at": "0001-01-01T00:00:00+05:00"}), "at: .*outside"),
        (json.dumps({**event(2), "sender": 7}), "sender: "),
        (json.dumps({**event(2), "text": " "}), "text: "),
        (json.dumps({**event(2), "addressed": "yes"}), "addressed: "),
        (json.dumps({k: v for k, v in event(2).items() if k != "id"}), "id: "),
        (json.dumps({"request": "dance"}), "request: "),
        (json.dumps({"request": "sleep", "when": "now"}), "when: "),
        (json.dumps({"request": "sleep", "at": "late"}), "at: "),
        (json.dumps({"request": "sleep", "at": 5}), "at: "),
        (json.dumps({"request": "stop"}), "request: "),
    ],
)
def test_a_malformed_line_is_named(file: Path, line: str, what: str) -> None:
    written(file, event(1, addressed=False), line, event(3))
    with pytest.raises(InputError, match=rf"days\.jsonl:2: .*{what}"):
        list(steps(file))


def test_a_line_that_is_not_utf_8_is_named(file: Path) -> None:
    file.write_bytes(json.dumps(event(1)).encode() + b"\n\xff\xfe\n")
    with pytest.raises(InputError, match=r"days\.jsonl:2: not UTF-8"):
        list(steps(file))


def markers(file: Path) -> list[str]:
    return [step.marker for step in steps(file) if step.request]


def test_a_requests_marker_survives_mended_lines_before_it_and_is_no_others(file: Path) -> None:
    sleep = {"request": "sleep", "at": "2026-05-02T22:00:00Z"}
    (before,) = markers(written(file, event(1), event(2), sleep))
    after = markers(written(file, "", event(0), event(1, text="I planted peas"), event(2), sleep))
    assert after == [before]
    tick = {"request": "tick"}
    assert len(set(markers(written(file, event(1), tick, tick, event(2), tick)))) == 3


def test_the_clock_is_the_latest_time_so_far() -> None:
    clock = Clock()
    assert abs((clock() - datetime.now(UTC)).total_seconds()) < 60
    clock.reach(["2026-05-02T10:00:00+00:00", "2026-05-02T09:00:00+00:00"])
    clock.reach(["2026-05-01T10:00:00+00:00"])
    clock.reach([])
    assert clock() == datetime(2026, 5, 2, 10, tzinfo=UTC)


def test_a_night_happens_at_the_time_of_its_line(run: Run, file: Path) -> None:
    written(file, event(1), {"request": "sleep", "at": "2026-05-02T23:30:00+02:00"})
    assert run("replay", file).status == 0
    out = run("replay", written(file, event(3, day=3), {"request": "sleep"})).out
    assert "night: 1 fact learned" in out
    hits = run("recall", "beans", "--json").document
    assert [hit["at"][:10] for hit in hits] == ["2026-05-03", "2026-05-02"]


def test_a_replay_prints_its_counts(run: Run, file: Path) -> None:
    written(
        file,
        event(1),
        event(2, addressed=False, channel="garden"),
        {"request": "tick"},
        {"request": "sleep", "at": "2026-05-02T22:00:00Z"},
        {"request": "wake", "at": "2026-05-03T07:00:00Z"},
        event(3, day=3),
    )
    done = run("replay", file, "--json")
    assert done.status == 0
    counts = done.document
    calls, read, written_ = (
        counts.pop(key) for key in ("llm_calls", "input_tokens", "output_tokens")
    )
    assert calls > 2
    assert read > written_ > 0
    assert counts == {
        "events": 3,
        "skipped": 0,
        "ticks": 2,
        "context_only": 1,
        "ignored": 0,
        "questions": 0,
        "nights": 1,
        "failures": [],
    }
    assert done.err == ""
    now = status(run)
    assert (now["mode"], now["tick"], now["memory"]["journal"]) == ("awake", 2, 3)


def test_a_second_replay_skips_everything(run: Run, file: Path) -> None:
    written(file, event(1), event(2, addressed=False), {"request": "tick"}, {"request": "sleep"})
    first = run("replay", file, "--json").document
    before = status(run)
    again = run("replay", file, "--json").document
    assert (first["skipped"], first["nights"]) == (0, 1)
    assert (again["skipped"], again["ticks"], again["nights"]) == (4, 0, 0)
    assert status(run) == before


def test_a_check_says_what_a_file_holds_and_plays_nothing(run: Run, file: Path, data: Path) -> None:
    lines: Lines = [event(1), {"request": "sleep"}, event(2, addressed=False)]
    done = run("replay", written(file, *lines), "--check")
    assert done.out.splitlines() == [f"{file.name} is valid: 2 events, 1 request."]
    told = run("replay", file, "--check", "--json").document
    assert told == {"lines": 3, "events": 2, "requests": 1}
    for args in ((), ("--check",)):
        bad = run("replay", written(file, event(1), "{"), *args)
        assert (bad.status, f"{file}:2: not JSON" in bad.error) == (2, True)
    assert not data.exists()


def test_after_a_line_was_added_the_replay_goes_on_behind_it(run: Run, file: Path) -> None:
    lines: Lines = [event(1), {"request": "sleep"}, event(2, addressed=False)]
    run("replay", written(file, *lines))
    lines += [event(9), event(3)]
    done = run("replay", written(file, *lines), "--json").document
    assert (done["events"], done["skipped"], done["ticks"], done["nights"]) == (4, 3, 2, 0)


def test_replayed_again_after_a_kill_each_event_is_handled_once(
    run: Run, file: Path, data: Path
) -> None:
    written(file, *(event(number) for number in range(8)))
    command = [forked_python(), "-m", "graph.cli", "replay", str(file), "--data", str(data)]
    with subprocess.Popen([*command, "--conversation"], stdout=PIPE, text=True) as process:
        assert process.stdout is not None
        while "I planted 4 beans" not in process.stdout.readline():
            pass
        process.kill()
    done = run("replay", file, "--json").document
    assert done["events"] == 8
    assert 3 <= done["skipped"] + done["ticks"] <= 8
    now = status(run)
    assert (now["tick"], now["memory"]["journal"], now["inbox"]["waiting"]) == (8, 8, 0)


def test_an_event_whose_tick_fails_is_reported_unless_it_succeeds_later(
    run: Run, serve: Serve, file: Path
) -> None:
    written(file, event(1), event(2))
    serve(*[error(400, "out of order")] * 9)
    model = ("--model", "openai:none", "--embedder", "offline")
    done = run("replay", file, *model, "--json")
    assert done.status == 1
    failures = done.document["failures"]
    assert [(one["event_id"], one["attempts"]) for one in failures] == [("e1", 2), ("e2", 1)]
    assert "e2: the model call failed" in done.err
    assert "kept in the inbox, attempt 1 of 3" in done.err
    assert run("replay", written(file, event(3)), "--model", "offline").status == 0
    assert status(run)["tick"] == 3


def test_under_the_emergency_stop_a_replay_ends_and_says_why(run: Run, file: Path) -> None:
    run("stop")
    written(file, event(1), event(2))
    done = run("replay", file, "--json")
    assert done.status == 1
    assert [one["event_id"] for one in done.document["failures"]] == ["e1"]
    assert "Emergency stop" in done.error
    run("clear-stop")
    assert run("replay", file, "--json").document["ticks"] == 1


def test_a_file_that_is_not_there_is_one_line_and_makes_no_folder(
    run: Run, file: Path, data: Path
) -> None:
    done = run("replay", file)
    assert done.status == 2
    assert done.error == f"circadian: cannot read {file}: No such file or directory"
    assert not data.exists()


def test_a_replay_prints_its_nights_and_counts(run: Run, file: Path) -> None:
    night = {"request": "sleep", "at": "2026-05-02T22:00:00Z"}
    written(file, event(1), event(2, addressed=False), night, event(3, day=3))
    *told, cost, counts = run("replay", file).out.splitlines()
    assert re.fullmatch(r"6 model calls: [\d,]+ tokens read, \d+ written", cost)
    assert [*told, counts] == [
        "days.jsonl: 4 lines, model offline (embedded rules, not a language model)",
        "night: 2 facts learned, 4 model calls",
        "3 events: 2 ticks, 1 overheard, 0 lines skipped, 1 night",
    ]


def test_the_conversation_shows_who_said_what_when(run: Run, file: Path) -> None:
    written(
        file,
        event(1, text="Hello"),
        event(2, addressed=False, channel="garden"),
        event(3, text="Add a goal: mend the fence"),
        {"request": "tick", "at": "2026-05-02T09:00:00Z"},
        {"request": "sleep", "at": "2026-05-02T10:00:00Z"},
        {"request": "tick", "at": "2026-05-02T11:00:00Z"},
    )
    out = run("replay", file, "--conversation").out
    assert "(Asleep. A message or `wake` wakes the agent.)" in out.partition("11:00")[2]
    assert "Saturday 2 May 2026 (UTC) ─" in out
    assert "08:01 Ana        Hello\n      Circadian  Hello, Ana.\n" in out
    assert "08:02 Ana        I planted 2 beans (garden)\n" in out
    assert "✓ add_goal" in out
    assert "09:00            (works on its goals)\n" in out


def test_a_failure_that_a_later_run_mends_is_not_reported() -> None:
    failed = {"event_id": "e1", "error": "broke", "attempts": 1, "set_aside": False}
    tick: Any = {"event_id": "e1"}
    first: Report = {**empty_report(), "failures": [failed]}  # type: ignore[list-item] # as JSON
    tally = Tally()
    tally.add(first)
    assert list(tally.failed) == ["e1"]
    tally.add({**empty_report(), "ticks": [tick]})
    assert tally.failed == {}
