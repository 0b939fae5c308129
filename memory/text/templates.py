"""Templates: texts with {placeholders}, checked when they are registered, filled later. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from string import Formatter

from memory.errors import InputError


def placeholders(template: str, where: str) -> list[str]:
    """The names in braces, in order; a doubled brace is a literal brace.

    Raises InputError, which `where` begins: a brace is unbalanced, or encloses more than a name.
    """
    try:
        parts = list(Formatter().parse(template))
    except ValueError as error:
        raise InputError(f"{where}: {error}; write {{{{ or }}}} for a brace") from None
    names: list[str] = []
    for _, name, form, conversion in parts:
        if name is None:
            continue
        if form or conversion or not name.isidentifier():
            raise InputError(
                f"{where}: {{{name}}} is not a placeholder; write {{{{ or }}}} for a brace"
            )
        names.append(name)
    return names


def check_template(template: str, known: Collection[str], where: str) -> None:
    """Raise InputError, beginning with `where`, for a placeholder that is not `known`."""
    for name in placeholders(template, where):
        if name not in known:
            raise InputError(
                f"{where}: unknown placeholder {{{name}}}; known are "
                f"{', '.join(f'{{{one}}}' for one in known)}; write {{{{ or }}}} for a brace"
            )


def fill(template: str, values: Mapping[str, str]) -> str:
    """Fill the placeholders of `template`. A line goes if it has some and all are empty."""
    lines = []
    for line in template.split("\n"):
        names = placeholders(line, "template")
        if not names or any(values[name] for name in names):
            lines.append(line.format_map(values))
    return "\n".join(lines)
