"""Where settings come from: the order of the places, and one clear error for what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from graph.agent import open_agent
from memory.errors import InputError
from memory.runtime import process_resources, settings_of
from memory.settings import Settings, SettingSource, configured, edited
from tests.support.settings_table import PAGE, with_table


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


def write(data: Path, text: str) -> Path:
    file = data / "circadian.toml"
    file.write_text(text, errors="surrogateescape")
    return file


def test_option_before_environment_before_file_before_default(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(data, 'persona = "file"\nuser_prompt = "file"\nmodel = "file"\nrecall_limit = 3\n')
    monkeypatch.setenv("CIRCADIAN_USER_PROMPT", "variable")
    monkeypatch.setenv("CIRCADIAN_MODEL", "variable")
    monkeypatch.setenv("CIRCADIAN_OWNERS", "ada, ben")
    found = configured(data, options={"model": "option", "recall_limit": None})
    assert (found.settings.persona, found.settings.user_prompt) == ("file", "variable")
    assert (found.deployment.model, found.settings.recall_limit) == ("option", 3)
    assert found.settings.owners == ["ada", "ben"]
    names = ("enabled", "persona", "user_prompt", "model")
    assert [found.origin(name).source for name in names] == list(SettingSource)
    assert found.origin("user_prompt").place == "CIRCADIAN_USER_PROMPT"


def test_another_file_is_named_by_argument_or_variable(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(data, "recall_limit = 3\n")
    other = tmp_path / "other.toml"
    other.write_text('recall_limit = 4\nfolder = "notes"\nextensions = "mine"\n')
    monkeypatch.setenv("CIRCADIAN_CONFIG", str(other))
    assert configured(data).settings.recall_limit == 4
    monkeypatch.delenv("CIRCADIAN_CONFIG")
    found = configured(data, file=other)
    assert found.settings.recall_limit == 4
    assert found.deployment.folder == tmp_path / "notes"  # relative to the file
    with pytest.raises(InputError, match=r"there is no settings file .*nowhere\.toml"):
        configured(data, file=tmp_path / "nowhere.toml")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('personna = "x"', "there is no setting 'personna'; did you mean persona?"),
        ("recall-limit = 3", "did you mean recall_limit?"),
        ('openai_api_key = "sk-1"', "export OPENAI_API_KEY=..."),
        ("recall_limit = 300", "recall_limit: Input should be less than or equal to 100"),
        ('owners = ["ada", 3]', "owners[1]: Input should be a valid string"),
        ('time_zone = "Mars"', "time_zone: no time zone is called 'Mars'"),
        ("tick_rate = nan", "tick_rate: Input should be a finite number"),
        ("lock_timeout = -5", "lock_timeout: Input should be greater than or equal to 0"),
        ('extensions = "evil"', "extensions may not stand in a data folder's own file"),
        ("dangerous_requires_confirm = false", "may not stand in a data folder's own file"),
        ("persona = ", "not TOML: Invalid value (at end of document)"),
        ("[settings]\nenabled = false", "there is no setting 'settings'"),
        ("#" * 1_000_001, "this is not a settings file"),
        ("\udcff", "not UTF-8 text"),
    ],
)
def test_what_is_wrong_in_a_file_is_one_error_with_key_and_file(
    data: Path, text: str, told: str
) -> None:
    file = write(data, text)
    with pytest.raises(InputError) as refused:
        configured(data)
    assert str(refused.value).startswith(f"{file}: ")
    assert told in str(refused.value)


def test_what_is_wrong_in_a_variable_or_an_option_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="--set recall_limit: Input should be a valid integer"):
        configured(options={"recall_limit": "many"})
    monkeypatch.setenv("CIRCADIAN_LOCK_TIMEOUT", "nan")
    with pytest.raises(InputError, match="CIRCADIAN_LOCK_TIMEOUT: Input should be"):
        configured()


def test_words_become_lists_tables_and_none(data: Path) -> None:
    said: dict[str, Any] = {
        "owners": '["a, b"]',
        "names": "x,y",
        "channels": "kitchen=context, hall=ignore",
        "earlier_history_tokens": "none",
    }
    settings = configured(data, options=said).settings
    assert (settings.owners, settings.names) == (["a, b"], ["x", "y"])
    assert settings.channels == {"kitchen": "context", "hall": "ignore"}
    assert settings.earlier_history_tokens is None


def test_an_edit_keeps_comments_and_the_rest(data: Path) -> None:
    before = (
        '# Who it is.\npersona = "x"  # brief\n\nrecall_limit = 3\n\n[channels]\nhall = "act"\n'
    )
    file = write(data, before)
    file.chmod(0o640)
    assert edited(file, "recall_limit", 4)
    assert edited(file, "time_zone", "Asia/Tokyo")
    assert not edited(file, "recall_limit", 4)
    found = configured(data).settings
    assert (found.recall_limit, found.time_zone) == (4, "Asia/Tokyo")
    assert edited(file, "time_zone")
    assert file.read_text() == before.replace("= 3", "= 4")
    assert file.stat().st_mode & 0o777 == 0o640
    assert [path.name for path in data.iterdir()] == ["circadian.toml"]


async def test_an_agent_opened_from_python_reads_its_folder_unless_settings_are_given(
    data: Path,
) -> None:
    write(data, 'persona = "Miso"\nagent = "garden"\nembedder = "offline"\nmodel = "offline"\n')
    async with open_agent(data) as agent:
        assert (agent.settings.persona, agent.context.name) == ("Miso", "garden")
    async with open_agent(data, settings=Settings(), model="offline") as agent:
        assert agent.settings == Settings()
        assert agent.context.name == "default"


async def test_on_a_server_the_operator_s_file_counts_and_a_context_goes_before_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CIRCADIAN_DATA", str(data))
    write(data, 'persona = "the operator"\nrecall_limit = 4\nmodel = "offline"\n')
    assert settings_of(None) == Settings()
    async with process_resources():
        assert settings_of(None).persona == "the operator"
        context = settings_of(Settings(persona="the context"))
        assert (context.persona, context.recall_limit) == ("the context", 4)
        assert settings_of({"recall_limit": 5}).recall_limit == 5
    assert settings_of(None) == Settings()


def test_the_page_lists_every_setting_as_it_is() -> None:
    text = PAGE.read_text()
    assert with_table(text) == text
    assert "| `persona` |" in text
