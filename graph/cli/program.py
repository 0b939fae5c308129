"""The program `circadian`: its commands, how each is declared, and the options that all share.

Only the command that is called is imported, and nothing slow before it is known.
"""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from typer import Option
from typer.core import TyperCommand, TyperGroup

from graph.cli.exits import interrupted
from memory.errors import InputError

if TYPE_CHECKING:
    from memory.settings import Configuration, Deployment

Body = Callable[..., Coroutine[Any, Any, int]] | Callable[..., int]
"""A command: takes Options and its own arguments, returns the exit status."""

LOADED: dict[str, TyperCommand] = {}
"""The commands imported so far, by name."""


@dataclass(frozen=True)
class Options:
    """The values of the shared options."""

    data: Path | None
    """`--data` as given; `folder` is the data folder in use."""
    folder: Path
    agent: str
    model: str | None
    embedder: str | None
    json: bool
    configuration: Configuration
    """Every setting in force, these included."""
    config: Path | None
    """`--config` as given."""
    over: Mapping[str, Any]
    """The settings that options give, by name."""

    @property
    def deployment(self) -> Deployment:
        """Where and with what the agent runs."""
        return self.configuration.deployment

    @property
    def is_named(self) -> bool:
        """Whether an option or the command names the agent, and not the configuration."""
        return self.agent != self.deployment.agent or self._optional("agent")

    def command_line(self, *words: str, with_model: bool = False) -> str:
        """The command `circadian WORDS` on this agent, to be copied into a shell."""
        more = ["--data", str(self.data)] if self.data is not None else []
        more += ["--config", str(self.config)] if self.config is not None else []
        more += ["--agent", self.agent] if self.is_named else []
        if with_model and self.model and self._optional("model"):
            more += ["--model", self.model]
        return shlex.join(["circadian", *words, *more])

    def _optional(self, name: str) -> bool:
        return self.configuration.origin(name).source == "option"


def _option(kind: Any, metavar: str, help: str, **more: Any) -> Any:
    return Annotated[kind | None, Option(metavar=metavar, help=help, **more)]


def _place(given: str) -> Path:
    """An empty name is no path: it would be the current folder."""
    if not given:
        raise typer.BadParameter("it is empty")
    return Path(given)


COMMON = {
    "data": _option(
        Path, "DIR", "The data folder [CIRCADIAN_DATA, else ./.circadian].", parser=_place
    ),
    "agent": _option(str, "NAME", "The agent's name [CIRCADIAN_AGENT, else default]."),
    "model": _option(str, "NAME", "offline, openai:<model>, <provider>:<model>."),
    "embedder": _option(str, "NAME", "As --model, for embeddings; only reindex changes it."),
    "config": _option(
        Path, "FILE", "The settings file [CIRCADIAN_CONFIG, else circadian.toml in the folder]."
    ),
    "set": _option(list[str], "NAME=VALUE", "A setting for this command; repeatable."),
}

WITH_VALUE = {f"--{name}" for name in COMMON}
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]
Yes = Annotated[bool, Option("--yes", help="Erase; without --yes, only show what would go.")]


def command(
    name: str | None = None, *, json: bool = True, reads_file: bool = True
) -> Callable[[Body], Body]:
    """Declare a command: its own parameters and docstring, and the shared options.

    `reads_file`: False for a command that also works where the settings file is wrong.
    """

    def declare(body: Body) -> Body:
        def run(**given: Any) -> None:
            raise typer.Exit(_carry_out(body, given, reads_file=reads_file))

        own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]
        shared = [_keyword(key, kind, None) for key, kind in COMMON.items()]
        shared += [_keyword("json", Json, False)] if json else []
        parameters = [*own, *shared]
        run.__doc__ = body.__doc__
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # a function takes any attribute
        called = name or body.__name__
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(called)(run)
        LOADED[called] = typer.main.get_command(alone)  # type: ignore[assignment] # it has one command
        return body

    return declare


def _keyword(name: str, kind: Any, default: Any) -> inspect.Parameter:
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, place, default=default, annotation=kind)


def _carry_out(body: Body, given: dict[str, Any], *, reads_file: bool) -> int:
    try:
        import asyncio

        from graph.console import log_as, times_in

        shared = {key: given.pop(key) for key in (*COMMON, "json") if key in given}
        options = _options(shared, reads_file=reads_file)
        log_as(options.deployment)
        with times_in(options.configuration.settings.time_zone):
            result = body(options, **given)
            return result if isinstance(result, int) else asyncio.run(result)
    except KeyboardInterrupt:  # Typer would end it without a word
        return interrupted()


def _options(shared: dict[str, Any], *, reads_file: bool) -> Options:
    from memory.settings import Configuration, Settings, configured, environment_only

    data, config = shared["data"], shared["config"]
    over = {**_said(shared["set"] or []), **{name: shared[name] for name in NAMED}}
    if reads_file:
        found = configured(data, file=config, options=over)
    else:
        found = Configuration(Settings(), environment_only())
    deployment = found.deployment
    return Options(
        data=data,
        folder=(data or deployment.data).expanduser(),
        agent=deployment.agent,
        model=deployment.model,
        embedder=deployment.embedder,
        json=shared.get("json", False),
        configuration=found,
        config=config,
        over=over,
    )


def configuration_of(options: Options) -> Configuration:
    """The settings in force, for a command that does not read the file at once. Blocking."""
    from memory.settings import configured

    return configured(options.data, file=options.config, options=options.over)


NAMED = ("agent", "model", "embedder")
"""Settings with an option of their own; `--data` is the place that they are read from."""


def _said(words: Sequence[str]) -> dict[str, str]:
    """`--set NAME=VALUE`, by name."""
    from memory.settings import known_name

    said = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise InputError(f"--set {word!r:.80}: NAME=VALUE is meant, as in time_zone=Asia/Tokyo")
        if name == "data":
            raise InputError("--set data: --data DIR names the data folder")
        said[known_name(name.strip(), "--set")] = value
    return said


class CommandEntry(NamedTuple):
    """A command: its module in `graph.cli.commands`, and its line in `circadian --help`."""

    module: str
    help: str


COMMANDS = {
    "demo": CommandEntry("replay", "Play the built-in story: three days, two nights, a restart."),
    "chat": CommandEntry("chat", "Talk with the agent. Ctrl-D leaves."),
    "send": CommandEntry("requests", "Send a message and print the reply."),
    "replay": CommandEntry("replay", "Replay a file of events and requests."),
    "run": CommandEntry("run", "Run on its own: answer, work on goals, sleep at its hour."),
    "tick": CommandEntry("requests", "Take one step on the goals, or on what is pending."),
    "sleep": CommandEntry("requests", "Sleep for a night and print its report."),
    "wake": CommandEntry("requests", "Wake the agent."),
    "stop": CommandEntry("requests", "Set the emergency stop: events wait until it is cleared."),
    "clear-stop": CommandEntry("requests", "Clear the emergency stop."),
    "approve": CommandEntry("chat", "Answer a question with yes: its tool runs."),
    "refuse": CommandEntry("chat", "Answer a question with no: its tool does not run."),
    "retry": CommandEntry("requests", "Put events that were set aside back into the inbox."),
    "recall": CommandEntry("memory", "Search long-term memory, or look through it."),
    "correct": CommandEntry("memory", "Replace a fact that is wrong with what is true."),
    "forget": CommandEntry("memory", "Erase a person, a thing, a fact or a journal entry."),
    "export": CommandEntry("memory", "Write the agent's whole memory as JSON Lines."),
    "import": CommandEntry("memory", "Take in an exported memory."),
    "reindex": CommandEntry("memory", "Make missing vectors, or all with a new --embedder."),
    "nights": CommandEntry("requests", "List the nights, oldest first."),
    "night": CommandEntry("requests", "Show what a night did, step by step."),
    "undo": CommandEntry("requests", "Restore memory as it was before a night."),
    "agents": CommandEntry("status", "List the agents with what each holds, or delete one."),
    "status": CommandEntry("status", "Show the agent at a glance, even while it runs."),
    "inspect": CommandEntry("status", "Show memory in the browser."),
    "log": CommandEntry("status", "Show what was done, by whom and why."),
    "prompt": CommandEntry("status", "Show the user's prompt, the agent's own and its versions."),
    "config": CommandEntry("config", "Show the settings, or change them in the settings file."),
    "doctor": CommandEntry("doctor", "Check the installation, the data folder and the model."),
    "schedule": CommandEntry("server", "Let an agent tick and sleep on a server by itself."),
    "token": CommandEntry("server", "Make a signed token for a user of a server."),
}
"""Every command, in the order of `--help`. A test compares the lines with the docstrings."""


class LazyGroup(TyperGroup):
    """Knows every command by name and help line; imports a command when it is called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = {name: TyperCommand(name, help=COMMANDS[name].help) for name in COMMANDS}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Replace the command's stand-in by the command itself."""
        name, _, rest = super().resolve_command(ctx, args)
        assert name is not None
        return name, load(name), rest


def load(name: str) -> TyperCommand:
    """Import the command `name`."""
    try:
        import_module(f"graph.cli.commands.{COMMANDS[name].module}")
        return LOADED[name]
    except KeyboardInterrupt:  # Typer would end it without a word
        raise typer.Exit(interrupted()) from None


PURPOSE = "A long-running assistant: awake it acts, asleep it remembers."

SHARED = """\b
Options of every command, before or after its name:
  --data DIR       The data folder.
  --agent NAME     The agent's name; `circadian agents` lists them.
  --model NAME     The model; --embedder NAME for embeddings.
  --config FILE    The settings file; --set NAME=VALUE for one setting.
  --json           Print one JSON document."""

program = typer.Typer(
    cls=LazyGroup,
    name="circadian",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


@program.callback(invoke_without_command=True, help=f"{PURPOSE}\n\n{SHARED}")
def circadian(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Print the version or the help where no command is named."""
    if version:
        from importlib.metadata import version as version_of

        typer.echo(f"circadian {version_of('circadian-agent')}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def shared_options_last(args: Sequence[str]) -> list[str]:
    """Move the shared options that precede the command's name behind it, where Typer knows them."""
    front, rest = [], list(args)
    while rest and (rest[0] == "--json" or rest[0].partition("=")[0] in WITH_VALUE):
        taken = 2 if rest[0] in WITH_VALUE else 1
        front += rest[:taken]
        rest = rest[taken:]
    return [*rest[:1], *front, *rest[1:]]
