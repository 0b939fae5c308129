"""A settings file: TOML, one line a setting. It is read as a whole and edited line by line."""

from __future__ import annotations

import os
import tempfile
import tomllib
from pathlib import Path
from typing import Any

from memory.errors import InputError

LARGEST = 1_000_000
"""Bytes of a settings file. A longer one is something else."""


def read_file(path: Path) -> dict[str, Any]:
    """What the settings file at `path` says, unchecked. Blocking.

    Raises:
        InputError: it cannot be read, or is not TOML; names the line.
    """
    return _parsed(path, _text(path))


def edited(path: Path, name: str, value: Any = None) -> bool:
    """Write `name = value` into the file, or take `name` out for None; the rest stays as it is.

    Comments and order are kept. The file is replaced in one step, so that a kill leaves the old one
    or the new one. Returns whether anything changed. Blocking.

    Raises:
        InputError: the file cannot be read or written, or is not TOML.
    """
    import tomlkit  # not loaded where no file is edited

    before = _text(path) if path.exists() else ""
    held = _parsed(path, before)
    if held.get(name) == value and type(held.get(name)) is type(value):
        return False
    document = tomlkit.parse(before)
    if value is None:
        document.remove(name)
    else:
        document[name] = value
    _replace(path, tomlkit.dumps(document))
    return True


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(LARGEST + 1)
        if len(raw) > LARGEST:
            raise InputError(f"{path}: over {LARGEST:,} bytes; this is no settings file")
        return raw.decode()
    except UnicodeDecodeError:
        raise InputError(f"{path}: not UTF-8 text; a settings file is TOML") from None
    except FileNotFoundError:
        raise InputError(f"there is no settings file {path}") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not TOML: {error}") from error


def _replace(path: Path, text: str) -> None:
    target = path.resolve()  # a link stays a link
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # For its owner alone, as the whole data folder: it may hold a database's password.
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
        handle, scratch = tempfile.mkstemp(dir=target.parent, prefix=".circadian-", suffix=".toml")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.chmod(scratch, mode)
            os.replace(scratch, target)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
