"""`circadian config`, `--config` and `--set`."""

from pathlib import Path

import pytest

from tests.support.commandline import Done, circadian

Capture = pytest.CaptureFixture[str]


def config(capsys: Capture, data: Path, *args: str | Path) -> Done:
    return circadian(capsys, "config", *args, "--data", data)


def test_settings_are_set_listed_and_unset(
    capsys: Capture, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = data / "circadian.toml"
    none = config(capsys, data)
    assert none.out.startswith(f"settings file {file}\nIt is not there yet")
    assert config(capsys, data, "set", "owners", "ada, local").out.startswith("set: owners is ada,")
    assert config(capsys, data, "set", "time_zone", "Asia/Tokyo").status == 0
    assert config(capsys, data, "get", "time_zone").out == "Asia/Tokyo\n"
    monkeypatch.setenv("CIRCADIAN_TIME_ZONE", "Europe/Vienna")
    again = config(capsys, data, "set", "time_zone", "Asia/Tokyo")
    assert again.out.startswith("unchanged: time_zone is Europe/Vienna")
    assert again.error == "CIRCADIAN_TIME_ZONE overrides the file"
    listed = config(capsys, data, "--set", "recall_limit=4", "--json").document
    assert listed["file"] == str(file)
    assert [(one["name"], one["source"], one["place"]) for one in listed["settings"]] == [
        ("owners", "file", str(file)),
        ("recall_limit", "option", "--set recall_limit"),
        ("time_zone", "environment", "CIRCADIAN_TIME_ZONE"),
    ]
    assert config(capsys, data, "unset", "owners").status == 0
    assert file.read_text() == 'time_zone = "Asia/Tokyo"\n'


def test_explain_has_every_setting_and_no_secret(
    capsys: Capture, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('database_url = "postgresql://ada:hush@db/x"\n')
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hush")
    for form in ([], ["--json"]):
        shown = config(capsys, data, "--explain", "--config", file, *form)
        assert "hush" not in shown.out + shown.err
        assert "********" in shown.out
        assert "OPENAI_API_KEY" in shown.out
        assert "persona" in shown.out
    said = config(capsys, data, "set", "database_url", "postgresql://x:hush@y/z", "--config", file)
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
    capsys: Capture, data: Path, args: list[str], told: str
) -> None:
    done = config(capsys, data, *args)
    assert (done.status, told in done.error) == (2, True)
    assert not data.exists()


def test_a_wrong_line_stops_every_command_and_config_unset_removes_it(
    capsys: Capture, data: Path
) -> None:
    data.mkdir()
    (data / "circadian.toml").write_text('personna = "x"\n')
    sent = circadian(capsys, "send", "Hello", "--data", data)
    assert (sent.status, "personna" in sent.error) == (2, True)
    assert config(capsys, data, "unset", "personna").status == 0
    assert (data / "circadian.toml").read_text() == ""


def test_commands_heed_the_file_and_the_options(capsys: Capture, data: Path) -> None:
    config(capsys, data, "set", "user_prompt", "Answer in Latin.")
    config(capsys, data, "set", "model", "offline")
    config(capsys, data, "set", "embedder", "offline")
    assert circadian(capsys, "send", "Hello", "--data", data).status == 0
    shown = circadian(capsys, "prompt", "--data", data, "--json").document
    assert shown["user_prompt"] == "Answer in Latin."
    front = ("--set", "user_prompt=Be brief.", "--data", data, "prompt", "--json")
    assert circadian(capsys, *front).document["user_prompt"] == "Be brief."
