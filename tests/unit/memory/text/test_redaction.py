"""What is hidden from logs and the audit log, and what is left alone."""

import time
import traceback
from typing import Any

import pytest

from memory.text.redaction import error_without_secrets, redact, redacted

SECRET = """
    password Password2 db_passwd PGPASSWORD pwd secret client-secret SECRET_KEY_BASE token
    accessToken OAuthToken authtoken api_key apikey APIKey X-API-Key apiKeys aws_secret_access_key
    privateKey ssh_key credentials userCredential Authorization Proxy-Authorization Set-Cookie
    cookies session sessionId passphrase password_hash
"""
ORDINARY = """
    tokens max_tokens maxTokens token_usage tokens_per_day tokenizer secretary key keys keyword
    primary_key public_key passport author session_memory session_start sessions password_length
    name value 7
"""


@pytest.mark.parametrize("name", SECRET.split())
@pytest.mark.parametrize("value", ["x", 12345678, 1.5, True, ["hunter2x"], {"of": "hunter2x"}])
def test_values_under_a_secret_name_are_hidden(name: str, value: Any) -> None:
    assert redacted({"args": [{name: value}]}, {}) == {"args": [{name: "***"}]}


@pytest.mark.parametrize("name", ["", *ORDINARY.split()])
@pytest.mark.parametrize("value", [12, "ordinary words", ["a", {"b": 1}]])
def test_values_under_an_ordinary_name_are_shown(name: str, value: Any) -> None:
    assert redacted({name: value}, {}) == {name: value}


def test_a_missing_secret_is_shown_as_missing() -> None:
    assert redacted({"password": None, "token": None}, {}) == {"password": None, "token": None}


def test_a_value_beside_its_name_is_hidden() -> None:
    env = [
        {"name": "DB_PASSWORD", "value": "hunter2x"},
        {"Key": "apiToken", "Value": ["hunter2x"]},
        {"name": "LANG", "value": "de_CH", "token": 1},
        {"name": "secretary", "value": "Ada"},
        {"name": 7, "value": "seven"},
    ]
    assert redacted({"env": env}, {}) == {
        "env": [
            {"name": "DB_PASSWORD", "value": "***"},
            {"Key": "apiToken", "Value": "***"},
            {"name": "LANG", "value": "de_CH", "token": "***"},
            {"name": "secretary", "value": "Ada"},
            {"name": 7, "value": "seven"},
        ]
    }


WEB_TOKEN = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow\nIBAAKC\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "secret",
    [
        "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
        "gho_abcdefghijklmnopqrstuvwxyz0123456789",
        "github_pat_11ABCDEFG0abcdefghij_klmnop",
        "AKIAIOSFODNN7EXAMPLE",
        "ASIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdef",
        "xoxp-123456789012-abcdef",
        "AIzaSyA-abcdefghijklmnopqrstuvwxyz12345",
        "sk-proj-abcdef123456",
        "sk_live_abcdef123456",
        f"npm_{'aB3' * 12}",
        f"hf_{'aBcDe' * 7}",
        f"pypi-{'AgEIcH' * 12}",
        f"dop_v1_{'0a1b2c3d' * 8}",
        f"SG.{'a1B2' * 5}.{'m1N2' * 10}",
        f"123456789:{'AAFbc' * 7}",
        f"{'MTk4' * 6}.Cl2FMQ.{'aB3_' * 7}",
        "Bearer abc.def-ghi",
        WEB_TOKEN,
        PEM,
        PEM.partition("-----END")[0],
        PEM.replace("RSA ", ""),
    ],
)
def test_strings_that_look_like_keys_are_hidden(secret: str) -> None:
    assert redact(f"it gave {secret}", {}) == "it gave ***"
    assert redacted({"text": secret}, {}) == {"text": "***"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("password: hunter2x", "password: ***"),
        ("DB_PASSWORD=hunter2x psql", "DB_PASSWORD=*** psql"),
        ("Run login(user='ana', password='hunter 2x')", "Run login(user='ana', password=***)"),
        ('{"apiKey": "hunter2x", "n": 1}', '{"apiKey": ***, "n": 1}'),
        ("https://x.example/?access_token=hunter2x&page=2", "?access_token=***&page=2"),
        ("token: hunter2x8e7d6c5b4a39", "token: ***"),
        ("AccountKey=hunter2x+ab/cd==;Suffix=x", "AccountKey=***;Suffix=x"),
        ("Authorization: bearer eyJhbGciOi.J9hunter", "***"),
        ("Incorrect API key provided: sk-12***hunter", "Incorrect API key provided: ***"),
        ("postgresql://ana:hunter22@db.example/x", "@db.example/x"),
        ("the value is hunter&3 today", "the value is *** today"),
        ("Authorization: Basic aHVudGVydHdvOjEyMzQ=", "Authorization: ***"),
    ],
)
def test_a_value_with_its_name_in_a_text_is_hidden(text: str, told: str) -> None:
    known = {"SOME_API_KEY": "hunter&3", "HOME": "today"}
    assert redact(text, known).endswith(told)
    assert "hunter" not in redact(text, known)
    assert redact(redact(text, known), known) == redact(text, known)


@pytest.mark.parametrize(
    "text",
    [
        "token: unexpected end of the input, token: 12, tokens=12, max_tokens=100, token_usage=3",
        "The secretary keeps a secret: cookies need butter",
        "Asia and ASIA, the gh_ prefix, an api key, xox games",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "A session on passwords and API keys; a token of thanks",
        "asked about the task-list in https://example.com/key-points; SHORT is ab, risk-free1234",
        "Basic gardening, the bearer of news, a basic questionnaire about task-lists",
    ],
)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert redact(text, {"SHORT_KEY": "ab", "PATH": "example"}) == text


@pytest.mark.parametrize("part", ["a", "password", "eyJ-", "-----BEGIN ", "token=", "A", "ghp_"])
def test_a_long_text_takes_no_long_time(part: str) -> None:
    begun = time.process_time()
    redact(part * 20_000, {})
    redacted({part * 20_000: "x"}, {})
    assert time.process_time() - begun < 5


TOLD = "401: sk-proj-4fG7hJ2kL9mN0pQ3 is no key, nor is postgresql://ada:hunter2x@db/x"


class Late(ValueError):
    """An error whose words are no argument."""

    def __str__(self) -> str:
        return TOLD


@pytest.mark.parametrize("kind", [RuntimeError, KeyError, OSError, Late])
def test_an_error_and_its_causes_have_no_secrets(kind: type[Exception]) -> None:
    for raised in (kind(TOLD), _raised(RuntimeError("no"), kind(TOLD)), OSError(1, TOLD, "x")):
        found = error_without_secrets(raised)
        told = "".join(traceback.format_exception(found)) + repr(found)
        assert ("***" in told, "hunter2x" in told, "sk-proj" in told) == (True, False, False)


def test_an_error_without_secrets_stays_as_it_is() -> None:
    error = _raised(KeyError("no such key", 7), ValueError({"a": 1}))
    assert error_without_secrets(error) is error
    assert (error.args, repr(error.__cause__)) == (("no such key", 7), "ValueError({'a': 1})")


def _raised(error: Exception, cause: Exception) -> Exception:
    try:
        raise error from cause
    except type(error) as caught:
        return caught
