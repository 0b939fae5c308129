"""Logging: level and format by environment variable, and no secret in any line."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from memory.errors import InputError
from memory.settings import Deployment
from memory.text import redact, redacted

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")

_REPORTED_ANYWAY = ("circadian.tick", "circadian.night")
"""Loggers of failures that every command reports anyway; they log only at INFO or below."""


def set_up(deployment: Deployment) -> None:
    """Log to stderr as CIRCADIAN_LOG_LEVEL and CIRCADIAN_LOG_FORMAT say.

    The level is that of this project; other libraries log from WARNING up.
    """
    level, form = deployment.log_level.upper(), deployment.log_format.lower()
    if level not in LEVELS:
        raise InputError(f"CIRCADIAN_LOG_LEVEL is {level!r}; known are {', '.join(LEVELS)}")
    if form not in FORMATS:
        raise InputError(f"CIRCADIAN_LOG_FORMAT is {form!r}; known are {', '.join(FORMATS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLogFormatter() if form == "json" else TextLogFormatter())
    if LEVELS.index(level) > LEVELS.index("INFO"):
        handler.addFilter(lambda record: record.name not in _REPORTED_ANYWAY)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("circadian").setLevel(level)
    logging.getLogger("memory").setLevel(level)


class TextLogFormatter(logging.Formatter):
    """A line for people: time, level, logger, message, fields; then the traceback, if any."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line with those fields that are short and not part of the message."""
        said = re.split(r"[\s:,]+", record.getMessage())
        shown = ((name, _short(value)) for name, value in fields_of(record).items())
        fields = " ".join(f"{name}={text}" for name, text in shown if text and text not in said)
        return super().formatMessage(record) + (f" [{fields}]" if fields else "")

    def format(self, record: logging.LogRecord) -> str:
        """The record without secrets: redacted here, not in a filter, to cover tracebacks."""
        return redact(super().format(record), os.environ)


class JsonLogFormatter(logging.Formatter):
    """One JSON object per line: at, level, logger, message; fields and error if there are any."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, without secrets."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage(), os.environ),
        }
        if fields := fields_of(record):
            line["fields"] = redacted(fields, os.environ)
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info), os.environ)
        return json.dumps(line, ensure_ascii=False)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of a record, given as `extra={"circadian": {...}}`."""
    given = getattr(record, "circadian", None)
    return dict(given) if isinstance(given, Mapping) else {}


def _short(value: Any) -> str:
    if value is None or isinstance(value, Mapping | list):
        return ""
    text = " ".join(str(value).split())
    return json.dumps(text, ensure_ascii=False) if " " in text else text
