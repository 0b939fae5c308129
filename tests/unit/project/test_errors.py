"""The page of errors tells of each type, and of no other."""

from __future__ import annotations

import re
from typing import Any

from memory import errors
from tests.support.commandline import circadian
from tests.support.pages import Page
from tests.support.source_files import ROOT

PAGE = Page("docs/errors.md")


def types() -> dict[str, str]:
    """Every error of the family, and what it is; wherever it is defined."""
    known, found = {"CircadianError"}, {"CircadianError": "RuntimeError"}
    classes = [
        made.groups()
        for folder in ("memory", "tools", "nodes", "graph")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for made in re.finditer(r"^class (\w+)\((\w+)\):", path.read_text("utf-8"), re.MULTILINE)
    ]
    while new := {name for name, base in classes if base in known} - found.keys():
        found |= {name: base for name, base in classes if name in new and base in known}
        known |= new
    return found


def test_the_page_lists_each_error_with_its_base() -> None:
    rows = PAGE.rows("error")
    assert {row[0]: row[1] for row in rows} == types()
    assert vars(errors).keys() >= types().keys()
    assert [row for row in rows if not row[2]] == []


def test_all_errors_are_defined_in_one_module() -> None:
    found = {
        made.group(1): path.relative_to(ROOT).as_posix()
        for folder in ("memory", "tools", "nodes", "graph")
        for path in sorted((ROOT / folder).rglob("*.py"))
        for made in re.finditer(
            r"^class (\w+)\(\w*(?:Error|Exception)\):", path.read_text("utf-8"), re.M
        )
    }
    # `Again` never leaves the module that tries a call again.
    assert found.pop("Again") == "memory/models/retry.py"
    assert {*found.values()} == {"memory/errors.py"}


def test_the_import_it_shows_works() -> None:
    [code] = PAGE.of_kind("python")
    names: dict[str, Any] = {}
    exec(code, names)
    assert set(names) - {"__builtins__"} <= types().keys()


def test_exit_statuses_are_those_on_the_page(capsys: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("CIRCADIAN_OFFLINE", "1")
    folder = tmp_path / "file"
    folder.write_text("no folder")
    assert circadian(capsys, "status", "--data", folder).status == 2
    monkeypatch.setattr("httpcore._async.connection.RETRIES_BACKOFF_FACTOR", 0)
    gone = circadian(capsys, "schedule", "--url", "http://127.0.0.1:9")
    assert (gone.status, gone.error.count("\n")) == (1, 0)
    assert "http://127.0.0.1:9 does not answer" in gone.error
