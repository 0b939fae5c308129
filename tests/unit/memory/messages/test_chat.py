"""Chat messages and events: what the model sees, what is kept, who said it."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import HumanMessage

from memory.errors import InputError
from memory.messages.convert import event_of, text_of, text_only, valid_event, with_kind
from memory.messages.trust import accepted_name, as_model_sees, event_text
from tests.support.agents import Opening, entries
from tests.support.clock import Clock
from tests.support.scripted import call, scripted

PICTURE = "A" * 200_000
CONTENT: list[str | dict[str, Any]] = [
    {"type": "text", "text": "What is this?"},
    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}"}},
    {"type": "text", "text": "And that?"},
]


def event(**more: Any) -> dict[str, Any]:
    return {"id": "e1", "at": "2026-03-02T09:00:00+00:00", "sender": "Ada", "text": "Hi", **more}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ([], "content: List should have at least 1 item"),
        ("text", "content: Input should be a valid list"),
        ([5], r"content\.0"),
        ([{"text": "no type"}], "content: .*must have a type"),
        ([{"type": "text", "text": 5}], "content: .*must be a string"),
        ([""], "1 to 100000 characters"),
        (["x" * 100_001], "1 to 100000 characters"),
    ],
)
def test_content_that_no_model_accepts_is_refused(content: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        valid_event(event(content=content))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"sender": ""}, "event e1: sender: it has to have at least 1 character"),
        ({"text": "x" * 100_001}, "event e1: text: it has to have at most 100000 characters"),
    ],
)
def test_a_wrong_length_is_told_plainly(wrong: dict[str, str], says: str) -> None:
    with pytest.raises(InputError) as raised:
        valid_event(event(**wrong))
    assert str(raised.value) == says


def test_an_events_text_comes_from_its_content() -> None:
    given = valid_event(event(text="Something else", content=CONTENT))
    assert given["text"] == text_of(CONTENT) == "What is this?\n[image_url]\nAnd that?"
    assert given["content"] == CONTENT


def test_content_is_made_storable() -> None:
    given = valid_event(event(content=[{"type": "text", "text": "a \ud800"}, "\udfff"]))
    assert given["content"] == [{"type": "text", "text": "a \ufffd"}, "\ufffd"]
    given["text"].encode()


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image", "url": "https://example.com/a.png"},
        {"type": "image", "base64": "QUJD", "mime_type": "image/png", "id": "i1"},
        {"type": "image", "source_type": "base64", "data": "QUJD", "metadata": {"name": "a"}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}},
        {"type": "image_url", "image_url": {"url": "https://example.com/a", "detail": "low"}},
        {"type": "image_url", "image_url": "https://example.com/a.png"},
        {"type": "input_audio", "input_audio": {"data": "QUJD", "format": "wav"}},
        {"type": "audio", "base64": "QUJD", "mime_type": "audio/wav"},
        {"type": "video", "file_id": "f1"},
        {"type": "file", "file": {"file_id": "f1"}},
        {"type": "file", "source_type": "text", "text": "A page.", "filename": "a.txt"},
    ],
)
def test_media_are_taken_as_they_are(block: dict[str, Any]) -> None:
    assert valid_event(event(content=[block]))["content"] == [block]


@pytest.mark.parametrize(
    ("name", "sender", "kind"),
    [(None, "local", "chat"), ("local", "local", None), ("Ada", "Ada", None)],
)
def test_only_a_message_without_a_name_is_chat(
    name: str | None, sender: str, kind: str | None, clock: Clock
) -> None:
    message = HumanMessage(CONTENT, id="m1", name=name, additional_kwargs={"kind": "chat"})
    checked = valid_event(event_of(message, owner="local", now=clock()))
    spoken = with_kind(checked, message)
    assert (spoken["sender"], spoken.get("kind")) == (sender, kind)
    assert {**spoken, "kind": kind} == {**checked, "kind": kind}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Ada-L", "Ada-L"),
        ("Ada Lovelace", "Ada_Lovelace"),
        ("Ada_Lovelace", "Ada_Lovelace_"),
        ("Анна", "name_"),
    ],
)
def test_a_prompt_has_names_that_providers_accept(name: str, shown: str) -> None:
    (told,) = as_model_sees([HumanMessage("Hi", name=name)])
    made = str(told.name)
    assert made == shown or (made.startswith(shown) and len(made) == len(shown) + 8)
    assert f'from="{name}"' in str(told.text)


NAMES = st.text("aB1_- .é漢", min_size=1, max_size=5) | st.text("a b", min_size=60, max_size=80)


@given(st.lists(NAMES, min_size=2, max_size=8, unique=True))
def test_no_two_people_have_the_same_name(names: list[str]) -> None:
    shown = [accepted_name(name) for name in names]
    assert len(set(shown)) == len(names)
    assert all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", one) for one in shown)


def test_a_message_keeps_its_text_and_not_its_images() -> None:
    kept = text_only(HumanMessage(CONTENT, id="e1", name="Ada"))
    assert (kept.id, kept.name) == ("e1", "Ada")
    assert kept.content == "What is this?\n[image]\nAnd that?"


async def test_after_its_tick_an_image_is_in_no_state(opening: Opening) -> None:
    model = scripted(call("get_system_status"), "A garden.", "As I said.")
    async with opening(model) as agent:
        await agent.ainvoke({"messages": [HumanMessage(CONTENT, id="m1")]})
        seen = [one.messages[1].content for one in model.calls]
        assert [one[2:-1] for one in seen if isinstance(one, list)] == [CONTENT, CONTENT]
        out = await agent.ainvoke({"messages": [HumanMessage("And now?", id="m2")]})
        state = (await agent.aget_state()).values
        journal = await entries(agent)
    assert out["messages"][0].id == "m1"
    assert out["messages"][0].content == "What is this?\n[image]\nAnd that?"
    assert event_text(model.calls[-1].messages[1]) == "What is this?\n[image]\nAnd that?"
    assert PICTURE not in repr(state)
    assert journal[0]["content"] == "What is this?\n[image_url]\nAnd that?"


async def test_the_event_is_left_without_its_image(opening: Opening) -> None:
    async with opening(scripted("A garden.")) as agent:
        message = HumanMessage(CONTENT, id="m1")
        steps = [
            part["record"]
            async for _, part in agent.astream(
                {"messages": [message]}, stream_mode="updates", subgraphs=True
            )
            if "record" in part
        ]
    assert [step["event"] for step in steps] == [None]
    assert PICTURE not in repr(steps)
