"""The mood of sentences: questions, conditions, wishes, reported speech, negation. Pure.

They are told by words and marks of each language. What has none of them counts as a statement.
"""

from __future__ import annotations

import re
from enum import Enum

from memory.guards.lexicon import fold
from memory.text import cached_by_text, regex


class Mood(Enum):
    """How a sentence puts what it says."""

    QUESTION = "question"
    CONDITION = "condition"
    REPORT = "report"


_TAG = regex(
    r"[,;] ?(?:right|correct|yes|no|isn't it|understood|agreed|got it|clear|verstanden|klar"
    r"|entendido|claro|vale|compris|entendu|d'accord|capito|anlasildi mi|tamam mi|oder|gell|ne"
    r"|nicht wahr|verdad|no|cierto|n'est-ce pas"
    r"|hein|degil mi|vero|ok|okay)\W*$|[,，]?(?:对吧|是吧|好吗)\W*$"
)
"""A statement may end in one of these and a question mark."""


def _by_language(table: str) -> dict[str, re.Pattern[str]]:
    """A table of patterns of words, one language a line: its code, then alternatives.

    An indented line goes on with the one before.
    """
    made = {}
    for line in re.sub(r"\n[ ]+", "", table).strip().split("\n"):
        code, _, pattern = line.strip().partition(" ")
        edge = "" if code == "zh" else r"(?<!\w)"
        made[code] = regex(f"{edge}(?:{pattern})" + ("" if code == "zh" else r"(?!\w)"))
    return made


_TELLS = _by_language(r"""
en ask\w*|question\w*|wonder\w*|whether|request\w*|seek\w*|unsure|unclear|uncertain|[ei]nquir\w*
 |not know|suggest\w*|propos\w*|offer\w*|invit\w*|recommend\w*|advi[sc]e\w*|option|idea|should
 |may(?! \d)|possib\w*|likely|potential\w*|condition\w*|depend\w*|consider\w*|plan\w*|intend\w*
 |want\w*|expect\w*|aim\w*|prefer\w*|like\w*|say\w*|said|spoke|speaks?|tell\w*|told|claim\w*
 |accord\w*|report\w*|state[sd]?|mention\w*|writ\w*|wrote|argu\w*|explain\w*|point\w* out|warn\w*
 |insist\w*|announc\w*|accus\w*|think\w*|thought|believ\w*|suspect\w*|doubt\w*|feel\w*|seem\w*
 |hear[ds]?|opinion|view|version|once|as soon as|when(?:ever)?
de frag\w*|gefragt|wissen will|wollte wissen|will wissen|ob|unklar|unsicher|erkundigt\w*|bittet
 |bat|gebeten|vorschl\w*|schlagt|bietet|lad\w*|moglich\w*|erwag\w*|plan\w*|sollt\w*|bedingung|will
 |wollen|sag\w*|gesag\w*|laut|meint\w*|gemeint|zufolge|darstellung\w*|erzahl\w*|bericht\w*
 |nach \w+ angaben|angab\w*|glaub\w*|wirft|vermut\w*|soll(?:en)?|meinung|ansicht|schreib\w*
 |schrieb\w*|erklar\w*|zweif\w*
es pregunt\w*|propon\w*|suger\w*|ofrec\w*|invit\w*|quiere saber|duda\w*|pide|pidio|posib\w*
 |plan\w*|considera\w*|quier\w*|depend\w*|piens\w*|\w+ia[ns]?|condicion\w*|dice\w*|dij\w*|dich[oa]
 |afirm\w*|cont\w*|acus\w*|cree\w*|opin\w*|escrib\w*|coment\w*|sospech\w*|parec\w*|esper\w*
fr demand\w*|propos\w*|sugger\w*|invit\w*|offr\w*|veut savoir|ignore|possib\w*|envisag\w*|prev\w*
 |compte\w*|veut|veulent|depend\w*|condition|dit|dire|disent|affirm\w*|racont\w*|assur\w*|accus\w*
 |croi\w*|pens\w*|ecri\w*|dout\w*|estim\w*|annonc\w*|\w+rai(?:t|ent)|esper\w*
tr sor\w*|oner\w*|teklif\w*|davet\w*|merak\w*|bilmek ist\w*|bilmiyor\w*|planl\w*|isti\w*
 |iste[drm]\w*|kosul\w*|ihtimal\w*|soyl\w*|dedi\w*|diyor\w*|\w+mis(?:ti|lar|ler)?|anlat\w*|inan\w*
 |belirt\w*|dus\w*|um[au]\w*|dile\w*|diliyor\w*
zh 问|建议|提议|提出|邀|不知道|是否|打算|计划|想|愿|期待|说|称|讲|意思|看法|认为|觉得|听|告诉|表示
 |怀疑|要求
""")
"""With one of these a fact says that something is asked, planned or somebody's word."""
_CONDITIONS = _by_language(r"""
en (?<!even )(?<!as )(?<!ask )(?<!asked )(?<!know )(?<!see )(?<!wonder )if|unless|suppos(?:e|ing)
 |provided|assuming|^in case|in case of|as long as|depending|depends
de (?<!auch )(?<!selbst )(?:wenn|falls)|sofern|angenommen|es sei denn|vorausgesetzt
es si|a no ser que|salvo que|en caso de|siempre que|a menos que
fr si|s'ils?(?! (?:te|vous) pla[iî]t)|au cas ou|a moins|a condition|suppos\w*
tr eger|\w{2,}(?:irsa|irse|ursa|urse|arsa|erse|yorsa|diysa|maz?sa|mez?se|acaksa|ecekse)\w{0,3}
 |olsa\w*|(?!aksam|yuksek)\w{2,}(?:sak|sek|sam|sem|salar|seler|saniz|seniz)|yoksa|varsa
zh 如果|要是|假如|假设|万一|的话|除非|倘若|若|只要|一旦
""")
"""What is said under one of these, or depends on it, is no statement."""

_POSSIBILITIES = _by_language(r"""
en maybe|perhaps|probably|possibly|might|could|would|should we
de vielleicht|wahrscheinlich|vermutlich|eventuell|evtl|ggf|könnt\w*|würd\w*|hätt\w*
 |wär(?:e\w*|s?t)?|müsst\w*|möglicherweise|womöglich
es quiz[aá]s?|probablemente|tal vez|a lo mejor|podr[ií]a\w*|acaso|puede que
 |(?<!la )(?<!una )(?<!de )(?<!mi )(?<!su )(?<!esta )\w+(?:ar|er|ir|dr)[ií]a(?:n|mos|s)?
fr peut-etre|probablement|sans doute|\w+rai(?:t|ent)|pourrai\w*|eventuellement
tr belki|muhtemelen|herhalde|\w{2,}(?:abilir|ebilir)\w*|galiba
zh 也许|可能|大概|恐怕|说不定|或许|考虑|没准
""")
_WISHES = _by_language(r"""
en (?:i|we|he|she|they)'d (?:like|love|rather|prefer)|wish(?:es|ed)?|hope(?:s|d|fully)?|hoping
 |wondering|thinking (?:of|about)|undecided|considering
de hatte gern\w*|wurde gern\w*|hoff(?:e|t|en|te|entlich)|wunsch\w*|am liebsten|schon ware
 |ware schon|traum\w*|uberleg(?:e|en)|unschlussig
es ojala|espero|esperamos|quisiera|desear\w*|(?:me|nos) (?:gustaria|encantaria)|estoy pensando
fr esper(?:e|ons)|(?:j'|on )aimerai\w*|voudrai\w*|souhait\w*|pourvu que|si seulement|hesit\w+
tr insallah|keske|umarim|isterdim|isterim|dilerim|kararsiz\w*
zh 希望|但愿|想要|真想|好想|犹豫
""")
"""What somebody wishes, or has not decided yet, is no statement either."""
_CLAIMS = _by_language(r"""
en (?<!\bi )(?<!\bi'd )(?<!\bi'll )(?<!\bwe )claim\w*|alleg\w*|supposedly|apparently|reportedly
 |rumou?r\w*|i heard|heard (?:that|from)|word is
 |they say(?! (?:it's|in|by|around|about|on|\w+day|to\w+|\d))|people say|everyone says|gossip\w*
 |swears?|swore|insists?|according to|is said to|allegedly|accus\w*|pretend\w*|reckons?
 |keeps? (?:saying|telling)
de behaupt\w*|angeblich|soll(?:en)? (?:ja )?(?:\w+ ){0,6}ge\w+ (?:haben|sein)
 |hab\w* (?:\w+ ){0,5}(?<!nichts )(?<!nicht )(?<!nie )gehort|gerucht\w*
 |(?<!zu )(?<!so )(?<!sehr )(?<!ist )(?<!war )(?<!ganz )laut(?= \w)|anscheinend|man sagt|es heist
 |heist es|munkelt|schwort
es dicen que|se dice|segun|al parecer|por lo visto|asegura(?:n|ba\w*)?|afirma\w*|rumor\w*|juran?
 |cuenta[n]? que|oi que|he oido|parece ser|supuestamente|dizque|sostiene|dicen
fr pretend\w*|parait|il parait|selon|d'apres|soi-disant|affirm\w*|rumeur\w*|on dit|raconte\w*
 |jure\w*|aurai(?:t|ent)|assure que|a ce qu'il parait|entendu dire|soutient
tr \w*gore|iddia\w*|guya|soylenti\w*|sozde|rivayet|duydum|duyduguma|diyorlar
zh 据说|听说|据|声称|传言|传闻|好像|说是|谣|自称|硬说|非说
""")
_SAYS = _by_language(r"""
en (?:say|says|said|told|tells|wrote|writes|mentions?|mentioned|thinks|believes|texted|reported)
de sagt\w*|meint\w*|erzahl\w*|schreibt|schrieb|glaubt|gesagt|gemeint|berichtet
es dice|dijo|ha dicho|conto|cuenta|cree|escribio|comenta|comento|me han dicho
fr dit|a dit|m'a dit|raconte|croit|ecrit|pense|m'a ecrit
tr soyl\w*|dedi|diyor\w*|anlat\w*|yazmis|yazdi
zh 说|讲|告诉|认为|觉得
""")
_QUOTING = {
    code: regex(pattern)
    for code, pattern in {
        "en": r"(?<!\bi )(?<!i've )(?<!\bwe )(?<!\w)(?:says?|said|tells|told|wrote(?! down)"
        r"|texted|thinks|believes|swears|swore|feels|figures|is (?:sure|convinced))"
        r"(?: (?:me|us|him|her|them|to me))?(?: that)? (?!(?:that|he|she|they|he's|she's"
        r"|they're|he'd|she'd|they'd|he'll|she'll|they'll|yes|no|ok|okay|maybe|so|wait|to|hi|hello"
        r"|sorry|thanks|goodbye|him|her|them|about|something|nothing|anything|and|but|when|where"
        r"|what|how|who|if|whether|not|you|i|i'm|on|in|at|for|with|this|yesterday|today|of|like"
        r"|better)\b)[a-z]|(?<!they )(?<!\w)say (?:that )?(?:he|she)(?!\w)",
        "de": r"(?<!\w)(?<!ich )(?:sag(?:t|te|en|ten)|mein(?:t|te|en|ten)|erzahl(?:t|te|en|ten)"
        r"|schreibt|schrieb|glaub(?:t|en)|findet|denkt|schwort)"
        r"(?: (?:mir|uns|ja|wohl|immer|auch|halt|nur))*,? (?:dass )?"
        r"(?:der|die|das|es|den|dem|ein|eine|unsere?|seine?|ihre?|meine?) [a-z]+"
        r"|(?<!\w)(?<!ich )(?:sagt|sagte|meint|meinte|glaubt|schwort|behauptet), (?:dass )?"
        r"(?!(?:er|sie|ich|wir|ihr|du|man|ja|nein|dass|da)(?!\w))[a-z]+",
        "es": r"(?<!\w)(?:dice|dijo|ha dicho|cuenta|cree|escribio|comenta|comento|opina|jura)n?"
        r" que (?:(?:el|la|los|las|un|una|mi|su|sus|tu|nuestro|nuestra) [a-z]{3,} [a-z]"
        r"|es(?:ta)? |son )"
        r"|(?<!\w)(?:dice|dijo|cuenta)n? que (?:\w+ )?\w{3,}mos(?!\w)",
        "fr": r"(?<!\w)(?:dit|a dit|m'a dit|croit|a ecrit|m'a ecrit|pense|trouve|estime|jure)"
        r" qu(?:e |')(?!il (?!manque|y a|faut|reste)|elle |ils |elles |on |oui|non|j|tu |vous )"
        r"[a-z]",
        "tr": r"(?<!\w)(?:\w+'n?[iu]n|\w{3,}[iu]n) .{0,300}?"
        r"(?:digini|dugunu|tigini|tugunu|acagini|ecegini) (?:soyl|anlat|yaz|dusun|san)",
        "zh": "[\u4e00-\u9fff]{2}(?<![我听据虽就想再来])"
        "(?:说(?!不定|明|服|话|好|过|起|是|我|实|他|她|自己)|觉得|认为)",
    }.items()
}
_NEGATIONS = _by_language(r"""
en no|not|never|none|nobody|nothing|neither|nor|no-one|nowhere|without|cannot|\w+n't|cant|dont
 |wont|didnt|doesnt|isnt|w/o|no longer
de nicht|kein\w*|nie|niemals|niemand\w*|nichts|ohne|nirgends|weder|nein|nimmer|nix
es no|nunca|nadie|nada|ningun\w*|sin|tampoco|jamas|ni
fr ne|n'\w+|pas|jamais|aucun\w*|rien|personne|sans|ni|non
it non|mai|niente|nulla|nessun\w*|senza|ne
pl nie|nigdy|bez|ani|zad(?:en|n\w+)|nikt|nic
tr degil\w*|yok\w*|hic\w*|asla|hayir|\w{2,}(?:mi|mu)yor\w*|\w+s[iu]z
 |\w{2,}m[ae](?:d[iu]\w{0,5}|yacak\w{0,4}|yecek\w{0,4}|m|z\w{0,4}|mis\w{0,4}|yiz|yiniz|sin)
zh 不|没|未|无|别|非|勿|莫|否
""")
_DENIALS = _by_language(r"""
en un\w{4,}|in(?:valid|correct|complete|sufficient|active|accessible|ability|capable)\w*|\w+less
 |refus\w*|declin\w*|reject\w*|lack\w*|miss\w*|fail\w*|den(?:y|ies|ied)|against|avoid\w*|stop\w*
 |wait\w*|drop\w*|cancel\w*|withdr\w*|prevent\w*|forb\w*|prohibit\w*|bann?(?:s|ed)?|exclud\w*
 |except|instead|rather|leav\w*|left|skip\w*|out|free of|absent|absence|only|yet to|still
 |remain\w*|oppos\w*|object\w*|dislik\w*|hat\w*|disagree\w*|doubt\w*|impossible|hardly|barely|few
 |little|abandon\w*|g(?:iven|ave) up|quit\w*|ceas\w*|clos\w*|off|false|wrong|differ\w*|keep\w*
 |kept|too|pending|await\w*|delay\w*|postpon\w*|but|allerg\w*|until|before|unless
de un\w{4,}|verweiger\w*|ablehn\w*|lehnt\w*|abgelehnt|fehl\w*|verzicht\w*|gegen|vermeid\w*
 |ab(?:ge)?sag\w*|verbot\w*|verbiet\w*|untersag\w*|statt\w*|auser\w*|nur|noch|erst
 |\w+los(?:e[rsnm]?)?|\w+frei|kaum|wenig\w*|ausgeschloss\w*|entfall\w*|entfallt|aus|allerg\w*|zu
 |sondern|weg\w*|bleib\w*|fallt|offen|aussteh\w*|wart\w*|bis|lieber|weiger\w*|verhinder\w*
 |mangel\w*
es in\w{5,}|des\w{4,}|rechaz\w*|ni?eg\w*|falt\w*|evit\w*|contra|cancel\w*|prohib\w*|excepto|salvo
 |solo|todavia|aun|dej\w*|apenas|poco|alerg\w*|suspend\w*|pendiente\w*|carec\w*|imposib\w*|fuera
 |en vez|en lugar|demasiado|quit\w*|renunci\w*|retras\w*|hasta|esper\w*
fr i[mn]\w{5,}|refus\w*|manqu\w*|evit\w*|contre|annul\w*|interdi\w*|sauf|seulement|encore
 |absent\w*|faute|peu|allerg\w*|arret\w*|renonc\w*|abandonn\w*|hors|exclu\w*|trop|au lieu|plutot
 |reste\w*|atten\w*|retard\w*|repouss\w*|jusqu\w*
tr reddet\w*|eksik\w*|iptal\w*|yasak\w*|haric|sadece|henuz|hala|vazgec\w*|kacin\w*|birak\w*
 |alerji\w*|yerine|karsi|istem\w*|kal\w*|\w+s[iu]z\w*|kapali|bitti|engel\w*|bekl\w*|ertele\w*
 |kadar
zh 拒绝|取消|禁止|缺|少|除|只|仅|尚|还|反对|停|免|忌|戒|过敏|失败|难|避免|等|待|关|坏|剩|放弃|推迟
 |之前|漏
""")


def _says(table: dict[str, re.Pattern[str]], folded: str, codes: tuple[str, ...]) -> bool:
    """Whether a text has a word of the table, in one of its languages; unknown: in any."""
    return any(table[code].search(folded) for code in codes or tuple(table) if code in table)


@cached_by_text(2_048)
def is_question(sentence: str) -> bool:
    """Whether it asks."""
    return bool(re.search(r"[?？؟]\W*$", sentence)) and _TAG.search(fold(sentence)) is None


_REQUEST = regex(
    r".{0,30}?\b(?:(?:can|could|would|will) you (?:please |kindly )?(?:(?:keep|bear) in mind"
    r"|remember|note(?: down)?|make a note|write down) that "
    r"|(?:kannst|könntest|würdest) du (?:dir )?(?:bitte )?merken, dass "
    r"|(?:puedes|podrías) (?:recordar|anotar|apuntar) que "
    r"|(?:peux|pourrais)[ -]tu (?:noter|retenir) qu(?:e |'))(?=.+\?)",
    re.IGNORECASE,
)
"""It asks to remember something, and so states it."""


def without_request(sentence: str) -> str:
    """What a sentence states that asks to remember it; any other sentence as it is."""
    asks = _REQUEST.match(sentence)
    return sentence[asks.end() :].rstrip("?!. ") if asks else sentence


_REMINDS = regex(
    r"(?:(?<=^)|(?<=[.!,] ))(?:hi|hello|hey|hallo|hola|ciao|bonjour|salut|merhaba)(?=[ ,!])"
    r"|\b(?:(?:this|here) is (?:a|your) (?:gentle |friendly )?reminder(?: to| that)?"
    r"|(?:do(?:n't| not) forget|(?:please )?remember)(?: to| that)?|today|tonight"
    r"|(?:vergiss|vergessen sie) (?:bitte )?nicht|denk (?:bitte )?(?:daran|dran)|heute"
    r"|no (?:te )?olvides|recuerda|hoy|n'oublie(?:z)? pas|pense(?:z)? [àa]|aujourd'hui"
    r"|(?:non dimenticare|ricorda(?:ti)?)(?: di)?|oggi|niet vergeten|vandaag|unutma|bug[üu]n)\b,?",
    re.IGNORECASE,
)


def without_reminder(text: str) -> str:
    """Of what a text reminds: without greeting, "don't forget" and "today"."""
    return _REMINDS.sub(" ", text)


def is_conditional(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it says what holds on a condition only."""
    return bool(codes) and _says(_CONDITIONS, _read(sentence, codes), codes[:1])


def has_condition_behind(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether it says something before its condition: "the room is big enough if you move it"."""
    found = _CONDITIONS[codes[0]].search(_read(clause, codes)) if codes[0] in _CONDITIONS else None
    return found is not None and len(clause[: found.start()].split()) >= 3


def is_possibility(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether it says what may be, or might have been, or is wished or not decided."""
    if not codes:
        return False
    read = _read(clause, codes)
    return _says(_POSSIBILITIES, read, codes[:1]) or _says(_WISHES, fold(clause), codes[:1])


def _read(text: str, codes: tuple[str, ...]) -> str:
    """The text as the tables of conditions have it: accents count where they change the mood."""
    return text.lower() if codes[:1] in (("de",), ("es",)) else fold(text)


def is_claim(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it passes on what somebody else claims, without vouching for it."""
    return bool(codes) and _says(_CLAIMS, fold(sentence), codes[:1])


def quotes_from(sentence: str, codes: tuple[str, ...]) -> int:
    """Where it quotes somebody on somebody else: "Bo says the porter took it"; else its end.

    What people say of themselves stands for what is so.
    """
    folded = fold(sentence)
    code = codes[0] if codes else None
    if code not in _QUOTING:
        return len(sentence)
    found = _QUOTING[code].search(folded)
    return found.start() if found else len(sentence)


def is_quote(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it quotes somebody at all."""
    return _says(_SAYS, fold(sentence), codes[:1])


def is_marked(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact says that something is asked, possible, wished or somebody's claim."""
    text = _IN_MAY.sub(" ", fact)
    read, folded = _read(text, codes), fold(text)
    return (
        "?" in fact
        or any(_says(one, read, codes) for one in (_CONDITIONS, _POSSIBILITIES))
        or any(_says(one, folded, codes) for one in (_WISHES, _CLAIMS, _TELLS))
    )


_IN_MAY = regex(r"(?<=\w )May(?!\w)")


def negates(text: str, codes: tuple[str, ...]) -> bool:
    """Whether a text has a word of negation."""
    return _says(_NEGATIONS, _NOT_DENYING.sub(" ", fold(text)), codes)


_NOT_DENYING = regex(
    r"(?<!\w)(?:don't forget|do not forget|vergiss (?:bitte )?nicht|nicht vergessen"
    r"|if [\w ]{1,60} hadn't|no (?:te )?olvides|n'oublie[sz]? pas|unutma\w*"
    r"|(?:oh|ay|ach),? (?:no|nein|non)(?=\W*[.!,;])"
    r"|not only|not just|nicht nur|no solo|non seulement|pas seulement|sadece degil"
    r"|no,? (?:sorry|wait|i mean)|sorry,? no|nein,? (?:sorry|halt|warte)|perdon,? no|no,? perdon"
    r")(?!\w)|别忘了?"
)
"""Words of negation that deny nothing: reminders, cries, "had it not happened"."""


def denied_in(text: str, codes: tuple[str, ...]) -> str | None:
    """The text behind a word of negation, in Turkish before it; None without such a word."""
    folded = _NOT_DENYING.sub(" ", fold(text))
    for code in codes or tuple(_NEGATIONS):
        if code in _NEGATIONS and (found := [*_NEGATIONS[code].finditer(folded)]):
            last = found[-1] if code == "fr" else found[0]
            if code == "tr":
                return " ".join(folded[: last.start()].split()[-1:])
            return folded[last.end() :]
    return None


def opens_with_denial(text: str, codes: tuple[str, ...]) -> bool:
    """Whether it begins with a word of negation: "not in the church"."""
    folded = _NOT_DENYING.sub(" ", fold(text)).lstrip()
    return any(_NEGATIONS[code].match(folded) for code in codes[:1] if code in _NEGATIONS)


def denies(text: str, codes: tuple[str, ...]) -> bool:
    """Whether a text says by any word that something is not so."""
    return negates(text, codes) or _says(_DENIALS, fold(text), codes)
