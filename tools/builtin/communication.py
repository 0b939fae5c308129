"""Tools that address somebody else: a message to another person, a task for a sub-agent.

A message does not leave the process: it is put into the run's output and stream, for whoever runs
the agent to deliver. After a crash it has the same id again. A task is carried out by the graph's
node `delegate`.
"""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory.errors import Refusal
from memory.operations import collector_of
from memory.records import Event, SentMessage, operation_id
from tools.answers import (
    Absent,
    Answer,
    Reasoning,
    Runtime,
    answer,
    event_of,
    now_of,
    refusals_answered,
)
from tools.evidence import origin_of

LONGEST_NAME, LONGEST_TEXT = 200, 20_000
"""Characters of a recipient or channel, and of a message."""


@tool
@refusals_answered
async def send_message(
    to: Annotated[str, Field(description="The name of whom it is for.")],
    text: Annotated[str, Field(description="The whole message.")],
    runtime: Runtime,
    channel: Annotated[
        str | Absent, Field(description="Where to say it; left out: a direct message.")
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Message somebody else; may wait for a person. Ends your work: answer beside it."""
    to, text, channel = to.strip(), text.strip(), (channel or "").strip() or None
    _check(event_of(runtime), to, text, channel)
    message: SentMessage = {
        "id": _id(runtime),
        "to": to,
        "text": text,
        "channel": channel,
        "tick": runtime.state["tick"],
        "at": now_of(runtime).isoformat(),
    }
    runtime.stream_writer({"type": "message", **message})
    result = {"message_id": message["id"], "to": to, "channel": channel, "message": "Sent"}
    return answer(runtime, result, artifact={"sent": [message]})


def _check(event: Event | None, to: str, text: str, channel: str | None) -> None:
    if not to:
        raise Refusal("Nobody is named", "Say in `to` whom the message is for.")
    if not text:
        raise Refusal("The message is empty", "Give its text, or call noop.")
    for name, value, most in (
        ("to", to, LONGEST_NAME),
        ("channel", channel or "", LONGEST_NAME),
        ("text", text, LONGEST_TEXT),
    ):
        if len(value) > most:
            raise Refusal(f"`{name}` is longer than {most:,} characters", "Make it shorter.")
    if event is not None and _place(event["sender"], event["channel"]) == _place(to, channel):
        raise Refusal(
            f"{to} is the one you answer now, in the same place",
            "Just answer: what you write without a tool call reaches them.",
        )


def _place(name: str, channel: str | None) -> tuple[str, str]:
    return name.strip().casefold(), (channel or "").strip().casefold()


def _id(runtime: Runtime) -> str:
    """`sent_<16 hex digits>`, made from the tick's origin and the message's place in the tick."""
    done = runtime.state["loop"]["tools"]
    earlier = sum(one["ok"] for one in done if one["name"] == "send_message")
    origin = origin_of(runtime, collector_of(runtime.config, runtime.store))
    return f"sent_{operation_id(origin, 'send_message', str(earlier))[:16]}"


@tool
async def delegate_task(
    task: Annotated[
        str,
        Field(
            min_length=1,
            max_length=4_000,
            pattern=r"\S",
            description="The task and the form of its result: all that the sub-agent sees.",
        ),
    ],
    runtime: Runtime,
    context: Annotated[
        str | Absent, Field(max_length=20_000, description="Facts and texts that it needs.")
    ] = None,
    reasoning: Reasoning = None,
) -> Answer:
    """Give a task to a sub-agent that looks things up, thinks and reports; several work at once."""
    raise RuntimeError("delegate_task is carried out by the node delegate")
