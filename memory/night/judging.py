"""A second look at facts that rules cannot decide: paraphrases, and facts in another language.

The rules of `memory.guards` compare numbers, days, names and negations. A fact in other words than
the entries that it cites passes them; a model is asked whether it follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from memory.errors import ModelError
from memory.guards import share
from memory.messages import TRUST_NOTE, Citation, Handles, as_data, one_line, prompt_lines
from memory.models import in_vain, is_offline
from memory.night.order import used_up
from memory.night.steps import NightContext
from memory.records import JournalEntry, Operation, Usage

PLAIN = 0.5
"""Share of a fact's words that stand in what it cites, from which the rules alone decide."""

PROMPT = f"""Below are facts, each with the entries that it was made from. Does a fact follow from
its entries alone? Another language or other words are no fault. It does not follow if it turns
somebody's claim, question, wish or plan into a fact, mixes up who or what is meant, or says more.
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


def doubtful(
    operations: Sequence[Operation], entries: Mapping[str, JournalEntry]
) -> list[Operation]:
    """The added facts that have less than half of their words from what they cite. Pure."""
    return [
        one
        for one in operations
        if one["kind"] == "add_fact" and share(one["after"]["text"], _grounds(one, entries)) < PLAIN
    ]


async def judged(
    context: NightContext, operations: Sequence[Operation], entries: Mapping[str, JournalEntry]
) -> tuple[dict[str, str], Usage]:
    """(the facts among `operations` that do not follow, by id, each with the reason; the cost).

    One call for all that are doubtful, while the night's budget lasts. Without a usable answer, and
    with the offline model, what the rules accepted stays.
    """
    nothing = dict[str, str](), Usage(llm_calls=0, tokens=0)
    settings, offline = context.settings, is_offline(context.resources.chat_model)
    if offline or not settings.judge_facts or used_up(context.plans, context.record, settings):
        return nothing
    facts = {one["id"]: one for one in doubtful(operations, entries)}
    if not facts:
        return nothing
    handles = Handles(facts)
    try:
        answer, usage = await context.ask(judging_prompt(facts, handles, entries), Verdicts)
    except ModelError as error:
        return nothing[0], in_vain(error)
    return refuted(answer, handles), usage


def judging_prompt(
    facts: Mapping[str, Operation], handles: Handles, entries: Mapping[str, JournalEntry]
) -> list[BaseMessage]:
    """Each fact by its number, and below it the entries that it cites."""
    lines = [
        line
        for id_, fact in facts.items()
        for line in (
            f"[{handles.of(id_)}] {one_line(fact['after']['text'])}",
            *(f"  from: {one_line(text)}" for text in _grounds(fact, entries)),
        )
    ]
    shown = as_data("facts", "\n".join(lines))
    return [SystemMessage(PROMPT), HumanMessage(f"{prompt_lines.FACTS}\n{shown}")]


def refuted(answer: Verdicts, handles: Handles) -> dict[str, str]:
    """The facts that do not follow, by id, with the reason. Pure.

    A verdict on what was not shown counts for nothing, and so do two that differ.
    """
    given: dict[str, list[Judgement]] = {}
    for one in answer.verdicts:
        if (id_ := handles.resolve(one.fact)) is not None:
            given.setdefault(id_, []).append(one)
    return {
        id_: f"it does not follow from what it cites: {one_line(told[0].why) or 'it says more'}"
        for id_, told in given.items()
        if not any(one.follows for one in told)
    }


def _grounds(fact: Operation, entries: Mapping[str, JournalEntry]) -> list[str]:
    """What a fact cites, each with its speaker."""
    cited = (entries[id_] for id_ in fact["after"]["source_entries"] if id_ in entries)
    return [f"{one['source_entity'] or '-'}: {one['content']}" for one in cited]
