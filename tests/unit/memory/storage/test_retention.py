"""Which checkpoints may go: decided by a pure function."""

from memory.storage.checkpoints import Root, retention
from memory.storage.sqlite.files import FREE_PAGES_KEPT, VACUUM_PAGES, pages_to_free


def roots(*described: str) -> list[Root]:
    """Newest first, from `"<source> <run id or ->"`, oldest first; ids are "1", "2", ..."""
    made = []
    for index, text in enumerate(described, start=1):
        source, run_id = text.split()
        made.append(Root(str(index), source, None if run_id == "-" else run_id))
    return made[::-1]


def test_the_newest_checkpoints_are_kept() -> None:
    plan = retention(roots("input -", "loop -", "loop -", "loop -"), keep=2)
    assert (plan.roots_before, plan.restore) == ("3", None)
    assert retention(roots("input -", "loop -"), keep=50).roots_before == "1"


def test_the_state_before_the_newest_input_or_a_resumed_run_stays() -> None:
    plan = retention(roots("input -", "loop -", "input -", "loop -", "loop -"), keep=1)
    assert (plan.roots_before, plan.restore, plan.run_start) == ("5", "2", "3")
    plan = retention(roots("input a", "loop a", "loop b", "loop b"), keep=1)
    assert (plan.restore, plan.run_start) == ("2", "3")


def test_a_finished_step_or_new_input_ends_subgraphs_and_a_manual_edit_does_not() -> None:
    assert retention(roots("input -", "loop -"), keep=1).subgraphs_before == "2"
    assert retention(roots("input -", "loop -", "input -"), keep=1).subgraphs_before == "3"
    for source in ("update", "fork"):
        plan = retention(roots("input -", "loop -", f"{source} -", f"{source} -"), keep=1)
        assert (plan.subgraphs_before, plan.last_step) == (None, "2")
    assert retention(roots("update -"), keep=1).last_step == "1"


def test_free_pages_are_returned_in_small_steps() -> None:
    assert pages_to_free(FREE_PAGES_KEPT, 100) == 0
    assert pages_to_free(FREE_PAGES_KEPT + 5, 100) == 5
    assert pages_to_free(1_000, 4_000) == 0
    assert pages_to_free(1_010, 4_000) == 10
    assert pages_to_free(100_000, 200_000) == VACUUM_PAGES
