"""Agents by name on the command line, and small promises of several commands."""

import os
import pty
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graph.cli.commands.chat import _Chat
from graph.cli.program import LOADED
from memory.installation.folder import open_folder
from tests.support.commandline import Run, circadian, lived_through
from tests.support.forked import forked_python
from tests.support.lives import holding

Patch = pytest.MonkeyPatch

Capture = pytest.CaptureFixture[str]
SERVER = "graph.cli.commands.server"
SECRET = "a secret of more than thirty-two characters"


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return lived_through(
        tmp_path_factory.mktemp("lived") / "data",
        ("send", "My cat is called Miso."),
        ("send", "The quinces are ripe.", "--agent", "garden"),
    )


@pytest.fixture
def two(lived: Path, data: Path) -> Path:
    """Where two agents are."""
    return shutil.copytree(lived, data)


def test_agents_are_listed_with_what_each_holds(run: Run, two: Path) -> None:
    listed = run("agents", "--json").document
    assert [(one["name"], one["journal"], one["facts"], one["waiting"]) for one in listed] == [
        ("default", 1, 0, 0),
        ("garden", 1, 0, 0),
    ]
    shown = run("agents").out
    assert listed[1]["thread"] in shown
    assert "garden" in shown


@pytest.mark.parametrize("command", ["stop", "clear-stop", "wake", "tick", "sleep"])
def test_a_request_to_an_agent_that_is_not_there_makes_none(
    run: Run, tmp_path: Path, command: str
) -> None:
    nowhere = run(command, "--agent", "gardn", data=tmp_path / "none")
    assert (nowhere.status, (tmp_path / "none").exists()) == (2, False)
    run("send", "The quinces are ripe.", "--agent", "garden")
    for named in (["--agent", "gardn"], []):
        refused = run(command, *named)
        assert (refused.status, "there is no agent" in refused.error) == (2, True)
    listed = run("agents", "--json").document
    assert [one["name"] for one in listed] == ["garden"]


def test_an_agent_is_deleted_down_to_the_bytes(run: Run, two: Path) -> None:
    preview = run("agents", "delete", "garden")
    assert preview.out.startswith("Would be deleted: garden: 1 journal entry")
    assert f"circadian agents delete garden --yes --data {two}" in preview.error
    assert holding(two, ["quinces"])
    assert run("agents", "delete", "garden", "--yes").status == 0
    assert holding(two, ["quinces"]) == []
    left = run("agents", "--json").document
    assert [one["name"] for one in left] == ["default"]
    again = run("agents", "delete", "garden", "--yes")
    assert (again.status, "there is no agent 'garden'" in again.error) == (2, True)


def test_a_misspelt_agent_is_not_made_unasked(run: Run, two: Path, monkeypatch: Patch) -> None:
    told = run("send", "Hi", "--agent", "gardn", "--json")
    assert told.status == 2
    assert "there is no agent 'gardn' here; there is 'garden'" in told.error
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "wb", 0) as typed, os.fdopen(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        for command, answer in ((["send", "Hi"], b"n\n"), (["chat"], b"\n"), (["chat"], b"\4")):
            typed.write(answer)
            asked = run(*command, "--agent", "gardn")
            assert (asked.status, asked.error) == (2, "circadian: no agent was made")
            assert asked.out.endswith("Make a new one? [y/N] ")
    monkeypatch.undo()
    assert len(run("agents", "--json").document) == 2
    assert run("send", "Hi", "--agent", "kitchen", "--json").status == 0


NO_GARDN = (
    "circadian: there is no agent 'gardn' here; `circadian agents` lists those that are (default, "
    "garden), "
)


@pytest.mark.parametrize("form", [[], ["--json"]])
@pytest.mark.parametrize(
    "command", ["status", "nights", "log", "recall quinces", "recall --all", "export -", "inspect"]
)
def test_reading_an_agent_that_is_not_there_is_an_error_that_names_those_that_are(
    run: Run, two: Path, command: str, form: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:  # else `inspect` would serve
        port = ("--port", str(taken.getsockname()[1])) if command == "inspect" else ()
        told = run(*command.split(), *port, "--agent", "gardn", *form)
    assert (told.status, told.out) == (2, "")
    assert told.error.startswith(NO_GARDN)


def test_of_a_folder_without_agents_reading_tells_nothing(run: Run, data: Path) -> None:
    open_folder(data)
    assert (run("status").status, run("status").err) == (0, "")


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("checkpoints.db", "the checkpoints end at tick 0, and the store knows tick 1"),
        ("facts.db", "missing: `circadian reindex` indexes the journal again"),
        ("store.db", "the store has no record"),
    ],
)
def test_doctor_finds_a_file_that_was_deleted(run: Run, data: Path, file: str, told: str) -> None:
    run("send", "My cat is called Miso.")
    run("sleep")
    assert run("doctor").status == 0
    for one in data.glob(f"{file}*"):
        one.unlink()
    checked = run("doctor", "--json")
    assert checked.status == 1
    (problem,) = [one for one in checked.document["checks"] if not one["ok"]]
    assert told in problem["detail"]
    shown, lost = run("status"), file == "checkpoints.db"
    assert (shown.status, told in shown.err) == (int(lost), lost)
    if file == "facts.db":  # and a night prunes no link that tells of the loss
        assert "Miso" in run("recall", "cat").out
        run("send", "Thank you.")
        run("sleep")
        assert run("doctor").status == 1


def test_doctor_finds_the_facts_of_another_folder(run: Run, data: Path, tmp_path: Path) -> None:
    for folder, pet in ((data, "My cat is called Miso."), (tmp_path / "b", "My dog is Rex.")):
        run("send", pet, data=folder)
        run("sleep", data=folder)
        assert run("doctor", data=folder).status == 0
    (data / "facts.db").write_bytes((tmp_path / "b" / "facts.db").read_bytes())
    checked = run("doctor", "--json").document["checks"]
    (told,) = [one["detail"] for one in checked if not one["ok"]]
    assert told.endswith("facts.db is missing, older or another folder's")


def test_doctor_finds_checkpoints_of_a_later_time(run: Run, data: Path) -> None:
    run("send", "My cat is called Miso.")
    before = (data / "store.db").read_bytes()
    run("forget", "Miso", "--yes")
    run("send", "The quinces are ripe.")
    assert run("doctor").status == 0
    (data / "store.db").write_bytes(before)
    checked = run("doctor", "--json").document["checks"]
    (told,) = [one["detail"] for one in checked if not one["ok"]]
    assert told.endswith("checkpoints.db is newer than store.db, or another folder's")


def test_a_token_is_one_line(capsys: Capture, monkeypatch: Patch) -> None:
    monkeypatch.setenv("CIRCADIAN_TOKEN_SECRET", SECRET)
    made = circadian(capsys, "token", "ada" * 30)
    (line,) = made.out.splitlines()
    assert line.count(".") == 2


def test_without_the_extra_packages_a_token_is_one_line(
    capsys: Capture, monkeypatch: Patch
) -> None:
    for name in [name for name in sys.modules if name.startswith(("graph.server", SERVER))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(LOADED, "token", raising=False)
    monkeypatch.setitem(sys.modules, "jwt", None)
    done = circadian(capsys, "token", "ada")
    assert (done.status, "pip install '.[server]' in the clone" in done.error) == (2, True)


def test_an_export_replaces_no_folder_no_device_and_no_link(
    run: Run, two: Path, tmp_path: Path
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    for place in (two, pipe):
        told = run("export", place)
        assert (told.status, f"{place} is a folder or a device" in told.error) == (2, True)
    (link := tmp_path / "link").symlink_to(tmp_path / "file")
    assert (run("export", link).status, link.is_symlink()) == (0, True)


def test_an_export_is_private_also_where_others_could_read_the_earlier_one(
    run: Run, two: Path, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    for _ in range(2):
        assert run("export", file).out.endswith("memory.jsonl.\n")
        assert file.stat().st_mode & 0o777 == 0o600
        file.chmod(0o644)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", ["export", "log"])
def test_an_output_that_cannot_be_written_is_one_line(two: Path, command: str) -> None:
    # What the end of a whole interpreter adds is seen once.
    python = sys.executable if command == "export" else forked_python()
    words = [python, "-m", "graph.cli", command, "--data", str(two)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    told = "circadian: the output could not be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, told)


def test_an_agent_that_is_not_there_replaces_no_earlier_export(
    run: Run, two: Path, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    assert run("export", file).status == 0
    before = file.read_bytes()
    told = run("export", file, "--agent", "gardn")
    assert (told.status, "there is no agent 'gardn' here" in told.error) == (2, True)
    assert file.read_bytes() == before


def test_the_documents_say_which_event_and_which_agent(run: Run, two: Path) -> None:
    sent = run("send", "The figs are ripe.", "--agent", "garden", "--json").document
    (hit,) = run("recall", "figs", "-k", "1", "--agent", "garden", "--json").document
    assert sent["event"] in hit["sources"]
    assert hit["speaker"] == "local"
    assert run("status", "--agent", "garden", "--json").document["agent"] == "garden"


def test_ctrl_c_stops_an_answer_and_the_chat_goes_on(run: Run, monkeypatch: Patch) -> None:
    typed = iter(["Say nothing of this", "My cat is called Miso.", "/quit"])
    monkeypatch.setattr("graph.cli.commands.chat._read", lambda: next(typed))
    call, stopped = _Chat._message, list[str]()

    def message(self: Any, text: str) -> int:
        if not stopped:
            stopped.append(text)
            answer = self._agent.call

            def interrupted(work: Any) -> Any:
                self._agent.call = answer
                work.close()
                raise KeyboardInterrupt

            self._agent.call = interrupted
        return call(self, text)

    monkeypatch.setattr(_Chat, "_message", message)
    done = run("chat", "--from", "Zoe")
    assert "stopped; Ctrl-C once more leaves" in done.err
    (row,) = run("recall", "--all", "--json").document
    assert (row["text"], row["speaker"]) == ("My cat is called Miso.", "Zoe")
    assert run("status", "--json").document["inbox"]["waiting"] == 0
