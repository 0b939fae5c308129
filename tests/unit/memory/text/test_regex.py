"""Patterns that their first use compiles: equal to `re.compile`, and all of the product valid."""

import gc
import re
from importlib import import_module
from unittest.mock import Mock

import pytest

from memory.text import regex
from memory.text.words import _Pattern
from tests.support.source_files import sources


@pytest.mark.parametrize("flags", [0, re.IGNORECASE | re.MULTILINE])
@pytest.mark.parametrize("pattern", ["^(?P<name>bea)|of", r"(?s:.*)(both)", "[^a-z]+()"])
def test_a_late_pattern_answers_as_a_compiled_one(pattern: str, flags: int) -> None:
    said = "of bea and\nBea, both"
    compiled, late = re.compile(pattern, flags), regex(pattern, flags)
    for name in ("search", "match", "fullmatch", "findall", "split", "sub", "subn"):
        given = (r"<\1>", said, 1) if "sub" in name else (said,)
        first, *later = [str(getattr(one, name)(*given)) for one in (compiled, late, late)]
        assert later == [first, first]
    assert list(map(str, late.finditer(said))) == list(map(str, compiled.finditer(said)))


def test_a_pattern_is_compiled_once_at_its_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(re, "compile", compiling := Mock(side_effect=re.compile))
    late = regex("b+", re.IGNORECASE)
    assert (late.pattern, compiling.mock_calls) == ("b+", [])
    assert [bool(late.search("aBc")), late.findall("bB"), late.groups] == [True, ["bB"], 0]
    compiling.assert_called_once_with("b+", re.IGNORECASE)
    assert vars(late)["search"] is late.search  # so that a use costs what `re.Pattern` costs


def test_every_pattern_of_the_product_compiles() -> None:
    for source in sources():
        if "regex(" in source.text:
            import_module(".".join(source.path.with_suffix("").parts))
    gc.unfreeze()  # what is frozen is not listed
    kept = [one for one in gc.get_objects() if isinstance(one, _Pattern)]
    assert len(kept) > 250
    assert all(re.compile(one.pattern, one.given) for one in kept)
