"""A client that is made from an OpenAPI document: a method for each operation.

It sends only what the document declares, and accepts only answers that have the declared form.
"""

from collections.abc import Callable
from typing import Any

import httpx
from jsonschema import Draft202012Validator

PREFIX = "/circadian/"
JSON = ("application/json", "application/problem+json")


class ApiClient:
    def __init__(self, http: httpx.Client, document: dict[str, Any]) -> None:
        self.http, self._document = http, document
        self.operations: dict[str, tuple[str, str, dict[str, Any]]] = {
            operation["operationId"]: (method, path, operation)
            for path, methods in document["paths"].items()
            if path.startswith(PREFIX)
            for method, operation in methods.items()
        }

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda *body, **given: self.ask(operation, *body, **given)[1]

    def ask(
        self, operation: str, body: Any = None, *, expected: int | None = None, **given: Any
    ) -> tuple[int, Any]:
        """The status and the document of one request; a refusal is an error unless expected."""
        method, path, declared = self.operations[operation]
        places = {one["name"]: one["in"] for one in declared.get("parameters", [])}
        assert given.keys() <= places.keys(), (operation, given)
        assert body is None or "requestBody" in declared, operation
        query = {name: value for name, value in given.items() if places[name] == "query"}
        rest = {name: value for name, value in given.items() if places[name] == "path"}
        answer = self.http.request(
            method,
            path.format(**rest),
            params=query,
            **({"content": body} if isinstance(body, str | bytes) else {"json": body}),
        )

        assert answer.status_code == expected or (expected is None and answer.is_success), (
            operation,
            answer.status_code,
            answer.text,
        )
        return answer.status_code, self.checked(operation, answer)

    def checked(self, operation: str, answer: httpx.Response) -> Any:
        """The document of an answer, which has the form that is declared for its status."""
        _, _, declared = self.operations[operation]
        type_ = answer.headers.get("content-type", "").partition(";")[0]
        response = declared["responses"][str(answer.status_code)]
        if type_ not in JSON:
            return answer.text
        schema = response["content"][type_]
        found = answer.json()
        whole = {**schema["schema"], "components": self._document["components"]}
        problems = [one.message for one in Draft202012Validator(whole).iter_errors(found)]
        assert problems == [], (operation, problems, found)
        return found
