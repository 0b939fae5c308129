"""The offline model behaves as a chat model does, and its rules make the calls they should."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langchain_core.tools import tool
from langchain_core.utils.function_calling import convert_to_openai_tool

from memory.models.client import ask
from memory.models.offline.model import OfflineChatModel
from memory.models.offline.prompt import read_prompt
from memory.models.offline.requests import RULES, Rule, read_wishes
from memory.settings import Settings
from memory.text import approximate_tokens
from tests.support.offline_prompts import SYSTEM, TOOLS, asked, results, say


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.example)
def test_the_example_of_every_rule_makes_its_call(rule: Rule) -> None:
    for form in ("{}.", "Hi Circadian, could you please {}?", "ok, {} please"):
        text = form.format(rule.example if form[0] == "{" else rule.example.lower())
        assert [call.tool for call in say(text).calls] == [rule.tool], text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.example)
def test_a_tool_that_is_not_bound_is_never_called(rule: Rule) -> None:
    decision = say(rule.example, tools=[one for one in TOOLS if one != rule.tool])
    assert rule.tool not in [call.tool for call in decision.calls]
    assert decision.text or decision.calls


@pytest.mark.parametrize(
    ("text", "tool", "args"),
    [
        (
            "Start a project balcony: plant herbs. We have 200 euros for it.",
            "create_project",
            {
                "project_key": "balcony",
                "summary": "plant herbs",
                "initial_context": "We have 200 euros for it.",
            },
        ),
        (
            "switch to the garden project: the walls are 60% done",
            "swap_project",
            {"project_key": "garden_shed", "current_project_update": "the walls are 60% done"},
        ),
        ("Back to the shed", "swap_project", {"project_key": "garden_shed"}),
        ("Switch to the moon project", "swap_project", {"project_key": "moon"}),
        (
            "note on the project: tiles come on Monday",
            "update_project",
            {"context_update": "tiles come on Monday"},
        ),
        ("The kitchen project is finished!", "update_project", {"status": "completed"}),
        (
            "My goal is to run a marathon in October, low priority",
            "add_goal",
            {"description": "Run a marathon in October", "priority": "low"},
        ),
        ("Break down goal_2_3", "decompose_goal", {"goal_id": "goal_2_3"}),
        (
            "Painting the door is 40 percent done",
            "update_goal",
            {"goal_id": "goal_1_2", "progress": 40},
        ),
        ("The shed is 50% done", "update_goal", {"goal_id": "goal_1_0", "progress": 50}),
        ("goal_1_2 is 100% done", "update_goal", {"goal_id": "goal_1_2", "status": "completed"}),
        ("I finished the manual", "update_goal", {"goal_id": "goal_2_4", "status": "completed"}),
        (
            "Remember that my sister lives with me and I don't eat nuts.",
            "add_session_memory",
            {
                "memory_type": "fact",
                "content": 'Alice: "my sister lives with me and I don\'t eat nuts"',
            },
        ),
        ("What do you remember about Ana?", "recall_memories", {"query": "Ana"}),
        (
            "Write a file lists/tiles.txt: 40 white, 12 blue.",
            "write_file",
            {"file_path": "lists/tiles.txt", "text": "40 white, 12 blue"},
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_request_becomes_a_call_with_its_arguments(
    text: str, tool: str, args: dict[str, Any]
) -> None:
    assert asked(say(text)) == [(tool, args)]


def test_several_requests_in_one_message_are_all_made() -> None:
    text = "Add a goal: fix the roof. Remember that Bob has a ladder. List my projects."
    made = ["add_goal", "add_session_memory", "list_projects"]
    assert [name for name, _ in asked(say(text))] == made


def test_and_inside_a_request_does_not_cut_it() -> None:
    assert asked(say("Add a goal: paint the fence and the gate")) == [
        ("add_goal", {"description": "Paint the fence and the gate"})
    ]
    (remembered,) = asked(say("Remember that the fence is old and the gate is done"))
    assert remembered[1]["content"] == "The fence is old and the gate is done"


def test_a_request_that_needs_a_result_waits_for_it() -> None:
    text = "Add a goal: fix the roof. Break it down."
    first = say(text)
    assert asked(first) == [("add_goal", {"description": "Fix the roof"})]
    made = results(first, {"goal_id": "goal_7_5"})
    second = say(text, *made)
    assert asked(second) == [("decompose_goal", {"goal_id": "goal_7_5"})]
    subtasks = [{"id": "goal_7_6", "description": "Buy tiles"}]
    done = [*made, *results(second, {"goal_id": "goal_7_5", "subtasks": subtasks})]
    last = say(text, *done)
    assert not last.calls
    assert last.text.splitlines() == [
        "Added the goal 'Fix the roof'.",
        "Split the goal 'Fix the roof':",
        "- Buy tiles",
    ]


def test_a_goal_that_is_not_made_yet_is_not_mistaken_for_another() -> None:
    one_goal = SYSTEM[: SYSTEM.index("- goal_2_3")] + "</goals>"
    for told in ("mend the shed. Break the goal down.", "a shed. Split the shed goal up."):
        calls = asked(say(f"Add a goal: {told}", system=one_goal))
        assert [name for name, _ in calls] == ["add_goal"]


def test_a_goal_added_by_a_message_does_not_change_what_its_other_sentences_mean() -> None:
    text = "The shed is 50% done. Add a goal: a roof for the shed."
    first = say(text)
    after = results(first, {}, {"goal_id": "goal_7_5"})
    assert [name for name, _ in asked(first)] == ["update_goal", "add_goal"]
    assert "Which goal" not in say(text, *after).text


def test_no_call_is_made_twice_even_when_it_failed() -> None:
    text = "Switch to the moon project"
    failed = {"success": False, "error": "Project does not exist", "suggestion": "Choose another."}
    last = say(text, *results(say(text), failed))
    assert not last.calls
    assert last.text == "swap_project did not work: Project does not exist."


def test_a_refused_call_is_told_once_and_without_what_the_model_is_told() -> None:
    text = "Write a file plan.txt: two brackets"
    refused = {"success": False, "error": "Ada refused it: no", "suggestion": "Do not ask again."}
    after = results(say(text, tools=["write_file"]), refused)
    assert say(text, *after, tools=["noop"]).text == "I did not do it: Ada refused it: no."


def test_earlier_messages_are_not_acted_on_again() -> None:
    earlier: Any = [HumanMessage("Add a goal: fix the roof", name="Bob"), AIMessage("Added.")]
    assert not say("It rains a lot today.", before=earlier).calls


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Reading is 20% done", "Which goal do you mean: 'Read twelve books this year'; "),
        ("The unicorn goal is done", "I know no goal like 'The unicorn goal'."),
        ("goal_9_9 is done", "I know no goal like 'goal_9_9'."),
        ("Break it down", "Which goal do you mean?"),
        ("The shed goal is 150% done", "Progress is between 0 and 100 %, not 150 %."),
        ("Note on the shed project: buy nails", "garden_shed is not the active project"),
    ],
)
def test_an_unclear_request_is_asked_back_and_not_guessed(text: str, said: str) -> None:
    decision = say(text)
    assert not decision.calls
    assert decision.text.startswith(said)


@pytest.mark.parametrize(
    "text",
    [
        "Dinner is done.",
        "I finished three books by Ana's brother in law.",
        "Let's go back to the beach.",
        "I remember that summer well.",
        "Remember when we met in Rome?",
        "The shop is 20% cheaper.",
        "I started a new job.",
    ],
)
def test_a_statement_that_only_looks_like_a_request_calls_nothing(text: str) -> None:
    assert not say(text).calls


@tool
def add_goal(description: str) -> str:
    """Add a goal."""
    return description


async def test_it_is_a_chat_model_with_tools_ids_and_usage() -> None:
    model, prompt = OfflineChatModel(), [HumanMessage("Add a goal: fix the roof", name="Alice")]
    first, second = [(await ask(model, prompt, Settings(), tools=[add_goal])) for _ in range(2)]
    (call,) = first.message.tool_calls
    assert (call["name"], call["args"]) == ("add_goal", {"description": "Fix the roof"})
    assert first.message.tool_calls == second.message.tool_calls
    assert first.usage["llm_calls"] == 1
    assert first.usage["tokens"] > 10
    other = await ask(
        model, [*prompt, AIMessage("Later."), prompt[0]], Settings(), tools=[add_goal]
    )
    assert other.message.tool_calls[0]["id"] != call["id"]


async def test_it_streams_the_same_answer_word_by_word() -> None:
    prompt = [HumanMessage("I moved to Porto\nlast week.", name="Alice")]
    model = OfflineChatModel()
    chunks = [chunk async for chunk in model.astream(prompt)]
    whole = await model.ainvoke(prompt)
    assert "".join(str(chunk.text) for chunk in chunks) == str(whole.text)
    assert len([chunk for chunk in chunks if chunk.text]) == len(str(whole.text).split())
    bound = model.bind_tools([add_goal])
    parts = [one async for one in bound.astream([HumanMessage("Add a goal: fix the roof")])]
    total = parts[0]
    for part in parts[1:]:
        total = total + part  # type: ignore[assignment]
    assert isinstance(total, AIMessageChunk)
    assert total.tool_calls[0]["args"] == {"description": "Fix the roof"}
    assert total.usage_metadata is not None
    form = convert_to_openai_tool(add_goal)
    given = approximate_tokens([HumanMessage("Add a goal: fix the roof")], tools=[form])
    assert total.usage_metadata["input_tokens"] == given


def test_the_reading_of_a_message_is_open_to_inspection() -> None:
    prompt = read_prompt([HumanMessage("Hello! What is next? List my projects. It rains.")])
    wishes = read_wishes(prompt, TOOLS)
    assert wishes.small_talk == ["Hello!"]
    assert wishes.questions == ["What is next?"]
    assert [call.tool for call in wishes.calls] == ["list_projects"]
    assert wishes.remarks == ["It rains."]
