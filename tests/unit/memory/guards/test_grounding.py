"""Grounding: what follows from the entries that a fact cites, in several languages."""

import time

import pytest

from memory.guards import lexicon
from memory.guards.dates import named_in
from memory.guards.grounding import ungrounded
from memory.guards.reading import Source
from memory.text import sentences

AT = "2026-10-22T08:30:00+02:00"
"""A Thursday."""

EN = (
    "The boiler man can come Wednesday between 8 and 10, he wants 85 quid. The old pump is from "
    "1998. My key's under the blue pot. We ordered two boats at €38k each from Empacher."
)
DE = (
    "Der Kindergarten hat am Montag zu. Oma kann ab halb acht aufpassen. Das Grundstück hat "
    "1.240 m². Die Softbox ist noch bei Nele."
)
ES = (
    "La derrama son 1.350 euros por piso, en tres plazos. El ascensor no se arregla hasta julio. "
    "La junta es el martes que viene a las ocho y media."
)
FR = (
    "J'ai cousu une quarantaine de bonnets, dix-huit euros pièce. Le chauffage n'est pas autorisé. "
    "Le réparateur vient après-demain, à dix heures et quart."
)
TR = "Kapora 40 bin lira. Halam 6 Kasım'da geliyor, uçağı saat üç buçukta. Provamız yarın."
ZH = "年会定在下周五晚上六点半，预算三万。主持人是小周，奖品还没买。"

RIGHT = [
    ("Van for Ben's things is hired, 95 euros.", "Ana hired a van for Ben's things for 95 euros."),
    ("Note s'il te plaît : il faut que je fasse un discours.", "Ana has to give a speech."),
    (
        "We're not sending it to Hyphae, they ask 2,900. Quiet Soils takes nothing.",
        "It goes to Quiet Soils, because Hyphae asks 2,900.",
    ),
    ("No. Friday is the concert. Saturday we leave.", "The concert is on Friday."),
    ("I moved box 14, sorry, box 41 to the backup.", "Ana moved box 41 to the backup."),
    ("We need 12 chairs, sorry, 15 minutes late here.", "They need 12 chairs."),
    ("12 apples and 12 pears, sorry, 15.", "They have 12 apples."),
    ("The rehearsal is in the crypt, not in the church.", "The rehearsal is in the crypt."),
    ("Not only the church, the hall is heated too.", "The church is heated."),
    ("No church today. The rehearsal is in the church on Friday.", "The rehearsal is in it."),
    ("Flight is booked, out on 14 May, back on the 21st.", "The return flight is on 21 May 2027."),
    ("We expect between 25 and 30.", "Ana expects 25 to 30."),
    ("It costs 25 to 30 euros.", "It costs 25 to 30 euros."),
    (EN, "The boiler engineer charges £85 for the visit."),
    (EN, "The boiler man may come on 28 October 2026 between 08:00 and 10:00."),
    (EN, "The two boats cost 76,000 euros in total."),
    (EN, "Ana keeps her key under the blue pot."),
    (EN, "Die alte Pumpe stammt von 1998."),
    (DE, "Die Oma betreut das Kind ab 07:30 Uhr."),
    (DE, "The kindergarten is closed on 26 October 2026."),
    (DE, "Das Grundstück ist 1240 Quadratmeter groß."),
    (ES, "La próxima junta es el 27 de octubre de 2026 a las 20:30."),
    (ES, "Cada plazo de la derrama es de 450 euros."),
    (ES, "The lift will not be repaired before July."),
    (FR, "Ana a cousu environ 40 bonnets, à 18 € pièce."),
    (FR, "The repairman comes on 24 October at 10:15."),
    (TR, "Kapora 40.000 lira."),
    (TR, "Her aunt arrives on 6 November at 3:30 p.m."),
    (ZH, "年会定于2026年10月30日18:30举行，预算30000元。"),
    (ZH, "The host of the party is Xiao Zhou."),
]

RIGHT += [
    ("The office opens, but not until 23 November.", "The office opens on 23 November 2026."),
    ("The family bible takes 3 wks.", "The bible is due on 12 November 2026."),
    ("I refill the gas in the morning.", "Ana refills the gas on 23 October 2026."),
    ("Bestellungen bitte bis Freitagmittag.", "Bestellungen bis zum 23. Oktober 2026."),
    ("Nobody is on the tower between 10 and 11.", "From 10 to 11 nobody is on the tower."),
    ("Sözleşmede zam yüzde yirmi beş.", "Sözleşmede zam %25."),
    ("La cantine passe à 4,35 € le repas (c'était 4,10).", "Le repas augmente de 25 centimes."),
    ("Die Bärengruppe macht einen Ausflug.", "The Bear group goes on an outing."),
    ("Pres kolu gevşemiş, sıktım.", "Gevşeyen pres kolunu sıktı."),
    ("A reviewer claims that it froze for hours.", "A reviewer spoke of a freeze of hours."),
    ("I have put up 20, he paid the other 35.", "They paid 55 altogether."),
    ("We fly out on Boxing Day, at a quarter past six.", "They fly out on 26 December 2026."),
    ("An Heiligabend bleibt die Praxis zu.", "The surgery is closed on 24 December 2026."),
    ("Kahvaltı pazar, saat dokuzda.", "Kahvaltı 25 Ekim 2026 günü saat 9.00"),
    ("El examen es dentro de una semana. Llevo 9 test de 12.", "The test is on 29 October 2026."),
    ("We open the shop tomorrow, even if it snows.", "The shop opens on 23 October 2026."),
    ("Mein Nachbar Josef (alle sagen Sepp) hätte einen Traktor.", "Alle nennen Josef Sepp."),
    ("Von Tante Rosa hab ich noch nichts gehört.", "Von Tante Rosa fehlt eine Antwort."),
    ("La retenue vient du placard, pas du parquet.", "Ce n'est pas le parquet mais le placard."),
    ("The patch runs until 09/2027.", "The patch runs until September 2027."),
    ("The power was off from ten to four until after six.", "The power went off at 15:50."),
    ("我数学考了86分，比上次高了八分。", "上次数学是78分。"),
    ("读书会二十六号下午三点开始。", "读书会2026年10月26日15:00开始。"),
    ("I keep the key today, Ben has it tomorrow.", "Ana keeps the key today and Ben tomorrow."),
    ("They'd like me to rest the knee until May.", "Ana was advised to rest the knee until May."),
    ("We took the Sony, not the Canon.", "They preferred the Sony over the Canon."),
    ("Dice mi vecino que la puerta está rota.", "A Ana le han dicho que la puerta está rota."),
    ("Der Rest kommt erst, wenn der Plan da ist.", "Bevor der Plan da ist, kommt der Rest nicht."),
    # A polite request states, and now is a day.
    ("Can you keep in mind that the cut-off is 2 pm?", "The cut-off is 2 pm."),
    ("Ben, could you please remember that Mia is ill?", "Mia is ill."),
    ("Kannst du dir bitte merken, dass Mia krank ist?", "Mia ist krank."),
    ("Der Laden schließt ab sofort um 12 Uhr.", "Der Laden schließt ab 22. Oktober um 12 Uhr."),
    ("This week they deliver on Tuesday.", "In the week of 19 October they deliver on Tuesday."),
]

WRONG = [
    ("Heidi claims that the bank is closed.", "The bank is closed."),
    ("The party is on Wednesday now, not Tuesday.", "The party is on Tuesday."),
    ("I moved box 14, sorry, box 41 to the backup.", "Ana moved box 14 to the backup."),
    ("We need 12 chairs, no wait, 15, for Saturday.", "They need 12 chairs."),
    ("On veut 12 pains de campagne, non pardon, 15.", "Ils veulent 12 pains de campagne."),
    ("The rehearsal is in the crypt, not in the church.", "The rehearsal is in the church."),
    ("Probe am Freitag in der Krypta, nicht in der Kirche.", "Die Probe ist in der Kirche."),
    (
        "Le poste, c'est deux jours de garde, réponse d'ici quinze jours.",
        "Il y a trois jours de garde.",
    ),
    ("112 adults and 9 children, due by the thirtieth.", "121 adults are due by the thirtieth."),
    ("The fair is on Friday the 30th.", "The fair is on 23 October 2026."),
    ("The class moves to Mondays from December.", "The class moves to Mondays from October."),
    ("Bed 4 leaves tomorrow, at a quarter to ten.", "Bed 4 leaves on 22 October 2026."),
    (EN, "The boiler man wants 58 quid."),
    (EN, "The boiler man comes on 29 October 2026."),
    (EN, "The boats were ordered from Filippi."),
    (EN, "Ben's key is under the blue pot."),
    ("Der Hydrant in der Lindengasse klemmt.", "Der Hydrant in der Linzergasse klemmt."),
    ("今早网到二十三只，含一只去年十月戴环的。", "今早网到三十三只。"),
    (DE, "Die Softbox ist noch bei Nora."),
    (DE, "The plot has 1,420 square metres."),
    (ES, "La derrama son 1.530 euros por piso."),
    (ES, "La derrama se paga en cuatro plazos."),
    (FR, "Le chauffage est autorisé."),
    (FR, "Le réparateur vient le 23 octobre."),
    (TR, "Kapora 14 bin lira."),
    (TR, "Provamız 24 Ekim'de."),
    (ZH, "年会预算五万。"),
    (ZH, "奖品已经买了。"),
    ("We are off to the lake on Friday week.", "Ana is off to the lake on 23 October."),
    ("I won't be in on the 27th.", "Ana will be in on the 27th."),
    ("He gets one 5 mg tablet twice a day with food.", "Ana gets one 15 mg tablet twice a day."),
    ("Maybe we could do a second print run in May.", "There will be a second print in May."),
    ("Ben brings the plaster the day after tomorrow.", "Ben brings it on 23 October."),
    ("The rest is due one week before, so on 12 November.", "The rest is due on 19 November."),
]

MOODS = [
    ("I have not eaten meat since 2019.", "Ana has eaten meat."),
    ("Is grandpa bringing the grill to the picnic?", "Grandpa is bringing the grill."),
    ("If the hub isn't here we could borrow one off the bike.", "They borrowed a hub."),
    ("Falls der Kredit platzt, mieten wir weiter.", "Sie mieten weiter."),
    ("Czy muszę oddać klucze do piwnicy?", "Ana musi oddać klucze do piwnicy."),
    ("My aunt says those small stoves smoke a lot.", "Small stoves for hearing rooms smoke a lot."),
    ("Dicen que el presidente dimite.", "El presidente dimite."),
    ("Il paraît que Mathilde a gagné le concours.", "Mathilde a gagné le concours."),
    ("Elif'e göre Murat işten ayrılmış.", "Murat işten ayrıldı."),
    ("要是下雪就改到线上。", "年会改到线上了。"),
    ("Mrs. Varga says the porter stole it.", "The porter stole it from Mrs. Varga."),
    ("I don't think it is the cache layer.", "Ana thinks it is the cache layer."),
    ("Can you remember when Mia is ill?", "Mia is ill."),
    ("Is Mia ill?", "Mia is ill."),
]

STRANGE = [
    ("Sastanak je u utorak u pola osam, donesite četrnaest stolica.", "Fourteen chairs are due."),
    ("Встреча в пятницу в половине шестого.", "The meeting is on 23 October 2026 at 5:30 pm."),
    ("الاجتماع يوم الجمعة الساعة الخامسة والنصف.", "The meeting is at 5:30 p.m. on Friday."),
    ("Ci vediamo giovedì prossimo alle diciotto.", "They meet on 29 October at 18:00."),
    ("A reunião é na sexta às três e meia.", "The meeting is on 23 October at 15:30."),
]


def why(text: str, said: str, speaker: str | None = "Ana") -> str | None:
    return ungrounded(text, speaker, [Source(said, "Ana", AT)], people=["Ana", "Ben"])


@pytest.mark.parametrize(("said", "text"), [*RIGHT, *STRANGE])
def test_what_follows_from_the_cited_entry_passes(said: str, text: str) -> None:
    assert why(text, said) is None


@pytest.mark.parametrize(("said", "text"), [*WRONG, *MOODS])
def test_another_number_day_name_sense_or_mood_is_rejected(said: str, text: str) -> None:
    assert why(text, said) is not None


def test_a_name_is_no_month() -> None:
    assert named_in("marcus and marin may come") == []


def test_the_speaker_is_who_said_it() -> None:
    assert why("I fed the calf", "I fed the calf", "Ana") is None
    told = why("I fed the calf", "I fed the calf", "Ben")
    assert told is not None
    assert "cite the entry in which Ben says it, or name Ana as the speaker" in told


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("Papa moves to De Wilg on Saturday.", "Ben moves to De Wilg on Saturday."),
        ("YOUR MOTHER WANTED MIA TO HAVE THE PIANO.", "Ana says Ben wanted Mia to have the piano."),
        ("Mutti zieht am Samstag um.", "Ben zieht am Samstag um."),
    ],
)
def test_only_the_speaker_knows_the_name_of_a_relative(said: str, text: str) -> None:
    assert why(text, said) is None
    for word in ("Papa", "MOTHER", "Mutti"):
        said = said.replace(word, "Zoe")
    assert why(text, said) is not None


SHORT = [
    ("Tomek has the nights.", "Tomasz has the nights."),
    ("Ask me or Clem.", "Clémence can be asked."),
    ("I asked Bog, he locks up.", "Bogdan locks up."),
    ("Dial Tomek's old phone.", "The number is on Tomasz's old phone."),
]


@pytest.mark.parametrize(("said", "text"), SHORT)
def test_a_short_form_means_the_only_person_whose_name_it_begins(said: str, text: str) -> None:
    people, source = ["Ana", "Tomasz", "Clémence", "Bogdan"], Source(said, "Ana", AT)
    assert ungrounded(text, "Ana", [source], people=people) is None
    for others in (["Tomislaw", "Clemens", "Boguslaw"], ["Tomek", "Clem", "Bog"]):
        assert ungrounded(text, "Ana", [source], people=people + others) is not None


@pytest.mark.parametrize("said", ["An apple was brought.", "Ann apples!", "I ate an apple."])
def test_a_word_that_begins_a_name_is_no_short_form_of_it(said: str) -> None:
    source = Source(said, "Ben", AT)
    assert ungrounded("Annabel brought an apple.", "Ben", [source], people=["Annabel", "Ben"])


def test_the_reason_says_what_to_change() -> None:
    assert why("We sold 312 croissants", "We sold 212 croissants") == (
        "What it cites says 212, and the fact says 312"
    )


def test_a_pronoun_may_mean_somebody_named_before() -> None:
    cited = [Source("Ersatzwagen will sie keinen.", "Ben", AT)]
    before = [Source("Der Kombi ist von Frau Petrescu.", "Ana", "2026-10-22T08:00:00+02:00")]
    fact = "Frau Petrescu will keinen Ersatzwagen."
    assert ungrounded(fact, "Ben", cited, before=before) is None
    assert ungrounded(fact, "Ben", cited, people=["Petrescu"]) is not None


def test_an_answer_makes_a_statement_of_the_question_before_it() -> None:
    asked = Source("Did you log the leak?", "Ana", AT)
    told = Source("yes, this morning", "Ben", "2026-10-22T09:00:00+02:00")
    fact = "Ben logged the leak on the morning of 22 October 2026."
    assert ungrounded(fact, "Ben", [asked, told]) is None
    assert ungrounded("The leak was logged.", None, [asked]) is not None


def test_an_answer_takes_up_what_was_proposed() -> None:
    asked = Source("We could buy four hammers from Abel at 14.90 each.", "Ana", AT)
    agreed = Source("Yes please", "Ben", "2026-10-22T09:00:00+02:00")
    fact = "Ana and Ben buy four hammers from Abel at 14.90 each."
    assert ungrounded(fact, None, [asked, agreed]) is None
    assert ungrounded(fact, None, [asked, agreed._replace(text="Too dear")]) is not None


KNOWN = [
    Source("Dr Kranz left a red cargo bike for repair on 2 October 2026.", "Ben", AT),
    Source("The forty chains from Nord are due on 28 October 2026.", "Ana", AT),
]
AROUND = [Source("Nela's manuscript is with me.", "Ben", "2026-10-22T08:00:00+02:00")]


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("The professor fetches her bike today.", "Dr Kranz fetches her red cargo bike."),
        ("The editor gives us a week.", "The editor gives a week for Nela's manuscript."),
        ("Nord called, the chains come late.", "The forty chains from Nord come late."),
        (
            "Nord called, the chains come late.",
            "The chains from Nord, due on 28 October, come late.",
        ),
    ],
)
def test_what_a_line_leaves_out_may_come_from_what_was_said_before(said: str, text: str) -> None:
    cited = [Source(said, "Ana", AT)]
    people = ["Ana", "Benedikt", "Nela"]
    assert ungrounded(text, "Ana", cited, before=AROUND, known=KNOWN, people=people) is None
    assert ungrounded(text, "Ana", cited, people=people) is not None


@pytest.mark.parametrize(
    "text",
    [
        "The bike of 2 October is ready for the red cargo trip.",
        "Nela leaves for repair.",
        "Nela's back hurts.",
    ],
)
def test_nobody_vouches_for_the_words_of_another(text: str) -> None:
    cited = [Source("The red cargo bike is ready. My back hurts and I leave.", "Ana", AT)]
    people = ["Ana", "Ben", "Nela"]
    assert ungrounded(text, "Ana", cited, before=AROUND, known=KNOWN, people=people) is not None


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ("The chains are ordered, they say Wednesday week.", "The chains come on 4 November 2026."),
        ("Takings between six and eight: 38 euros.", "From 18:00 to 20:00 they took 38 euros."),
        ("I'd already asked the bakery for rolls.", "Ana asked the bakery for rolls."),
        ("The keys are in the tin, in case I fall ill.", "The keys are in the tin."),
        ("Mara has bought her train, understood?", "Mara has bought her train."),
        ("I take eight, the room is big enough if you clear it.", "Ana takes eight."),
        ("I have never met rider88.", "Ana has never met rider88."),
        ("Friday 23 October at ten, home on Saturday.", "Ana is home on 24 October."),
        ("Sold for 90, asked 120.", "It brought thirty less than was asked."),
        ("0610 to Halifax boards late.", "The 06:10 to Halifax boards late."),
        ("The firm has paid half up front.", "The firm has paid 50 % up front."),
        ("Owner asks whether we'd paint the garage.", "The owner enquired about the garage."),
        ("Silke meint, da hätten 90 Euro gefehlt.", "Silke meint, 90 Euro hätten gefehlt."),
        ("Bo says it leaks 😬 trailer leaves at 6.15.", "Trailer leaves at quarter past six."),
        ("I told Mr Oduya we'd be there by quarter to eight.", "Ana promised to be there by 7:45."),
        ("Der Arzt kommt nicht heute, sondern morgen.", "Der Arzt kommt am 23. Oktober."),
        ("Toplantı salı değil çarşamba günü.", "Toplantı 28 Ekim Çarşamba günü."),
        ("The bank hasn't sent new papers.", "Ana is waiting for new papers from the bank."),
        ("We'd move the files if finance signs off.", "Moving the files depends on finance."),
        ("New price for new pupils only.", "Existing pupils do not pay the new price."),
        ("老李说他不来了，嗓子疼。", "老李因为嗓子疼来不了。"),
        ("Mrs Akande wrote that it rains in.", "Since Mrs Akande wrote, it is known to rain in."),
        ("Oh no. I'll dry the tent.", "Ana will dry the tent."),
        ("As soon as the depot closed I took the tram.", "Ana took the tram."),
        ("Sobald ich das las, kündigte ich.", "Ana kündigte."),
        ("En cuanto llegué a Vigo, vendí el coche.", "Ana vendió el coche."),
        ("We were going to Linz every May.", "They went to Linz every May."),
        ("Not on Tuesday, I have judo then.", "Ana has judo on Tuesday."),
        ("泵修了一百八，两把钥匙。", "泵修了180，钥匙2把。"),
    ],
)
def test_what_is_said_plainly_in_an_unusual_form_passes(said: str, text: str) -> None:
    before = [Source("hello", "rider88", AT)]
    cited, people = [Source(said, "Ana", AT)], ["Benedikt"]
    assert ungrounded(text, "Ana", cited, before=before, people=people) is None


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("No. Friday is off. Go 900 m. Ask HR.", ["No.", "Friday is off.", "Go 900 m.", "Ask HR."]),
        ("At 5 p.m. Bring cake etc. and tea.", ["At 5 p.m.", "Bring cake etc. and tea."]),
        ("See no. 12, Dr. Haller, Nr. 7, M. Roy.", ["See no. 12, Dr. Haller, Nr. 7, M. Roy."]),
    ],
)
def test_an_abbreviation_ends_no_sentence_and_an_answer_does(text: str, parts: list[str]) -> None:
    assert sentences(text) == [*lexicon.sentences_of(text)] == parts


@pytest.mark.parametrize("part", ["x", "1", "A", "Mr. "])
def test_a_long_message_takes_no_long_time(part: str) -> None:
    begun = time.process_time()
    sentences(part * 20_000)
    why("Ana has 5 cats.", f"{part * (24_000 // len(part))} I have 5 cats.")
    why(f"Ana has {part * 5_000} and a half cats.", "I have 5 cats.")
    assert time.process_time() - begun < 10
