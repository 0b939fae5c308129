"""Logging of the command line: level and format by variable, and no secret in any line."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

from memory.errors import InputError
from memory.settings import Deployment

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
FORMATS = ("text", "json")
HIDDEN = "***"

_KEY = re.compile(
    r"\b(?:sk|pk|rk|gsk)-[\w*-]{6,}|\bkey-\w{16,}|\b(?:Bearer|Basic)\s+[\w+/=._~-]{8,}",
    re.IGNORECASE,
)
_SECRET_NAME = re.compile(r"(?:_KEY|TOKEN|SECRET|PASSWORD)$")
_IN_URL = re.compile(r"(?<=://)([^\s:/@]+):[^\s/@]+@")
_SHORTEST = 6
"""Shorter values of such variables are no keys; blotting them out would garble every line."""

_TOLD_ANYWAY = ("circadian.tick", "circadian.night")
"""Loggers of failures that every command reports itself; logged too only from INFO down."""


def redact(text: str, environ: Mapping[str, str]) -> str:
    """`text` without anything that looks like a key, and without values of key variables."""
    for name, value in environ.items():
        if len(value) >= _SHORTEST and _SECRET_NAME.search(name.upper()):
            text = text.replace(value, HIDDEN)
    return _KEY.sub(HIDDEN, _IN_URL.sub(rf"\1:{HIDDEN}@", text))


def set_up(deployment: Deployment) -> None:
    """Log to stderr as CIRCADIAN_LOG_LEVEL and CIRCADIAN_LOG_FORMAT say.

    The level holds for this project; other libraries log from WARNING up.

    Raises:
        InputError: an unknown level or format.
    """
    level, form = deployment.log_level.upper(), deployment.log_format.lower()
    if level not in LEVELS:
        raise InputError(f"CIRCADIAN_LOG_LEVEL is {level!r}; known are {', '.join(LEVELS)}")
    if form not in FORMATS:
        raise InputError(f"CIRCADIAN_LOG_FORMAT is {form!r}; known are {', '.join(FORMATS)}")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    if LEVELS.index(level) > LEVELS.index("INFO"):
        handler.addFilter(_not_told_anyway)
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("circadian").setLevel(level)
    logging.getLogger("memory").setLevel(level)


class TextLines(logging.Formatter):
    """A line for people: time, level, logger, message; a traceback where one was given."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        """The record without secrets. Here and not in a filter, so that tracebacks are covered."""
        return redact(super().format(record), os.environ)


class JsonLines(logging.Formatter):
    """One JSON object a line: at, level, logger, message, and error where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON, without secrets."""
        line = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(),
            "level": record.levelname,
            "logger": record.name,
            "message": redact(record.getMessage(), os.environ),
        }
        if record.exc_info:
            line["error"] = redact(self.formatException(record.exc_info), os.environ)
        return json.dumps(line, ensure_ascii=False)


def _not_told_anyway(record: logging.LogRecord) -> bool:
    return record.name not in _TOLD_ANYWAY
