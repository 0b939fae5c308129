"""Logging: level and format by variable, and no secret in any line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from graph.cli.logs import redact, set_up
from memory.errors import InputError
from memory.settings import Deployment

Capture = pytest.CaptureFixture[str]
SECRET = "sk-proj-abcdefghijklmnop0123456789"


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in ("circadian", "memory"):
        logging.getLogger(name).setLevel(logging.NOTSET)


def deployed(**variables: str) -> Deployment:
    return Deployment.model_validate(variables)


@pytest.mark.parametrize(
    "text",
    [
        f"key {SECRET} was refused",
        f"Authorization: Bearer {SECRET}",
        "Authorization: bearer eyJhbGciOi.J9abc",
        "Incorrect API key provided: sk-12***89ab",
        "postgresql://ana:hunter22@db.example/x",
        "the value is tr0ub4dor&3 today",
    ],
)
def test_what_looks_like_a_key_is_blotted_out(text: str) -> None:
    told = redact(text, {"SOME_API_KEY": "tr0ub4dor&3", "HOME": "today"})
    assert "***" in told
    for part in (SECRET, "eyJhbGciOi", "89ab", "hunter22", "tr0ub4dor"):
        assert part not in told


def test_other_text_stays_as_it_is() -> None:
    text = "asked about the task-list in https://example.com/key-points; SHORT is ab"
    assert redact(text, {"SHORT_KEY": "ab", "PATH": "example"}) == text


def test_a_line_holds_level_logger_and_message(capsys: Capture) -> None:
    set_up(deployed(log_level="info"))
    logging.getLogger("circadian.x").info("a %s", "message")
    assert capsys.readouterr().err.rstrip().endswith("INFO circadian.x: a message")


def test_the_level_holds_for_us_and_others_log_warnings(capsys: Capture) -> None:
    set_up(deployed(log_level="DEBUG"))
    logging.getLogger("circadian").debug("ours")
    logging.getLogger("httpx").info("theirs")
    logging.getLogger("httpx").warning("a warning of theirs")
    told = capsys.readouterr().err
    assert "ours" in told
    assert "a warning of theirs" in told
    assert "INFO" not in told


def test_json_is_one_object_a_line_with_the_traceback_redacted(
    capsys: Capture,
) -> None:
    set_up(deployed(log_format="json"))
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logging.getLogger("circadian").exception("it broke with %s", SECRET)
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert list(record) == ["at", "level", "logger", "message", "error"]
    assert record["message"] == "it broke with ***"
    assert "ValueError: refused ***" in record["error"]
    assert SECRET not in line


def test_a_traceback_as_text_is_redacted_too(capsys: Capture) -> None:
    set_up(deployed())
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logging.getLogger("circadian").exception("it broke")
    assert "refused ***" in capsys.readouterr().err


def test_failures_that_commands_report_are_logged_only_on_request(
    capsys: Capture,
) -> None:
    set_up(deployed())
    logging.getLogger("circadian.tick").error("tick failed")
    assert capsys.readouterr().err == ""
    set_up(deployed(log_level="INFO"))
    logging.getLogger("circadian.tick").error("tick failed")
    assert "tick failed" in capsys.readouterr().err


@pytest.mark.parametrize("variable", ["log_level", "log_format"])
def test_an_unknown_level_or_format_is_named(variable: str) -> None:
    with pytest.raises(InputError, match=f"CIRCADIAN_{variable.upper()}"):
        set_up(deployed(**{variable: "loud"}))
