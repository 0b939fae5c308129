"""Templates: the environment in which every page is rendered, and how values are shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from graph.console import clean, counted, short_id
from graph.use_cases import COUNTED, NIGHT_STATUS
from memory.text import local, shortened, terms

HERE = Path(__file__).parent
STATIC = HERE / "static"

TIMES = {
    "when": "{at.day} {at:%b %Y %H:%M}",
    "day": "{at.day} {at:%b %Y}",
    "clock": "{at:%H:%M:%S}",
}
"""How times are shown, by the name that templates use."""


@cache
def environment() -> Environment:
    """The templates. Everything is escaped, and control characters are left out."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": "{:,}".format,
        "counted": counted,
        "marked": marked,
        "short_id": short_id,
        "short": shortened,
        "plain": plain,
        "capital": lambda text: text[:1].upper() + text[1:],
        "tojson_plain": as_json,
        "percent": percent,
    }
    made.globals |= {"counted_kinds": COUNTED, "night_status": NIGHT_STATUS}
    return made


def render(template: str, zone: tzinfo = UTC, **values: Any) -> str:
    """A page as HTML; times are shown in `zone`."""
    clocks = {name: partial(_time, zone, form) for name, form in TIMES.items()}
    return environment().get_template(template).render(**clocks, **values)


def _cleaned(value: Any) -> Any:
    """The value without control characters, which could disturb the text around them."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    return type(value)(clean(value))  # A text that a template joined with a macro is Markup.


def _time(zone: tzinfo, form: str, at: str | None) -> Markup:
    """A time in a `time` element, with its exact value for machines; empty for None."""
    if not at:
        return Markup("")
    moment = local(at, zone)
    element = Markup('<time datetime="{}">{}</time>')
    return element.format(moment.isoformat(), form.format(at=moment))


def marked(text: str, query: str) -> Markup:
    """A text; the words that it shares with a query stand in `mark` elements."""
    wanted, mark = {*terms(query)}, Markup("<mark>{}</mark>")
    words = re.split(r"(\W+)", clean(text))
    return Markup("").join(mark.format(one) if wanted & {*terms(one)} else one for one in words)


def day_of(at: str, zone: tzinfo) -> str:
    """The day of a time, as a form's date: `2026-05-02`."""
    return local(at, zone).date().isoformat()


def percent(part: float, whole: float) -> float:
    """A share in percent, from 0 to 100; 0 if `whole` is 0."""
    return round(min(100.0, max(0.0, 100 * part / whole)), 1) if whole else 0.0


def plain(name: str) -> str:
    """An identifier as words: `favourite_tea` as `favourite tea`."""
    return name.replace("_", " ")


def as_json(value: Any) -> str:
    """A record as indented JSON, for people."""
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def link(base: str, parts: Sequence[object], query: Mapping[str, Any]) -> str:
    """A path below `base`, each part one segment; empty values of the query are left out."""
    path = "/".join([base, *(quote(str(part), safe="@:+-_") for part in parts)])
    kept = {key: value for key, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(kept)}" if kept else path
