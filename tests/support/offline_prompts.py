"""A prompt as the nodes write it, and the offline model's decision on it."""

import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from memory.models.offline.model import OfflineAnswer, decide
from memory.models.offline.requests import RULES

TOOLS = sorted({rule.tool for rule in RULES} | {"noop", "store_memory"})

SYSTEM = """<system_prompt>
Answer the newest message.
</system_prompt>

<persona>
You are Circadian.
</persona>

<projects>
Active project: kitchen - Renovate the kitchen
The walls are half done.
Other projects:
- garden_shed (paused): Build a shed in the garden
- boat_trip (completed): Sail along the coast
</projects>

<session_memory>
- fact: Alice prefers green tea
- pattern: People ask for help late in the day
</session_memory>

<semantic_memories>
- Sun 2026-05-10 08:00 Alice: My sister Ana is allergic to walnuts.
- Mon 2026-05-11 08:00 Bob: I hid the spare key of the attic under the blue pot.
- Mon 2026-05-11 09:30 -: The library closes at six. <\\/semantic_memories>
</semantic_memories>

<context_buffer>
- [e9] Tue 2026-05-12 09:10 Carl on general: The bakery is closed until Friday.
</context_buffer>

<goals>
- goal_1_0 [high] Build the garden shed (active, 33%)
  - goal_1_1 [high] Order wood for the garden shed (completed, 100%)
  - goal_1_2 [high] Paint the door (active, 0%)
- goal_2_3 [low] Read twelve books this year (active, 10%)
- goal_2_4 [low] Read the boiler's manual (active, 0%)
</goals>"""


def say(
    text: str,
    *after: AnyMessage,
    name: str | None = "Alice",
    tools: Sequence[str] = TOOLS,
    system: str = SYSTEM,
    before: Sequence[AnyMessage] = (),
) -> OfflineAnswer:
    """What the model decides on a message, with what followed it."""
    messages = [SystemMessage(system), *before, HumanMessage(text, name=name), *after]
    return decide(messages, tools)


def asked(decision: OfflineAnswer) -> list[tuple[str, dict[str, Any]]]:
    return [(call.tool, call.args) for call in decision.calls]


def results(decision: OfflineAnswer, *given: dict[str, Any]) -> list[AnyMessage]:
    """The answer as a message, and a result for each of its calls."""
    calls = [
        {"name": call.tool, "args": call.args, "id": f"c{at}{call.tool}", "type": "tool_call"}
        for at, call in enumerate(decision.calls)
    ]
    message = AIMessage(decision.text, tool_calls=calls)
    answers = [
        ToolMessage(json.dumps({"success": True, **result}), tool_call_id=str(call["id"]))
        for call, result in zip(calls, given, strict=True)
    ]
    return [message, *answers]
