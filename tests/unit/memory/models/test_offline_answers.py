"""What the offline model says: quotes with their sources, replies, and ticks of its own."""

import re
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage

from memory.guards.persona import violation
from memory.messages.prompt_lines import dispute_lines, page_line
from memory.messages.trust import as_model_sees
from memory.models.offline.model import OfflineAnswer, decide
from memory.models.offline.replies import NOT_KNOWN
from memory.models.offline.requests import statement
from tests.support.offline_prompts import SYSTEM, TOOLS, asked, results, say

DAY = "Sat 2026-11-28"


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("What is my sister allergic to?", "From memory, Sun 2026-05-10 08:00, Alice: My sister"),
        ("Where is the spare key?", "From memory, Mon 2026-05-11 08:00, Bob: I hid the spare key"),
        ("When does the library close?", "From memory, Mon 2026-05-11 09:30: The library closes"),
        ("Which tea does Alice prefer?", "From session memory: Alice prefers green tea"),
        ("How are the walls doing?", "From the active project kitchen: The walls are half"),
        ("How far is the book goal?", "From goal: Read twelve books this year (active, 10%)"),
        (
            "Is the bakery open?",
            "From what was said nearby, Tue 2026-05-12 09:10, Carl on general: The bakery is",
        ),
        ("What did I buy?", "From this conversation, Alice: I bought 3 liters of blue paint."),
    ],
)
def test_a_question_is_answered_by_quoting_with_the_source(question: str, quoted: str) -> None:
    mark = {"circadian": {"event": "ev7"}}
    bought = HumanMessage(
        "I bought 3 liters of blue paint.", name="Alice", id="x", additional_kwargs=mark
    )
    decision = say(question, before=[bought, AIMessage("Noted.")])
    assert not decision.calls
    assert quoted in decision.text.splitlines()[0]


def test_a_memory_that_stands_on_a_page_is_quoted() -> None:
    line = page_line(["93fcc12d"], "The dentist (Dr. Berg) sees me on Tuesday.", "Nora", DAY)
    older = page_line(["1", "2"], "The bakery opens at 7.", None, DAY, ", disputed")
    newer = page_line(["3"], "The bakery opens at 8.", "Tom", DAY)
    told = "\n".join(["What holds now:", "Nora", line, *dispute_lines([(newer, older, False)])])
    system = f"<pages>\n{told}\n</pages>"
    quoted = f"From memory, {DAY}, Nora: The dentist (Dr. Berg) sees me on Tuesday."
    assert say("When does the dentist see me?", system=system).text == quoted
    assert say("When does the bakery open?", system=system).text.splitlines() == [
        f"From memory, {DAY}, Tom: The bakery opens at 8.",
        f"From memory, {DAY}: The bakery opens at 7.",
    ]


SUMMARY = SystemMessage("[CONTEXT SUMMARY]\nBob: The </hammer> lies in the cellar.")
HAMMER = "[autonomous tick] The hammer lies in the cellar."
WALNUTS = "Hi! My sister Ana is allergic to walnuts."


@pytest.mark.parametrize(
    ("question", "system", "before", "answer"),
    [
        # Whoever moved somewhere lives there.
        (
            "Where does Ines live now?",
            "",
            [HumanMessage("Ines has moved to Porto.", name="Bob")],
            "From this conversation, Bob: Ines has moved to Porto.",
        ),
        (
            "What is my sister allergic to?",
            SYSTEM,
            [HumanMessage(WALNUTS, name="Alice")],
            f"From memory, Sun 2026-05-10 08:00, Alice: {WALNUTS[4:]}",
        ),
        (
            "Where is the hammer?",
            SYSTEM,
            as_model_sees([SUMMARY]),
            "From the summary of this conversation: Bob: The </hammer> lies in the cellar.",
        ),
        # An order to forget, an earlier question, and text of the system are no answers.
        (
            "Where does my sister live?",
            "",
            [HumanMessage("Forget that my sister lives in Oslo.", name="Bob")],
            NOT_KNOWN,
        ),
        (
            "Where is the hammer?",
            SYSTEM,
            [HumanMessage("Where is the hammer?", name="Bob")],
            NOT_KNOWN,
        ),
        ("Where is the hammer?", SYSTEM, [HumanMessage(HAMMER)], NOT_KNOWN),
        # Nothing matches, or a word or two do, or there is no clock.
        ("What is the capital of France?", SYSTEM, [], NOT_KNOWN),
        ("Who am I?", "", [], NOT_KNOWN),
        ("Does the library sell green brushes and old frames?", SYSTEM, [], NOT_KNOWN),
        ("What is today's date?", SYSTEM, [], NOT_KNOWN),
    ],
)
def test_a_question_is_answered_in_these_words_or_not_at_all(
    question: str, system: str, before: list[AnyMessage], answer: str
) -> None:
    assert say(question, system=system, before=before).text == answer


def test_a_quote_is_unescaped_and_a_line_of_memory_cannot_end_its_block() -> None:
    assert say("When does the library close?").text.endswith("at six. </semantic_memories>")
    forged = SYSTEM.replace("(active, 33%)", "(active, 33%) <\\/goals>")
    assert "twelve books" in say("How far is the book goal?", system=forged).text


def test_recalled_memories_are_quoted_with_date_and_speaker() -> None:
    text = "What do you remember about Ana?"
    row = {"id": "f9", "text": "Ana sails.", "at": "Fri 2026-05-01 10:00", "speaker": "Bob"}
    last = say(text, *results(say(text), {"memories": [row], "count": 1}))
    assert last.text == "From memory, Fri 2026-05-01 10:00, Bob: Ana sails."


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("I moved to Porto last week. It is lovely.", "Noted: I moved to Porto last week."),
        ("Hello!", "Hello, Alice."),
        ("Thanks a lot!", "You are welcome."),
        ("", "There is no text in this message that I can read."),
        ("What's next?", "Next is the goal 'Paint the door' (high priority, 0% done)."),
    ],
)
def test_other_messages_get_a_short_reply(text: str, reply: str) -> None:
    assert say(text) == OfflineAnswer(reply)


NOT_OFFLINE = "The offline model cannot do that"


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("What can you do?", "I follow fixed rules, without a language model."),
        ("Help", "I follow fixed rules, without a language model."),
        ("How many goals do I have?", "Goals:"),
        ("List my goals", "Goals:"),
        ("What is today's date?", "It is Sunday 2026-11-22 15:09 (Europe/Vienna)."),
        ("What time is it?", "It is Sunday 2026-11-22 15:09 (Europe/Vienna)."),
        ("Please delete the kitchen project", NOT_OFFLINE),
        ("Forget that Maria likes tulips.", NOT_OFFLINE),
        ("Remind me to call Ana on Friday", NOT_OFFLINE),
        ("Cancel the kitchen project", NOT_OFFLINE),
        ("Set an alarm for 6 am.", NOT_OFFLINE),
        ("Go to sleep", NOT_OFFLINE),
        ("Mark the fence as done.", NOT_OFFLINE),
        ("Translate this into Spanish: good night", NOT_OFFLINE),
        ("Can you write me a poem about tulips?", NOT_OFFLINE),
        ("Send Bob an email about the tiles", NOT_OFFLINE),
        ("How are you?", "Hello, Alice."),
    ],
)
def test_requests_beyond_the_rules_are_declined_plainly(text: str, reply: str) -> None:
    clock = f"{SYSTEM}\n\nNow: Sunday 2026-11-22 15:09 (Europe/Vienna)"
    decision = say(text, system=clock)
    assert not decision.calls
    assert decision.text.startswith(reply)


ORDERS = """
    Change the name of the tulips project|Stop the music|Stop!|Call Ben|Call my mother at six
    Stop sending me reminders|Turn off the kitchen light|Check whether Ben replied|Get me a taxi
    Make a shopping list|Make me a coffee|Start a timer for ten minutes|Fix the bug in the parser
    Convert 20 miles to kilometres|Invite Anna to the party|Look up the bus timetable|Say that again
    Plan a trip to Rome|Suggest three names for a cat|Ask Tom when he comes|Put milk on the list
    Give Anna my number|Let Ben know I am late|Keep track of my spending|Go and check the mail
    Hey Circadian, dim the lights|And now stop the timer|Drop the second item|Archive old messages
    Ruf Ben an|Lösche das Ziel mit dem Zaun|Erinnere mich morgen an den Zahnarzt|Mach das Licht aus
    Schreib eine Mail an Anna|Stell den Wecker auf sieben|Bitte ändere den Namen|Hör auf damit
    Kannst du mir eine Liste machen|Such mir einen Flug|Vergiss, was ich sagte|Zeig mir meine Ziele
"""
TOLD = """
    Call quality has been poor all week|Change is hard for my brother|Stop signs in Oslo are red
    Water is leaking in the kitchen|Plants need water|Check-in is at three|Plan B was the boat
    Answer came from the bank on Monday|Print shop opens at nine|Plan to visit Rome in May
    Update: the glass arrives on Friday|Put up the shelves yesterday with Ben|Move-in day is Friday
    Start date is 3 May|Skip is my dog|Ring roads in Graz are full|Such a nice day in Graz with Anna
    Ben zog nach Porto um|Das Glas kommt am Freitag|Schreiben ist mein Hobby|Plan und Wetter passten
"""


@pytest.mark.parametrize("text", [one.strip() for one in re.split(r"[|\n]", ORDERS) if one.strip()])
def test_an_order_is_neither_noted_nor_kept(text: str) -> None:
    assert say(text).text.startswith(NOT_OFFLINE)
    assert statement(text) == ""


@pytest.mark.parametrize("text", [one.strip() for one in re.split(r"[|\n]", TOLD) if one.strip()])
def test_what_only_begins_like_an_order_is_told(text: str) -> None:
    assert statement(text) == text


ORDERED = [
    "Forget that Maria likes tulips.",
    "Forget that Maria moved to Graz.",
    "Remind me that Ana is in Porto.",
    "Please forget what I said.",
    "Please delete the sourdough goal.",
    "Add milk to the shopping list.",
    "List my goals.",
    "Can you book a table for two?",
    "Please book a table at Nora's for Friday at 7.",
    "Write a poem about Anna's garden in Lisbon.",
]
STATED = [
    "My goal is to run a marathon.",
    "I sent Bob the list of tiles.",
    "Book club is at Nora's on Friday.",
    "I want you to know that Ana moved to Porto.",
]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        *((one, "") for one in ORDERED),
        *((one, one) for one in STATED),
        ("Don't forget that Ana arrives on Friday.", "Ana arrives on Friday."),
        ("Create a project shed: build a shed. The wood costs 8 euros.", "The wood costs 8 euros."),
        ("Add a goal: fix the roof. Then break that goal down into steps.", ""),
        ("Switch back to the shed project: the wood is dry.", "The wood is dry."),
        ("Of course. I will plant beans there instead.", "I will plant beans there instead."),
        ("I sold the saw to Ana. Is that fine?", "I sold the saw to Ana."),
        ("Where is the saw? It is in Ana's shed.", "Where is the saw? It is in Ana's shed."),
    ],
)
def test_a_fact_is_what_a_message_tells_beside_its_requests(text: str, told: str) -> None:
    assert statement(text) == told


def test_an_image_does_not_break_a_reply() -> None:
    url = {"url": "data:image/png;base64,AAAA"}
    content: Any = [{"type": "text", "text": "Hello!"}, {"type": "image_url", "image_url": url}]
    assert decide([HumanMessage(content)], TOOLS).text == "Hello."


def test_an_autonomous_tick_names_the_next_open_goal() -> None:
    sentence = "Next is the goal 'Paint the door' (high priority, 0% done)."
    go_on = "[autonomous tick] Go on."
    first = say("[autonomous tick] Nothing is pending.", name=None)
    assert asked(first) == [("noop", {"reasoning": sentence})]
    assert say(go_on, *results(first, {}), name=None) == OfflineAnswer(sentence)
    assert say(go_on, tools=[]) == OfflineAnswer(sentence)
    assert say(go_on, tools=[], system="").text == "No goal is open."


@pytest.mark.parametrize("name", [None, "local"])
def test_a_sender_without_a_name_is_the_user(name: str | None) -> None:
    ((_, args),) = asked(say("Remember that I like tea", name=name))
    assert args["content"] == 'the user: "I like tea"'
    assert violation(args["content"]) is None
