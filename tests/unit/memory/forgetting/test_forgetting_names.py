import pytest

from memory.forgetting.erasure import KnownMemory, names_of
from memory.forgetting.scrubbing import Names
from memory.records.profiles import EntityProfile, new_profile
from memory.text.words import name_key

NAMED = [
    (["Zora"], "Zora came."),
    (["Zora"], "I met ZORA, at last"),
    (["zora"], "Zora's dog"),
    (["@Zora"], "so said zora"),
    (["Zora"], "ask @zora!"),
    (["Zora"], "mail zora@example.org"),
    (["Zora Vance"], "zora\n  vance wrote"),
    (["Zo\u00eb"], "ZO\u00cb sings"),
    (["Zo\u00eb"], "Zoe\u0308 sings"),
    (["\u4f50\u85e4"], "\u4f50\u85e4\u3055\u3093\u306f\u6765\u307e\u3057\u305f"),
    (["\uc9c0\ubbfc"], "\uc9c0\ubbfc\uc774\ub294 \uc654\ub2e4"),
    (["O'Brien"], "O\N{RIGHT SINGLE QUOTATION MARK}Brien's van"),
    (["O'Brien"], "I saw O`Brien"),
    (["O\N{RIGHT SINGLE QUOTATION MARK}Brien"], "I saw o'brien"),
    (["Jean-Luc"], "Jean\N{NON-BREAKING HYPHEN}Luc eats"),
    (["Zora"], "Zo\N{SOFT HYPHEN}ra came"),
    (["Will"], "Then Will said so"),
    (["will"], "Then Will said so"),
    (["C++"], "they use c++ there"),
    (["Zora", "Z"], "Z. wrote"),
    (["Ann"], "A\u200en\u034fn\ufe0f said so"),
    (["Ann"], "_Ann_ said so"),
    (["Will"], "ask WILL"),
    (["Ben"], "Bens Auto steht im Hof"),
    (["\u0130pek"], "ipek geldi"),
]
NOT_NAMED = [
    (["Zora"], "Zorana came"),
    (["Zora"], "bezora"),
    (["Zora"], "event_zora_1"),
    (["Zora Vance"], "Zora and Vance"),
    (["Will"], "I will come, as you will"),
    (["Ana"], "A banana"),
    (["Zora"], ""),
]


@pytest.mark.parametrize(("names", "text"), NAMED)
def test_a_name_is_found_as_whole_words(names: list[str], text: str) -> None:
    assert Names(names).within(text)


@pytest.mark.parametrize(("names", "text"), NOT_NAMED)
def test_a_similar_word_is_no_name(names: list[str], text: str) -> None:
    assert not Names(names).within(text)


def test_a_longer_name_of_somebody_else_does_not_name_the_person() -> None:
    names = Names(["Ana"], ["Ana Lopez", "Joana", "Ben"])
    assert not names.within("Ana Lopez came; ana  lopez went")
    assert names.within("Ana Lopez and Ana came")
    assert names.within("Ana, Lopez")
    assert Names(["Ana"], ["Ana's dog", "Ana and Ben"]).within("Ana and Ben have Ana's dog")


def test_a_name_with_an_at_is_not_a_longer_name_of_somebody_else() -> None:
    names = Names(["zora"], ["@Zora", "@Zora Vance"])
    assert names.within("ask @zora!")
    assert not names.within("ask @zora vance!")


def test_an_invisible_name_is_found_nowhere() -> None:
    names = Names(["\u200b"])
    assert not names.within("Zora came")
    assert not names.in_id("event_zora_1")
    assert not names.means("")


def test_a_sender_is_compared_without_case_and_at_sign() -> None:
    names = Names(["Zora Vance"])
    assert names.means("@zora  vance")
    assert not names.means("Zora")
    assert not names.means(None)


def test_an_id_that_contains_the_name_is_found() -> None:
    assert Names(["Zora"]).in_id("from-zora99")
    assert not Names(["Zora"]).in_id("from-ben99")


def profile(id_: str, name: str, *aliases: str, senders: tuple[str, ...] = ()) -> EntityProfile:
    return {**new_profile(id_, name, ""), "aliases": list(aliases), "senders": list(senders)}


KNOWN = KnownMemory(
    [],
    [],
    [
        profile("e1", "Zora", "Zo", senders=("u-77",)),
        profile("e2", "Zora Vance"),
        profile("e3", "Zora's dog"),
        profile("e4", "Ben", "Zora's brother"),
    ],
    [],
    [],
)


@pytest.mark.parametrize("entity", ["Zora", "zo", "u-77", "e1"])
def test_names_aliases_and_senders_lead_to_all_names_of_one_profile(entity: str) -> None:
    names, profiles = names_of(entity, KNOWN)
    assert names.keys == {"zora", "zo", "u-77"}
    assert profiles == {"e1", "e3"}
    assert not names.within("Zora Vance")


def test_a_name_without_a_profile_is_enough() -> None:
    names, profiles = names_of(" Carl ", KNOWN)
    assert names.shown == ["Carl"]
    assert names.keys == {name_key("carl")}
    assert profiles == frozenset()
