"""`circadian doctor`: what it looks at, and what it finds wrong."""

import asyncio
import json
import os
import re
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph.cli.commands import doctor
from memory.facts.sqlite.table import SqliteTable
from memory.facts.table import scope_filters
from memory.forgetting import carrying_out as open_forget
from memory.models.offline.model import OfflineChatModel
from memory.records.records import LOCAL_USER, Scope, thread_id
from tests.support import mcp_server
from tests.support.agents import opened, said
from tests.support.clock import Clock
from tests.support.commandline import Done, Run
from tests.support.homes import held
from tests.support.openai_server import OpenAIServer, Reply, Serve, error, page, text

Patch = pytest.MonkeyPatch


def checks(done: Done) -> dict[str, Any]:
    return {check["name"]: check for check in done.document["checks"]}


def test_doctor_finds_nothing_wrong_with_a_new_folder(run: Run) -> None:
    run("send", "Hello")
    done = run("doctor", "--json")
    assert done.status == 0
    assert done.document["ok"]
    names = [check["name"] for check in done.document["checks"]]
    assert names[:4] == ["python", "langgraph", "mem0ai", "model"]
    assert names[4:8] == ["working folder", "extensions", "MCP servers", "breaker"]
    assert names[8:10] == ["data folder", "embedder"]
    thread = thread_id(LOCAL_USER, "default")
    assert (done.document["agent"], done.document["thread"]) == ("default", thread)
    assert f"agent default, thread {thread}" in run("doctor").out.splitlines()
    assert names[-2:] == ["lock", "inbox"]
    assert {"store.db", "checkpoints.db"} <= set(names)


def test_a_key_is_named_where_there_is_one(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("doctor", "--model", "openai:none", "--embedder", "offline")
    serve()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert " openai:none; --call asks it\n" in run(*command).out
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    assert " openai:none, a key is set; --call asks it\n" in run(*command).out


def test_call_asks_the_model(run: Run, serve: Serve) -> None:
    run("send", "Hello")
    command = ("doctor", "--model", "openai:none")
    server = serve(text("ready"), error(401, "no such key"))
    assert run(*command).status == 0
    assert server.requests == []
    called = run(*command, "--call").out
    assert re.search(r"openai:none, it answers in [\d,]+ ms, \d+ tokens\n", called)
    refused = run(*command, "--call")
    assert refused.status == 1
    assert "no such key" in " ".join(refused.out.split())


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (error(401, "Incorrect API key"), "refuses the key of the model none (HTTP 401"),
        (error(404, "no such model", code="model_not_found"), "does not know the model none"),
        (page(), "is no API for the model none"),
        (error(429, "quota", code="insufficient_quota"), "HTTP 429: quota"),
        (text("late", delay=3), "the model did not answer within 0.5 s"),
    ],
)
def test_call_says_plainly_what_is_wrong(
    run: Run, serve: Serve, monkeypatch: pytest.MonkeyPatch, reply: Reply, told: str
) -> None:
    monkeypatch.setattr(doctor, "PATIENCE", 0.5 if reply.delay else 30.0)
    serve(reply)
    where = ("--model", "openai:none", "--embedder", "offline")
    done = run("doctor", *where, "--call", "--json")
    assert (done.status, done.err) == (1, "")
    assert told in checks(done)["model"]["detail"]


def test_call_says_which_address_cannot_be_reached(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as server:
        gone = server.base_url
    monkeypatch.setenv("OPENAI_BASE_URL", gone)
    where = ("--model", "openai:none", "--embedder", "openai:none")
    found = checks(run("doctor", *where, "--call", "--json"))
    for name in ("model", "embedder"):
        assert f"{gone}, the address of the {name} none, cannot be reached" in found[name]["detail"]
        assert "set OPENAI_BASE_URL" in found[name]["detail"]


def test_doctor_names_the_settings_file(run: Run, data: Path) -> None:
    run("config", "set", "persona", "Miso")
    found = checks(run("doctor", "--json"))
    assert found["settings"]["detail"].startswith(f"{data / 'circadian.toml'}, 1 in force")


def test_doctor_reports_an_unfinished_forget(run: Run, data: Path) -> None:
    async def begun() -> None:
        async with opened(data, OfflineChatModel(), Clock()) as agent:
            what: open_forget.Begun = {
                "entity": "Zora",
                "events": [],
                "memories": [],
                "informed": [],
            }
            await open_forget.begin(agent.store, agent.scope, what, [])

    run("send", "My name is Zora.", "--from", "Zora")
    asyncio.run(begun())
    done = run("doctor", "--json")
    assert done.status == 1
    assert "`circadian forget 'Zora' --yes`" in checks(done)["forget"]["detail"]
    assert run("forget", "Zora", "--yes").status == 0
    assert run("doctor").status == 0


def test_doctor_finds_nothing_wrong_without_a_data_folder(run: Run, data: Path) -> None:
    done = run("doctor")
    assert (done.status, done.err) == (0, "")
    line = next(line for line in done.out.splitlines() if line.startswith("note"))
    assert line.split(maxsplit=3)[:3] == ["note", "data", "folder"]
    assert line.endswith("  none yet: circadian send makes one")
    assert "embedder        offline" in done.out
    assert run("doctor", "--json").document["ok"]
    assert not data.exists()


def test_doctor_finds_a_file_in_place_of_the_data_folder(run: Run, data: Path) -> None:
    data.write_text("in the way")
    done = run("doctor")
    assert done.status == 1
    assert "problem  data folder" in done.out


def test_call_asks_the_embedder_of_the_folder(run: Run, serve: Serve) -> None:
    command = ("doctor", "--model", "offline")
    server = serve()
    args = ("--model", "offline", "--embedder", "openai:none")
    run("send", "Hello", *args)
    server.embedded.clear()
    assert " openai:none, --call asks it\n" in run(*command).out
    assert server.embedded == []
    called = run(*command, "--call", "--json")
    told = checks(called)["embedder"]["detail"]
    assert re.fullmatch(r"openai:none, it embeds in [\d,]+ ms, about 1 token, 8 numbers", told)
    server.embedding_errors.append(error(401, "no such key"))
    refused = run(*command, "--call", "--json")
    assert len(server.embedded) == 2
    assert refused.status == 1
    (wrong,) = [check for check in refused.document["checks"] if not check["ok"]]
    assert wrong["name"] == "embedder"
    assert wrong["detail"].startswith("openai:none: ")
    assert "no such key" in wrong["detail"]


def test_another_embedder_than_the_recorded_one_names_reindex(run: Run) -> None:
    run("send", "Hello")
    done = run("doctor", "--embedder", "openai:none", "--json")
    found = checks(done)
    assert done.status == 1
    assert {name for name, check in found.items() if not check["ok"]} == {"agent"}
    assert "`circadian reindex --embedder openai:none`" in found["agent"]["detail"]
    assert found["facts.db"]["ok"]


def test_memories_without_a_vector_are_a_note_that_names_reindex(run: Run, data: Path) -> None:
    run("send", "Hello")
    kind = "offline, 256 numbers each"
    found = checks(run("doctor", "--json"))["vectors"]
    assert found == {"name": "vectors", "ok": True, "detail": f"none is missing ({kind})"}
    unembedded(data, "Ada keeps bees")
    done = run("doctor", "--json")
    assert (done.status, checks(done)["vectors"]["note"]) == (0, True)
    assert checks(done)["vectors"]["detail"] == (
        f"1 memory waits for one ({kind}), found by words until `circadian reindex`"
    )
    run("reindex")
    assert "note" not in checks(run("doctor", "--json"))["vectors"]


def test_vectors_of_another_length_than_those_kept_are_a_problem(
    run: Run, serve: Serve, data: Path
) -> None:
    serve()
    args = ("--model", "offline", "--embedder", "openai:none")
    run("send", "Hello", *args)
    head = json.loads((data / "folder.json").read_text())
    (data / "folder.json").write_text(json.dumps({**head, "dimension": 5}))
    found = checks(run("doctor", *args, "--call", "--json"))["embedder"]
    assert not found["ok"]
    assert found["detail"] == (
        "openai:none gives vectors of 8 numbers, and those kept have 5: "
        "`circadian reindex --embedder openai:none`"
    )


def unembedded(data: Path, text: str) -> None:
    table = SqliteTable(data / "facts.db", model="offline", dimension=256)
    scope = Scope(LOCAL_USER, thread_id(LOCAL_USER, "default"))
    table.insert("waiting", None, {**scope_filters(scope), "kind": "episode", "data": text})
    table.close()


def test_doctor_finds_a_damaged_database(run: Run, data: Path) -> None:
    run("send", "Hello")
    (data / "store.db").write_bytes(b"not a database" * 100)
    done = run("doctor")
    assert done.status == 1
    assert "problem  store.db" in done.out


@pytest.mark.parametrize(
    ("kind", "value", "told"),
    [
        ("journal", "substr(value, 2)", "is damaged"),
        ("journal", "json_remove(value, '$.content')", "lacks 'content'"),
        ("audit", "json_remove(value, '$.who')", "lacks 'who'"),
        ("fact", "json_remove(payload, '$.trust')", "lacks 'trust'"),
    ],
)
def test_a_damaged_record_is_one_line_that_names_it(
    run: Run, data: Path, kind: str, value: str, told: str
) -> None:
    run("send", "Anna Berg grows beans.", "--from", "Ada")
    run("sleep")
    change = f"UPDATE store SET value = CAST({value} AS BLOB) WHERE prefix LIKE '%.{kind}.%'"
    change = f"UPDATE memories SET payload = {value}" if kind == "fact" else change
    with closing(sqlite3.connect(data / f"{'facts' if kind == 'fact' else 'store'}.db")) as opened:
        opened.execute(change)
        opened.commit()
    commands = (["status"], ["doctor"], ["tick"], ["log"], ["recall", "--all"], ["forget", "beans"])
    ran = [run(*command) for command in commands]
    assert [done.err for done in ran if done.status and told not in done.out + done.err] == []
    assert any(done.status for done in ran)


def test_doctor_names_the_process_that_holds_the_agent(run: Run, data: Path) -> None:
    run("send", "Hello")
    with held(data, role="test"):
        done = run("doctor")
    assert done.status == 0
    assert f"process {os.getpid()} (test)" in done.out


def test_absent_additions_are_no_problem(run: Run) -> None:
    found = checks(run("doctor", "--json"))
    assert [found[name]["ok"] for name in ("working folder", "extensions", "MCP servers")] == [
        *(True, True, True)
    ]
    assert found["working folder"]["detail"] == "none; CIRCADIAN_FOLDER names one"
    assert found["breaker"]["detail"] == (
        "a service is left alone for 30 s after 3 failed calls in a row"
    )


def test_additions_are_tried_and_counted(run: Run, tmp_path: Path, monkeypatch: Patch) -> None:
    (tmp_path / "files").mkdir()
    monkeypatch.setenv("CIRCADIAN_FOLDER", str(tmp_path / "files"))
    monkeypatch.setenv("CIRCADIAN_EXTENSIONS", "tests.support.launching")
    monkeypatch.setenv("CIRCADIAN_BREAKER_FAILURES", "1")
    monkeypatch.setenv("CIRCADIAN_BREAKER_SECONDS", "2.5")
    done = run("doctor", "--json")
    found = checks(done)
    assert done.status == 0
    assert found["working folder"]["detail"] == f"{tmp_path / 'files'}, 7 tools"
    assert found["extensions"]["detail"] == "tests.support.launching, 2 tools, 0 components"
    assert found["breaker"]["detail"] == (
        "a service is left alone for 2.5 s after 1 failed call in a row"
    )


def test_mcp_servers_are_started_and_their_tools_counted(
    run: Run, tmp_path: Path, monkeypatch: Patch
) -> None:
    file = tmp_path / "mcp.json"
    server = {"command": sys.executable, "args": [str(mcp_server.__file__)]}
    file.write_text(json.dumps({"servers": {"weather": server}}))
    monkeypatch.setenv("CIRCADIAN_MCP", str(file))
    found = checks(run("doctor", "--json"))["MCP servers"]
    assert found["ok"], found["detail"]
    assert found["detail"].startswith(f"{file}, ")


@pytest.mark.parametrize(
    ("variable", "name", "problem"),
    [
        ("CIRCADIAN_FOLDER", "working folder", "does not exist"),
        ("CIRCADIAN_EXTENSIONS", "extensions", "cannot be imported"),
        ("CIRCADIAN_MCP", "MCP servers", "cannot be read"),
    ],
)
def test_a_broken_addition_is_a_problem_and_the_other_checks_run(
    run: Run, monkeypatch: Patch, variable: str, name: str, problem: str
) -> None:
    run("send", "Hello")
    monkeypatch.setenv(variable, "nowhere_to_be_found")
    done = run("doctor", "--json")
    found = checks(done)
    assert (done.status, done.document["ok"]) == (1, False)
    assert (found[name]["ok"], problem in found[name]["detail"]) == (False, True)
    assert found["store.db"]["ok"]
    unopened = set() if name == "MCP servers" else {"agent"}
    assert {one for one in found if not found[one]["ok"]} == {name} | unopened


def test_a_tool_with_a_name_that_the_working_folder_has_is_a_problem(
    run: Run, tmp_path: Path, monkeypatch: Patch
) -> None:
    module = f"clash_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(
        "from tools.registry import registered\n"
        'def read_file() -> str:\n    """Read."""\n    return ""\n'
        'tools = [registered(read_file, "safe_chain")]\n'
    )
    (tmp_path / "files").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CIRCADIAN_FOLDER", str(tmp_path / "files"))
    monkeypatch.setenv("CIRCADIAN_EXTENSIONS", module)
    found = checks(run("doctor", "--json"))
    assert found["working folder"]["ok"]
    assert not found["extensions"]["ok"]
    assert "two tools are named 'read_file'" in found["extensions"]["detail"]


def test_an_agent_that_cannot_be_read_is_a_problem(run: Run, data: Path, clock: Clock) -> None:
    async def edit() -> None:
        async with opened(data, OfflineChatModel(), clock) as agent:
            await agent.ainvoke(said("Hi"))
            await agent.aupdate_state(None, {"goals": {"goal_1_0": {"id": "goal_1_0"}}})

    asyncio.run(edit())
    done = run("doctor", "--json")
    assert done.status == 1
    assert "wrong goals.goal_1_0" in checks(done)["agent"]["detail"]
