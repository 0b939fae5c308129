"""How a person follows a run on the screen: a tick's words and tools, a night's steps."""

from __future__ import annotations

from rich.console import Group
from rich.live import Live
from rich.spinner import Spinner
from rich.status import Status
from rich.text import Text

from graph.cli.console import Screen, Words, clean, counted
from graph.cli.night_view import STEP_NAMES
from memory.night_stream import NightEvent
from memory.tick import ToolOutcome


class Silent:
    """Listens and shows nothing."""

    def words(self, text: str, message_id: str) -> None:
        """Words of a reply."""

    def asked(self, tools: list[str]) -> None:
        """What is at work from now on."""

    def used(self, outcomes: list[ToolOutcome]) -> None:
        """Tools that ran."""

    def night(self, event: NightEvent) -> None:
        """A step of a night."""


class Talk(Silent):
    """Shows a tick: words as they come, a line per tool, a spinner while nothing else moves."""

    def __init__(self, screen: Screen, doing: str = "thinking") -> None:
        self._screen = screen
        self._message: str | None = None
        """The answer whose words are coming."""
        self._words: Words | None = None
        self._status: Status | None = None
        self._wait(doing)

    def words(self, text: str, message_id: str) -> None:
        """Words go on in the open line; those of another answer begin a new one."""
        self._still()
        if self._message != message_id:
            self._end_line()
        self._message = message_id
        self._words = self._words or Words(self._screen)
        self._words.add(text)

    def asked(self, tools: list[str]) -> None:
        """Say what is at work."""
        self._end_line()
        self._wait(", ".join(tools))

    def used(self, outcomes: list[ToolOutcome]) -> None:
        """A line for each tool."""
        for outcome in outcomes:
            self._screen.show(tool_line(outcome))
        self._wait("thinking")

    def night(self, event: NightEvent) -> None:
        """An unfinished night goes on before anything else; one that it wished for, after it."""
        which = "first the unfinished night" if self._message is None else "asleep"
        self._end_line()
        self._wait(f"{which}: {progress(event)}")

    def end(self) -> None:
        """Leave the screen at the beginning of a line."""
        self._still()
        self._end_line()

    def _end_line(self) -> None:
        if self._words is not None:
            self._words.end()
        self._words = None

    def _wait(self, text: str) -> None:
        self._still()
        if self._screen.live:
            line = Text(clean(text), style="dim")
            self._status = self._screen.out.status(line, spinner="dots")
            self._status.start()

    def _still(self) -> None:
        if self._status is not None:
            self._status.stop()
        self._status = None


class NightWatch(Silent):
    """Shows the steps of a night while it goes on; leaves nothing behind."""

    def __init__(self, screen: Screen) -> None:
        self._screen = screen
        self._steps: dict[str, NightEvent] = {}
        self._spinner = Spinner("dots", Text("falling asleep", style="dim"))
        self._live = Live(self._spinner, console=screen.out, transient=True)

    def __enter__(self) -> NightWatch:
        if self._screen.live:
            self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def night(self, event: NightEvent) -> None:
        """A line for each step that is over, and how far the one in hand is."""
        if self._screen.live:
            self._steps[event["step"]] = event
            over = [one for one in self._steps.values() if one["event"] == "end"]
            if event["event"] != "end":
                self._spinner.update(text=Text(progress(event), style="dim"))
            self._live.update(Group(*map(step_line, over), self._spinner))


def progress(event: NightEvent) -> str:
    """`weigh what happened: 20 of 52, 2 calls`, as far as there is something to count."""
    counts = [f"{event['done']:,} of {event['of']:,}"] if event["of"] else []
    counts += [counted(event["llm_calls"], "call")] if event["llm_calls"] else []
    name = STEP_NAMES.get(event["step"], event["step"])
    return f"{name}: {', '.join(counts)}" if counts else name


def step_line(event: NightEvent) -> Text:
    """A step that is over."""
    return Text.assemble(("✓ ", "green"), (progress(event), "dim"))


def tool_line(outcome: ToolOutcome) -> Text:
    """`✓ add_goal`, or `✗ add_goal (refused)`."""
    mark, style = ("✓", "green") if outcome["ok"] else ("✗", "red")
    failed = "" if outcome["ok"] else " (failed)"
    return Text.assemble((f"  {mark} ", style), (clean(outcome["name"]) + failed, "dim"))
