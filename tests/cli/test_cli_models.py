"""What a person sees where a model is set up wrongly, or answers as models do."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from memory.models import CUT_OFF
from tests.support import openai_server as replies
from tests.support.commandline import Done, circadian
from tests.support.openai_server import KEY, Reply, Serve, text, tool_call

Circadian = Callable[..., Done]
WRONG_KEY = replies.error(401, f"Incorrect API key provided: {KEY}")


@pytest.fixture
def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Circadian:
    """The command on one data folder, with OpenAI's client and the offline embedder."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("CIRCADIAN_OFFLINE", raising=False)

    def command(*args: str) -> Done:
        more = ("--data", str(tmp_path / "data"), "--model", "openai:m", "--embedder", "offline")
        return circadian(capsys, *args, *more)

    return command


def test_send_with_a_wrong_key_is_one_line_and_the_message_waits(
    run: Circadian, serve: Serve
) -> None:
    server = serve(*[WRONG_KEY] * 4)
    for number in range(4):
        done = run("send", f"Hello {number}")
        assert (done.status, done.out) == (1, "")
        assert f"{server.base_url} refuses the key of the model m" in done.error
        assert "set OPENAI_API_KEY" in done.error
        assert KEY not in done.err
        assert "waits" in done.error or "kept in the inbox" in done.error
        server.replies += [WRONG_KEY] * 2
    serve(*[text("I hear you.")] * 5)
    mended = run("send", "Hello again")
    assert (mended.status, "I hear you." in mended.out) == (0, True)
    now = run("status", "--json").document
    assert now["inbox"] == {"waiting": 0, "set_aside": []}
    assert not now["emergency_stop"]


def test_chat_shows_a_wrong_key_and_goes_on(
    run: Circadian, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve(WRONG_KEY, text("I hear you."), text("I hear you."))
    monkeypatch.setattr("sys.stdin", io.StringIO("Hello\nAre you there?\n"))
    done = run("chat")
    assert "set OPENAI_API_KEY" in done.err
    assert "I hear you." in done.out
    assert done.status == 0


THOUGHTS = "<think>\nShe wants the time.\n</think>\n\nIt is noon, dear Ada."
PRINTED = '```json\n{"name": "add_goal", "arguments": {"description": "x"}}\n```'


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ([text(THOUGHTS)], "It is noon, dear Ada."),
        ([text(PRINTED), text("I cannot do that.")], "I cannot do that."),
        ([text('{"a": 1}')], '{"a": 1}'),
        ([replies.refusal("I do not do that.")], "The model refused: I do not do that."),
        ([text("Once upon a", finish="length")], f"Once upon a {CUT_OFF}"),
        (
            [tool_call("add_goal", "description=x"), text("I could not set it.")],
            "I could not set it.",
        ),
    ],
    ids=["thinking", "a call as text", "JSON", "a refusal", "cut off", "malformed arguments"],
)
def test_what_is_shown_and_kept_is_the_reply_alone(
    run: Circadian, serve: Serve, script: list[Reply], shown: str
) -> None:
    serve(*script)
    done = run("send", "Hello")
    assert (done.status, done.err) == (0, "")
    words = " ".join(done.out.split())
    assert words.count(shown) == 1
    for never in ("think", "wants", "add_goal", "```"):
        assert never not in words.replace("add_goal (failed)", "")
    serve(*script)
    again = run("send", "Hello again", "--json").document
    assert again["reply"] == shown
