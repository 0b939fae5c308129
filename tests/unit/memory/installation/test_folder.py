"""The data folder: made once, opened as it was made, or refused in one line."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from memory.errors import FolderError, InputError, MemoryStoreError, NewerError
from memory.installation import folder as folders
from memory.installation.folder import FOLDER_SCHEMA, open_folder
from memory.models.registry import DIMENSION as OFFLINE_DIMENSION
from tests.support.facts import WordEmbeddings

Patch = pytest.MonkeyPatch


def head(path: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((path / "folder.json").read_text())
    return read


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(FolderError) as caught:
        open_folder(path, **options)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_a_new_folder_and_its_databases_are_private(tmp_path: Path) -> None:
    mask = os.umask(0)
    try:
        (given := tmp_path / "given").mkdir(0o755)
        for path, mode in ((tmp_path / "new", 0o700), (given, 0o755)):
            folder = open_folder(path, embedder="offline")
            folder.open_facts().close()
            assert path.stat().st_mode & 0o777 == mode
            assert folder.facts_db.stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(mask)


def test_all_files_are_inside_the_folder(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = open_folder(Path("data"), offline=True)
    monkeypatch.chdir("/")
    kept = [folder.checkpoints_db, folder.store_db, folder.facts_db]
    kept += [folder.mem0_dir, folder.locks_dir]
    assert {one.parent for one in kept} == {folder.path} == {tmp_path / "data"}
    assert len({one.name for one in kept}) == 5


@pytest.mark.parametrize(
    ("key", "options", "name"),
    [
        (None, {}, "offline"),
        ("sk-x", {}, "openai:text-embedding-3-small"),
        ("sk-x", {"offline": True}, "offline"),
        ("sk-x", {"embedder": "offline"}, "offline"),
        (
            "sk-x",
            {"embedder": "openai:text-embedding-3-large", "offline": True},
            "openai:text-embedding-3-large",
        ),
        ("sk-x", {"embeddings": WordEmbeddings()}, "custom:WordEmbeddings"),
        ("sk-x", {"embeddings": WordEmbeddings(), "embedder": "offline"}, "custom:WordEmbeddings"),
    ],
)
def test_the_embedder_of_a_new_folder(
    tmp_path: Path,
    monkeypatch: Patch,
    key: str | None,
    options: dict[str, Any],
    name: str,
) -> None:
    if key is not None:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    assert open_folder(tmp_path / "data", **options).embedder == head(tmp_path / "data")["embedder"]
    assert head(tmp_path / "data")["embedder"] == name


def test_an_embedder_that_cannot_be_loaded_makes_no_folder_and_changes_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        open_folder(tmp_path / "data", embedder="openai:text-embedding-3-small")
    with pytest.raises(InputError, match="nonsense"):
        open_folder(tmp_path / "data", embedder="nonsense")
    assert os.listdir(tmp_path) == []
    open_folder(tmp_path / "data", offline=True)
    before = head(tmp_path / "data")
    with pytest.raises(InputError, match="OPENAI_API_KEY"):
        open_folder(tmp_path / "data", embedder="openai:text-embedding-3-small", change=True)
    assert head(tmp_path / "data") == before


def test_reopening_ignores_a_changed_default(tmp_path: Path, monkeypatch: Patch) -> None:
    made = open_folder(tmp_path / "data", offline=True)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    again = open_folder(tmp_path / "data")
    assert (again.embedder, again.dimension) == (made.embedder, made.dimension)


def test_opening_a_folder_writes_nothing(tmp_path: Path) -> None:
    open_folder(tmp_path / "data", offline=True)
    before = {one: one.stat().st_mtime_ns for one in (tmp_path / "data", *tmp_path.rglob("*"))}
    folder = open_folder(tmp_path / "data")
    assert folder.semantic is not None
    assert {one: one.stat().st_mtime_ns for one in before} == before
    assert set(before) == {tmp_path / "data", *tmp_path.rglob("*")}


def test_another_embedder_is_refused_with_the_way_to_change_it(tmp_path: Path) -> None:
    open_folder(tmp_path / "data", offline=True)
    said = refusal(tmp_path / "data", embedder="openai:text-embedding-3-small")
    assert "made with the embedder offline, not openai:text-embedding-3-small" in said
    assert "`circadian reindex --embedder openai:text-embedding-3-small`" in said
    said = refusal(tmp_path / "data", embeddings=WordEmbeddings())
    assert "offline, not custom:WordEmbeddings; `graph.use_cases.reindex`" in said
    assert head(tmp_path / "data")["embedder"] == "offline"


def crash(handle: int) -> None:
    raise OSError(28, "No space left on device")


def test_a_crash_while_the_embedder_is_changed_leaves_the_old_head(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    open_folder(tmp_path / "data", offline=True)
    before = head(tmp_path / "data")
    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(FolderError, match="No space left"):
        open_folder(tmp_path / "data", embeddings=WordEmbeddings(), change=True)
    assert head(tmp_path / "data") == before
    assert os.listdir(tmp_path / "data") == ["folder.json"]


def test_a_dimension_that_changed_under_the_same_name_is_refused_until_reindexed(
    tmp_path: Path,
) -> None:
    open_folder(tmp_path / "data", offline=True)
    older = {**head(tmp_path / "data"), "dimension": OFFLINE_DIMENSION - 1}
    (tmp_path / "data" / "folder.json").write_text(json.dumps(older))
    said = refusal(tmp_path / "data")
    assert f"had {OFFLINE_DIMENSION - 1} numbers; now they have {OFFLINE_DIMENSION}" in said
    assert "`circadian reindex --embedder offline`" in said
    changed = open_folder(tmp_path / "data", embedder="offline", change=True)
    assert changed.dimension == head(tmp_path / "data")["dimension"] == OFFLINE_DIMENSION


def test_offline_refuses_an_online_folder(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-x")
    open_folder(tmp_path / "data")
    assert "openai:text-embedding-3-small" in refusal(tmp_path / "data", offline=True)


def test_a_folder_of_custom_embeddings_needs_them(tmp_path: Path) -> None:
    open_folder(tmp_path / "data", embeddings=WordEmbeddings())
    given = WordEmbeddings()
    assert open_folder(tmp_path / "data", embeddings=given).semantic.open_embeddings() is given
    said = refusal(tmp_path / "data")
    assert "from Python (custom:WordEmbeddings)" in said
    assert "`circadian reindex --embedder NAME`" in said
    assert refusal(tmp_path / "data", change=True) == said
    assert "custom:WordEmbeddings" in refusal(tmp_path / "data", embedder="offline")


def test_an_upgraded_folder_is_refused_by_older_versions(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    older = open_folder(tmp_path / "data", embeddings=WordEmbeddings())
    before = head(tmp_path / "data")
    monkeypatch.setattr(folders, "FOLDER_SCHEMA", FOLDER_SCHEMA + 1)
    assert "not offline" in refusal(tmp_path / "data", offline=True)
    assert head(tmp_path / "data") == before
    open_folder(tmp_path / "data", embeddings=WordEmbeddings())
    assert head(tmp_path / "data") == {**before, "schema_version": FOLDER_SCHEMA + 1}
    assert os.listdir(tmp_path / "data") == ["folder.json"]
    monkeypatch.setattr(folders, "FOLDER_SCHEMA", FOLDER_SCHEMA)
    with pytest.raises(NewerError, match="update Circadian"):
        older.check()


def test_a_failed_upgrade_of_the_facts_leaves_the_head(tmp_path: Path, monkeypatch: Patch) -> None:
    folder = open_folder(tmp_path / "data", offline=True)
    before = head(tmp_path / "data")
    folder.facts_db.write_bytes(b"no database" * 1000)
    monkeypatch.setattr(folders, "FOLDER_SCHEMA", FOLDER_SCHEMA + 1)
    with pytest.raises(MemoryStoreError):
        open_folder(tmp_path / "data")
    assert head(tmp_path / "data") == before


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"schema_version": 1}', b'{"schema_version": "x"}', b"\xb6\xff"]
)
def test_a_damaged_head_is_refused_and_kept(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "folder.json").write_bytes(text)
    assert "folder.json is damaged" in refusal(tmp_path, offline=True)
    assert (tmp_path / "folder.json").read_bytes() == text


def test_an_impossible_path_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("text")
    assert "Not a directory" in refusal(file, offline=True)
    assert "Not a directory" in refusal(file / "below", offline=True)
    assert "cannot be used" in refusal(Path("/proc/circadian"), offline=True)


def test_a_read_only_folder_is_refused(tmp_path: Path, monkeypatch: Patch) -> None:
    open_folder(tmp_path / "data", offline=True)
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    assert "not writable" in refusal(tmp_path / "data")


def test_a_crash_while_making_it_leaves_no_half_head(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(os, "fsync", crash)
    assert "No space left" in refusal(tmp_path / "data", offline=True)
    assert os.listdir(tmp_path / "data") == []
    monkeypatch.undo()
    assert open_folder(tmp_path / "data", offline=True).embedder == "offline"
