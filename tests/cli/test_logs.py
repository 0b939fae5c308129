"""Logging: level and format by variable, and no secret in any line."""

import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from graph.console import log_as
from memory.settings import Deployment
from memory.text.redaction import bounded, redacted

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


def test_a_line_holds_level_logger_and_message(capsys: Capture) -> None:
    log_as(deployed(log_level="info"))
    logging.getLogger("circadian.x").info("a %s", "message")
    assert capsys.readouterr().err.rstrip().endswith("INFO circadian.x: a message")


def test_the_level_holds_for_us_and_others_log_warnings(capsys: Capture) -> None:
    log_as(deployed(log_level="DEBUG"))
    logging.getLogger("circadian").debug("ours")
    logging.getLogger("httpx").info("theirs")
    logging.getLogger("httpx").warning("a warning of theirs")
    told = capsys.readouterr().err
    assert "ours" in told
    assert "a warning of theirs" in told
    assert "INFO" not in told


def test_json_is_one_object_a_line_with_the_traceback_redacted(capsys: Capture) -> None:
    log_as(deployed(log_format="json"))
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


def test_fields_are_part_of_a_json_line_without_secrets(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", 'tr0ub4dor"&3')
    log_as(deployed(log_format="json"))
    args = {"url": "https://ana:hunter22@db.example", "password": "walrus", "said": 'tr0ub4dor"&3'}
    fields = {"tick": 3, "ok": True, "why": f"with {SECRET}", "detail": {"args": [args]}}
    logging.getLogger("circadian").warning("a call", extra={"circadian": fields})
    (line,) = capsys.readouterr().err.splitlines()
    told = {"url": "https://ana:***@db.example", "password": "***", "said": "***"}
    assert json.loads(line)["fields"] == {
        "tick": 3,
        "ok": True,
        "why": "with ***",
        "detail": {"args": [told]},
    }
    for secret in (SECRET, "hunter22", "walrus", "tr0ub4dor"):
        assert secret not in line


def test_fields_stand_short_behind_a_line_of_text(capsys: Capture) -> None:
    log_as(deployed())
    fields = {
        "service": "model",
        "tick": 3,
        "why": f"a reason\n2026-01-01 ERROR forged {SECRET}",
        "origin": None,
        "detail": {"args": {"text": "long"}},
    }
    logging.getLogger("circadian").warning("the model: failed", extra={"circadian": fields})
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(
        'circadian: the model: failed [tick=3 why="a reason 2026-01-01 ERROR forged ***"]'
    )


def test_a_value_is_made_plain_json_whatever_it_is() -> None:
    deep: Any = "the bottom"
    for _ in range(5_000):
        deep = [deep]
    half = json.loads('"\\ud800"')
    told = redacted({"deep": deep, "half": half, "nan": float("nan"), "set": {1}, 7: (1,)}, {})
    text = json.dumps(told, allow_nan=False)
    assert text.encode("utf-8")
    assert "the bottom" not in text
    assert (told["half"], told["nan"], told["set"], told["7"]) == ("?", "nan", "{1}", [1])


def test_a_value_is_cut_to_its_bound() -> None:
    assert bounded({"a": "b"}, 100) == {"a": "b"}
    long = bounded({"text": "word " * 1_000, "list": list(range(1_000)), "short": "x"}, 2_000)
    assert long["text"].startswith("word word")
    assert long["list"][-1] == "... 1000 in all"
    assert long["short"] == "x"
    many = bounded({f"key {n}": '"' * 50 for n in range(200)}, 2_000)
    assert list(many) == ["cut"]
    for value in (long, many):
        assert len(json.dumps(value, ensure_ascii=False)) <= 2_000


def test_a_traceback_as_text_is_redacted_too(capsys: Capture) -> None:
    log_as(deployed())
    try:
        raise ValueError(f"refused {SECRET}")
    except ValueError:
        logging.getLogger("circadian").exception("it broke")
    assert "refused ***" in capsys.readouterr().err


def test_failures_that_commands_report_are_logged_only_on_request(capsys: Capture) -> None:
    log_as(deployed())
    logging.getLogger("circadian.tick").error("tick failed")
    assert capsys.readouterr().err == ""
    log_as(deployed(log_level="INFO"))
    logging.getLogger("circadian.tick").error("tick failed")
    assert "tick failed" in capsys.readouterr().err
