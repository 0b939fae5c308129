"""Message classification: the ordered rules, and how far an event is trusted."""

import unicodedata
from itertools import pairwise
from typing import Any, get_args

import pytest

from memory.events.rules import RULES, Heard, classify, entry_for_event, wakes
from memory.journal.entries import source_type_of
from memory.records.records import Event
from memory.records.tick import Classification
from memory.settings import Settings, Verdict

OWNERS = ("local",)


def event(text: str = "The rain has stopped", **more: Any) -> Event:
    raw = {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Ada", "text": text}
    return {**raw, "channel": None, "addressed": False, **more}  # type: ignore[typeddict-item]


def take(one: Event, **settings: Any) -> Classification:
    return classify(one, settings=Settings(**settings), owners=OWNERS)


def rule(one: Event, **settings: Any) -> tuple[str, str]:
    found = take(one, **settings)
    return found["rule"], found["verdict"]


ALL: dict[str, Any] = {
    "enabled": False,
    "names": ["circadian"],
    "assistants": ["circadian", "Bot"],
    "permitted_senders": ["circadian", "Bot", "Ada"],
    "channels": {"hall": "ignore"},
    "room_default": "act",
}
ON = {**ALL, "enabled": True}
STEPS: list[tuple[str, str, Event, dict[str, Any]]] = [
    ("disabled", "ignore", event("@circadian", kind="reflection", addressed=True), ALL),
    ("reflection", "act", event(sender="circadian", kind="reflection", addressed=True), ON),
    ("own_message", "ignore", event("@circadian", sender="circadian", addressed=True), ON),
    ("mention", "act", event("@circadian", sender="Bot", addressed=True), ON),
    ("direct", "act", event(sender="Bot", addressed=True, channel="hall"), ON),
    ("cross_talk", "context", event(sender="Bot", channel="hall"), ON),
    ("permission", "act", event(channel="hall"), ON),
    ("channel", "ignore", event(sender="Eve", channel="hall"), ON),
    ("room_default", "act", event(sender="Eve", channel="yard"), ON),
    ("fallback", "context", event(sender="Eve"), ON),
]


@pytest.mark.parametrize(("name", "verdict", "one", "settings"), STEPS)
def test_the_first_rule_that_fits_decides(
    name: str, verdict: str, one: Event, settings: dict[str, Any]
) -> None:
    assert rule(one, **settings) == (name, verdict)


def test_each_rule_takes_precedence_over_the_next() -> None:
    assert [name for name, *_ in STEPS] == [one.name for one in RULES]
    for (upper, lower), (name, _, one, settings) in zip(pairwise(RULES), STEPS, strict=False):
        assert upper.name == name
        assert lower.verdict(Heard(one, Settings(**settings), OWNERS)) is not None


MENTIONS = [
    "@circadian",
    "@Circadian, are you there?",
    "Ask @CIRCADIAN.",
    "(@circadian)",
    "hello,@circadian",
    "It is @circadian's turn",
    "a line\n@circadian\na line",
    "Write to ada@example.org or @circadian",
]


@pytest.mark.parametrize(
    "text",
    [
        *MENTIONS,
        "circadian",
        "@ circadian",
        "name@circadian.example",
        "circadian@circadian",
        "@circadians",
        "@circadian_2",
        "@circadian-2",
        "@circadian.example",
        "@circadian@example.org",
        "https://example.org/@circadian",
        "@ circadian @Ada",
        "@circ",
        "",
    ],
)
def test_a_whole_name_behind_an_at_sign_is_a_mention(text: str) -> None:
    found = ("mention", "act") if text in MENTIONS else ("room_default", "context")
    assert rule(event(text, channel="hall")) == found


def test_a_name_is_known_however_its_letters_are_written() -> None:
    for name in ("Zoë", unicodedata.normalize("NFD", "Zoë"), "ZOË"):
        assert rule(event("hi @zoë!"), names=[name])[0] == "mention"
        assert rule(event(sender="zOË"), names=[name])[0] == "own_message"
    assert rule(event("hi @zoe"), names=["Zoë"])[0] == "fallback"
    assert rule(event("Спросим @ЦИРКА"), names=["цирка"])[0] == "mention"


def test_any_of_several_names_counts_and_an_empty_one_does_not() -> None:
    names = ["", "circ", "C++", "Night Owl"]
    for text in ("@circ", "@c++ hello", "@night owl?"):
        assert rule(event(text), names=names)[0] == "mention"
    for text in ("@", "a @ b", "@circadian", "@night"):
        assert rule(event(text), names=names)[0] == "fallback"
    assert rule(event("@"), names=[])[0] == "fallback"
    assert rule(event("@circadian"), names=["circ.dian", "("])[0] == "fallback"


def test_own_messages_owners_elsewhere_and_empty_channels_set_nothing_off() -> None:
    back = event("@circadian said so", sender="Circadian", channel="hall", addressed=True)
    assert rule(back, channels={"hall": "act"}) == ("own_message", "ignore")
    assert rule(event(sender="local", channel="hall")) == ("room_default", "context")
    assert rule(event(channel=""), channels={"": "act"}, room_default="act")[0] == "fallback"


def test_an_owner_who_is_called_like_the_assistant_is_heard() -> None:
    mine = event(sender="Circadian", addressed=True)
    found = classify(mine, settings=Settings(), owners=["Circadian"])
    assert (found["rule"], found["verdict"]) == ("direct", "act")


def test_senders_are_known_by_their_exact_ids() -> None:
    for sender in ("ada", "Ada ", "\N{CYRILLIC CAPITAL LETTER A}da"):
        assert rule(event(sender=sender), permitted_senders=["Ada"])[0] == "fallback"
        assert rule(event(sender=sender), assistants=["Ada"])[0] == "fallback"


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_channels_and_rooms_have_the_verdict_of_the_settings(verdict: Verdict) -> None:
    assert rule(event(channel="hall"), channels={"hall": verdict}) == ("channel", verdict)
    assert rule(event(channel="hall"), room_default=verdict) == ("room_default", verdict)


def test_by_default_what_is_said_in_a_room_is_context() -> None:
    assert take(event(channel="hall")) == {
        "verdict": "context",
        "rule": "room_default",
        "trust": 0.8,
        "reason": "What is said to nobody in a channel: context (setting room_default).",
    }


def test_a_reason_names_the_sender_and_reads_no_braces_in_it() -> None:
    assert take(event(sender="{verdict}"))["reason"] == "{verdict} speaks to nobody."


@pytest.mark.parametrize(
    ("one", "woken"),
    [
        (event(addressed=True), True),
        (event("@circadian come", channel="hall"), True),
        (event(channel="hall"), False),
        (event(sender="circadian", addressed=True), False),
        (event(sender="circadian", addressed=True, kind="reflection"), False),
    ],
)
def test_what_is_acted_on_wakes_it_but_not_a_look_at_its_own_work(one: Event, woken: bool) -> None:
    assert wakes(one, settings=Settings(), owners=OWNERS) is woken


@pytest.mark.parametrize(
    ("one", "source", "trust"),
    [
        (event(addressed=True), "direct", 0.9),
        (event("@circadian help", channel="hall"), "direct", 0.9),
        (event(channel="hall"), "observation", 0.8),
        (event(sender="Eve", channel="act"), "observation", 0.8),
        (event(sender="Bot", addressed=True), "inference", 0.6),
        (event("@circadian", sender="Bot"), "inference", 0.6),
        (event(sender="circadian"), "inference", 0.6),
        (event(kind="reflection", addressed=True), "inference", 0.6),
        (event(sender="System", addressed=True), "environmental", 0.3),
        (event(sender="barometer", channel="system"), "environmental", 0.3),
    ],
)
def test_trust_is_that_of_the_source_and_the_journal_has_the_same(
    one: Event, source: str, trust: float
) -> None:
    settings = Settings(assistants=["Bot"], channels={"act": "act"})
    assert source_type_of(one, settings) == source
    assert classify(one, settings=settings, owners=OWNERS)["trust"] == trust
    entry = entry_for_event(one, settings=settings)
    assert (entry["source_type"], entry["source_trust"]) == (source, trust)
