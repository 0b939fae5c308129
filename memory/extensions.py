"""A user's own tools and prompt components, from the module that `CIRCADIAN_EXTENSIONS` names."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from langchain_core.tools import BaseTool

from memory.components import PromptComponent
from memory.errors import InputError

_VARIABLE = "CIRCADIAN_EXTENSIONS"


@dataclass(frozen=True)
class Extensions:
    """Tools and prompt components added to the built-in ones."""

    tools: tuple[BaseTool, ...] = ()
    components: tuple[PromptComponent, ...] = ()


def load_extensions(name: str) -> Extensions:
    """Load the lists `tools` and `components` of the module `name`; either may be missing.

    The module is searched on Python's path and in the current folder.

    Raises:
        InputError: there is no such module, its import fails, or a list has a wrong element.
    """
    module = _imported(name)
    found = Extensions(
        tools=_listed(module, "tools", BaseTool, "a LangChain tool: wrap it, registered(it, ...)"),
        components=_listed(module, "components", PromptComponent, "made with component(...)"),
    )
    if found == Extensions():
        raise InputError(f"{_VARIABLE}: the module {name} holds neither tools nor components")
    return found


def _imported(name: str) -> ModuleType:
    if not all(part.isidentifier() for part in name.split(".")):
        raise InputError(f"{_VARIABLE}: {name!r} is no module's name, such as my_agent.tools")
    if (here := os.getcwd()) not in sys.path and "" not in sys.path:
        sys.path.append(here)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        needed = (
            "" if name == missing or name.startswith(f"{missing}.") else f", which {name} needs"
        )
        raise InputError(f"{_VARIABLE}: there is no module {missing}{needed}") from error
    except Exception as error:
        told = f"{type(error).__name__}: {error}"
        raise InputError(f"{_VARIABLE}: the module {name} fails: {told}") from error


def _listed(module: ModuleType, name: str, kind: type, form: str) -> tuple[Any, ...]:
    """The module's list `name`, validated; empty if there is none."""
    where = f"{_VARIABLE}: {module.__name__}.{name}"
    given = getattr(module, name, ())
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise InputError(f"{where} must be a list, and is a {type(given).__name__}")
    found = tuple(given)
    for at, one in enumerate(found):
        if not isinstance(one, kind):
            raise InputError(f"{where}[{at}] is a {type(one).__name__}; it must be {form}")
    return found
