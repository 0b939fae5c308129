"""The mood of sentences: questions, conditions, wishes, reported speech, negation. Pure.

They are told by words and marks of each language. What has none of them counts as a statement.
"""

from __future__ import annotations

import re
from enum import Enum

from memory.guards.lexicon import HAN, fold
from memory.text import cached_by_text


class Mood(Enum):
    """How a sentence puts what it says."""

    QUESTION = "question"
    CONDITION = "condition"
    UNDECIDED = "undecided"
    WISH = "wish"
    REPORT = "report"


_TAG = re.compile(
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
        made[code] = re.compile(f"{edge}(?:{pattern})" + ("" if code == "zh" else r"(?!\w)"))
    return made


_MARKED = _by_language(r"""
en ask\w*|suggest\w*|propos\w*|offer\w*|invit\w*|wonder\w*|question\w*|want\w* to know|unsure
 |unclear|uncertain|inquir\w*|enquir\w*|whether|curious|not know|doesn't know|don't know
 |look(?:s|ing) (?:for|to)|request\w*|seek\w*|if|unless|would|could|might|may(?! \d)|maybe|perhaps
 |probab\w*|likely
 |possib\w*|given|subject to|suppos\w*|consider\w*|plan\w*|potential\w*|condition\w*|depend\w*
 |in case|think\w*|believ\w*|reckon\w*|idea|option|fallback|otherwise|should|intend\w*
 |only (?:if|once|after)|hop\w*|when|whoever|anyone|anybody|in return|provide\w*|want\w*|wish\w*
 |failing|alternativ\w*|threat\w*|ready to|willing|assum\w*|expect\w*|will not|like\w*|love
 |dream\w*|keen|prefer\w*|look\w* forward|desir\w*|long\w*|recommend\w*|advi[sc]e\w*|eager\w*
 |aim\w*|ideally|fond|rather|aspir\w*|say\w*|said|sai[dh]|spoke\w*|tell\w*|told|claim\w*|alleg\w*
 |accord\w*|report\w*|rumou?r\w*|hears?|heard|apparent\w*|accus\w*|thought|assert\w*|maintain\w*
 |insist\w*|suspect\w*|in the (?:words|view|opinion|account) of|purport\w*|stat\w*|mention\w*
 |writ\w*|wrote|criticis\w*|criticiz\w*|argu\w*|complain\w*|version|unconfirmed|sceptical
 |skeptical|doubt\w*|inform\w*|point\w* out|explain\w*|gossip\w*|swear\w*|swore|opinion|view
 |account|contend\w*|seem\w*|announc\w*|blam\w*|den(?:y|ies|ied)|feel\w*|warn\w*|not\w* confirm\w*
 |attribut\w*|hold\w*|favou?r\w*|against|oppos\w*|voice\w*|vow\w*|declar\w*|not(?:es|ed)|advis\w*|assur\w*|concern\w*|cit\w*
 |quot\w*|pass\w* on|relay\w*|second-hand|hearsay|indicat\w*|deems?|predict\w*|forecast\w*
 |diagnos\w*|guess\w*|estimat\w*|puts? .{3,40} down to|shows|showed
de frag\w*|vorschl\w*|schlagt|bietet|lad\w*|gefragt|wissen will|wollte wissen|will wissen
 |mochte wissen|ob|unklar|unsicher|erkundigt\w*|bittet|bat|gebeten|wenn|falls|sofern|vielleicht
 |eventuell|ware|konnt\w*|wurd(?:e|en)|moglich\w*|uberleg\w*|erwag\w*|plan\w*|sollt\w*|musst\w*
 |bedingung|vorausgesetzt|angebot\w*|sonst|wahrscheinlich\w*|im fall|abhang\w*|hang\w*|will|wollen
 |andernfalls
 |bereit|voraussichtlich|hoff\w*|wunsch\w*|mocht\w*|wurde|hatte|gern\w*|traum\w*|am liebsten
 |lieber|sehn\w*|sag\w*|gesag\w*|behaupt\w*|angeblich|laut|meint\w*|gemeint|zufolge|darstellung\w*
 |erzahl\w*|bericht\w*|gerucht\w*|heist|gehort|nach \w+ (?:angaben?|aussage|worten|meinung)
 |angab\w*|aussag\w*|glaub\w*|wirft|vorw\w*|vorgeworf\w*|vermut\w*|soll(?:en)?|sei|habe|seien
 |hatten|meinung|ansicht|beschuldig\w*|beklagt|schreib\w*|schrieb\w*|erklar\w*|schwor\w*|zweif\w*
 |dafur|dagegen|befurwort\w*|zeigt\w*|bestreit\w*|leugn\w*|mutmas\w*|munkel\w*|versicher\w*|findet
 |halt .* fur
es pregunt\w*|propon\w*|propus\w*|suger\w*|ofrec\w*|invit\w*|quiere saber|duda\w*|si|consult\w*
 |pide|pidio|podria\w*|quizas?|probabl\w*|tal vez|en caso de|posib\w*|plan\w*|considera\w*|salvo
 |siempre que
 |quier\w*|depend\w*|piens\w*|\w+ia[ns]?|condicion\w*|a menos|esper\w*|gustaria|desea\w*|quisiera
 |ojala|encantaria|suena|ilusion|prefer\w*|dice\w*|dij\w*|dich[oa]|segun|asegur\w*|afirm\w*
 |cuent\w*|cont\w*|rumor\w*|supuest\w*|al parecer|sosti\w*|acus\w*|cree\w*|opin\w*|palabras
 |manifiest\w*|versi\w*|escrib\w*|coment\w*|sospech\w*|jur\w*|habria\w*|oy\w*|oido|parec\w*
 |a favor|en contra|opon\w*|declar\w*|mantien\w*|insist\w*|habla\w*|dizque
 |indica\w*|senala\w*|marca\w*|neg\w*|niega\w*
fr demand\w*|propos\w*|sugger\w*|invit\w*|offr\w*|veut savoir|voudrait savoir|ignore|se demande|si
 |s'il|s'interroge|s'ils?|pourrai\w*|peut-etre|probabl\w*|sans doute|\w+rai(?:t|ent)|en cas|au cas
 |condition|envisag\w*
 |eventuel\w*|possib\w*|prev\w*|tant qu\w*|sauf|compte\w*|veut|depend\w*
 |n(?:e |')\w+ (?:\w+ ){0,4}qu(?:e |')|a moins (?:que|d'\w+)|voudr\w*|esper\w*|aimerai\w*
 |souhait\w*|veulent|reve\w*|envie|desir\w*|prefer\w*|dit|dire|disent|selon|d'apres|pretend\w*
 |affirm\w*|racont\w*|rumeur\w*|assur\w*|aurai\w*|serai\w*|\w+rait|\w+raient|soutien\w*|accus\w*
 |croi\w*|pens\w*|parait|soi-disant|ecri\w*|entendu|soupcon\w*|dires|dout\w*|estim\w*|annonc\w*
 |favorable|oppos\w*|declar\w*|suppos\w*|jur\w*|indiqu\w*|montr\w*|ni(?:e|ent)|dement
 |(?<!a )(?<!ai )(?<!ont )trouv(?:e|ent)
tr sor\w*|oner\w*|teklif\w*|davet\w*|merak\w*|bilmek ist\w*|bilmiyor\w*|emin degil|eger|belki
 |muhtemel\w*|herhalde|galiba
 |\w+(?:irsa|irse|ursa|urse|arsa|erse|yorsa|mazsa|mezse)\w*|olasi|planl\w*|\w+(?:abilir|ebilir)\w*
 |kosul\w*|durumunda|takdirde|halinde|ihtimal\w*|sart\w*|isti\w*|iste[drm]\w*
 |um\w*|dil\w*|hayal\w*|arzu\w*
 |tercih\w*|soyl\w*|dedi\w*|diyor\w*|gore|iddia\w*|\w+mis(?:ti|lar|ler)?|anlat\w*|inan\w*|suph\w*
 |bakilirsa|soz\w*|rivayet\w*|duy\w*|ileri sur\w*|sucl\w*|dus\w*|belirt\w*|aktar\w*|san\w*
 |kuskul\w*
zh 问|建议|提议|提出|邀|不知道|是否|如果|要是|假如|谁|可能|大概|恐怕|也许|或许|考虑|打算|计划|的话
 |除非|想
 |希望|若|一旦|只有|否则|条件|盼|愿|期待|说|称|据|讲|传|意思
 |看法|认为|觉得|听|告诉|表示|指|显示|否认|怀疑|所言|转述|要求|提醒
""")
"""With one of these a fact says that something is asked, possible, wished or somebody's claim."""
_CONDITIONS = _by_language(r"""
en (?<!even )(?<!as )(?<!ask )(?<!asks )(?<!asked )(?<!know )(?<!see )(?<!wonder )(?<!sure )
 if(?! (?:you|any\w+|some\w+|they) (?:ask|wonder|need to know|want to know)\w*)
 |(?<!at )(?:once|as soon as)(?= (?:the|this|that|it|i|we|you|he|she|they|my|our|your|his|her
 |their|i've|we've|\w+ (?:is|are|has|have|agrees?|says?|arrives?|comes?))(?!\w))
 (?!.* (?:was|were|had|did|went|came|got|left|heard|told|sold|bought|took|made|saw|said|found|knew
 |began|became|gave|wrote|ran|met|kept|lost|paid|sent|built|brought|\w{2,}ed|always|usually)(?!\w))
 |unless|suppose|supposing|provided|assuming|^in case|in case of|otherwise(?= (?:i|we|he|she|it
 |they|you|the)(?!\w))|as long as|depending|depends
de (?<!auch )(?<!selbst )(?:wenn|falls)(?! (?:jemand|wer|du|ihr|einer) (?:\w+ )?frag\w*)|sofern
 |sobald(?!.* (?:war|waren|kam|ging|zog|einzog|fand|sah|immer|\w{3,}ten?)(?!\w))
 |angenommen|es sei denn|vorausgesetzt
es si|a no ser que|salvo que|en caso de|siempre que|como no \w+|a menos que
fr si|s'ils?|sauf si|au cas ou|a moins|a condition|suppos\w*
tr eger|\w{2,}(?:irsa|irse|ursa|urse|arsa|erse|yorsa|diysa|maz?sa|mez?se|acaksa|ecekse)\w{0,3}
 |olsa\w*|diyelim|sayet|(?!aksam|yuksek)\w{2,}(?:sak|sek|sam|sem|salar|seler|saniz|seniz)|\w+arsak
 |\w+ersek|yoksa|\w{3,}mazsa\w*|\w{3,}mezse\w*|varsa
zh 如果|要是|假如|假设|万一|的话|除非|倘若|若是|只要|若|一旦
""")
"""What is said under one of these, or depends on it, is no statement."""

_POSSIBILITIES = _by_language(r"""
en (?:maybe|perhaps|probably)(?! (?:\d|more|less|half|a (?:dozen|few)))|might|could
 |would(?! (?:rather|prefer|like|love))|(?:i|we|he|she|they
 |you)'d(?! (?:(?:already|just|never|once|also|even|long) )*(?:rather|prefer|like|love|better|\w+ed
 |been|had|done|gone|made|told|said|seen|got|given|taken|left|lost|found|bought|come|become|written
 |eaten|known|thought|sent|paid|kept|met|read|run)(?!\w))|possibly|should we
de vielleicht|wahrscheinlich|vermutlich|eventuell|evtl|ggf|könnt\w*|würd\w*|hätt\w*|wär(?:e\w*
 |s?t)?|müsst\w*|möglicherweise|womöglich
es quiz[aá]s?|probablemente|tal vez|a lo mejor|podr[ií]a\w*|acaso|puede que
 |(?<!la )(?<!una )(?<!de )(?<!mi )(?<!su )(?<!esta )\w+(?:ar|er|ir|dr)[ií]a(?:n|mos|s)?
fr peut-etre|probablement|sans doute|pourrai\w*|serai(?:s|t|ent)|aurai(?:s|t|ent)|\w+erai(?:t|ent
 |s)|\w+erions
 |eventuellement|faudrait
tr belki|muhtemelen|herhalde|\w{2,}(?:abilir|ebilir)\w*|galiba
zh 也许|可能|大概|恐怕|说不定|或许|考虑|没准
""")
_DELIBERATIONS = _by_language(r"""
en thinking (?:of|about)|considering|wondering|(?<!no )wonder (?:whether|if)|weighing|pondering
 |mulling|toying with|undecided|torn between|in two minds|let me think|think it over
 |(?:not sure|unsure|(?:not|n't) know|not certain|(?:not|n't) (?:yet )?(?:decided?|made up)\w*)
 (?:yet )?(?:whether|if|about|on|between)
de (?<!habe )uberleg(?:e|en|st|t)(?: \w+){0,3},? ob|(?<!habe )(?:ich|wir) uberleg(?:e|en)
 |am uberlegen|uberleg(?:e|en) (?:noch|gerade|grad|mir noch|uns noch)
 |(?:nicht|unsicher|unschlussig|offen|unklar),? ob|unschlussig|grubel\w*
 |denk\w* (?:\w+ ){0,6}nach|gedanken,? \w|noch nicht entschieden|hin- und hergerissen
 |mal (?:sehen|schauen),? ob|weis (?:es )?noch nicht|wissen (?:es )?noch nicht
es me pregunto si|no se (?:aun |todavia )?si|estoy pensando|estamos pensando|dudo (?:si|entre)
 |dud(?:o|amos|ando) (?:si|entre)|no (?:me )?he decidido|le doy vueltas|me lo (?:estoy )?pens\w*
fr me demande si|demandons si|ne sais pas (?:encore )?si|sais pas (?:encore )?si|hesit\w+
 |envisage(?:ons)? d\w*|reflechi(?:s|ssons)|pas encore decid\w*
it mi chiedo se|non so (?:ancora )?se|sto pensando|stiamo pensando|indecis\w*
 |non ho (?:ancora )?deciso
tr \w+m[ae]y[iu] dusunuyor\w*|karar vermed\w*|karar veremed\w*|kararsiz\w*|emin degil\w*|acaba
zh 在考虑|还在想|没决定|没想好|犹豫|不确定(?:是否|要不要)|不知道(?:是否|要不要|该不该)
""")
"""Who says one of these has not decided what stands behind it."""
_DECIDED = _by_language(r"""
en plan\w*|intend\w*|want\w*|aim\w*|expect\w*|hop\w*|will not|like\w*|love|say\w*|said|stat\w*
 |when|seek\w*|look(?:s|ing) (?:for|to)
de will|wollen|plan\w*|mocht\w*|sag\w*|wurde|hatte|gern\w*|muss\w*|hoff\w*
es quier\w*|plan\w*|esper\w*|dice\w*|gustaria
fr veut|veulent|prev\w*|compte\w*|dit|esper\w*
tr planl\w*|isti\w*|iste[drm]\w*|soyl\w*
zh 打算|计划|想要|说|要求
""")
"""Words of `_MARKED` with which a fact tells what was left open as decided."""
_WISHES = _by_language(r"""
en (?:i|we|he|she|they)'d (?:like|love|rather|prefer)|would (?:like|love|rather|prefer)|i wish
 |wish (?:we|i|he|she|they)|hope(?:fully)?|hoping|if only|fingers crossed|dream(?:ing)? of
 |(?:(?:was|were) (?:actually|originally|initially) going|(?<!was )(?<!were )meant
 |had (?:planned|hoped|meant|wanted)) to
 (?! (?:ask|tell|say|mention|thank|remind|let)(?!\w))
de hatte gern\w*|wurde gern\w*|hoff(?:e|t|en|te|entlich)|wunsch\w*|am liebsten|schon ware
 |ware schon|traum\w*|(?:eigentlich wollte\w* (?:ich|wir)|(?:ich|wir) wollte\w* eigentlich
 |(?:ich|wir) hatte\w* (?:eigentlich )?vor)(?!.* (?:sagen|fragen|mitteilen|erzahlen|wissen)(?!\w))
es ojala|espero|me gustaria|quisiera|me encantaria|desear\w*|nos gustaria|esperamos
fr j'espere|j'aimerais|on aimerait|je voudrais|je souhait\w*|pourvu que|vivement|rev(?:e[srz]?|ent
 |ons|ait)
 |si seulement
tr insallah|keske|umarim|isterdim|isterim|dilerim|\w+ sam keske
zh 希望|但愿|想要|真想|好想|要是.*就好|多想|盼
""")
_CLAIMS = _by_language(r"""
en (?<!\bi )(?<!\bi'd )(?<!\bi'll )(?<!\bwe )claim\w*|alleg\w*
 |supposedly|apparently|reportedly|rumou?r\w*|i heard|heard (?:that|from)
 |word is|they say(?! (?:it's|in|by|around|about|on|\w+day|to\w+|\d))|people say|everyone says
 |gossip\w*|swears?|swore|insists?|according to|is said to|allegedly|accus\w*|pretend\w*|reckons?
 |keeps? (?:saying|telling)
de behaupt\w*|angeblich|soll(?:en)? (?:ja )?(?:\w+ ){0,6}ge\w+ (?:haben|sein)
 |hab\w* (?:\w+ ){0,5}(?<!nichts )(?<!nicht )(?<!nie )gehort|gerucht\w*
 |(?<!zu )(?<!so )(?<!sehr )(?<!ist )(?<!war )(?<!ganz )laut(?= \w)|anscheinend|man sagt|es heist
 |heist es
 |munkelt|schwort
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
    code: re.compile(pattern)
    for code, pattern in {
        "en": r"(?<!\bi )(?<!i've )(?<!\bwe )(?<!\w)(?:says?|said|tells|told|wrote|texted|thinks"
        r"|believes|swears|swore|feels|figures|is (?:sure|convinced))"
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
en no|not|never|none|nobody|nothing|neither|nor|no-one|nowhere|without|cannot|\w+n't|cant|dont|wont
 |didnt|doesnt|isnt|w/o|no longer
de nicht|kein\w*|nie|niemals|niemand\w*|nichts|ohne|nirgends|weder|nein|nimmer|nix
es no|nunca|nadie|nada|ningun\w*|sin|tampoco|jamas|ni
fr ne|n'\w+|pas|jamais|aucun\w*|rien|personne|sans|ni|non
it non|mai|niente|nulla|nessun\w*|senza|ne
pl nie|nigdy|bez|ani|zad(?:en|n\w+)|nikt|nic
tr degil\w*|yok\w*|hic\w*|asla|hayir|\w{2,}(?:mi|mu)yor\w*|\w+s[iu]z|\w{2,}m[ae](?:d[iu]\w{0,5}
 |yacak\w{0,4}|yecek\w{0,4}|m|z\w{0,4}|mis\w{0,4}|yiz|yiniz|sin)
zh 不|没|未|无|别|非|勿|莫|否
""")
_DENIALS = _by_language(r"""
en un\w{4,}|in(?:valid|correct|complete|sufficient|active|accessible|ability|capable)\w*|\w+less
 |refus\w*|declin\w*|reject\w*|lack\w*|miss\w*|fail\w*|den(?:y|ies|ied)|against|avoid\w*|stop\w*
 |wait\w*|drop\w*|cancel\w*|withdr\w*|prevent\w*|forb\w*|prohibit\w*|bann?(?:s|ed)?|exclud\w*
 |except|instead|rather|leav\w*|left|skip\w*|out|free of|absent|absence|only|yet to|still|remain\w*
 |oppos\w*|object\w*|dislik\w*|hat\w*|disagree\w*|dissent\w*|doubt\w*|sceptic\w*|unable|impossible
 |hardly|scarcely|barely|few|little|abandon\w*|given up|gave up|quit\w*|ceas\w*|clos\w*|off|false
 |wrong|differ\w*|stays? (?:at|away|behind|home)|keep\w* away|other than|keep\w*|kept|too
 |refrain\w*|pending|awaits?|await\w*|delay\w*|postpon\w*|void|waiv\w*|rule\w* out|spare\w*
 |decid\w* against|zero|nil|apart from|besides|but|far from|vegetarian|vegan|allerg\w*|intoleran\w*
 |until|before|unless
de un\w{4,}|verweiger\w*|ablehn\w*|lehnt\w*|abgelehnt|fehl\w*|verzicht\w*|gegen|vermeid\w*|abgesagt
 |absag\w*|verbot\w*|verbiet\w*|untersag\w*|statt\w*|auser\w*|nur|noch|erst|\w+los(?:e[rsnm]?)?
 |\w+frei|kaum|wenig\w*|ausgeschloss\w*|entfall\w*|entfallt|aus|allerg\w*|unvertrag\w*|zu|sondern
 |weg\w*|bleibt|bleiben|ausfall\w*|fallt|scheiter\w*|vorerst|offen|ausstehend|aussteht|wart\w*|bis
 |lieber|weiger\w*|verhinder\w*|mangel\w*|vergess\w*|vergisst
es in\w{5,}|des\w{4,}|rechaz\w*|niega|neg\w*|falt\w*|evit\w*|contra|cancel\w*|prohib\w*|excepto
 |salvo|solo|todavia|aun|dej\w*|apenas|poco|alerg\w*|suspend\w*|pendiente\w*|carec\w*|imposib\w*
 |fuera|en vez|en lugar|demasiado|quit\w*|renunci\w*|descart\w*|perd\w*|retras\w*|hasta|esper\w*
fr in\w{5,}|im\w{5,}|refus\w*|manqu\w*|evit\w*|contre|annul\w*|interdi\w*|sauf|seulement|encore
 |absent\w*|faute|peu|allerg\w*|arret\w*|renonc\w*|abandonn\w*|hors|exclu\w*|trop|defaut
 |depourvu\w*|rat\w*|au lieu|plutot|reste\w*|atten\w*|retard\w*|repouss\w*|jusqu\w*
tr reddet\w*|eksik\w*|iptal\w*|yasak\w*|haric|sadece|henuz|hala|vazgec\w*|kacin\w*|birak\w*
 |imkansiz\w*|alerji\w*|yerine|karsi|istem\w*|kal\w*|\w+s[iu]z\w*|kapali|bitti|engel\w*|bekl\w*
 |ertele\w*|kadar
zh 拒绝|取消|禁止|缺|少|除|只|仅|尚|还|反对|停|免|忌|戒|过敏|失败|难|避免|等|待|关|坏|剩|放弃
 |推迟|之前|漏
""")


def _says(table: dict[str, re.Pattern[str]], folded: str, codes: tuple[str, ...]) -> bool:
    """Whether a text has a word of the table, in one of its languages; unknown: in any."""
    return any(table[code].search(folded) for code in codes or tuple(table) if code in table)


_INTERROGATIVE = re.compile(
    r"(?:who(?:'s|se)?|what(?:'s)?|when|where|which|why|how|can|could|will|would|shall"
    r"|should|do|does|did|is|are|was|were|has|have|any(?:one|body)|wer|wen|wem|was|wann|wo|wohin"
    r"|woher|welche\w*|warum|wieso|wie|kann|kannst|konnen|konnt|habt|hast|hat|ist|sind|quien(?:es)?"
    r"|que|cuando|donde|cual(?:es)?|como|cuanto\w*|puedes?|podeis|pueden|qui|quoi|quand|ou|quel\w*"
    r"|pourquoi|comment|combien|qu'\w+|est-ce|peux|pouvez|peut|kim\w*|ne zaman|nerede|nasil|hangi"
    r"|kac\w*)(?!\w)|\w+-(?:tu|vous|on|il|elle|je|nous)(?!\w)|[谁哪几怎]|什么|多少|为什么|能不能|要不要"
)

_CHINESE_QUESTION = re.compile(r"[谁哪几怎]|什么|多少|[吗么]\W*$")


@cached_by_text(2_048)
def asks_from(sentence: str) -> int:
    """Where the question of a sentence begins: "We have 60 tins, who signs?"."""
    if sentence.find("¿") > 0:
        return sentence.find("¿")
    if re.search(r"[?？]\)\W*$", sentence):
        return max(sentence.rfind("("), 0)
    start = max(sentence.rfind(", "), sentence.rfind("，"), sentence.rfind(" - ")) + 1
    first, last = fold(sentence[:start]).strip(), fold(sentence[start:]).strip(" -")
    long = len(first.split()) >= 4 or len(HAN.findall(first)) >= 4
    asks = _INTERROGATIVE.match(last) or _INTERROGATIVE.match(last.partition(" ")[2])
    asks = asks or (_CHINESE_QUESTION.search(last) if HAN.search(last) else None)
    return start if long and asks and not _INTERROGATIVE.match(first) else 0


@cached_by_text(2_048)
def is_question(sentence: str) -> bool:
    """Whether it asks."""
    return bool(re.search(r"[?？؟]\W*$", sentence)) and _TAG.search(fold(sentence)) is None


_REQUEST = re.compile(
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


def is_conditional(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it says what holds on a condition only."""
    return bool(codes) and _says(_CONDITIONS, _read(sentence, codes), codes[:1])


def has_condition_behind(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether it says something before its condition: "the room is big enough if you move it"."""
    found = _CONDITIONS[codes[0]].search(_read(clause, codes)) if codes[0] in _CONDITIONS else None
    return found is not None and len(clause[: found.start()].split()) >= 3


def is_otherwise(clause: str) -> bool:
    """Whether it says what happens else: what stands before it is certain."""
    return _OTHERWISE.match(fold(clause)) is not None


_OTHERWISE = re.compile(r"(?:or )?(?:otherwise|else|sonst|si no|sinon|yoksa)(?!\w)|否则|不然")


def has_consequence(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether a condition has its consequence with it: "if the tram is late I call you"."""
    found = _CONDITIONS[codes[0]].search(_read(clause, codes)) if codes[0] in _CONDITIONS else None
    return found is not None and _CONSEQUENCE.search(fold(clause), found.end()) is not None


_CONSEQUENCE = re.compile(
    r"(?:\S{1,40} ){3}(?:(?:i|we|he|she|they|you|it)(?:'\w+)? (?:will|can|could|would|might"
    r"|may|should)|(?:i|we|he|she|they|you|it)'(?:ll|d)|i|we|je|j'\w+|on|nous)(?!\w)"
)


def is_possibility(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether it says what may be, or might have been. "I would like" is a wish alone."""
    if not codes or is_wish(clause, codes):
        return False
    return _says(_POSSIBILITIES, _TOLD.sub(" ", _read(clause, codes)), codes[:1])


def is_undecided(clause: str, codes: tuple[str, ...]) -> bool:
    """Whether it says that something is not decided yet: "I wonder whether to sell it"."""
    return bool(codes) and _says(_DELIBERATIONS, fold(clause), codes[:1])


def goes_on_open(clause: str) -> bool:
    """Whether it says what the clause before it leaves open: "whether to sell it"."""
    return _OPEN.search(fold(clause)) is not None


_OPEN = re.compile(r"^(?:ob|whether|if|or|oder|si|s'ils?|se)(?!\w)|(?<!\w)zu \w+\W*$|要不要|是否")


def is_left_open(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact says that what it is about is not decided."""
    folded = fold(fact)
    for code in codes or tuple(_DECIDED):
        folded = _DECIDED[code].sub(" ", folded) if code in _DECIDED else folded
    return _says(_MARKED, folded, codes) or _says(_DELIBERATIONS, fold(fact), codes)


_TOLD = re.compile(
    r"(?<!\w)(?:told|said|promised|agreed|decided|confirmed)(?: [\w.]+){0,3}"
    r" (?:i|we|he|she|it|they|you)(?:'d| would)(?!\w)"
)
"""What somebody promised to do hangs on nothing: "I told him we'd be there"."""


def _read(text: str, codes: tuple[str, ...]) -> str:
    """The text as the tables of conditions have it: accents count where they change the mood."""
    return text.lower() if codes[:1] in (("de",), ("es",)) else fold(text)


def is_wish(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it wishes or hopes."""
    return bool(codes) and _says(_WISHES, fold(sentence), codes[:1])


_INTENDS = _by_language(r"""
en going to|about to|meant to
de woll\w*|hatte\w* (?:\w+ ){0,8}vor
es iban? a
fr voul\w*|allai\w*
""")


def intends(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact tells what somebody meant to do."""
    return _says(_INTENDS, fold(fact), codes)


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


def is_own(clause: str) -> bool:
    """Whether it begins with "I": what follows is the speaker's, whatever was quoted before."""
    return _I_FIRST.match(fold(clause).lstrip(" \"'-")) is not None


_I_FIRST = re.compile(
    r"(?:(?:but|and|though|aber|und|doch|pero|y|mais|et|ama|ve) )?"
    r"(?:i(?:'\w+)?|ich|yo|no me|je|ben)(?!\w)|j'|moi,? j"
    r"|(?:但|可)?我(?![们妈爸爷奶姐哥弟妹姑舅叔姨婆公儿女老同家朋])"
    r"|(?:(?:but|and) )?(?:dunno|(?:have|had|did|do|could|was)n't|can't|not sure|never)"
    r"(?! \w+ (?:he|she|they)(?!\w))"
    r"|(?=.*(?<!\w)(?:myself|to me|ich selbst|moi-meme|yo mism[oa]|ben kendim)(?!\w))"
)


def is_quote(sentence: str, codes: tuple[str, ...]) -> bool:
    """Whether it quotes somebody at all."""
    return _says(_SAYS, fold(sentence), codes[:1])


_LIMITS = _by_language(r"""
en until|before|when|once|whoever|only (?:if|when|once|after)|as (?:long|soon) as|after|whenever
de bevor|bis|vor|nachdem|sobald|solange|erst|nur|wer
es antes de|en cuanto|tan pronto|una vez|hasta|mientras|solo|quien
fr avant|des que|des qu'\w+|une fois|aussitot|jusqu\w*|seulement|quiconque
tr ancak
zh 之前|直到|才|谁
""")
"""With one of these a fact says on what something depends."""


def is_limited(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact says on what something depends."""
    return _says(_LIMITS, fold(fact), codes)


def is_marked(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact says that something is asked, possible, wished or somebody's claim."""
    return _says(_MARKED, fold(_IN_MAY.sub(" ", fact)), codes) or "?" in fact


_IN_MAY = re.compile(r"(?<=\w )May(?!\w)")


def negates(text: str, codes: tuple[str, ...]) -> bool:
    """Whether a text has a word of negation."""
    return _says(_NEGATIONS, _NOT_DENYING.sub(" ", fold(text)), codes)


_NOT_DENYING = re.compile(
    r"(?<!\w)(?:don't forget|do not forget|vergiss (?:bitte )?nicht|nicht vergessen"
    r"|if [\w ]{1,60} hadn't|no (?:te )?olvides|n'oublie[sz]? pas|unutma\w*"
    r"|(?:oh|ay|ach),? (?:no|nein|non)(?=\W*[.!,;])"
    r")(?!\w)|别忘了?"
)
"""Words of negation that deny nothing: what reminds, a cry, what would be had it not happened."""


_WITHOUT = re.compile(r"(?<!\w)(?:without|ohne|sans|sin)(?!\w)")


def lacks(text: str) -> bool:
    """Whether a text speaks of something that is missing: "without", "ohne"."""
    return _WITHOUT.search(fold(text)) is not None


def is_requirement(text: str, codes: tuple[str, ...]) -> bool:
    """Whether nothing is done without something: "without a promise we do not start".

    Or only with it: "I can only drive if somebody lends me a car".
    """
    if codes and _says(_ONLY_IF, fold(text), codes[:1]):
        return True
    if codes[:1] not in (("en",), ("de",), ("es",), ("fr",)) or not lacks(text):
        return False
    least = 3 if codes[0] == "fr" else 2  # "Ne" and "pas" are one negation.
    parts = re.split(r",| (?:and|und|y|et) ", fold(text))
    return any(lacks(one) and len(_NEGATIONS[codes[0]].findall(one)) >= least for one in parts)


_ONLY_IF = _by_language(r"""
en (?:can|will|could|may|'ll) only .{1,60} (?:if|when|once)|only if
de nur,? wenn|(?:kann|konnen) nur .{1,60} wenn
es solo (?:si|cuando)|solo (?:puedo|podemos) .{1,60} si
fr (?:seulement|uniquement) si|ne \w+ .{1,60} que si
""")
_NEEDS = _by_language(r"""
en need\w*|requir\w*|necessary|must|mandatory|depend\w*|only|always|with
de brauch\w*|benotig\w*|notig|notwendig\w*|erforder\w*|muss\w*|pflicht|voraussetz\w*|setzt|immer|mit
es neces\w*|hace falta|oblig\w*|requi\w*|deb\w*|exig\w*|siempre|con
fr faut|besoin|oblig\w*|exig\w*|necess\w*|doi\w*|requi\w*|toujours|avec
""")


def needs(fact: str, codes: tuple[str, ...]) -> bool:
    """Whether a fact says that something is needed."""
    return _says(_NEEDS, fold(fact), codes)


def denied_in(text: str, codes: tuple[str, ...]) -> str | None:
    """What stands behind a text's word of negation; None without one."""
    folded = _NOT_DENYING.sub(" ", fold(text))
    for code in codes or tuple(_NEGATIONS):
        if code in _NEGATIONS and (found := [*_NEGATIONS[code].finditer(folded)]):
            last = found[-1] if code == "fr" else found[0]
            if code == "tr":
                # "Not Tuesday, Wednesday": what stands before is denied, and no more.
                before = folded[: last.start()].split()
                is_other = last.group() == "degil" and folded[last.end() :].strip(" .,;!")
                return before[-1] if is_other and before else ""
            return folded[last.end() :]
    return None


def denies(text: str, codes: tuple[str, ...]) -> bool:
    """Whether a text says by any word that something is not so."""
    return negates(text, codes) or _says(_DENIALS, fold(text), codes)
