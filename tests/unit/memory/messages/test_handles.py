"""Numbers in place of ids: what models give back for them, and what they cannot mean."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from memory.messages.prompt_lines import LEAST_PREFIX, Citation, Citations, Handles

IDS = [
    "event_20261117_goran-1",
    "event_20261117_nadja-2",
    "9f86d081884c7d65",
    *(f"more_{n}" for n in range(4, 13)),
]
HANDLES = Handles(IDS)


def test_they_are_numbered_in_the_order_shown_each_id_once() -> None:
    handles = Handles(["b", "a", "b", "c"])
    assert [(id_, handles.of(id_)) for id_ in handles] == [("b", "1"), ("a", "2"), ("c", "3")]
    assert len(handles) == 3


@pytest.mark.parametrize(
    "given",
    [
        *("3", 3, "[3]", "#3", "(3)", "[#3]", "3.", "3)", " 3 ", "<3>", "`3`", '"3"', "**3**"),
        *("entry 3", "Entry #3", "entry [3]", "Entry: 3", "No. 3", "journal entry 3", "Eintrag 3"),
        *("[3] Tue 2026-11-17 09:00 Goran: 17 croissants", "٣"),
        *(IDS[2], f"[{IDS[2]}]", IDS[2][:8], f"#{IDS[2][:LEAST_PREFIX]}"),
    ],
)
def test_a_number_or_an_id_in_whatever_dress_means_its_record(given: str | int) -> None:
    assert HANDLES.resolve(given) == IDS[2]


@pytest.mark.parametrize(
    "given",
    [
        *(
            "13",
            0,
            -3,
            "-3",
            "3.5",
            "1 and 2",
            "1, 2",
            "",
            "[]",
            "e3",
            "17 March",
            "entry",
            "three",
        ),
        *("event_20261117", "more_", "9f86", "event_20261117_goran-12", "9f86d081884c7d65 more"),
    ],
)
def test_what_was_not_shown_or_may_mean_two_things_means_nothing(given: str | int) -> None:
    assert HANDLES.resolve(given) is None


def test_a_number_beats_the_beginning_of_an_id() -> None:
    assert Handles(["200000", "b"]).resolve("2") == "b"
    assert Handles(["2000001", "b"]).resolve("200000") == "2000001"


def test_every_number_comes_back() -> None:
    assert [HANDLES.resolve(HANDLES.of(id_)) for id_ in IDS] == IDS


def test_the_range_is_named() -> None:
    assert (Handles("a").range, HANDLES.range) == (
        "the only number shown is 1",
        "shown are 1 to 12",
    )


class Form(BaseModel):
    one: Citation = "1"
    several: Citations = []


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ([1, "2", 3.0], ["1", "2", "3"]),
        (3, ["3"]),
        ("3", ["3"]),
        ("1, 2 and", ["1, 2 and"]),
        ("[1, 2]", ["1", "2"]),
        ('["1","2"]', ["1", "2"]),
        ("[1][2]", ["1", "2"]),
        (["1, 2", "#3"], ["1", "2", "3"]),
        (["event_20261117_goran-1"], ["event_20261117_goran-1"]),
        (None, []),
    ],
)
def test_citations_are_a_list_however_they_were_given(given: Any, read: list[str]) -> None:
    assert Form(several=given).several == read


@pytest.mark.parametrize("given", [True, 2.5, {"id": 3}, None, ["1"]])
def test_what_is_no_citation_is_refused(given: Any) -> None:
    with pytest.raises(ValidationError):
        Form(one=given)


def test_a_model_is_asked_for_plain_text() -> None:
    form = Form.model_json_schema()["properties"]
    assert form["one"]["type"] == "string"
    assert (form["several"]["type"], form["several"]["items"]) == ("array", {"type": "string"})
