"""Where values come from: options, then the environment, then a file, then the defaults.

The command line, Python and servers ask here and nowhere else, so that a value means the same
everywhere and can be traced to its place.
"""

from __future__ import annotations

import json
import os
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TextIO, TypeVar, get_args, get_origin

from pydantic import BaseModel, SecretStr, ValidationError
from pydantic.fields import FieldInfo

from memory.errors import InputError
from memory.settings.fields import Deployment, Settings

Model = TypeVar("Model", bound=BaseModel)

FILE_NAME = "circadian.toml"
"""The settings file of a data folder."""

VARIABLE = "CIRCADIAN_CONFIG"
"""The variable that names another settings file."""

PREFIX = "CIRCADIAN_"

FIELDS = {**Settings.model_fields, **Deployment.model_fields}
"""Every name that a file may hold."""

PATHS = ("data", "folder", "mcp")
"""Paths; a settings file gives them relative to itself, as any folder may be the current one."""

OWN_REFUSED = ("data", "database_url", "extensions", "mcp", "dangerous_requires_confirm")
"""Not taken from a data folder's own file: a folder that was copied or cloned from somebody must
start no program, reach no database and switch off no approval."""

MASK = "********"


class SettingSource(StrEnum):
    """Where a value comes from, the weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


class Origin(NamedTuple):
    """Where one value comes from."""

    source: SettingSource
    place: str
    """The option's, the variable's or the file's name; empty for a default."""


DEFAULT = Origin(SettingSource.DEFAULT, "")


@dataclass(frozen=True)
class Configuration:
    """Settings and deployment as they are in force, and where each value comes from."""

    settings: Settings
    deployment: Deployment
    file: Path | None = None
    """The settings file that was read."""
    origins: Mapping[str, Origin] = field(default_factory=dict)
    """By name; of a default there is none."""

    def origin(self, name: str) -> Origin:
        """Where the value of `name` comes from."""
        return self.origins.get(name, DEFAULT)

    def value(self, name: str) -> Any:
        """The value in force."""
        return getattr(self.settings if name in Settings.model_fields else self.deployment, name)

    @property
    def given(self) -> dict[str, Any]:
        """The settings that are not left at their defaults."""
        return {name: self.value(name) for name in self.origins if name in Settings.model_fields}


class _Given(NamedTuple):
    value: Any
    origin: Origin


def configured(
    data: Path | None = None, *, file: Path | None = None, options: Mapping[str, Any] | None = None
) -> Configuration:
    """The settings in force. Blocking: reads a file.

    `data` is by default CIRCADIAN_DATA or `./.circadian`, `file` CIRCADIAN_CONFIG or
    `circadian.toml` in the data folder. `options` go before all others, by name. Raises InputError:
    a name is unknown or a value is wrong; says where it stands.
    """
    over = {name: value for name, value in (options or {}).items() if value is not None}
    given = {**_variables(), **{name: _option(name, value) for name, value in over.items()}}
    path, own = place_of_file(data, file)
    if not own or path.exists():
        given = {**_of_file(path, own=own), **given}
        return _checked(given, path)
    return _checked(given, None)


def environment_only() -> Deployment:
    """Where and with what the agent runs by the environment alone. Raises as `configured`."""
    return _checked(_variables(), None).deployment


def from_environment(kind: type[Model]) -> Model:
    """Other `CIRCADIAN_` variables, by the fields of their model. Raises InputError.

    Their texts stand as they are: a secret of spaces, or "none", is a wrong secret and not none.
    """
    return _model(kind, _variables(kind.model_fields, lambda _, text: text))


def place_of_file(data: Path | None = None, file: Path | None = None) -> tuple[Path, bool]:
    """The settings file's place, and whether it is the data folder's own, which may be missing."""
    named = file or (Path(text) if (text := os.environ.get(VARIABLE, "")) else None)
    if named is not None:
        return named.expanduser(), False
    folder = data or Path(
        os.environ.get(f"{PREFIX}DATA") or Deployment.model_fields["data"].default
    )
    return folder.expanduser() / FILE_NAME, True


def known_name(name: str, place: str = "") -> str:
    """`name`, if it is a setting's. Raises InputError with the nearest one."""
    if name in FIELDS:
        return name
    where = f"{place}: " if place else ""
    if name.lower().endswith(("_api_key", "_base_url")):
        raise InputError(f"{where}{name!r:.80} is not a setting; export {name.upper():.80}=...")
    close = get_close_matches(name.lower().replace("-", "_"), FIELDS, 1, 0.6)
    near = f"did you mean {close[0]}?" if close else "`circadian config --explain` lists all"
    raise InputError(f"{where}there is no setting {name!r:.80}; {near}")


def value_of(field: FieldInfo, text: str) -> Any:
    """The value that a variable or an option says in words.

    Lists are comma-separated or JSON, tables `key=value` or JSON, and `none` is none. Other text is
    left to the field's own type.
    """
    annotation, said = field.annotation, text.strip()
    if said.lower() in ("", "none") and NoneType in get_args(annotation):
        return None
    kind = get_origin(annotation)
    if kind not in (list, dict):
        return text
    try:
        if said.startswith(("[", "{")):
            return json.loads(said)
    except json.JSONDecodeError:
        return text  # which its type refuses
    parts = [part.strip() for part in said.split(",") if part.strip()]
    if kind is list:
        return parts
    pairs = [part.partition("=") for part in parts]
    return {key.strip(): value.strip() for key, _, value in pairs}


def file_value(name: str, text: str) -> Any:
    """The value that `text` says, as a settings file holds it. Raises InputError if it is wrong."""
    origin = Origin(SettingSource.OPTION, name)
    value = _checked({name: _Given(value_of(FIELDS[name], text), origin)}, None).value(name)
    match value:
        case None:
            return "none"
        case SecretStr():
            return value.get_secret_value()
        case Path():  # as seen from here, and not from the file
            return str(value.expanduser().absolute())
    return value


def shown_value(value: Any) -> Any:
    """The value for people and documents, in JSON's types; a secret is masked."""
    if isinstance(value, SecretStr):
        return MASK
    return str(value) if isinstance(value, Path) else value


def _variables(
    fields: Mapping[str, FieldInfo] = FIELDS, read: Callable[[FieldInfo, str], Any] = value_of
) -> dict[str, _Given]:
    known = {f"{PREFIX}{name}".upper(): name for name in fields}
    found = {}
    for variable, text in os.environ.items():
        if (name := known.get(variable.upper())) and text:
            origin = Origin(SettingSource.ENVIRONMENT, variable)
            found[name] = _Given(read(fields[name], text), origin)
    return found


def _option(name: str, value: Any) -> _Given:
    origin = Origin(SettingSource.OPTION, f"--{name.replace('_', '-')}")
    if name not in ("data", "agent", "model", "embedder"):
        origin = Origin(SettingSource.OPTION, f"--set {name}")
    return _Given(value_of(FIELDS[name], value) if isinstance(value, str) else value, origin)


def _of_file(path: Path, *, own: bool) -> dict[str, _Given]:
    found = {}
    for name, value in read_file(path).items():
        known_name(name, str(path))
        if own and name in OWN_REFUSED:
            raise InputError(
                f"{path}: {name} may not stand in a data folder's own file, which may have come "
                f"from somebody else; put it into a file that --config or {VARIABLE} names"
            )
        if isinstance(value, str):
            value = value_of(FIELDS[name], value) if value.strip().lower() == "none" else value
            if name in PATHS:
                value = path.absolute().parent / Path(value).expanduser()
        found[name] = _Given(value, Origin(SettingSource.FILE, str(path)))
    return found


def _checked(given: Mapping[str, _Given], path: Path | None) -> Configuration:
    origins = {name: one.origin for name, one in given.items()}
    return Configuration(_model(Settings, given), _model(Deployment, given), path, origins)


def _model(kind: type[Model], given: Mapping[str, _Given]) -> Model:
    part = {name: one.value for name, one in given.items() if name in kind.model_fields}
    try:
        return kind.model_validate(part)
    except ValidationError as error:
        raise InputError(_told(error.errors()[0], given)) from None


def _told(problem: Mapping[str, Any], given: Mapping[str, _Given]) -> str:
    name, *inside = [str(part) for part in problem["loc"]]
    origin = given[name].origin if name in given else DEFAULT
    # Of a secret pydantic counts "items".
    words = problem["msg"].replace("items after validation", "characters")
    words = words.removeprefix("Value error, ")
    where = f"{name}[{']['.join(inside)}]" if inside else name
    if origin.source is SettingSource.FILE:
        return f"{origin.place}: {where}: {words}"
    return f"{origin.place or where}: {words}"


# The settings file: TOML, one line a setting; read as a whole and edited line by line


LARGEST = 1_000_000
"""Bytes of a settings file. A longer one is something else."""


def read_file(path: Path) -> dict[str, Any]:
    """What the settings file at `path` says, unchecked. Blocking. Raises InputError."""
    return _parsed(path, _text(path))


def edited(path: Path, name: str, value: Any = None) -> bool:
    """Write `name = value` into the file, or take `name` out for None; the rest stays as it is.

    The file is replaced in one step. Returns whether anything changed. Blocking; raises InputError.
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
            raise InputError(f"{path}: over {LARGEST:,} bytes; this is not a settings file")
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
    try:
        path.resolve().parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[TextIO]:
    """A file beside `path` that takes its place at the end: what breaks off replaces nothing.

    A link stays a link. A new file is for its owner alone: it may hold a password, or memory. An
    older one keeps its permissions, unless what is written is `private`.
    """
    target = path.resolve()
    kept = target.exists() and not private
    mode = target.stat().st_mode & 0o777 if kept else 0o600
    handle, beside = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, mode)
        os.replace(beside, target)
    finally:
        Path(beside).unlink(missing_ok=True)
