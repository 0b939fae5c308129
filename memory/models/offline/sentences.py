"""Kinds of English sentences, by their words. Pure; rough."""

from __future__ import annotations

import re

from memory.text import (
    MONTHS,
    STOP_WORDS,
    WEEKDAYS,
    content_stems,
    is_small_talk,
    sentences,
    stem,
    words,
)

_DAYS = [name.lower() for name in (*MONTHS, *WEEKDAYS) if name != "May"]
"""Without "may", which is mostly a verb."""

_ASKING = re.compile(
    r"(?:and |but |so |well,? |hey,? |ok,? )?(?:who|whom|whose|what|when|where|which|why|how|do"
    r"|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should|shall|may|might)"
    r"(?:'s|'re|n't)?\b(?!,)",
    re.IGNORECASE,
)
_NAMES = ("circadian",)
_STATED = r"(?:\W+\w+){0,2} (?:is|are|was|were|has|had|will|starts?|opens?|closes?|moved)\b"
"""Behind a word that may be a verb or a noun: then it is a noun."""

_MOVED = re.compile(r"\bmov(?:e|es|ed|ing) (?:back |over |out )?to\b", re.IGNORECASE)

_COMMAND = re.compile(
    r"(?:(?:hey|hi|circadian|and)\b[ ,:]+)*(?:please,? (?!note\b|know\b|remember|keep in mind)\w+"
    r"|(?:can|could|would|will) you (?!remember|recall|know)"
    r"|i (?:want|need) you to (?!know|remember|note|keep in mind)"
    r"|remove .*\b(?:goal|project|memory|note|fact)|(?:forget|delete|erase|remind|cancel|undo)\b"
    r"|set (?:an? |the )?(?:alarm|timer|reminder)\b|(?:go to sleep|pause|rename|repeat|wake me)\b"
    r"|read (?:me|the file|this)\b|mark .*\bdone\b|add .* to (?:my|our|the) (?:\w+ )?list\b"
    r"|(?:send|e-?mail|phone|text|message|book|order|buy|pay|write|draft|compose|translate"
    r"|summari[sz]e|calculate|compute|search|google|find out|find me|explain|describe|play|open"
    rf"|close|schedule|list|show|tell)\b(?! from\b| of\b|{_STATED}))",
    re.IGNORECASE,
)
_VERBS = """
    activate adjust analy[sz]e answer archive arrange ask assign block build call change check
    choose clean clear close connect convert copy correct count create debug decrease deploy design
    dial dim disable disconnect do download draw drop edit empty enable enter export fetch fill find
    fix format generate get give hide import improve increase inform install invite keep launch lock
    lower make measure merge move mute notify organi[sz]e pick plan prepare press print publish
    raise recommend reduce refresh register reject repair replace reply reserve reset resize restart
    restore return ring run save say share sign silence sing skip solve sort spell split start stop
    submit subscribe suggest switch track transfer turn uninstall unlock unmute unsubscribe update
    upgrade upload use verify wait warn water
"""
_OBJECT = (
    r"(?:the|an?|my|our|your|his|her|their|this|that|these|those|it|them|him|me|us|all|every|each"
    r"|both|some|any|another|everything|old|new|up|off|on|back|down|over|to|for|with|about|at"
    r"|again|whether|if|who|what|where|when|two|three|four|five|ten|\d+|\w+ing|track"
    r"|(?-i:[A-Z]\w+))\b"
)
_ORDER = re.compile(
    rf"(?:(?:and|then|now|just|go and) )*(?!(?:plan|start) (?:to|on)\b|\w+ a note\b)"
    rf"(?:(?:{'|'.join(_VERBS.split())})(?:(?= {_OBJECT})(?!{_STATED})|\W*$)"
    r"|(?:let|put) \w+ (?:know|on|in)\b|look up\b)(?!.*\b(?:yesterday|ago|last)\b)",
    re.IGNORECASE,
)
"""A verb in its base form and an object behind it: who does it is left out, as in an order."""

_GERMAN = re.compile(
    r"bitte (?!merk)|(?:kannst|könntest|würdest|willst) du\b|(?:(?:änder|benenn|berechn|bestell"
    r"|bring|buch|druck|erinner|erklär|erstell|find(?=e)|frag|füg|hol|hör|kauf|lösch|mach|öffn"
    r"|plan(?=e)|reservier|ruf|sag|schalt|schick|schließ|schreib|send|setz|speicher|spiel|stell"
    r"|stopp|start(?=e)|such|trag|übersetz|verschieb|wart|weck|wiederhol|zeig)e?"
    r"|vergiss|lies|gib|nimm|hilf|sieh)(?:\W*$|,| (?=(?:mi[rc]h?|uns|ihm|ihr|ihn|sie|es|da[smn]"
    r"|de[rnm]|die|diese\w*|eine?|zwei|drei|\d+|meine?|unsere?|alle|bitte|damit|auf|an|bis|nach"
    r"|nicht|noch)\b|(?-i:[A-ZÄÖÜ])))",
    re.IGNORECASE,
)
"""A German order, as the first word and its object show it."""

_SMALL_TALK = """
    wow oh ah yeah yes yep yup no nope ok okay sure right exactly absolutely definitely totally
    great good nice cool awesome amazing wonderful fantastic lovely sweet fun perfect brilliant
    incredible excellent terrific super fine well glad happy sorry sad hear heard sound look know
    think guess agree see hope wish luck congrats congratulation haha lol hey hi hello bye thanks
    thank welcome problem worry course indeed true bet thing lot way got get keep going go take care
    soon later enjoy proud impressed impress appreciate love excited excite wait mean pleasure
    question kind idea point fair enough believe matter mind always forward back
"""
_CHATTER = frozenset(stem(word) for word in _SMALL_TALK.split())

_ABOUT_ONESELF = re.compile(
    r"\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll|my|our|mine|ours)\b", re.IGNORECASE
)
_LIFE_WORDS = """
    prefer like love hate enjoy want need plan hope dream intend going will start began move work
    job live have had got bought sold born marri engaged divorc school stud learn goal allergic
    favourite favorite birthday anniversary play paint read run cook travel visit went join sign
    made make lost won met meet decided trying tried always never usually used sister brother
    mother father mom mum dad wife husband partner son daughter kid child friend family grandm
    grandp dog cat pet house home car team
"""
_LIFE = re.compile(rf"\b(?:{'|'.join(_LIFE_WORDS.split())})\w*", re.IGNORECASE)
_TIME = re.compile(
    rf"\d|\b(?:{'|'.join(_DAYS)})s?\b"
    r"|\b(?:yesterday|today|tomorrow|tonight|last|next|ago|week(?:end)?|month|year|morning|evening"
    r"|one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand)s?\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<![.!?:;\"(\u201c] )(?<!^)\b[A-Z][\w'\u2019-]*(?: [A-Z][\w'\u2019-]*)*")
_NO_NAME = {"i", "i'm", "i've", "i'd", "i'll", "ok", "okay", "tv", "pm", "am", "image"} | {
    form for day in WEEKDAYS for form in (day.lower(), f"{day.lower()}s")
}


def is_question(sentence: str) -> bool:
    """Ends with a question mark, or begins as a question and ends with no mark at all."""
    if sentence.rstrip("\"') ").endswith("?"):
        return True
    return not sentence.endswith((".", "!")) and bool(_ASKING.match(sentence))


def is_command(sentence: str) -> bool:
    """Tells the assistant to do something: an order, and nothing about the world.

    It says "please" or "you" to the assistant, begins with a verb that is rarely anything else, or
    with one that has an object behind it. "Don't forget" and "remember" tell something.
    """
    told = sentence.strip()
    return any(form.match(told) for form in (_COMMAND, _ORDER, _GERMAN))


def is_chatter(sentence: str) -> bool:
    """Small talk, or words of small talk alone: "Of course."."""
    return is_small_talk(sentence, _NAMES, praise=True) or not _telling(sentence)


def states_something(sentence: str) -> bool:
    """Neither question, order, greeting nor thanks, and more in it than small talk."""
    if is_question(sentence) or is_command(sentence) or is_chatter(sentence):
        return False
    kept = _telling(sentence)
    about_oneself = bool(_ABOUT_ONESELF.search(sentence))
    return len(kept) >= (1 if about_oneself else 2) or any(word.isdecimal() for word in kept)


def _telling(sentence: str) -> list[str]:
    kept = [word for word in words(sentence) if word not in STOP_WORDS]
    return [word for word in kept if stem(word) not in _CHATTER]


def names(text: str) -> list[str]:
    """Capitalised words within sentences, in order, each once; a first word proves nothing."""
    found = [match.group().rstrip("'\u2019") for match in _NAME.finditer(text)]
    bare = [re.sub(r"['\u2019]s$", "", name) for name in found]
    return list(
        dict.fromkeys(name for name in bare if name.lower() not in _NO_NAME and len(name) > 1)
    )


def told_stems(text: str) -> list[str]:
    """The stems of a text without stop words; whoever moves to a place lives there."""
    return content_stems(_MOVED.sub("live in", text))


def has_particulars(text: str) -> bool:
    """Names, numbers or times."""
    return bool(names(text) or _TIME.search(text))


def tells_of_a_life(text: str) -> bool:
    """A preference, plan, possession, relation or deed of the one who speaks."""
    return bool(_ABOUT_ONESELF.search(text)) and bool(_LIFE.search(text))


def may_tell_of_a_life(text: str) -> bool:
    """The same in a sentence that states something, whoever it is about."""
    return any(states_something(part) and _LIFE.search(part) for part in sentences(text))
