"""The prompt of every kind of model call, awake and asleep, with the tools that it offers."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tracers.context import register_configure_hook
from langchain_core.utils.function_calling import convert_to_openai_tool

from graph.agent import open_agent
from memory.settings import Settings
from tests.frozen.keeping import KEPT, Normaliser, compare, document

STORY = Path(__file__).parent / "story.jsonl"
SETTINGS = Settings(
    user_prompt="Always be kind.",
    task_assessment_enabled=True,
    sub_agents_enabled=True,
    reflection_interval=9,
    reflection_threshold=1,
    min_observations=1,
    compact_sleep_threshold=0.001,
    compact_preserve_window=6,
)
DELEGATES = 'Do "delegate_task" {"task": "Say at length what a gutter is."}'
BREAKS_DOWN = 'Do "decompose_goal" {"goal_id": "goal_2_4"}'
OBSERVES = 'Do "update_entity_observation" {"entity": "Ben", "observation": "Ben lives in Linden."}'
DIRECTED = re.compile(r'Do "(\w+)" (\{.*?\})')

_recorder: ContextVar[Recorder | None] = ContextVar("recorder", default=None)
register_configure_hook(_recorder, inheritable=True)


class Recorder(BaseCallbackHandler):
    """Notes every call of a chat model: the tools that it offers, and every message."""

    raise_error = True

    def __init__(self) -> None:
        self.calls: list[tuple[list[BaseMessage], list[dict[str, Any]]]] = []

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],
        messages: list[list[BaseMessage]],
        *,
        run_id: UUID,
        **more: Any,
    ) -> None:
        tools = more.get("invocation_params", {}).get("tools", [])
        self.calls.append((messages[0], [tool["function"] for tool in tools]))


@contextmanager
def recording() -> Iterator[Recorder]:
    """Record the model calls of what runs inside, wherever the product makes them."""
    token = _recorder.set(recorder := Recorder())
    try:
        yield recorder
    finally:
        _recorder.reset(token)


class Directed(BaseChatModel):
    """The offline model, which calls the tool that a message names."""

    inner: BaseChatModel

    @property
    def _llm_type(self) -> str:
        return "directed"

    def bind_tools(self, tools: Sequence[Any], **more: Any) -> Any:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools])

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        asked = next((one for one in reversed(messages) if isinstance(one, HumanMessage)), None)
        text = str(asked.text) if asked is not None else ""
        offered = {tool["function"]["name"] for tool in kwargs.get("tools", [])}
        if asked is messages[-1] and (found := DIRECTED.search(text)) and found[1] in offered:
            made = {"name": found[1], "args": json.loads(found[2]), "id": f"call_{len(messages)}"}
            return _answer(AIMessage("", tool_calls=[made]))
        if "at length" in text and offered.isdisjoint({"delegate_task", "TaskAssessment"}):
            return _answer(AIMessage("A gutter carries rain water away from a roof. " * 150))
        return self.inner._generate(messages, **kwargs)


def _answer(message: AIMessage) -> ChatResult:
    return ChatResult(generations=[ChatGeneration(message=message)])


async def lived(data: Path) -> Recorder:
    """The story, with a delegated task and a goal that is broken down, and a last night."""
    now = datetime(2026, 5, 2, 8, 0, tzinfo=UTC)
    async with open_agent(data / "empty", model="offline", embedder="offline") as agent:
        model = Directed(inner=agent.resources.chat_model)
    opening = open_agent(
        data / "life", model=model, embedder="offline", settings=SETTINGS, clock=lambda: now
    )
    with recording() as recorder:
        async with opening as agent:
            for line in _lines():
                now = datetime.fromisoformat(line.get("at", now.isoformat()))
                asked = "request" in line
                await agent.ainvoke({"request": line["request"]} if asked else {"events": [line]})
    return recorder


def _lines() -> Iterator[dict[str, Any]]:
    for line in STORY.read_text(encoding="utf-8").splitlines():
        yield json.loads(line)
    for number, text in enumerate((DELEGATES, BREAKS_DOWN, OBSERVES)):
        at = f"2026-05-04T12:0{number}:00Z"
        yield {"id": f"more-{number}", "at": at, "sender": "Rosa", "text": text}
    yield {"request": "sleep", "at": "2026-05-05T22:00:00Z"}


def kind_of(messages: list[BaseMessage], tools: list[dict[str, Any]]) -> str:
    """A call's kind: what it offers where that is little, else how its system prompt begins."""
    names = [str(tool["name"]) for tool in tools]
    if 0 < len(names) < 6:
        return "-".join(names)
    return re.sub(r"\W+", "_", str(messages[0].text)[:40]).strip("_").lower()


def rendered(messages: list[BaseMessage], tools: list[dict[str, Any]]) -> str:
    parts = [f"tools: {', '.join(tool['name'] for tool in tools) or 'none'}"]
    for message in messages:
        name = f" ({message.name})" if message.name else ""
        calls = message.tool_calls if isinstance(message, AIMessage) else []
        asked = [f"calls {one['name']} {json.dumps(one['args'])}" for one in calls]
        text = [str(message.text)] if message.text else []
        parts.append("\n".join([f"---- {message.type}{name}", *text, *asked]))
    return "\n\n".join(parts) + "\n"


async def test_the_prompts_of_a_life(tmp_path: Path) -> None:
    calls, normalised = (await lived(tmp_path)).calls, Normaliser()
    kept: dict[str, str] = {}
    listed = []
    for messages, tools in calls:
        kind, seen = kind_of(messages, tools), normalised(rendered(messages, tools))
        kept.setdefault(f"{kind}_first", seen)
        kept[f"{kind}_last"] = seen
        digest = hashlib.sha256(seen.encode()).hexdigest()[:12]
        listed.append(f"{kind}: {len(messages)} messages, {digest}")
    for name, seen in kept.items():
        compare(f"prompts/{name}.txt", seen)
    compare("prompts/all.txt", "\n".join(listed) + "\n")
    assert {path.stem for path in (KEPT / "prompts").glob("*.txt")} == {"all", *kept}
    offered = {tool["name"]: tool for _, tools in calls for tool in tools}
    compare("offered.json", document(offered))
