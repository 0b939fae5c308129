"""Profiles that join another: with all their names, and not over somebody who began to speak."""

from memory import entities
from memory.entities.entities import joins
from memory.night.undo import CheckedTargets, inverse
from memory.records import EntityProfile, names_of, new_profile

AT = "2026-05-01T09:00:00+00:00"


def profile(id_: str, name: str, *aliases: str) -> EntityProfile:
    return {**new_profile(id_, name, AT), "aliases": [*aliases]}


def test_the_aliases_of_a_profile_join_with_it_and_an_undo_gives_them_back() -> None:
    apart = {
        one["id"]: one for one in (profile("a", "Theresa", "Tess"), profile("b", "Tess", "Nell"))
    }
    made = joins(apart)
    joined, _ = entities.after(apart, {}, made)
    assert names_of(joined["a"]) == ["theresa", "tess", "nell"]
    assert entities.after(joined, {}, inverse(made))[0] == apart


def test_a_join_is_not_undone_over_somebody_who_began_to_speak() -> None:
    apart = {one["id"]: one for one in (profile("a", "Theresa", "Tess"), profile("b", "Tess"))}
    back = inverse(joins(apart))
    spoke: EntityProfile = {**apart["b"], "senders": ["Tess"]}
    for there, conflicts in (({"a": apart["a"]}, []), ({**apart, "b": spoke}, ["b"])):
        checked = CheckedTargets({}, {}, there)
        for one in back:
            if one["kind"] == "add_entity":
                checked.check(one, fits=checked.is_undoable(one))
        assert [*checked.conflicting] == conflicts
