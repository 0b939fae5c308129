"""A second look of the chat model at the facts that a night made.

The rules of `memory.guards` compare numbers, days, names and negations. They pass what stands in
the entries and is put together wrongly: who does what to whom, or more than was said. They refuse
what follows by ways that no rule knows. The model decides both, but never whose words a fact is.
"""

from __future__ import annotations

from collections.abc import Mapping

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from pydantic import BaseModel, Field

from memory.errors import ModelError
from memory.messages import TRUST_NOTE, Citation, Handles, as_data, one_line, prompt_lines
from memory.models import in_vain, is_offline
from memory.night.order import entry_lines, questions_before, used_up
from memory.night.steps import NightContext
from memory.operations import PlanCollector
from memory.records import JournalEntry, Operation, Usage
from memory.settings import Settings

PROMPT = f"""Below are journal entries, with time and speaker, and facts that were made from them.
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

    One call for all, while the night's budget lasts. Without a usable answer, and with the offline
    model, the rules decide.
    """
    facts = {one["id"]: one for one in collector.new if one["kind"] == "add_fact"}
    by_rules = {id_: why for id_, why in (collector.doubts or {}).items() if id_ in facts}
    settings, offline = context.settings, is_offline(context.resources.chat_model)
    over = used_up(context.plans, context.record, settings)
    if not facts or offline or over or not settings.judge_facts:
        return by_rules, Usage(llm_calls=0, tokens=0)
    handles, asked = Handles(facts), questions_before(context.state["messages"])
    prompt = judging_prompt(facts, handles, collector.shown or {}, settings, asked)
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
) -> list[BaseMessage]:
    """The entries that facts cite, and each fact by its number with those of its entries. Pure.

    `asked`: the assistant's questions that entries answer, by the event that an entry is from.
    """
    numbered = Handles(entries)
    sources = {
        id_: [*filter(entries.get, fact["after"]["source_entries"])] for id_, fact in facts.items()
    }
    cited = [entry for id_, entry in entries.items() if any(id_ in ids for ids in sources.values())]
    made = "\n".join(
        prompt_lines.derived_line(
            handles.of(id_), fact["after"]["text"], map(numbered.of, sources[id_])
        )
        for id_, fact in facts.items()
    )
    shown = prompt_lines.entries_message(entry_lines(cited, numbered, settings, asked))
    return [
        SystemMessage(PROMPT),
        HumanMessage(f"{shown}\n{prompt_lines.FACTS}\n{as_data('facts', made)}"),
    ]


def refuted(
    answer: Verdicts, handles: Handles, doubts: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The facts that are not kept, by id, with the reason. Pure.

    A verdict on what was not shown counts for nothing, and so do two that differ: then the rules
    decide, whose `doubts` a verdict overrules.
    """
    given: dict[str, list[Judgement]] = {}
    for verdict in answer.verdicts:
        if (id_ := handles.resolve(verdict.fact)) is not None:
            given.setdefault(id_, []).append(verdict)
    follows = {id_ for id_, told in given.items() if all(one.follows for one in told)}
    return {
        id_: f"it does not follow from what it cites: {one_line(told[0].why) or 'it says more'}"
        for id_, told in given.items()
        if not any(one.follows for one in told)
    } | {id_: why for id_, why in (doubts or {}).items() if id_ not in follows}
