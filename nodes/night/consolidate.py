"""Make journal entries into facts, batch by batch, in a loop of model answers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)
from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from pydantic import BaseModel, Field, TypeAdapter

from memory import entities
from memory.errors import CircuitOpen, ContextOverflow, ModelError
from memory.guards import share
from memory.messages import (
    TRUST_NOTE,
    Citation,
    Citations,
    Handles,
    as_data,
    as_model_sees,
    prompt_lines,
)
from memory.models import in_vain, is_offline, total
from memory.night import (
    NAMED_BY,
    Job,
    NightContext,
    Plans,
    Thought,
    allowed,
    entry_lines,
    known_facts,
    may_ask_again,
    night_in_hand,
    plan_batches,
    questions_before,
    to_consolidate,
    used_up,
)
from memory.operations import PlanCollector, with_collector
from memory.prompt import assembly
from memory.records import (
    AssembledContext,
    JournalEntry,
    Operation,
    PlanRecord,
    Usage,
    link,
    mark_entry,
    names_from,
)
from memory.settings import Settings
from memory.state import State, checked
from memory.text import one_line, shortened
from tools.execution import execute, storable
from tools.policy import CONTEXTS, material, select_execution_pattern
from tools.registry import tools_for

CONTEXT = CONTEXTS["sleep_consolidate"]

TRIES = 2
"""Answers in which an entry's facts may be rejected before another night takes the entry."""

ANY_ENTRY = ""
"""In place of an entry's id: the rejected fact may be about any entry of the batch."""

NUDGE = f"{prompt_lines.SETTLE} for what is worth keeping, or noop if nothing in the rest is."

NOTHING = "the model found nothing in it to keep"

LEAST_SHARE = 0.3
"""Least share (0..1) of a rejected fact's words that an entry has, for the fact to be about it."""


@checked
async def consolidate(
    state: State, runtime: Runtime[Settings], config: RunnableConfig
) -> dict[str, Any]:
    """Go on with the loop over the batch in hand, or begin the next one.

    An entry is marked consolidated when a fact cites it, or when the model said with `noop` that
    nothing in the rest is worth keeping. Everything else stays pending.
    """
    context = await night_in_hand(state, runtime, config)
    settings = context.settings

    async def next_jobs() -> list[Job]:
        batch = to_consolidate(
            context.plans,
            min_importance=settings.min_importance,
            size=settings.consolidate_batch_size,
            tokens=settings.night_batch_tokens,
            owners=context.owners,
        )
        ids = [entry["id"] for entry in batch]
        turns = [plan for plan in context.plans.of("consolidate") if plan["inputs"] == ids]
        return [Job(ids, partial(_turn, context, batch, turns), len(turns))] if batch else []

    return {"night": await plan_batches(context, "consolidate", next_jobs)}


async def _turn(
    context: NightContext, batch: list[JournalEntry], turns: list[PlanRecord]
) -> Thought:
    """Ask once, run the tools that were called, and see whether the batch is settled."""
    settings = context.settings
    pattern = select_execution_pattern(settings, CONTEXT)
    tools = tools_for(CONTEXT, pattern, ())
    before = messages_from_dict(turns[-1]["exchange"]) if turns else []
    exchange = cast(list[AnyMessage], before) or await _opening(context, batch)
    try:
        answer = await context.resources.ask(
            as_model_sees(exchange), settings, context.config, tools=tools
        )
    except ModelError as error:
        if not turns:
            raise
        return _broken_off(context, batch, turns, error)
    cited = [_cited(turn["operations"]) for turn in turns]
    if turns and standing_of(exchange, cited, batch).mends:
        context.mending += answer.usage["llm_calls"]
    calls = [call for one in exchange if isinstance(one, AIMessage) for call in one.tool_calls]
    message = storable(answer.message, str(len(turns)), [str(call["id"]) for call in calls])
    earlier = Plans(turns).operations()
    shown = {one["id"]: one for one in batch}
    collector = PlanCollector(shown, earlier, judged=settings.judge_facts)
    state, config = _tool_state(context, exchange), with_collector(context.config, collector)
    done = await execute(message.tool_calls, tools, state, config, seconds=settings.tool_timeout)
    dropped, judging_usage = await judged(context, collector)
    new = [one for one in collector.new if one["id"] not in dropped]
    answers = [taken_back(one, message, collector.operations, dropped) for one in done.messages]
    exchange = [*exchange, message, *answers]
    stored = [*cited, _cited(new)]
    usage = total(total(answer.usage, done.usage), judging_usage)
    standing = standing_of(exchange, stored, batch)
    may_ask = _may_go_on(context, batch, usage, new, standing)
    if standing.goes_on and not (may_ask and len(turns) + 1 < pattern["max_iterations"]):
        standing = standing_of(exchange, stored, batch, last=True)
    exchange += [HumanMessage(NUDGE)] if standing.goes_on == "after a nudge" else []
    thought = Thought(
        operations=new,
        usage=usage,
        exchange=messages_to_dict(exchange),
        finished=standing.goes_on is None,
        log=context.calls_logged(done.calls),
    )
    if thought.finished:
        keep = [entry for entry in batch if entry["id"] in standing.settled]
        thought.operations += _closing([*earlier, *new], keep, context.now)
        thought.left = [entry["id"] for entry in batch if entry not in keep]
        thought.refused = standing.refused
    return thought


def _may_go_on(
    context: NightContext,
    batch: list[JournalEntry],
    usage: Usage,
    new: Sequence[Operation],
    standing: LoopStanding,
) -> bool:
    if standing.mends and not standing.refused and is_offline(context.resources.chat_model):
        return False  # The offline model has no more to say.
    return may_ask_again(
        context.plans,
        context.record,
        context.settings,
        batch,
        calls=usage["llm_calls"],
        mending=context.mending,
        facts=len(context.added_facts()) + len(_facts(new)),
        mends=standing.mends,
    )


def taken_back(
    result: ToolMessage,
    asked: AIMessage,
    operations: Sequence[Operation],
    refuted: Mapping[str, str],
) -> ToolMessage:
    """A tool's answer as if the tool had rejected the `refuted` facts, too.

    `refuted`: operation id -> why the fact does not follow; `operations`: what the tools planned.
    """
    why = {one["after"]["text"]: refuted[one["id"]] for one in operations if one["id"] in refuted}
    call = next(one for one in asked.tool_calls if one["id"] == result.tool_call_id)
    facts = call["args"].get("facts") if result.name == "store_memory" else None
    body = json.loads(str(result.content)) if why and facts else {}
    already = {one["text"] for one in body.get("rejected", ())}
    more = [
        {"text": fact["text"], "error": why[text]}
        for fact in facts or ()
        if isinstance(fact, dict)
        and (text := " ".join(str(fact.get("text")).split())) in why
        and fact["text"] not in already
    ]
    if not more or not body.get("success"):
        return result
    left = max(0, body["stored"] - len(more))
    after = {**body, "success": left > 0, "stored": left, "rejected": [*body["rejected"], *more]}
    if not left:
        after["error"] = "No fact was stored; see rejected"
    return result.model_copy(update={"content": json.dumps(after, ensure_ascii=False)})


def _broken_off(
    context: NightContext,
    batch: Sequence[JournalEntry],
    turns: Sequence[PlanRecord],
    error: ModelError,
) -> Thought:
    """The end of a loop whose model failed after earlier answers.

    The entries of the facts that these answers stored are settled: no night makes them twice.
    """
    earlier = Plans(turns).operations()
    keep = [entry for entry in batch if entry["id"] in _cited(earlier)]
    return Thought(
        operations=_closing(earlier, keep, context.now),
        left=[entry["id"] for entry in batch if entry not in keep],
        errors=[f"consolidate: {error}"],
        usage=in_vain(error),
        exchange=turns[-1]["exchange"],
        overflowed=isinstance(error, ContextOverflow),
        left_alone=isinstance(error, CircuitOpen),
    )


class Rejection(NamedTuple):
    """A fact that was not stored, or a call that failed as a whole."""

    text: str
    error: str
    entries: frozenset[str]
    """The entries that it is about; ANY_ENTRY among them if it cites what was not shown."""


class Try(NamedTuple):
    """One answer of the model: its calls, and their results."""

    tools: tuple[str, ...]
    stored: frozenset[str]
    """The entries that its stored facts cite."""
    rejected: tuple[Rejection, ...]
    unsaid: bool
    """Whether its facts leave out numbers of the entries that they cite."""


class LoopStanding(NamedTuple):
    """How the loop over a batch stands after an answer."""

    goes_on: Literal["with another answer", "to mend", "after a nudge"] | None
    settled: frozenset[str]
    """The entries that a fact cites, or that the model settled by `noop`."""
    refused: list[str]
    """Facts that were rejected and not mended, with the reasons."""

    @property
    def mends(self) -> bool:
        """Whether the next answer is to mend the newest one, while the loop goes on."""
        return self.goes_on != "with another answer"


def standing_of(
    exchange: Sequence[AnyMessage],
    stored: Sequence[set[str]],
    batch: Sequence[JournalEntry],
    *,
    last: bool = False,
) -> LoopStanding:
    """How the loop stands. Pure.

    A rejected fact may be mended in the next answer. If none may follow, all entries of the fact
    stay pending, even those that another fact cites: the model was not told why. Entries of which
    no fact is stored stay pending after TRIES answers, whatever else the model says. `noop` settles
    all entries but those of facts that are rejected then or later and not mended. An answer without
    a tool call settles nothing: a refusal or chatter must not mark work as done. The model is asked
    once for numbers that its first answer leaves out.

    `stored`: for each answer in `exchange`, the entries that its facts cite; `batch`: the entries
    as they were shown; `last`: no other answer may follow.
    """
    tries = tries_of(exchange, stored, batch)
    newest, rejections = tries[-1], Counter(key for one in tries for key in _about(one.rejected))
    used_up = {key for key, times in rejections.items() if times >= TRIES}
    closed = {*rejections} if last else used_up
    every = frozenset(entry["id"] for entry in batch)
    cited = frozenset[str]().union(*(one.stored for one in tries)) & every
    mendable = _about(newest.rejected) - used_up
    pending = (closed - cited) | mendable
    settled = (cited | _waived(tries, every)) - pending
    unmended = ((shortened(one.text, NAMED_BY), one.error) for one in _not_mended(tries))
    refused = [f"not stored: {text} ({error})" for text, error in unmended]
    if not last and (mendable or (newest.unsaid and tries == [newest])):
        return LoopStanding("to mend", settled, refused)
    stuck = bool(newest.rejected) and not newest.stored
    if "noop" in newest.tools or stuck or last or every <= settled | closed:
        return LoopStanding(None, settled, refused)
    if newest.tools:
        return LoopStanding("with another answer", settled, refused)
    nudged = sum(isinstance(message, HumanMessage) for message in exchange) > 1
    return LoopStanding(None if nudged else "after a nudge", settled, refused)


def _waived(tries: Sequence[Try], every: frozenset[str]) -> frozenset[str]:
    """The entries that the model settled by its last `noop`."""
    noops = [place for place, one in enumerate(tries) if "noop" in one.tools]
    refused = _about(_not_mended(tries[noops[-1] :])) if noops else frozenset({ANY_ENTRY})
    return frozenset() if ANY_ENTRY in refused else every - refused


def _about(rejected: Iterable[Rejection]) -> frozenset[str]:
    return frozenset[str]().union(*(one.entries for one in rejected))


def tries_of(
    exchange: Sequence[AnyMessage], stored: Sequence[set[str]], batch: Sequence[JournalEntry]
) -> list[Try]:
    """The answers of a loop, in order. `stored`, `batch`: see `standing_of`."""
    results = {
        message.tool_call_id: json.loads(str(message.content))
        for message in exchange
        if isinstance(message, ToolMessage)
    }
    answers = [message for message in exchange if isinstance(message, AIMessage)]
    return [
        Try(
            tuple(call["name"] for call in answer.tool_calls),
            frozenset(cited),
            tuple(
                rejection
                for call in answer.tool_calls
                for rejection in _rejections(call, results[str(call["id"])], batch)
            ),
            any(results[str(call["id"])].get("unsaid") for call in answer.tool_calls),
        )
        for answer, cited in zip(answers, stored, strict=True)
    ]


def _rejections(
    call: ToolCall, result: Mapping[str, Any], batch: Sequence[JournalEntry]
) -> Iterator[Rejection]:
    """The rejections by one call.

    A rejected fact may cite the wrong entry, so it also counts as about the entry nearest in words.
    """
    handles = Handles(entry["id"] for entry in batch)
    rejected = result.get("rejected", [])
    if not rejected and result.get("success") is False:
        yield Rejection(call["name"], str(result.get("error")), frozenset({ANY_ENTRY}))
    for refused in rejected:
        given = [fact for fact in call["args"]["facts"] if fact.get("text") == refused["text"]]
        named = TypeAdapter(Citations).validate_python(
            [id_ for fact in given for id_ in fact.get("source_ids") or ()]
        )
        cited = {handles.resolve(id_) or ANY_ENTRY for id_ in named}
        ids = cited | _nearest(refused["text"], batch)
        yield Rejection(refused["text"], refused["error"], frozenset(ids or {ANY_ENTRY}))


def _nearest(text: str, batch: Sequence[JournalEntry]) -> set[str]:
    """The entry that shares most words with a text, if it has enough of them."""
    shares = {entry["id"]: share(text, [entry["content"]]) for entry in batch}
    best = max(shares, key=shares.__getitem__, default="")
    return {best} if shares.get(best, 0.0) >= LEAST_SHARE else set()


def _not_mended(tries: Sequence[Try]) -> list[Rejection]:
    """The newest rejections from whose entries no later answer made a fact."""
    found = dict[frozenset[str], list[Rejection]]()
    for attempt in tries:
        again = {rejection.entries for rejection in attempt.rejected}
        found = {
            ids: known
            for ids, known in found.items()
            if ids not in again and not (attempt.stored and ids - {ANY_ENTRY} <= attempt.stored)
        }
        for rejection in attempt.rejected:
            found.setdefault(rejection.entries, []).append(rejection)
    return [rejection for known in found.values() for rejection in known]


async def _opening(context: NightContext, batch: list[JournalEntry]) -> list[AnyMessage]:
    """The prompt: the context's own system prompt, facts of the batch and near it, the batch."""
    settings = context.settings
    made = material(
        context.state,
        settings,
        context.resources,
        CONTEXT.context_type,
        now=context.now,
        memories=await known_facts(context, batch),
    )
    handles = Handles(entry["id"] for entry in batch)
    lines = entry_lines(batch, handles, settings, questions_before(context.state["messages"]))
    return [
        SystemMessage(assembly.system_message(assembly.blocks(made))),
        HumanMessage(prompt_lines.entries_message(lines)),
    ]


def _tool_state(context: NightContext, exchange: list[AnyMessage]) -> State:
    """The state as the loop's tools see it: no event in hand, and the night's own time."""
    assembled: AssembledContext = {
        "context_type": CONTEXT.context_type,
        "now": context.now,
        "system": "",
        "tokens": {},
    }
    return {
        **context.state,
        "event": None,
        "loop": None,
        "context": assembled,
        "exchange": exchange,
    }


def _closing(
    operations: Sequence[Operation], keep: list[JournalEntry], created: str
) -> list[Operation]:
    """Links from every fact of the loop to its entries, then the marks of the settled entries."""
    cited = _cited(operations)
    links = [
        link(entry_id, fact["id"], created, "made from this entry")
        for fact in _facts(operations)
        for entry_id in fact["after"]["source_entries"]
    ]
    marks = [
        mark_entry(entry, "consolidated", "made into facts" if entry["id"] in cited else NOTHING)
        for entry in keep
    ]
    return [*links, *marks]


def _cited(operations: Sequence[Operation]) -> set[str]:
    return {id_ for fact in _facts(operations) for id_ in fact["after"]["source_entries"]}


def _facts(operations: Sequence[Operation]) -> list[Operation]:
    return [operation for operation in operations if operation["kind"] == "add_fact"]


# The chat model checks the facts that a night made.
#
# The rules of `memory.guards` compare numbers, days, names and negations. They pass facts that put
# the words of the entries together wrongly (who does what to whom), and refuse facts that follow in
# a way that no rule knows. The model decides both, but never who the speaker of a fact is.

JUDGE = f"""Below are journal entries, with time and speaker, and facts that were made from them.
Does each fact follow from the entries that it names, and from them alone?

These are no faults: other words or another language; fewer details; a day counted from an entry's
own ("tomorrow"); a sum, a difference or a share worked out from its numbers.

A fact does not follow if
- a number, a day, a name or a thing is another one, or belongs to another person or thing;
- it mixes up who does what to whom, or whose words they are;
- a "not" is lost or added, or what is over is told as if it held;
- it tells as done or certain what is asked, wished, planned, considered, required or doubted;
- it tells as true what somebody says of another without saying whose claim it is;
- it says more than the entries do: a reason, a feeling, a detail, a generalisation.

Give for every fact its number, whether it follows, and if not, why, in a few words.
{TRUST_NOTE}"""


class Judgement(BaseModel):
    """Whether one fact follows from its entries."""

    fact: Citation = Field(description="The fact's number.")
    follows: bool
    why: str = Field("", description="If it does not follow: what its entries do not say.")


class Verdicts(BaseModel):
    """The verdicts on all facts shown."""

    verdicts: list[Judgement]


async def judged(context: NightContext, collector: PlanCollector) -> tuple[dict[str, str], Usage]:
    """(the new facts that are not kept, by operation id, each with the reason; the cost).

    One call for all, while the budget lasts and consolidation has not used half of it. Offline, or
    without a usable answer, the rules decide.
    """
    facts = {one["id"]: one for one in collector.new if one["kind"] == "add_fact"}
    by_rules = {id_: why for id_, why in (collector.doubts or {}).items() if id_ in facts}
    settings, offline = context.settings, is_offline(context.resources.chat_model)
    spent = sum(plan["llm_calls"] for plan in context.plans.of("consolidate"))
    half_used = 2 * spent >= allowed(context.record, settings)
    no_budget = half_used or used_up(context.plans, context.record, settings) is not None
    if not facts or offline or no_budget or not settings.judge_facts:
        return by_rules, Usage(llm_calls=0, tokens=0)
    handles, asked = Handles(facts), questions_before(context.state["messages"])
    entries = {**(collector.shown or {}), **collector.looked_up}
    texts = [one["after"]["text"] for one in facts.values()]
    _, named = await entities.look_up(context.store, context.scope, texts=texts)
    called = [names_from(one, context.owners) for some in named for one in some]
    prompt = judging_prompt(facts, handles, entries, settings, asked, called)
    try:
        answer, usage = await context.ask(prompt, Verdicts)
    except ModelError as error:
        return by_rules, in_vain(error)
    return refuted(answer, handles, by_rules), usage


def judging_prompt(
    facts: Mapping[str, Operation],
    handles: Handles,
    entries: Mapping[str, JournalEntry],
    settings: Settings,
    asked: Mapping[str, str],
    called: Iterable[Sequence[str]] = (),
) -> list[BaseMessage]:
    """The entries that facts cite, and each fact by its number with those of its entries. Pure.

    `asked`: the assistant's questions that entries answer, by the event that an entry is from;
    `called`: the names of each whom facts name.
    """
    numbered = Handles(entries)
    sources = {
        id_: [*filter(entries.get, fact["after"]["source_entries"])] for id_, fact in facts.items()
    }
    cited = [entry for id_, entry in entries.items() if any(id_ in ids for ids in sources.values())]
    lines = [
        prompt_lines.derived_line(
            handles.of(id_), fact["after"]["text"], map(numbered.of, sources[id_])
        )
        for id_, fact in facts.items()
    ]
    lines += [f"{name} is also called {', '.join(rest)}" for name, *rest in called if rest]
    made = "\n".join(dict.fromkeys(lines))
    shown = prompt_lines.entries_message(entry_lines(cited, numbered, settings, asked))
    return [
        SystemMessage(JUDGE),
        HumanMessage(f"{shown}\n{prompt_lines.FACTS}\n{as_data('facts', made)}"),
    ]


def refuted(
    answer: Verdicts, handles: Handles, doubts: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The facts that are not kept, by id, with the reason. Pure.

    Verdicts on facts that were not shown are ignored, and so are verdicts that differ. A verdict
    overrules the rules' `doubts`; without one, the doubts decide.
    """
    given: dict[str, list[Judgement]] = {}
    for verdict in answer.verdicts:
        if (id_ := handles.resolve(verdict.fact)) is not None:
            given.setdefault(id_, []).append(verdict)
    follows = {id_ for id_, verdicts in given.items() if all(one.follows for one in verdicts)}
    return {
        id_: f"it does not follow from what it cites: {one_line(verdicts[0].why) or 'it says more'}"
        for id_, verdicts in given.items()
        if not any(one.follows for one in verdicts)
    } | {id_: why for id_, why in (doubts or {}).items() if id_ not in follows}
