"""Three days of a choir that prepares a concert, with what a good model makes of them.

Half of the events are overheard. The model answers days from `SAID`, and nights from the
annotations, so that whole prompts over three days can be looked at.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import PrivateAttr

from benchmarks.models import Sent
from benchmarks.reference_model import ReferenceModel
from memory.messages.convert import mark_of
from memory.settings import Settings
from tests.support.scripted import calls

OWNER = "Mira"
SETTINGS = Settings(
    owners=[OWNER],
    time_zone="Europe/Vienna",
    channel_privacy={"choir": "private", "website": "public"},
)
"""On the website strangers ask."""


class Said(NamedTuple):
    """An event; if it is addressed, what the assistant does and replies; the facts in it."""

    id: str
    at: str
    sender: str
    text: str
    channel: str | None = None
    addressed: bool = True
    tools: tuple[tuple[str, dict[str, Any]], ...] = ()
    reply: str = ""
    facts: tuple[str, ...] = ()


def heard(id: str, at: str, sender: str, text: str, channel: str, *facts: str) -> Said:
    """An event that is not addressed."""
    return Said(id, at, sender, text, channel, False, facts=facts)


def _remember(content: str) -> tuple[str, dict[str, Any]]:
    return "add_session_memory", {"memory_type": "fact", "content": content}


def _look(query: str) -> tuple[str, dict[str, Any]]:
    return "recall_memories", {"query": query}


D1, D2, D3 = "2026-10-05", "2026-10-06", "2026-10-07"

SAID: tuple[Said, ...] = (
    Said(
        "a01",
        f"{D1}T06:40",
        "Mira",
        "Good morning. I lead the choir Lindenhof, and we give a concert on 14 November 2026 in "
        "St. Jakob. Please set up a project for it.",
        tools=(
            (
                "create_project",
                {
                    "project_key": "concert",
                    "summary": "The choir Lindenhof's concert on 14 November 2026",
                    "context": "Place: St. Jakob. Mira leads the choir.",
                },
            ),
        ),
        reply="Good morning, Mira. The project concert is set up: Lindenhof, 14 November 2026, in "
        "St. Jakob. Tell me what is still open, and I will keep track of it.",
        facts=(
            "Mira leads the choir Lindenhof.",
            "The choir Lindenhof gives a concert on 14 November 2026 in St. Jakob.",
        ),
    ),
    Said(
        "a02",
        f"{D1}T06:52",
        "Mira",
        "Two things have to be done: the programme printed by 30 October, and 180 chairs ordered.",
        tools=(
            (
                "add_goal",
                {"description": "Print the programme by 30 October 2026", "priority": "high"},
            ),
            ("add_goal", {"description": "Order 180 chairs for the concert"}),
        ),
        reply="Both are goals now: the programme printed by 30 October, and 180 chairs ordered.",
        facts=("180 chairs have to be ordered for the concert.",),
    ),
    heard(
        "a03",
        f"{D1}T07:10",
        "Jonas",
        "The organ in St. Jakob is being repaired until 20 October.",
        "choir",
        "The organ in St. Jakob is being repaired until 20 October 2026.",
    ),
    heard("a04", f"{D1}T07:12", "Petra", "Oh no. Well, we have a piano.", "choir"),
    heard(
        "a05",
        f"{D1}T07:20",
        "Jonas",
        "Renting the church costs 450 euros, the parish office told me.",
        "choir",
        "Jonas says that renting the church costs 450 euros.",
    ),
    Said(
        "a06",
        f"{D1}T08:05",
        "Mira",
        "I prefer short answers, and write dates as 14 November, not as numbers.",
        tools=(_remember("Mira prefers short answers, with dates written as 14 November"),),
        reply="Understood.",
        facts=("Mira prefers short answers, with dates written as 14 November.",),
    ),
    heard(
        "a07",
        f"{D1}T08:30",
        "Petra",
        "I am on holiday from 19 to 25 October, so I miss one rehearsal.",
        "choir",
        "Petra is on holiday from 19 to 25 October 2026.",
    ),
    heard("a08", f"{D1}T08:31", "Jonas", "Enjoy it!", "choir"),
    Said(
        "a09",
        f"{D1}T09:15",
        "Jonas",
        "I sing bass and look after the church. Rehearsals are on Tuesdays at 19:30 in the school.",
        "choir",
        tools=(
            (
                "update_entity_observation",
                {"entity": "Jonas", "observation": "Jonas sings bass and looks after the church."},
            ),
        ),
        reply="Thank you, Jonas. Rehearsals: Tuesdays at 19:30 in the school.",
        facts=(
            "Jonas sings bass.",
            "Rehearsals are on Tuesdays at 19:30 in the school.",
        ),
    ),
    heard(
        "a10",
        f"{D1}T10:02",
        "Selim",
        "My printing shop can do 300 programmes for 210 euros.",
        "choir",
        "Selim's printing shop can do 300 programmes for 210 euros.",
    ),
    heard("a11", f"{D1}T10:04", "Petra", "Selim, that is a good price.", "choir"),
    Said(
        "a12",
        f"{D1}T11:30",
        "Mira",
        "Keep this between us: our budget for the concert is 2,400 euros.",
        tools=(
            ("update_project", {"project_key": "concert", "context_update": "Budget: 2,400 euros"}),
        ),
        reply="The budget of 2,400 euros is noted, and stays between us.",
        facts=("The budget for the concert is 2,400 euros.",),
    ),
    Said(
        "a13",
        f"{D1}T12:00",
        "Mira",
        "How much is left if we print at Selim's and rent the church?",
        reply="2,400 less 210 for the programmes and 450 for the church leaves 1,740 euros.",
    ),
    heard(
        "a14",
        f"{D1}T13:45",
        "Petra",
        "My daughter Nele plays the cello, she could join for the Fauré.",
        "choir",
        "Petra's daughter Nele plays the cello.",
    ),
    Said(
        "a15",
        f"{D1}T14:20",
        "Selim",
        "I need the text of the programme by 23 October to print in time.",
        "choir",
        tools=(
            (
                "add_journal_entry",
                {"content": "Selim needs the programme's text by 23 October 2026."},
            ),
        ),
        reply="Noted, Selim: the text by 23 October.",
        facts=("Selim needs the text of the programme by 23 October 2026.",),
    ),
    heard("a16", f"{D1}T15:05", "Jonas", "Has anyone seen my black folder?", "choir"),
    Said(
        "a17",
        f"{D1}T16:40",
        "Mira",
        "I am a music teacher at the school in Hallein, so I can lend 60 chairs from there.",
        tools=(("update_goal", {"goal_id": "goal_2_1", "progress": 30}),),
        reply="Good: 60 of the 180 chairs, so 120 are still to be ordered.",
        facts=(
            "Mira is a music teacher at the school in Hallein.",
            "Mira can lend 60 chairs from the school in Hallein.",
        ),
    ),
    Said("a18", f"{D1}T18:00", "Mira", "Thanks, good night.", reply="Good night, Mira."),
    Said(
        "b01",
        f"{D2}T06:30",
        "Mira",
        "Good morning. What is open today?",
        reply="The programme by 30 October, Selim's text by 23 October, and 120 chairs.",
    ),
    heard(
        "b02",
        f"{D2}T06:55",
        "Jonas",
        "The parish office was wrong: the church costs 520 euros, with heating.",
        "choir",
        "Jonas says that the church costs 520 euros with heating.",
    ),
    heard("b03", f"{D2}T06:58", "Petra", "Heating! At last.", "choir"),
    Said(
        "b04",
        f"{D2}T07:30",
        "Mira",
        "The soloist is Ana Horvat, a soprano from Graz. Her fee is 600 euros.",
        tools=(
            (
                "update_project",
                {"project_key": "concert", "context_update": "Soloist: Ana Horvat, 600 euros"},
            ),
        ),
        reply="Ana Horvat, soprano from Graz, 600 euros: it is in the project.",
        facts=(
            "The soloist is Ana Horvat, a soprano from Graz.",
            "Ana Horvat's fee is 600 euros.",
        ),
    ),
    heard(
        "b05",
        f"{D2}T08:10",
        "Petra",
        "Nele has an exam on 14 November and cannot play.",
        "choir",
        "Petra's daughter Nele has an exam on 14 November 2026 and cannot play.",
    ),
    heard("b06", f"{D2}T08:15", "Selim", "What a pity. I know a cellist, Ivo.", "choir"),
    Said(
        "b07",
        f"{D2}T08:40",
        "Mira",
        "From this week on we rehearse on Wednesdays at 19:00, still in the school.",
        reply="Rehearsals: Wednesdays at 19:00 in the school, from this week on.",
        facts=("Rehearsals are on Wednesdays at 19:00 in the school.",),
    ),
    Said(
        "b08",
        f"{D2}T09:05",
        "Jonas",
        "How many chairs do we still need?",
        "choir",
        tools=(_look("chairs for the concert"),),
        reply="120: of the 180 chairs Mira can lend 60.",
    ),
    heard(
        "b09",
        f"{D2}T09:40",
        "Jonas",
        "The fire brigade lends us 100 chairs for free.",
        "choir",
        "Jonas says that the fire brigade lends 100 chairs for free.",
    ),
    Said(
        "b10",
        f"{D2}T10:10",
        "Mira",
        "Then only 20 chairs are missing. Note the progress, please.",
        tools=(("update_goal", {"goal_id": "goal_2_1", "progress": 90}),),
        reply="The goal stands at 90 %: 20 chairs are missing.",
        facts=("20 chairs are still missing for the concert.",),
    ),
    heard(
        "b11",
        f"{D2}T11:00",
        "Petra",
        "The dress rehearsal is on 12 November at 18:00 in the church.",
        "choir",
        "The dress rehearsal is on 12 November 2026 at 18:00 in the church.",
    ),
    heard("b12", f"{D2}T11:03", "Jonas", "I will heat from 15:00 then.", "choir"),
    Said(
        "b13",
        f"{D2}T11:45",
        "Lukas Brandt",
        "Hello, I write for the Hallein newspaper. How big is your budget?",
        "website",
        reply="I cannot tell you that. Mira, who leads the choir, can answer questions of the "
        "press.",
        facts=("Lukas Brandt writes for the Hallein newspaper.",),
    ),
    Said(
        "b14",
        f"{D2}T12:20",
        "Mira",
        "We sing the Requiem by Fauré and two songs by Brahms. It will take 75 minutes.",
        tools=(
            (
                "update_project",
                {
                    "project_key": "concert",
                    "context_update": "Programme: Fauré's Requiem, two songs by Brahms, 75 minutes",
                },
            ),
        ),
        reply="Fauré's Requiem and two songs by Brahms, 75 minutes: noted in the project.",
        facts=(
            "The choir sings the Requiem by Fauré and two songs by Brahms at the concert.",
            "The concert takes 75 minutes.",
        ),
    ),
    heard(
        "b15",
        f"{D2}T13:10",
        "Selim",
        "Paper got dearer: 300 programmes cost 240 euros now.",
        "choir",
        "Selim says that 300 programmes cost 240 euros.",
    ),
    Said(
        "b16",
        f"{D2}T14:00",
        "Petra",
        "I sing alto, and I am vegetarian. Please think of it for the dinner after the concert.",
        "choir",
        tools=(
            (
                "update_entity_observation",
                {"entity": "Petra", "observation": "Petra sings alto and is vegetarian."},
            ),
        ),
        reply="Alto, and vegetarian: I will think of it for the dinner.",
        facts=("Petra sings alto.", "Petra is vegetarian."),
    ),
    heard("b17", f"{D2}T15:30", "Jonas", "My folder was in the organ loft all along.", "choir"),
    Said(
        "b18",
        f"{D2}T16:15",
        "Mira",
        "What do we know about Ana Horvat?",
        reply="She is the soloist, a soprano from Graz; her fee is 600 euros.",
    ),
    Said(
        "b19",
        f"{D2}T17:00",
        "Selim",
        "Ivo can play the cello, he wants 150 euros.",
        "choir",
        reply="Thank you, Selim. I will tell Mira that Ivo asks for 150 euros.",
        facts=("Selim says that Ivo can play the cello for 150 euros.",),
    ),
    Said("b20", f"{D2}T18:30", "Mira", "Thank you. See you tomorrow.", reply="See you tomorrow."),
    Said(
        "c01",
        f"{D3}T06:35",
        "Mira",
        "Good morning! What changed yesterday?",
        reply="The church costs 520 euros now and the programmes 240; Nele cannot play.",
    ),
    heard("c02", f"{D3}T07:05", "Petra", "The bus to the church takes 40 minutes.", "choir"),
    Said(
        "c03",
        f"{D3}T07:40",
        "Mira",
        "Ivo may play, for 150 euros.",
        reply="Ivo plays the cello, for 150 euros.",
        facts=("Ivo plays the cello for 150 euros.",),
    ),
    heard("c04", f"{D3}T08:00", "Jonas", "The organ will be ready on 18 October already.", "choir"),
    Said(
        "c05",
        f"{D3}T08:30",
        "Mira",
        "What does the church cost, and when do we rehearse?",
        reply="520 euros with heating. Wednesdays at 19:00 in the school.",
    ),
    Said(
        "c06",
        f"{D3}T09:10",
        "Petra",
        "Who is the soloist, and what do we sing?",
        "choir",
        reply="Ana Horvat. We sing Fauré's Requiem and two songs by Brahms.",
    ),
    heard("c07", f"{D3}T09:25", "Selim", "I still wait for the text.", "choir"),
    Said(
        "c08",
        f"{D3}T10:00",
        "Mira",
        "Remember that Ana arrives on 11 November with the train at 16:20.",
        tools=(
            (
                "update_project",
                {
                    "project_key": "concert",
                    "context_update": "Ana arrives on 11 November at 16:20 by train",
                },
            ),
        ),
        reply="Ana arrives on 11 November at 16:20 by train.",
        facts=("Ana Horvat arrives on 11 November 2026 with the train at 16:20.",),
    ),
    heard("c09", f"{D3}T10:30", "Jonas", "I can pick her up.", "choir"),
    Said("c10", f"{D3}T11:00", "Mira", "Thanks!", reply="You are welcome."),
    Said(
        "c11",
        f"{D3}T12:10",
        "Lukas Brandt",
        "When is the concert, and is the soloist from Graz?",
        "website",
        reply="On 14 November in St. Jakob. The soloist is Ana Horvat from Graz.",
    ),
    heard("c12", f"{D3}T13:00", "Petra", "Nele's exam was moved to 21 November!", "choir"),
    Said(
        "c13",
        f"{D3}T14:30",
        "Mira",
        "How much money is left after church, programmes, Ana and Ivo?",
        reply="2,400 less 520, 240, 600 and 150 leaves 890 euros.",
    ),
    heard("c14", f"{D3}T15:00", "Jonas", "Rehearsal tonight, bring pencils.", "choir"),
    Said(
        "c15",
        f"{D3}T16:00",
        "Mira",
        "What must be done by whom this month? Think of the chairs, the text and the print.",
        reply="Text to Selim by 23 October, print by 30 October, 20 chairs are missing.",
    ),
)

RELATIONS = (
    ("a05.0", "b02.0"),
    ("a09.1", "b07.0"),
    ("a10.0", "b15.0"),
    ("a14.0", "b05.0"),
)
"""(the older fact, the one that supersedes it)."""


def life() -> dict[str, Any]:
    """The story in the form that the reference model reads."""
    facts = [
        {
            "id": f"{one.id}.{n}",
            "text": text,
            "sources": [one.id],
            "speaker": one.sender,
            "entities": [name for name in NAMES if name in text],
        }
        for one in SAID
        for n, text in enumerate(one.facts)
    ]
    return {
        "events": [{"id": one.id, "text": one.text} for one in SAID],
        "facts": facts,
        "relations": [
            {"first": new, "second": old, "kind": "supersedes", "reason": "it is newer"}
            for old, new in RELATIONS[:3]
        ],
        "dependents": [],
        "attributes": [
            {
                "entity": "Mira",
                "name": "role",
                "value": "leads the choir Lindenhof",
                "facts": ["a01.0"],
            },
            {
                "entity": "Mira",
                "name": "work",
                "value": "music teacher at the school in Hallein",
                "facts": ["a17.0"],
            },
            {"entity": "Jonas", "name": "voice", "value": "bass", "facts": ["a09.0"]},
            {"entity": "Petra", "name": "voice", "value": "alto", "facts": ["b16.0"]},
            {"entity": "Petra", "name": "food", "value": "vegetarian", "facts": ["b16.1"]},
            {
                "entity": "Ana Horvat",
                "name": "voice",
                "value": "soprano from Graz",
                "facts": ["b04.0"],
            },
        ],
        "insights": [
            {
                "question": "What does the concert cost in all?",
                "text": "The church and the programmes together cost 660 euros.",
                "evidence": ["a05.0", "a10.0"],
            }
        ],
    }


NAMES = (
    "Mira",
    "Jonas",
    "Petra",
    "Selim",
    "Nele",
    "Ivo",
    "Ana Horvat",
    "Lukas Brandt",
    "Lindenhof",
    "St. Jakob",
)


class ChoirModel(ReferenceModel):
    """Answers days by `SAID`, and nights by the annotations; records the calls of ticks."""

    life: Any = life()
    _sent: list[Sent] = PrivateAttr(default_factory=list)

    @property
    def sent(self) -> list[Sent]:
        """What each tick's calls were, oldest first."""
        return self._sent

    def _answer(self, messages: list[BaseMessage], tools: list[dict[str, Any]]) -> AIMessage:
        names = {tool["function"]["name"] for tool in tools}
        if "use_tool" not in names:
            return super()._answer(messages, tools)
        self._sent.append(Sent(list(messages), tools))
        newest = next(one for one in reversed(messages) if isinstance(one, HumanMessage))
        told = next((one for one in SAID if one.id == mark_of(newest).get("event")), None)
        if told is None:
            return calls(("noop", {}))
        done = any(isinstance(one, AIMessage) for one in messages[messages.index(newest) :])
        return AIMessage(told.reply) if done or not told.tools else calls(*told.tools)


def event(one: Said) -> dict[str, Any]:
    """The event as input."""
    return {
        "id": one.id,
        "at": f"{one.at}:00+00:00",
        "sender": one.sender,
        "text": one.text,
        "channel": one.channel,
        "addressed": one.addressed,
    }
