"""Requests for an HTTP API, drawn from its OpenAPI document: such as it allows, and almost such."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from hypothesis import strategies as st

Json = dict[str, Any]
Values = st.SearchStrategy[Any]

TEXTS = (
    *(
        "",
        " ",
        "home",
        "last",
        "Wilma",
        "..",
        "../../etc/passwd",
        "%00",
        "a\x00b",
        "'\"--",
        "\ufeff",
    ),
    *("\u202ehome", "\ud83d", "😀" * 300, "x" * 3_000, "-1", "1e309", "NaN", "null", "[]", "{}"),
    *("2026-02-30", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "20260230"),
    *("fact_x", "%operator", "ben", "*", "{{7*7}}", "${PATH}", "\n\r", "true", "²", "٣"),
)
"""What breaks those who do not expect it; the half of an emoji is no character at all."""
NUMBERS = (0, 1, -1, 2**31, 2**63, -(2**63) - 1, 10**30, 0.5, -0.0, 1e308, float("nan"))
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.sampled_from(NUMBERS) | st.sampled_from(TEXTS) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=4,
)

FORGED = (
    {"X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "localhost", "X-Forwarded-Proto": "https"},
    {"Forwarded": "for=circadian;host=127.0.0.1;proto=http"},
    {"X-Forwarded-User": "{ada}", "X-Remote-User": "{ada}", "X-User-Id": "{ada}"},
    {"X-Forwarded-Prefix": "/noauth", "X-Original-URL": "/circadian/users", "X-Rewrite-URL": "/"},
    {"X-HTTP-Method-Override": "DELETE"},
    {"X-Circadian-Acting": "{ada}"},
    {"Origin": "https://evil.example", "Referer": "https://evil.example/", "Cookie": "a=b"},
    {"Host": "evil.example"},
    {"If-None-Match": '*, W/"x", "'},
    {"Accept": "text/html;q=x, */*", "Accept-Encoding": "br", "Range": "bytes=0-1"},
)
"""What claims another sender, another place, another way; `{ada}` is the name of another user."""


class Operation(NamedTuple):
    id: str
    method: str
    path: str
    declared: Json


class Asked(NamedTuple):
    """A request; names in braces in its values stand for ids that are known later."""

    method: str
    path: str
    parts: Mapping[str, str]
    query: Sequence[tuple[str, str]]
    body: str | None
    headers: Mapping[str, str]

    def target(self, known: Mapping[str, str]) -> str:
        path = self.path
        for name, value in self.parts.items():
            path = path.replace(f"{{{name}}}", _quoted(resolved(value, known)))
        pairs = [f"{_quoted(name)}={_quoted(resolved(value, known))}" for name, value in self.query]
        return f"{path}?{'&'.join(pairs)}" if pairs else path


def resolved(text: str, known: Mapping[str, str]) -> str:
    for name, value in known.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def _quoted(text: str) -> str:
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def operations(document: Json, prefix: str) -> list[Operation]:
    """The operations under a prefix, those that change the most last."""
    order = ("get", "put", "post", "delete")
    found = [
        Operation(declared["operationId"], method, path, declared)
        for path, methods in document["paths"].items()
        if path.startswith(prefix)
        for method, declared in methods.items()
    ]
    return sorted(found, key=lambda one: (order.index(one.method), one.path))


@st.composite
def requests(draw: st.DrawFn, one: Operation, document: Json, known: Sequence[str]) -> Asked:
    """Requests of an operation; `known` are the names that stand for ids, each `WHOSE-WHAT`."""
    fitting = [name for name in known if f"/{name.partition('-')[2]}/" in one.path]
    make = _Maker(document, [f"{{{name}}}" for name in fitting or known])
    parts, query = dict[str, str](), list[tuple[str, str]]()
    for parameter in one.declared.get("parameters", []):
        value = draw(make.parameter(parameter))
        if parameter["in"] == "path":
            parts[parameter["name"]] = value or "-"
        elif parameter["in"] == "query" and (parameter.get("required") or draw(st.booleans())):
            query.append((parameter["name"], value))
    if draw(st.integers(0, 9)) == 0:
        query.append((draw(st.sampled_from(TEXTS)), draw(st.sampled_from(TEXTS))))
    headers = {**draw(st.sampled_from(({}, {}, *FORGED)))}
    body = None
    for type_, content in one.declared.get("requestBody", {}).get("content", {}).items():
        body = draw(make.body(content["schema"]))
        headers["Content-Type"] = draw(st.sampled_from((type_, type_, type_, "text/plain", "x")))
    return Asked(one.method.upper(), one.path, parts, query, body, headers)


class _Maker:
    def __init__(self, document: Json, known: list[str]) -> None:
        self._document, self._known = document, known
        self._texts = st.sampled_from([*known, *TEXTS]) | st.text(max_size=20)

    def parameter(self, declared: Json) -> st.SearchStrategy[str]:
        """A value as text: one that fits, or any."""
        fits = self.value(declared["schema"]).map(_as_text)
        if declared["in"] == "path" and declared["name"] in ("name", "id"):
            # What is there leads further into the code than anything else.
            fits = st.sampled_from(["home"] if declared["name"] == "name" else self._known)
        return st.integers(0, 3).flatmap(lambda number: fits if number else self._texts)

    def body(self, schema: Json) -> st.SearchStrategy[str]:
        """A body that fits, one that nearly fits, or a broken one."""
        if schema == {"type": "string"}:
            return self._texts
        fits = self.value(schema)
        whole = fits.map(json.dumps)
        broken = st.tuples(whole, st.integers(0, 20)).map(lambda pair: pair[0][: -pair[1] or None])
        return whole | st.tuples(fits, ANYTHING).map(_spoilt) | broken | ANYTHING.map(json.dumps)

    def value(self, schema: Json) -> Values:
        """Values of a schema, of those keywords that our document uses."""
        if "$ref" in schema:
            return self.value(self._document["components"]["schemas"][schema["$ref"][21:]])
        if "anyOf" in schema:
            return st.one_of([self.value(one) for one in schema["anyOf"]])
        if "const" in schema or "enum" in schema:
            return st.sampled_from(schema.get("enum") or [schema["const"]])
        if isinstance(schema.get("type"), list):
            return st.one_of([self.value({**schema, "type": one}) for one in schema["type"]])
        if schema.get("type") == "object":
            return self._object(schema)
        if schema.get("type") == "array":
            return st.lists(self.value(schema["items"]), max_size=4)
        return self._plain(schema)

    def _object(self, schema: Json) -> Values:
        properties, needed = schema.get("properties", {}), schema.get("required", [])
        values = {name: self.value(one) for name, one in properties.items()}
        if not values:
            return st.dictionaries(st.text(max_size=9), ANYTHING, max_size=3)
        optional = {name: value for name, value in values.items() if name not in needed}
        return st.fixed_dictionaries({name: values[name] for name in needed}, optional=optional)

    def _plain(self, schema: Json) -> Values:
        kind, pattern = schema.get("type"), schema.get("pattern")
        if kind == "integer":
            return st.integers(schema.get("minimum", -9), schema.get("maximum", 10**18))
        if kind == "boolean":
            return st.booleans()
        if kind == "null":
            return st.none()
        if schema.get("format") == "date-time":
            return st.datetimes().map(lambda at: at.isoformat()) | self._texts
        return st.from_regex(pattern, fullmatch=True) if pattern else self._texts


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _spoilt(pair: tuple[Any, Any]) -> str:
    """A value with one of its own replaced by anything, or with one too many."""
    fits, other = pair
    if not isinstance(fits, dict):
        return json.dumps([fits, other])
    return json.dumps({**fits, next(iter(fits), "more"): other})
