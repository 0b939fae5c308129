"""`circadian forget`, `export` and `import` as a person uses them."""

import io
import json
import shutil
from pathlib import Path

import pytest

from tests.support.commandline import Run, facts, lived_through
from tests.support.lives import holding


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two people have talked, and a night has passed."""
    return lived_through(
        tmp_path_factory.mktemp("lived") / "data",
        ("send", "My parrot Quibbles lives in Valparaiso.", "--from", "Zora"),
        ("send", "My sister Nina lives in Turin.", "--from", "Ben"),
        ("sleep",),
    )


@pytest.fixture
def data(lived: Path, data: Path) -> Path:
    return shutil.copytree(lived, data)


def test_forget_without_yes_only_previews(data: Path, run: Run) -> None:
    before = len(facts(run))
    told = run("forget", "zora")
    assert told.status == 0
    assert told.out.startswith("Would be forgotten: Zora")
    assert "My parrot Quibbles lives in Valparaiso." in told.out
    assert told.error.endswith(f"circadian forget zora --yes --data {data}")
    assert len(facts(run)) == before
    assert "quibbles" in {one.split(": ")[1] for one in holding(data, ["quibbles"])}


def test_forgetting_an_unknown_name_is_one_line(run: Run) -> None:
    for args in (("Nobody",), ("Nobody", "--yes")):
        told = run("forget", *args)
        assert told.status == 2
        assert "nothing is known of 'Nobody'" in told.error


def test_a_name_that_is_nearly_somebodys_brings_theirs(run: Run) -> None:
    run("send", "I grow beans.", "--from", "Anna Berg")
    run("send", "The key is with Anna.", "--from", "Ben")
    missing = run("forget", "Ana Berg")
    assert missing.error.endswith("; there is 'Anna Berg'")
    told = run("forget", "Anna")
    assert (told.status, "Would be forgotten: Anna" in told.out) == (0, True)
    assert "Similar names, which are kept: Anna Berg" in told.err


def test_the_preview_of_a_fact_shows_every_text_that_goes(run: Run) -> None:
    (mine,) = [one for one in facts(run) if one["speaker"] == "Ben"]
    told = run("forget", "--fact", mine["id"]).out
    shown = [line for line in told.splitlines() if line.startswith("- ")]
    assert len(shown) == 2
    assert all("My sister Nina lives in Turin." in line for line in shown)


@pytest.mark.parametrize("form", ["{:.8}", "[{:.8}]", "#{}"])
def test_the_id_of_a_fact_is_not_taken_for_a_name(form: str, data: Path, run: Run) -> None:
    (mine,) = [one for one in facts(run) if one["speaker"] == "Ben"]
    given = form.format(mine["id"])
    told = run("forget", given)
    assert told.out.startswith(f"Would be forgotten: what the fact {mine['id']} says")
    assert "My sister Nina lives in Turin." in told.out
    assert f"circadian forget --fact {mine['id']} --yes" in told.error
    assert run("forget", given, "--yes").status == 0
    assert holding(data, ["Turin"]) == []


def test_the_id_of_an_entry_is_not_taken_for_a_name(data: Path, run: Run) -> None:
    (mine,) = [one for one in facts(run) if one["speaker"] == "Ben"]
    told = run("forget", mine["source_entries"][0], "--yes")
    assert told.out.startswith(f"Forgotten: what the entry {mine['source_entries'][0]} says")
    assert holding(data, ["Turin"]) == []


def test_a_name_that_kept_prompts_alone_have_is_forgotten(run: Run) -> None:
    rule = "user_prompt=Say it as Xanthippe would."
    assert run("send", "Hello.", "--from", "Ben", "--set", rule).status == 0
    assert "kept prompt" in run("forget", "Xanthippe", "--yes").out
    assert run("forget", "Xanthippe").status == 2


def test_one_entry_is_forgotten_by_the_id_that_is_shown(data: Path, run: Run) -> None:
    assert run("send", "The oven needs 30 minutes.").status == 0
    listed = run("recall", "oven", "--all").out
    shown = next(line for line in listed.splitlines() if "oven" in line).split()[0]
    told = run("forget", "--entry", shown)
    assert (told.status, "The oven needs 30 minutes." in told.out) == (0, True)
    whole = told.error.split("--entry ")[1].split()[0]
    assert f"_{shown}" in whole
    assert run("forget", "--entry", shown, "--yes").status == 0
    assert holding(data, ["oven"]) == []
    assert "2 messages of the conversation" in run("log").out
    again = run("forget", "--entry", whole, "--yes")
    assert (again.status, "there is no entry" in again.error) == (2, True)


def test_a_memory_moves_through_a_file(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text("what was here before", encoding="utf-8")
    told = run("export", file)
    assert told.status == 0
    assert " ".join(told.out.split()).endswith(f"exported to {file}.")
    assert [one.name for one in tmp_path.iterdir() if one.is_file()] == ["memory.jsonl"]
    lines = file.read_text(encoding="utf-8").splitlines()
    header = json.loads(lines[0])
    assert (header["agent"], header["embedder"], header["counts"]["facts"]) == (
        "default",
        "offline",
        2,
    )
    other = tmp_path / "other"
    done = run("import", file, "--agent", "moved", "--json", data=other)
    assert done.document["records"] == len(lines) - 2
    printed = run("export", "--agent", "moved", data=other)
    assert printed.out.splitlines()[1:] == lines[1:]
    again = run("import", file, "--agent", "moved", data=other)
    assert "has this memory already" in again.out
    refused = run("import", file)
    assert refused.status == 2
    assert "the agent is not empty" in refused.error


def test_a_wrong_file_leaves_no_data_folder_behind(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "memory.jsonl"
    file.write_text('{"format": "circadian-memory"}\n', encoding="utf-8")
    told = run("import", file, data=tmp_path / "new")
    assert told.status == 2
    assert told.error.startswith("circadian: line 1: ")
    assert not (tmp_path / "new").exists()


def test_an_import_reads_standard_input(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed = run("export", "-").out
    monkeypatch.setattr("sys.stdin", io.StringIO(printed))
    done = run("import", "-", data=tmp_path / "new")
    assert done.status == 0
    assert "imported into the agent default" in done.out
