"""What a prompt shows of memory stands in it once, and all of it."""

from typing import Any, cast

import pytest

from memory.pages import ShownPage, pages
from memory.records import Attribute, Page, PageLine, SessionMemory
from memory.settings import Settings
from nodes.tick.assemble_context import _PromptMemory, each_once
from tests.support.night_memories import fact

NOTHING: SessionMemory = {
    "key_facts": [],
    "learned_patterns": [],
    "completed_tasks": [],
    "last_compacted": None,
}
DIETS = fact("d", "Mateo es vegetariano desde enero, pero Ines come pescado.", id="d" * 12)


def page(name: str, value: str | None) -> ShownPage:
    """A page with one line, which shows the fact as this attribute, or else whole."""
    line: PageLine = {"attribute": "diet" if value else None, "facts": [DIETS["op"]]}
    made: Page = {"id": name, "lines": [line]}
    known: dict[str, Attribute] = {
        "diet": {"value": value or "", "evidence": ["d"], "at": DIETS["valid_from"], "replaced": []}
    }
    return ShownPage(name, name, tuple(pages.lines_of(made, known, {DIETS["op"]: DIETS})))


def told(shown: list[ShownPage]) -> list[str]:
    return [line.text for one in shown for line in one.lines]


def test_the_pages_of_two_people_each_show_their_part_of_one_fact() -> None:
    mateo, ines = page("Mateo", "Mateo es vegetariano desde enero."), page("Ines", "Come pescado")
    assert len(told(each_once([mateo, ines], NOTHING))) == 2


def test_a_part_of_what_a_page_before_says_is_not_said_again() -> None:
    whole, ines = page("Mateo", None), page("Ines", "Ines come pescado.")
    assert told(each_once([whole, ines], NOTHING)) == [DIETS["text"]]
    assert told(each_once([ines, whole], NOTHING)) == ["diet: Ines come pescado.", DIETS["text"]]


def test_what_is_shown_as_a_contradiction_is_on_no_page() -> None:
    claims = pages.of_disputes([(DIETS, fact("o", "Ines come carne.", id="o" * 12))])
    held = [page("Mateo", None), page("Ines", "Ines come pescado."), page("Ada", "Come huevos")]
    assert told(each_once([*claims, *held], NOTHING)[1:]) == ["diet: Come huevos"]


@pytest.mark.parametrize(
    ("room", "names"), [(40, ["Mateo"]), (120, [pages.DISPUTES]), (900, [pages.DISPUTES, "Ada"])]
)
def test_a_line_stays_on_its_page_where_its_contradiction_has_no_room(
    room: int, names: list[str]
) -> None:
    nobody: Any = None
    state = cast(Any, {"session_memory": NOTHING, "calibration": 1.0})
    memory = _PromptMemory(state, Settings(page_tokens=room), nobody, nobody, nobody, nobody)
    claims = pages.of_disputes([(DIETS, fact("o", "Ines come carne.", id="o" * 12))])
    fit, _ = memory.fitting_pages([page("Mateo", None), page("Ada", "Come huevos. " * 20)], claims)
    assert [one.id for one in fit] == names
    assert DIETS["text"] in told(fit)
