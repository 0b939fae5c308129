"""Models and embedders by name."""

import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from langchain_core.embeddings import FakeEmbeddings
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

from memory.errors import InputError
from memory.models.offline.model import OfflineChatModel
from memory.models.registry import (
    DIMENSION,
    HashingEmbeddings,
    choose_embedder,
    choose_model,
    embedding_dimension,
    load_chat_model,
    load_embedder,
    model_name,
)
from tests.support.scripted import scripted


def _likeness(one: str, other: str) -> float:
    first, second = HashingEmbeddings().embed_documents([one, other])
    return sum(a * b for a, b in zip(first, second, strict=True))


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-tests")


@pytest.fixture
def langchain(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A stand-in for the langchain package: it records what it is asked to load."""
    asked: dict[str, Any] = {}
    loaders = {"chat_models": "init_chat_model", "embeddings": "init_embeddings"}
    monkeypatch.setitem(sys.modules, "langchain", ModuleType("langchain"))
    for name, function in loaders.items():

        def load(model: str, _name: str = name, **options: Any) -> Any:
            if model.startswith("missing:"):
                raise ImportError("pip install langchain-missing")
            asked[_name] = (model, options)
            return scripted() if _name == "chat_models" else FakeEmbeddings(size=5)

        module = ModuleType(f"langchain.{name}")
        setattr(module, function, load)
        monkeypatch.setitem(sys.modules, f"langchain.{name}", module)
    return asked


def test_offline_needs_nothing() -> None:
    assert isinstance(load_chat_model("offline"), OfflineChatModel)
    assert isinstance(load_embedder("offline"), HashingEmbeddings)


FORMS = r"`offline`, `openai:<model>` or `<provider>:<model>`"
BOTH = (load_chat_model, load_embedder)
UNLOADABLE: list[tuple[str, str, Sequence[Callable[[str], object]]]] = [
    # (name, what the error says, what is loaded)
    *((name, FORMS, BOTH) for name in ("", "offlne", "gpt-4o", "openai:", ":gpt-4o")),
    ("openai:some-model", "OPENAI_API_KEY", BOTH),
    ("missing:x", "missing:x cannot be loaded: pip install langchain-missing", BOTH[:1]),
    ("fastembed:unknown", "fastembed:unknown cannot be loaded", BOTH[1:]),
    ("fastembed:unreachable", "fastembed:unreachable cannot be loaded", BOTH[1:]),
]


@pytest.mark.usefixtures("langchain")
@pytest.mark.parametrize(("name", "says", "loading"), UNLOADABLE)
def test_a_name_that_cannot_be_loaded_is_one_clear_line(
    name: str,
    says: str,
    loading: Sequence[Callable[[str], object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", fastembed_stand_in())
    for load in loading:
        with pytest.raises(InputError, match=says):
            load(name)


@pytest.mark.parametrize(
    ("module", "load", "says"),
    [
        ("langchain.chat_models", load_chat_model, "pip install langchain langchain-anthropic"),
        ("fastembed", load_embedder, "pip install fastembed"),
    ],
)
def test_a_missing_package_is_an_error_that_says_what_to_install(
    module: str, load: Callable[[str], object], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (module.partition(".")[0], module):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError, match=says):
        load("fastembed:small" if module == "fastembed" else "anthropic:claude")


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "OPENAI_API_BASE"])
def test_a_server_of_ones_own_needs_no_key(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9/v1")
    model, embedder = load_chat_model("openai:local"), load_embedder("openai:local")
    assert isinstance(model, ChatOpenAI)
    assert isinstance(embedder, OpenAIEmbeddings)
    for client in (model.root_async_client, embedder.async_client._client):
        assert str(client.base_url) == "http://127.0.0.1:9/v1/"


@pytest.mark.parametrize("address", ["a:11434/v1", "http://", "http://[::1", "http://a:b/v1"])
@pytest.mark.parametrize("load", BOTH)
def test_an_address_that_is_none_is_one_clear_line(
    monkeypatch: pytest.MonkeyPatch, load: Callable[[str], object], address: str
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", address)
    with pytest.raises(InputError, match="OPENAI_BASE_URL is no address: http://HOST:PORT/v1"):
        load("openai:some-model")


@pytest.mark.usefixtures("key")
def test_the_openai_clients_try_nothing_again_and_download_no_tokenizer() -> None:
    model, embedder = load_chat_model("openai:gpt-4o-mini"), load_embedder("openai:small")
    assert isinstance(model, ChatOpenAI)
    assert isinstance(embedder, OpenAIEmbeddings)
    assert model.max_retries == embedder.max_retries == 0
    assert model.root_async_client.max_retries == 0
    assert not embedder.check_embedding_ctx_length
    assert model.stream_usage


@pytest.mark.usefixtures("key")
def test_the_name_wins_then_offline_then_the_key() -> None:
    assert model_name(choose_model("openai:gpt-5", offline=True)) == "openai:gpt-5"
    assert model_name(choose_model(None, offline=True)).startswith("offline")
    assert model_name(choose_model(None)) == "openai:gpt-4o-mini"
    assert choose_embedder("openai:x", offline=True) == "openai:x"
    assert choose_embedder(None, offline=True) == "offline"
    assert choose_embedder(None) == "openai:text-embedding-3-small"


def test_without_a_key_the_choice_is_offline() -> None:
    assert isinstance(choose_model(None), OfflineChatModel)
    assert choose_embedder(None) == "offline"


def test_names_for_people_say_what_a_model_is() -> None:
    assert model_name(OfflineChatModel()) == "offline (embedded rules, not a language model)"
    assert model_name(scripted()) == "scripted"


def test_other_providers_come_through_langchains_own_loader(langchain: dict[str, Any]) -> None:
    load_chat_model("anthropic:claude")
    load_embedder("cohere:embed")
    assert langchain == {
        "chat_models": ("anthropic:claude", {"max_retries": 0}),
        "embeddings": ("cohere:embed", {}),
    }


def test_fastembed_embeds_queries_and_documents_in_its_own_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "fastembed", fastembed_stand_in())
    embedder = load_embedder("fastembed:BAAI/bge-small-en-v1.5")
    assert embedder.embed_documents(["a", "bb"]) == [[1.0, 0.0], [2.0, 0.0]]
    assert embedder.embed_query("a") == [1.0, 1.0]


def fastembed_stand_in() -> ModuleType:
    class TextEmbedding:
        def __init__(self, model_name: str) -> None:
            if model_name == "unknown":
                raise ValueError("Model unknown is not supported")
            if model_name == "unreachable":
                raise ConnectionError("no network")

        def embed(self, texts: list[str]) -> Iterator[npt.NDArray[np.float32]]:
            return (np.array([len(text), 0.0], dtype=np.float32) for text in texts)

        def query_embed(self, text: str) -> Iterator[npt.NDArray[np.float32]]:
            return iter([np.array([len(text), 1.0], dtype=np.float32)])

    module = ModuleType("fastembed")
    module.TextEmbedding = TextEmbedding  # type: ignore[attr-defined] # a module takes any name
    return module


def test_the_dimension_is_known_or_measured() -> None:
    assert embedding_dimension("offline", HashingEmbeddings()) == DIMENSION == 256
    assert embedding_dimension("openai:text-embedding-3-large", HashingEmbeddings()) == 3072
    assert embedding_dimension("cohere:embed", FakeEmbeddings(size=5)) == 5


def test_vectors_are_normal_deterministic_and_alike_for_questions_and_documents() -> None:
    embedder = HashingEmbeddings()
    text = "Ana is allergic to walnuts"
    (vector,) = embedder.embed_documents([text])
    assert vector == embedder.embed_query(text) == HashingEmbeddings().embed_query(text)
    assert len(vector) == DIMENSION
    assert math.hypot(*vector) == pytest.approx(1.0)


def test_a_vector_is_the_same_in_another_process() -> None:
    code = (
        "from memory.models.registry import HashingEmbeddings\n"
        "print(HashingEmbeddings().embed_query('walnut')[:9])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(HashingEmbeddings().embed_query("walnut")[:9])


@pytest.mark.parametrize(
    ("one", "other", "least", "most"),
    [
        ("Who is allergic to walnuts?", "My sister has a walnut allergy", 0.3, 0.7),
        ("Who is allergic to walnuts?", "The library closes at six", -0.1, 0.1),
        ("painting the fences", "he painted a fence", 0.9, 1.01),
        ("it was on the roof", "it was on the table", -0.1, 0.5),
        ("to be or not to be", "to be or not to be", 0.999, 1.001),
        (" ?! ", " ?! ", 0.0, 0.0),
    ],
)
def test_texts_are_as_near_as_they_share_words_and_parts_of_words(
    one: str, other: str, least: float, most: float
) -> None:
    assert least <= _likeness(one, other) <= most
