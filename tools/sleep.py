"""The tool by which the model goes to sleep. The night begins when its tick has ended."""

from __future__ import annotations

from typing import Annotated

from langchain_core.tools import tool
from pydantic import Field

from memory import emergency, inbox
from memory.errors import Refusal
from memory.owners import owners_of
from memory.resources import resources_of, scope_of, settings_of, store_of
from memory.state import SleepWish
from memory.turns import parked_events, sorted_out
from tools.answers import Answer, Runtime, answer, event_of, now_of, refusals_answered


@tool
@refusals_answered
async def go_to_sleep(
    reasoning: Annotated[str, Field(description="Why you go to sleep now, in one sentence.")],
    runtime: Runtime,
) -> Answer:
    """Go to sleep when nothing is left to do: what happened is made into long-term memory. It ends
    your work for now, so write your answer, if there is one, beside this call. A message wakes you.
    """
    state = runtime.state
    if state["mode"] == "sleep":
        raise Refusal("Already in sleep mode", "Nothing needs to be done: a message wakes you.")
    if state["sleep_wish"] is not None:
        raise Refusal("You go to sleep already, after this tick", "End your work.")
    store, scope = store_of(runtime), scope_of(runtime.config)
    stop_asked = await emergency.stop_asked_by(store, scope) is not None
    if state["emergency_stop"] or stop_asked:
        raise Refusal("The emergency stop stands", "End your work: a person has to clear it first.")
    waiting = await _direct(runtime)
    if waiting:
        are = "direct event waits" if waiting == 1 else "direct events wait"
        raise Refusal(
            f"{waiting} {are} for you",
            "End this tick; it is answered next. Go to sleep after that.",
            pending=waiting,
        )
    wish: SleepWish = {"at": now_of(runtime).isoformat(), "reasoning": reasoning.strip()}
    told = {"mode": "sleep", "message": "You fall asleep when this tick has ended"}
    return answer(runtime, told, sleep_wish=wish)


async def _direct(runtime: Runtime) -> int:
    """How many events wait that people want acted on, beside the one in hand."""
    state, settings, resources = (
        runtime.state,
        settings_of(runtime.context),
        resources_of(runtime.config),
    )
    items = await inbox.waiting(
        store_of(runtime), scope_of(runtime.config), state.get("handled", [])
    )
    in_hand = event_of(runtime)
    past = parked_events(state) | ({in_hand["id"]} if in_hand else set())
    owners = owners_of(settings, user=resources.user, served=resources.served)
    return len(sorted_out(items, settings, owners, past=past).people)
