"""`circadian config`, `--config` and `--set`."""

from pathlib import Path

import pytest

from tests.support.commandline import Run


def test_settings_are_set_listed_and_unset(
    run: Run, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = data / "circadian.toml"
    none = run("config")
    assert none.out.startswith(f"settings file {file}\nIt is not there yet")
    assert run("config", "set", "owners", "ada, local").out.startswith("set: owners is ada,")
    assert run("config", "set", "time_zone", "Asia/Tokyo").status == 0
    assert run("config", "get", "time_zone").out == "Asia/Tokyo\n"
    monkeypatch.setenv("CIRCADIAN_TIME_ZONE", "Europe/Vienna")
    again = run("config", "set", "time_zone", "Asia/Tokyo")
    assert again.out.startswith("unchanged: time_zone is Europe/Vienna")
    assert again.error == "CIRCADIAN_TIME_ZONE overrides the file"
    listed = run("config", "--set", "recall_limit=4", "--json").document
    assert listed["file"] == str(file)
    assert [(one["name"], one["source"], one["place"]) for one in listed["settings"]] == [
        ("owners", "file", str(file)),
        ("recall_limit", "option", "--set recall_limit"),
        ("time_zone", "environment", "CIRCADIAN_TIME_ZONE"),
    ]
    assert run("config", "unset", "owners").status == 0
    assert file.read_text() == 'time_zone = "Asia/Tokyo"\n'


def test_explain_has_every_setting_and_no_secret(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('database_url = "postgresql://ada:hush@db/x"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hush")
    for form in ([], ["--json"]):
        shown = run("config", "--explain", "--config", file, *form)
        assert "hush" not in shown.out + shown.err
        assert "********" in shown.out
        assert "OPENAI_API_KEY" in shown.out
        assert "persona" in shown.out
    said = run("config", "set", "database_url", "postgresql://x:hush@y/z", "--config", file)
    assert said.status == 0
    assert "hush" not in said.out + said.err
    assert "x:hush@y" in file.read_text()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["get", "personna"], "did you mean persona?"),
        (["set", "recall_limit", "300"], "recall_limit: Input should be less than or equal to"),
        (["set", "mcp", "x.json"], "may not stand in a data folder's own file"),
        (["set", "persona"], "config set NAME VALUE"),
        (["unset", "persona"], "there is no settings file"),
        (["--set", "persona"], "--set 'persona': NAME=VALUE is meant"),
    ],
)
def test_what_is_wrong_is_one_line_and_writes_nothing(
    run: Run, data: Path, args: list[str], told: str
) -> None:
    done = run("config", *args)
    assert (done.status, told in done.error) == (2, True)
    assert not data.exists()


def test_a_wrong_line_stops_every_command_and_config_unset_removes_it(run: Run, data: Path) -> None:
    data.mkdir()
    (data / "circadian.toml").write_text('personna = "x"\n')
    sent = run("send", "Hello")
    assert (sent.status, "personna" in sent.error) == (2, True)
    assert run("config", "unset", "personna").status == 0
    assert (data / "circadian.toml").read_text() == ""


def test_commands_heed_the_file_and_the_options(run: Run) -> None:
    run("config", "set", "user_prompt", "Answer in Latin.")
    run("config", "set", "model", "offline")
    run("config", "set", "embedder", "offline")
    assert run("send", "Hello").status == 0
    shown = run("prompt", "--json").document
    assert shown["user_prompt"] == "Answer in Latin."
    front = ("--set", "user_prompt=Be brief.", "prompt", "--json")
    assert run(*front).document["user_prompt"] == "Be brief."
