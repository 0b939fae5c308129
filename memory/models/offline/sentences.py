"""Kinds of English sentences, by their words, and their third person. Pure; rough."""

from __future__ import annotations

import re

from memory.text import MONTHS, STOP_WORDS, WEEKDAYS, sentences, stem, words

_DAYS = [name.lower() for name in (*MONTHS, *WEEKDAYS) if name != "May"]
"""Without "may", which is mostly a verb."""

_ASKING = re.compile(
    r"(?:and |but |so |well,? |hey,? |ok,? )?(?:who|whom|whose|what|when|where|which|why|how|do"
    r"|does|did|is|are|was|were|am|have|has|had|can|could|will|would|should|shall|may|might)"
    r"(?:'s|'re|n't)?\b(?!,)",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"(?:hi|hey|hello|hiya|howdy|greetings|good (?:morning|afternoon|evening|night|day)"
    r"|welcome back|good to (?:see|hear from) you|nice to (?:see|meet) you|long time no see"
    r"|how are you|how's it going|how is it going|what's up"
    r"|bye|goodbye|see you|talk (?:to you )?(?:soon|later)|take care"
    r"|have a (?:nice|good|great|lovely))\b.{0,40}",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:many |a lot of )?(?:thanks|thank you|thx|cheers|much obliged"
    r"|i appreciate (?:it|that|you))\b.{0,60}",
    re.IGNORECASE,
)
_STATED = r"(?:\W+\w+){0,2} (?:is|are|was|were|has|had|will|starts?|opens?|closes?|moved)\b"
"""Behind a word that may be a verb or a noun: then it is a noun."""

_COMMAND = re.compile(
    r"(?:circadian[ ,:]+|and )*(?:please,? (?!note\b|know\b|remember|keep in mind)\w+"
    r"|(?:can|could|would|will) you\b|i (?:want|need) you to (?!know|remember|note|keep in mind)"
    r"|remove .*\b(?:goal|project|memory|note|fact)"
    r"|(?:send|e-?mail|phone|text|message|book|order|buy|pay|write|draft|compose|translate"
    r"|summari[sz]e|calculate|compute|search|google|find out|find me|explain|describe|play|open"
    rf"|close|schedule|delete|erase|forget|remind|list|show|tell)\b(?! from\b| of\b|{_STATED}))",
    re.IGNORECASE,
)
_SMALL_TALK = """
    wow oh ah yeah yes yep yup no nope ok okay sure right exactly absolutely definitely totally
    great good nice cool awesome amazing wonderful fantastic lovely sweet fun perfect brilliant
    incredible excellent terrific super fine well glad happy sorry sad hear heard sound look know
    think guess agree see hope wish luck congrats congratulation haha lol hey hi hello bye thanks
    thank welcome problem worry course indeed true bet thing lot way got get keep going go take care
    soon later enjoy proud impressed impress appreciate love excited excite wait mean pleasure
    question kind idea point fair enough believe matter always forward back
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
_NO_NAME = {"i", "i'm", "i've", "i'd", "i'll", "ok", "okay", "tv", "pm", "am", "image"}


def is_question(sentence: str) -> bool:
    """Ends with a question mark, or begins as a question and ends with no mark at all."""
    if sentence.rstrip("\"') ").endswith("?"):
        return True
    return not sentence.endswith((".", "!")) and bool(_ASKING.match(sentence))


def is_greeting(sentence: str) -> bool:
    """A hello or a goodbye, and nothing else."""
    return bool(_GREETING.fullmatch(sentence.strip()))


def is_thanks(sentence: str) -> bool:
    """Thanks, and nothing else."""
    return bool(_THANKS.fullmatch(sentence.strip()))


def is_command(sentence: str) -> bool:
    """Tells the assistant to do something: an order, and nothing about the world.

    It says "please" or "you" to the assistant, or begins with a verb that is rarely anything else.
    "Don't forget" and "remember" tell something, and are none.
    """
    return bool(_COMMAND.match(sentence.strip()))


def states_something(sentence: str) -> bool:
    """Neither question, order, greeting nor thanks, and more in it than small talk."""
    if is_question(sentence) or is_command(sentence):
        return False
    if is_greeting(sentence) or is_thanks(sentence):
        return False
    telling = [word for word in words(sentence) if word not in STOP_WORDS]
    kept = [word for word in telling if stem(word) not in _CHATTER]
    about_oneself = bool(_ABOUT_ONESELF.search(sentence))
    return len(kept) >= (1 if about_oneself else 2) or any(word.isdecimal() for word in telling)


def statement(text: str) -> str:
    """The text without its greetings, thanks and orders; "" when no sentence states anything.

    Questions beside a statement stay: they often say what the statement is about.
    """
    parts = sentences(text)
    if not any(states_something(part) for part in parts):
        return ""
    dropped = (is_greeting, is_thanks, is_command)
    return " ".join(part for part in parts if not any(is_one(part) for is_one in dropped))


def names(text: str) -> list[str]:
    """Capitalised words within sentences, in order, each once; a first word proves nothing."""
    found = [match.group().rstrip("'\u2019") for match in _NAME.finditer(text)]
    bare = [re.sub(r"['\u2019]s$", "", name) for name in found]
    return list(
        dict.fromkeys(name for name in bare if name.lower() not in _NO_NAME and len(name) > 1)
    )


def has_particulars(text: str) -> bool:
    """Names, numbers or times."""
    return bool(names(text)) or names_a_time(text)


def names_a_time(text: str) -> bool:
    """A number, a day, a month or the like."""
    return bool(_TIME.search(text))


def tells_of_a_life(text: str) -> bool:
    """A preference, plan, possession, relation or deed of the one who speaks."""
    return bool(_ABOUT_ONESELF.search(text)) and bool(_LIFE.search(text))


def may_tell_of_a_life(text: str) -> bool:
    """The same in a sentence that states something, whoever it is about."""
    return any(states_something(part) and _LIFE.search(part) for part in sentences(text))


_FIXED = {"am": "is", "be": "is", "have": "has", "don't": "does not", "haven't": "has not"}
_PAST_OR_MODAL = """
    is was were had did has does can could will would shall should may might must cannot can't
    won't couldn't wouldn't shouldn't didn't wasn't hadn't went said told bought made got saw came
    took gave found left lost met kept felt thought knew began broke brought built chose drank drove
    ate fell flew forgot grew heard held hurt led let paid put ran read rode sat sent set slept
    spent spoke stood taught understood woke won wore wrote became cut hit quit bet shut
"""
_ADVERBS = "always usually often never really also just still sometimes only now already rarely"
_PRESENT_IN_ED = "need feed bleed breed proceed succeed exceed"
_SUBJECT = re.compile(
    r"\b[Ii]\b(?!\.\w)(?:(?P<short>'m|'ve|'d|'ll)\b|(?P<rest>(?:\s+[\w']+){1,3}))?"
)
_SHORT = {"'m": "is", "'ve": "has", "'d": "would", "'ll": "will"}
_OWN_WORDS = (
    (r"\bmy own\b|\bmy\b|\bmine\b|\bours?\b", "{name}'s"),
    (r"\bmyself\b|\bme\b", "{name}"),
    (r"\bwe're\b", "{name} and others are"),
    (r"\bwe've\b", "{name} and others have"),
    (r"\bwe'll\b", "{name} and others will"),
    (r"\bwe'd\b", "{name} and others would"),
    (r"\bwe\b|\bourselves\b", "{name} and others"),
    (r"(?-i:\bus\b)", "{name} and others"),
)


def third_person(text: str, name: str) -> str:
    """`text` with the speaker's "I", "my", "we" replaced by `name`, verbs bent to fit.

    "my sister lives with me and I like tea" by Alice: "Alice's sister lives with Alice and Alice
    likes tea". The first letter becomes a capital, a full stop at the end goes.
    """
    told = text.replace("\N{RIGHT SINGLE QUOTATION MARK}", "'").strip().rstrip(".!").strip()
    told = _SUBJECT.sub(lambda match: _subject(match, name), told)
    for pattern, instead in _OWN_WORDS:
        told = re.sub(pattern, instead.format(name=name), told, flags=re.IGNORECASE)
    return told[:1].upper() + told[1:]


def _subject(match: re.Match[str], name: str) -> str:
    if match["short"]:
        return f"{name} {_SHORT[match['short']]}"
    behind = (match["rest"] or "").split()
    for at, word in enumerate(behind):
        if word.lower() in _ADVERBS.split() or word.endswith("ly"):
            continue
        behind[at] = _bent(word)
        break
    return " ".join([name, *behind])


def _bent(verb: str) -> str:
    """The verb in the third person singular; past and modal forms stay."""
    low = verb.lower()
    if low in _FIXED:
        return _FIXED[low]
    past = low.endswith("ed") and low not in _PRESENT_IN_ED.split()
    if past or low in _PAST_OR_MODAL.split() or not low.replace("'", "").isalpha():
        return verb
    if low.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{verb}es"
    if low.endswith("y") and low[-2:-1] not in "aeiou":
        return f"{verb[:-1]}ies"
    return f"{verb}s"
