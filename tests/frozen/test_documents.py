"""The `--json` documents of every command over one life, and the export at the end of it."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from tests.frozen.keeping import KEPT, Normaliser, WallClock, compare, document
from tests.support.commandline import Done, circadian
from tests.support.openai_server import OpenAIServer, text, tool_call

STORY = Path(__file__).parent / "story.jsonl"
AFTERWARDS = datetime(2026, 5, 4, 11, 0, tzinfo=UTC)
WITH_OPERATION_IDS = frozenset({"export", "night", "night_last"})
"""Documents made while every event had the story's own id, so that operations have fixed ids."""
OFFLINE = ("--model", "offline", "--embedder", "offline")


class Life:
    """Runs commands on one data folder, and keeps each one's document under its name."""

    def __init__(
        self, place: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.data, self.place = place / "data", place
        self._capsys, self.patch = capsys, patch
        self.clock = WallClock(patch, AFTERWARDS)
        self._shown: dict[str, Any] = {}
        self.namespaces: dict[str, dict[str, int]] = {}

    def run(
        self,
        name: str,
        *args: str | Path,
        model: tuple[str, ...] = OFFLINE,
        data: Path | None = None,
    ) -> Any:
        """Run a command a minute after the last one; returns its document."""
        self.clock.set(self.clock.now + timedelta(minutes=1))
        done = circadian(self._capsys, *args, "--json", "--data", data or self.data, *model)
        found = _documents(done)
        self._shown[name] = {
            "status": done.status,
            "stderr": done.err.splitlines(),
            "document": found,
        }
        return found

    def shown(self) -> dict[str, Any]:
        normaliser = Normaliser((self.data, "<data>"), (self.place, "<place>"))
        normaliser.name_facts(self._shown)
        return {
            name: normaliser(shown, operations=name in WITH_OPERATION_IDS)
            for name, shown in self._shown.items()
        }

    def look_at_namespaces(self, when: str) -> None:
        """Keep how many records stand in each namespace."""
        self.namespaces[when] = asyncio.run(namespaces(self.data))

    def asked(self, name: str, prompt: str) -> str:
        """A message after which the model wants to change its own prompt; the question's id."""
        with OpenAIServer(tool_call("update_system_prompt", {"new_prompt": prompt})) as server:
            self.patch.setenv("OPENAI_BASE_URL", server.base_url)
            self.patch.setenv("OPENAI_API_KEY", "none")
            found = self.run(
                name, "send", "Be brief from now on.", model=("--model", "openai:none")
            )
            self.patch.delenv("OPENAI_API_KEY")
        return str(found["approvals"][0]["id"])

    def answered(self, name: str, *args: str) -> None:
        """The answer to such a question; the model then says one sentence."""
        with OpenAIServer(text("So be it.")) as server:
            self.patch.setenv("OPENAI_BASE_URL", server.base_url)
            self.patch.setenv("OPENAI_API_KEY", "none")
            self.run(name, *args, model=("--model", "openai:none"))
            self.patch.delenv("OPENAI_API_KEY")


def _documents(done: Done) -> Any:
    if not done.out.strip():
        return None
    try:
        return done.document
    except json.JSONDecodeError:
        return [json.loads(line) for line in done.out.splitlines()]


@pytest.fixture
def life(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Life:
    return Life(tmp_path, capsys, monkeypatch)


def fact_about(found: list[dict[str, Any]], words: str) -> str:
    return next(str(one["id"]) for one in found if one["kind"] == "fact" and words in one["text"])


def test_the_documents_of_every_command(life: Life) -> None:
    live(life)
    shown = life.shown()
    for name, found in shown.items():
        compare(f"documents/{name}.json", document(found))
    assert {path.stem for path in (KEPT / "documents").glob("*.json")} == {*shown}
    life.look_at_namespaces("end")
    compare("namespaces.json", document(life.namespaces))


async def namespaces(data: Path) -> dict[str, int]:
    used = {}
    async with open_agent(data, model="offline") as agent:
        for namespace in await agent.store.alist_namespaces(limit=10_000):
            items = await agent.store.asearch(namespace, limit=10_000)
            used["/".join(namespace)] = sum(item.namespace == namespace for item in items)
    return used


def live(life: Life) -> None:
    """A replayed story, then every command on what it left."""
    run = life.run
    run("status_nothing", "status")
    run("replay", "replay", STORY)
    run("replay_again", "replay", STORY)
    run("export", "export")
    run("status", "status")
    run("status_verbose", "status", "--verbose")
    run("recall", "recall", "Who is allergic?", "-k", "3")
    run("recall_explain", "recall", "Who is allergic?", "-k", "2", "--explain")
    everything = run("recall_all", "recall", "--all")
    run("recall_all_words", "recall", "barrels", "--all", "--superseded")
    run("log", "log")
    run("log_newest", "log", "-n", "3", "--since", "2026-05-03")
    run("nights", "nights")
    run("night", "night", "night_20260502_220000")
    run("night_last", "night", "last", "--all")
    run("send", "send", "What did the barrels cost?", "--from", "Ben", "--channel", "hall")
    run("tick", "tick")
    run("stop", "stop")
    run("send_stopped", "send", "Are you there? My cat is called Miso.", "--from", "Tom")
    life.look_at_namespaces("stopped")
    run("clear_stop", "clear-stop")
    run("tick_again", "tick")
    run("correct", "correct", fact_about(everything, "65 euros"), "They cost 70 euros each.")
    run("recall_superseded", "recall", "What did the barrels cost?", "-k", "3", "--superseded")
    question = life.asked("send_asking", "Be brief.")
    run("status_asking", "status")
    life.look_at_namespaces("asking")
    life.answered("approve", "approve", question)
    question = life.asked("send_asking_again", "Use rhymes.")
    life.answered("refuse", "refuse", question, "--reason", "No rhymes.")
    run("prompt", "prompt")
    run("prompt_rollback", "prompt", "--rollback", "0")
    preview = run("sleep_dry_run", "sleep", "--dry-run")
    life.look_at_namespaces("dry run")
    run("sleep_apply", "sleep", "--apply", preview["id"])
    run("undo", "undo", preview["id"])
    run("sleep", "sleep")
    run("wake", "wake")
    run("retry", "retry")
    everything = run("recall_all_later", "recall", "--all")
    run("forget_asking", "forget", "Tom")
    run("forget", "forget", "Tom", "--yes")
    fact = fact_about(everything, "daughter Lila")
    run("forget_fact_asking", "forget", "--fact", fact)
    run("forget_fact", "forget", "--fact", fact, "--yes")
    run("forget_nobody", "forget", "Nobody", "--yes")
    file = life.place / "memory.jsonl"
    run("export_file", "export", file)
    run("import_beside", "import", file, "--agent", "second")
    moved = life.place / "moved"
    run("import", "import", file, "--agent", "second", data=moved)
    run("export_imported", "export", "--agent", "second", data=moved)
    run("reindex", "reindex")
    run("doctor", "doctor")
    life.patch.setattr("httpcore._async.connection.RETRIES_BACKOFF_FACTOR", 0)
    run("schedule_unreachable", "schedule", "--url", "http://127.0.0.1:9")
