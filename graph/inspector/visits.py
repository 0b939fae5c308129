"""A visit: one request of a person about one agent, and what every page needs to answer it.

First comes the environment in which every template is rendered.

Here is also the long work that a page starts: a preview, its application, a run after an answer.
Such a job lives in the inspector's process. It changes memory as safely as the command line does:
the agent's next run takes up a job that was cut off.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, timedelta, tzinfo
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol, cast
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from graph.console import clean, counted, short_id
from graph.documents import Paging
from graph.following import Listener
from graph.following import progress as night_progress
from graph.use_cases import COUNTED, NIGHT_STATUS, AgentContext, Forgotten, would_forget
from memory.errors import BusyError, CircadianError, InputError
from memory.forgetting import ForgetTarget
from memory.night import NightEvent
from memory.records import LOCAL_USER, NightRecord, Scope
from memory.storage import count_items
from memory.text import local, shortened, terms, zone_name

HERE = Path(__file__).parent
STATIC = HERE / "static"

TIMES = {
    "when": "{at.day} {at:%b %Y %H:%M}",
    "day": "{at.day} {at:%b %Y}",
    "clock": "{at:%H:%M:%S}",
}
"""How times are shown, by the name that templates use."""


@cache
def environment() -> Environment:
    """The templates. Everything is escaped, and control characters are left out."""
    made = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_cleaned,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": "{:,}".format,
        "counted": counted,
        "marked": marked,
        "short_id": short_id,
        "short": shortened,
        "plain": lambda name: name.replace("_", " "),
        "capital": lambda text: text[:1].upper() + text[1:],
        "tojson_plain": partial(json.dumps, ensure_ascii=False, indent=1, default=str),
        "percent": percent,
    }
    made.globals |= {"counted_kinds": COUNTED, "night_status": NIGHT_STATUS}
    return made


def render(template: str, zone: tzinfo = UTC, **values: Any) -> str:
    """A page as HTML; times are shown in `zone`."""
    clocks = {name: partial(_time, zone, form) for name, form in TIMES.items()}
    return environment().get_template(template).render(**clocks, **values)


def _cleaned(value: Any) -> Any:
    """The value without control characters, which could disturb the text around them."""
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    return type(value)(clean(value))  # A text that a template joined with a macro is Markup.


def _time(zone: tzinfo, form: str, at: str | None) -> Markup:
    """A time in a `time` element, with its exact value for machines; empty for None."""
    if not at:
        return Markup("")
    moment = local(at, zone)
    element = Markup('<time datetime="{}">{}</time>')
    return element.format(moment.isoformat(), form.format(at=moment))


def marked(text: str, query: str) -> Markup:
    """A text; the words that it shares with a query stand in `mark` elements."""
    wanted, mark = {*terms(query)}, Markup("<mark>{}</mark>")
    words = re.split(r"(\W+)", clean(text))
    return Markup("").join(mark.format(one) if wanted & {*terms(one)} else one for one in words)


def day_of(at: str, zone: tzinfo) -> str:
    """The day of a time, as a form's date: `2026-05-02`."""
    return local(at, zone).date().isoformat()


def percent(part: float, whole: float) -> float:
    """A share in percent, from 0 to 100; 0 if `whole` is 0."""
    return round(min(100.0, max(0.0, 100 * part / whole)), 1) if whole else 0.0


def link(base: str, parts: Sequence[object], query: Mapping[str, Any]) -> str:
    """A path below `base`, each part one segment; empty values of the query are left out."""
    path = "/".join([base, *(quote(str(part), safe="@:+-_") for part in parts)])
    kept = {key: value for key, value in query.items() if value not in (None, "", False)}
    return f"{path}?{urlencode(kept)}" if kept else path


# Long work that a page started


Tell = Callable[[str], None]
"""Shows a line to the person who waits."""

Work = Callable[[Tell], Coroutine[Any, Any, tuple[str, ...]]]
"""The work; returns the parts of the address that shows its result."""

SMALL = 500
"""Facts and entries of a memory that a page reads as a whole."""

FRESH = timedelta(minutes=1)
"""How long what a job found counts as current, as memory may change."""


class NightProgress(Listener):
    """Reports each step of a night."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    def on_night(self, event: NightEvent) -> None:
        """A step begins, goes on or has ended."""
        self._tell(night_progress(event))


@dataclass
class BackgroundJob:
    """One piece of long work."""

    title: str
    lines: list[str] = field(default_factory=list)
    error: str | None = None
    result: tuple[str, ...] | None = None
    """Parts of the address that shows the result."""
    found: Any = None
    """What that page shows, once."""
    ended: bool = False
    task: asyncio.Task[None] | None = None

    async def run(self, work: Work) -> None:
        """Do the work, and keep its result or error."""
        try:
            self.result = await work(self.tell)
        except BusyError as error:
            self.error = f"The agent is busy: {error}"
        except CircadianError as error:
            self.error = error.without_commands
        finally:
            self.ended = True
            if self.error is None and self.result is None:
                self.error = "The work was cut off; the agent's next run takes it up."

    def tell(self, line: str) -> None:
        """Add a line; it replaces the last line if both are about the same step."""
        last, step = (one.partition(":")[0] for one in ("".join(self.lines[-1:]), line))
        kept = self.lines[:-1] if last == step else self.lines
        self.lines = [*kept, line]


class BackgroundJobs:
    """The newest job of each agent."""

    def __init__(self) -> None:
        self._jobs: dict[Scope, BackgroundJob] = {}

    def current(self, owner: Scope) -> BackgroundJob | None:
        """The running job, or the last one that ended."""
        return self._jobs.get(owner)

    def refuse_while_busy(self, owner: Scope) -> None:
        """Raise BusyError while a job runs: it holds the agent, and a change would have to wait."""
        job = self._jobs.get(owner)
        if job is not None and not job.ended:
            raise BusyError(f"{job.title} is still going on: wait for its end")

    def start(self, owner: Scope, title: str, work: Work) -> BackgroundJob:
        """Start a job. Raises BusyError while another job runs."""
        self.refuse_while_busy(owner)
        job = BackgroundJob(title)
        job.task = asyncio.create_task(job.run(work))
        self._jobs[owner] = job
        return job

    async def stop(self) -> None:
        """Cancel the running jobs, and wait for their end."""
        tasks = [job.task for job in self._jobs.values() if job.task and not job.ended]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


# Visits


LONGEST_FORM = 64 * 1024
"""Most bytes of a submitted form."""

LARGEST_PAGE = 100_000
"""The last page of a list that can be asked for."""


class Host(Protocol):
    """Where the agents are: a data folder on this machine, or a server with its users."""

    jobs: BackgroundJobs
    can_sign_out: bool

    async def context(self, request: Request, agent: str) -> AgentContext:
        """The agent of this name, one of `agents`."""

    async def agents(self, request: Request) -> list[str]:
        """Names of the agents that the request may see, the usual one first."""

    def model(self) -> str:
        """The name of the chat model that is used here."""

    async def go_on(self, visit: Visit) -> int | None:
        """Let the agent go on after a person's answer; returns the last tick that ended."""

    async def preview(self, visit: Visit, tell: Tell) -> str | None:
        """Think a night through without applying it; its id, or None if there is nothing to do."""

    async def apply(self, visit: Visit, night: str, tell: Tell) -> None:
        """Apply a preview, or a night that was held back."""

    async def forgotten(self, visit: Visit) -> None:
        """Renew copies of the agent's state after something was forgotten."""


@dataclass(frozen=True)
class Visit:
    """One request about one agent."""

    request: Request
    host: Host
    agent: str
    context: AgentContext
    agents: tuple[str, ...] = ()

    @property
    def root(self) -> str:
        """The path under which the inspector stands."""
        return root_of(self.request)

    @property
    def zone(self) -> tzinfo:
        """The zone in which times are shown."""
        return self.context.settings.zone

    @property
    def zone_name(self) -> str:
        """The name of that zone."""
        return zone_name(self.zone)

    def url(self, /, *parts: object, **query: Any) -> str:
        """The address of a page of this agent."""
        return link(self.root, [segment(self.agent), *parts], query)

    def other(self, agent: str) -> str:
        """The first page of another agent."""
        return link(self.root, [segment(agent), "today"], {})

    @property
    def sign_out(self) -> str:
        """The address that ends this browser's visits."""
        return f"{self.root}/sign-out"

    def asked(self, name: str, most: int = 1_000) -> str:
        """A query parameter, without blanks at its ends; empty if it is missing."""
        return self.request.query_params.get(name, "").strip()[:most]

    def asked_name(self, name: str) -> str:
        """Somebody's name in the address; pages call the local user `you`."""
        return LOCAL_USER if (given := self.asked(name)).lower() == "you" else given

    def paging(self, size: int) -> Paging:
        """The page of a list that the address names, else the first. Raises InputError."""
        given = self.asked("page") or "1"
        if not given.isdecimal() or not 0 < int(given) <= LARGEST_PAGE:
            raise InputError(f"page: a number from 1, not {given!r:.40}")
        return Paging(size, (int(given) - 1) * size)

    def named(self, name: str) -> str:
        """A parameter of the path."""
        return str(self.request.path_params[name])

    async def form(self) -> dict[str, str]:
        """The fields of the form that was sent."""
        return await read_form(self.request)

    def show(self, template: str, status: int = 200, **values: Any) -> Response:
        """Render a page."""
        job = self.host.jobs.current(self.context.scope)
        text = render(
            template,
            self.zone,
            visit=self,
            url=self.url,
            static=f"{self.root}/static",
            going=job if job is not None and not job.ended else None,
            **values,
        )
        return HTMLResponse(text, status)

    def show_list(self, name: str, total: int, paging: Paging, **values: Any) -> Response:
        """Render a page of a list, with the addresses of its other pages, filters included."""
        asked = {**self.request.query_params, "done": ""}
        return self.show(
            f"{name}.html",
            total=total,
            page=paging.offset // paging.limit + 1,
            pages=max(1, -(-total // paging.limit)),
            address=lambda number: self.url(name, **asked | {"page": number}),
            **values,
        )

    async def would_forget(
        self, target: ForgetTarget, title: str, *here: str
    ) -> tuple[Forgotten, list[NightRecord]] | None:
        """What a forget would change. None: a job looks for it in a large memory.

        `here`: parts of the address that shows what the job found.
        """
        jobs, context = self.host.jobs, self.context
        job = jobs.current(context.scope)
        if job is not None and job.result == here and job.found is not None:
            (at, found), job.found = job.found, None
            if context.now() - at < FRESH:
                return cast(tuple[Forgotten, list[NightRecord]], found)
        entries = await count_items(context.store, context.scope.namespace("journal"))
        if entries + await context.semantic.count(context.scope) <= SMALL:
            return await would_forget(context, target)

        async def look(tell: Tell) -> tuple[str, ...]:
            tell("what goes is shown first, and nothing is changed")
            found = await would_forget(context, target)
            looking.found = (context.now(), found)
            return here

        looking = jobs.start(context.scope, title, look)
        return None

    def forget(
        self, title: str, erase: Callable[..., Awaitable[Forgotten]], id_: str, back: str
    ) -> Response:
        """Start the work that erases what has this id, and show it; `back`: the list after it."""

        async def work(tell: Tell) -> tuple[str, ...]:
            done = await erase(self.context, id_, on_step=tell)
            await self.host.forgotten(self)
            tell(f"forgotten: {counted(sum(done['counts'].values()), 'record')}; this is for good")
            return (back,)

        self.host.jobs.start(self.context.scope, title, work)
        return self.go("progress")

    def go(self, *parts: str, **query: Any) -> Response:
        """Send the browser to another page, after something was done."""
        return RedirectResponse(self.url(*parts, **query), 303)


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form. Not `Request.form`, which needs a package that parses uploads."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > LONGEST_FORM:
            raise HTTPException(413, "the form is too long")
    try:
        return dict(parse_qsl(body.decode(), keep_blank_values=True))
    except UnicodeDecodeError:
        raise HTTPException(400, "the form is not UTF-8 text") from None


def segment(agent: str) -> str:
    """An agent's name as one segment of a path: signs and names that mean more there are quoted.

    `link` quotes the segment once more.
    """
    meaning = "s" if agent == "static" else "/%" if agent.strip(".") else "."
    return agent.translate({ord(sign): f"%{ord(sign):02X}" for sign in meaning})


def root_of(request: Request) -> str:
    """The path under which the inspector stands; empty if it stands by itself."""
    return str(request.scope.get("root_path", "")).rstrip("/")


Handler = Callable[[Visit], Awaitable[Response]]
"""A page: answers a visit."""
