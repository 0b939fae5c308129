"""`circadian prompt`: the prompts, the versions, and going back to one of them."""

import asyncio
from pathlib import Path

import pytest

from graph.use_cases.status import prompt_of, rollback
from memory import audit
from memory.errors import InputError, StateError
from memory.models.offline.model import OfflineChatModel
from memory.prompt.assistant_prompt import changed
from memory.records.records import AssistantPrompt
from memory.settings import Settings
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.commandline import Run
from tests.support.scripted import scripted

TEXTS = ("Be concise.\nPrefer actions.", "Be [bold]loud[/bold].\x1b[31m", "Be kind.")


def written(clock: Clock, *texts: str) -> AssistantPrompt:
    prompt: AssistantPrompt = {"version": 0, "text": "", "versions": []}
    for number, text in enumerate(texts, 1):
        prompt = changed(
            prompt, text, at=clock(), reason=f"reason {number}", by="ada, approved by local"
        )
    return prompt


@pytest.fixture
def data(tmp_path: Path, clock: Clock) -> Path:
    async def make() -> None:
        async with opened(tmp_path / "data", OfflineChatModel(), clock) as agent:
            await agent.ainvoke(said("Hello"))
            await agent.aupdate_state(None, {"assistant_prompt": written(clock, *TEXTS)})

    asyncio.run(make())
    return tmp_path / "data"


def test_for_people_the_prompt_in_force_stands_whole_and_each_version_on_a_line(run: Run) -> None:
    out = run("prompt").out
    assert out.splitlines()[:5] == [
        "The user's prompt  setting user_prompt",
        "  empty",
        "",
        "The assistant's own prompt  version 3",
        "  Be kind.",
    ]
    rows = [line.split() for line in out.splitlines()[-3:]]
    assert [row[0] for row in rows] == ["3", "2", "1"]
    assert rows[2][1:5] == ["2", "Mar", "2026", "09:00"]
    assert "ada, approved by local" in out
    assert "reason 1" in out
    assert "Be concise." in out
    assert "Prefer actions." not in out
    assert "Be [bold]loud[/bold].[31m" in out
    assert "\x1b" not in out


def test_a_rollback_is_a_new_version_by_the_person_and_is_logged(
    run: Run, data: Path, clock: Clock
) -> None:
    done = run("prompt", "--rollback", "1")
    assert done.status == 0
    assert done.out.startswith("The text of version 1 is in force again, as version 4.\n")
    now = run("prompt", "--json").document
    assert (now["version"], now["text"]) == (4, TEXTS[0])
    newest = now["versions"][-1]
    assert (newest["by"], newest["reason"]) == ("local", "Rolled back to version 1")

    async def entries() -> list[audit.AuditEntry]:
        async with opened(data, OfflineChatModel(), clock) as agent:
            return await audit.read(agent.store, agent.scope)

    (entry,) = [one for one in asyncio.run(entries()) if one["what"].startswith("prompt_")]
    assert (entry["what"], entry["target"]) == ("prompt_rolled_back", "version 4")
    assert (entry["who"], entry["tick"]) == ("local", None)


def test_prompts_are_cleaned_of_control_characters(run: Run) -> None:
    out = run("prompt", "--rollback", "2").out
    assert "\n  Be [bold]loud[/bold].[31m\n" in out
    assert "\x1b" not in out


def test_rollback_to_version_0_empties_the_prompt(run: Run) -> None:
    document = run("prompt", "--rollback", "0", "--json").document
    assert (document["version"], document["text"], len(document["versions"])) == (4, "", 4)


def test_rollback_to_the_current_text_changes_nothing_and_says_so(run: Run) -> None:
    done = run("prompt", "--rollback", "3")
    assert done.status == 0
    assert "version 3 is in force already: nothing was changed" in done.out
    assert run("prompt", "--json").document["version"] == 3


def test_an_unknown_version_lists_the_kept_versions(run: Run) -> None:
    done = run("prompt", "--rollback", "9")
    assert (done.status, done.out) == (2, "")
    assert done.error.endswith("the prompt has no version 9; kept are 0, 1, 2, 3 (0: empty)")
    assert run("prompt", "--rollback", "-1").status == 2
    assert run("prompt", "--json").document["version"] == 3


async def test_the_users_prompt_is_shown_and_never_changed(tmp_path: Path, clock: Clock) -> None:
    settings = Settings(user_prompt="Speak French.")
    async with opened(tmp_path, scripted("Hello."), clock, settings=settings) as agent:
        await agent.ainvoke(said("Hello"))
        await agent.aupdate_state(None, {"assistant_prompt": written(clock, "one", "two")})
        assert (await rollback(agent.context, 1))["text"] == "one"
        assert (await prompt_of(agent.context))["version"] == 3
        assert (await agent.aget_state()).tasks == ()
        assert agent.settings.user_prompt == "Speak French."


async def test_an_agent_that_never_ran_has_version_0_alone(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path, scripted(), clock) as agent:
        assert (await rollback(agent.context, 0))["version"] == 0
        with pytest.raises(InputError, match="kept are 0"):
            await rollback(agent.context, 1)
        assert (await agent.aget_state()).values == {}


async def test_a_state_that_breaks_a_rule_is_left_alone(tmp_path: Path, clock: Clock) -> None:
    async with opened(tmp_path, scripted("Hello."), clock) as agent:
        await agent.ainvoke(said("Hello"))
        await agent.aupdate_state(None, {"assistant_prompt": {"version": "one"}})
        with pytest.raises(StateError, match="assistant_prompt"):
            await rollback(agent.context, 0)
