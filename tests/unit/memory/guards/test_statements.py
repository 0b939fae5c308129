"""Grounding: whose statement a fact takes, and in which mood it was made."""

import pytest

from memory.guards.grounding import ungrounded
from memory.guards.reading import Source

AT = "2026-10-22T08:30:00+02:00"


def judge(told: str, fact: str, *, by: str = "Ana") -> str | None:
    cited = [Source(told, by, AT)]
    return ungrounded(fact, by, cited, before=cited, people=[by, "Ben", "Marta", "Martha"])


NAMES = [
    ("有位姓庞的先生没献血。", "庞先生没献血。"),
    ("Sobró tarta para dos días.", "Quedó tarta para dos días."),
    ("Jansen covers the desk. Janssen does the board.", "Janssen does the board."),
    ("Jansen covers the desk. Janssen does the board.", "Jansen is covering the desk."),
    ("Mae replaces Faye from Monday.", "Faye is replaced by Mae from Monday."),
    ("Marta hat abgesagt. Martha bringt den Kuchen mit.", "Martha bringt den Kuchen mit."),
    ("La llave la tiene Elena. Elisa trae el pan.", "Elena tiene la llave."),
    ("Le camion est chez Tanguy. Tangui apporte les caisses.", "Le camion est chez Tanguy."),
    ("Defne'nin uçağı gecikti. Define kargoyu aldı.", "Defne'nin uçağı gecikti."),
    ("小代今天请假，小戴来顶班。", "小代今天请假。"),
    ("Bed 4 ate breakfast. Bed 9 has a fever.", "The patient in bed 9 has a fever."),
    ("VH-KLP is grounded; VH-KLB is fine.", "VH-KLP is grounded."),
    ("I met Hiro today. He's from Sendai and works for a baker.", "Hiro works for a baker."),
]

MOODS = [
    ("Das Rad gehört Marta, es steht im Hof.", "The bike in the yard is Marta's."),
    ("La batería no carga.", "The battery does not charge."),
    ("Die Wärmepumpe läuft wieder.", "The heat pump is running again."),
    ("The wheels are off I'd say.", "Ana thinks that the wheels are off."),
    ("Margery reckons copper tape works, I never tried it.", "Ana has never tried copper tape."),
    ("J'aimerais emmener douze élèves.", "J'aimerais emmener douze élèves."),
    (
        "Si on trouve un frigo à moins de 150, je le prends.",
        "Ana ne prendrait un frigo qu'à 150 €.",
    ),
    ("Kapıcı Satılmış Efendi bütün hafta izinde.", "Kapıcı bütün hafta izinde."),
    ("The scanner died early so the last scans aren't done.", "The scanner gave out early."),
    ("Don't use the north tap, it's cracked.", "The north tap is cracked and must not be used."),
    ("Ewe 118 has mastitis, on pen-strep.", "One of the mothers has an inflamed udder."),
    ("The doctor says he doesn't need a cast.", "He doesn't need a cast."),
    ("I'm thinking of you, the cake is at 5.", "The cake is at 5."),
    ("Ich überlege, ob ich das Boot verkaufe.", "Ana is considering selling the boat."),
    ("J'hésite entre le bleu et le vert.", "Ana hésite entre le bleu et le vert."),
    ("I hope to move.", "Ana hopes to move."),
    ("I wish I had a garden.", "Ana wishes she had a garden."),
    ("Espero que venga Marta.", "Ana espera que venga Marta."),
    ("If it rains we stay home.", "Ana stays home when it rains."),
    ("Once the loan is in, we buy the van.", "Once the loan is in, they buy the van."),
    ("Once the kids were in bed, we played cards.", "They played cards."),
    ("I once lived in Oslo and swim once a week.", "Ana lived in Oslo, and swims once a week."),
    ("Sobald der Kredit da ist, kaufen wir ein Auto.", "They buy a car as soon as the loan is in."),
    ("Sobald die Kinder im Bett waren, haben wir gespielt.", "Sie haben gespielt."),
    ("Eigentlich wollte ich am Montag nach Graz.", "Ana wollte am Montag nach Graz."),
    ("Eigentlich wollte ich Montag fahren, jetzt fahre ich Freitag.", "Ana fährt am Freitag."),
    ("I was going to sell the boat, but I keep it.", "Ana keeps the boat."),
    ("I wanted to tell you the rent is 900.", "The rent is 900."),
    ("Ohne Zusage fangen wir nicht an.", "Sie fangen erst an, wenn sie die Zusage haben."),
    ("We won't sign without a guarantee.", "They sign only with a guarantee."),
]

OTHERS = [
    ("I don't do the Bern market any more. Ben does it.", "Ana does the Bern market."),
    ("I don't do the Bern market any more. Ben does not do it.", "Ben does the Bern market."),
    ("Bluebell had her calf today.", "Buttercup had her calf today."),
    ("Il manque un arbitre, Thibault a une entorse.", "Théodore a une entorse."),
    ("Tarık başrolü istiyor ama o gün yok.", "Ana başrolü istiyor ama o gün yok."),
    ("有位姓庞的先生没献血。", "姓彭的先生没献血。"),
    ("Il en reste 150 chez Tanguy.", "Il reste 150 bougies chez Ben."),
    ("I can buy 60 tins today, who signs the form for them?", "Ana signs the form for the tins."),
    ("Margery reckons copper tape works fine, I never tried it.", "Copper tape works fine."),
    ("Der Wirt meint, die Gemeinde ist am Wasser schuld.", "Die Gemeinde ist am Wasser schuld."),
    ("Mme Leroy dit qu'il manque 80 paniers, à vérifier.", "Il manque 80 paniers."),
    ("El cliente dice que le cobramos doble.", "Al cliente le cobramos doble."),
    ("厂家说主镜没镀好。", "主镜没镀好。"),
    ("Die Nachbarin meint, Oma lässt den Herd an.", "Oma lässt den Herd an."),
    ("I broke one of the teapots carrying it in.", "Ben broke one of the teapots."),
    ("I work 4 to 9 May. I do no car repairs.", "From 4 to 9 May Ana works and does car repairs."),
    ("Dolaplar mutfağa gelmedi.", "Dolaplar mutfağa geldi."),
    ("Preisgeld wären 12.500 €, falls wir gewinnen.", "The team got 12,500 euros of prize money."),
    ("Ohne Zusage fangen wir nicht an.", "Wir fangen an."),
    ("Wir fangen nicht ohne Zusage an.", "Sie haben die Zusage."),
    ("Without the bank's promise we won't begin.", "They have the bank's promise."),
    ("I beat Tarik in 41 moves.", "Tarik beat Ana in 41 moves."),
    ("Marta ne skie pas, il marche.", "Ana ne skie pas et marche."),
    ("On ouvre avec « Nuit blanche ».", "Le groupe ouvre avec « Nuit d'été »."),
]


DOERS = [
    ("I live with Tarik in Utrecht.", "Tarik lives in Utrecht."),
    ("I don't do the Bern market any more. Ben does it.", "Ben does the Bern market."),
    ("I don't do the market. Ben does it.", "Ana doesn't do the market any more; Ben does."),
    ("Ich mache den Markt nicht mehr. Ben macht das.", "Ben macht den Markt."),
    ("Il banco è in piazza Maggiore. Costa 120 euro.", "Il banco di Natale costa 120 euro."),
    ("Ich wohne mit Tarik in Bern.", "Tarik wohnt in Bern."),
    ("Tarik and I will marry in May.", "Tarik will marry in May."),
    ("I vaccinated Tarik on Monday.", "Tarik was vaccinated."),
    ("Marta drank half. Asking before I do.", "Asking before I do."),
    ("Tarik, I opened the box. Only the lid is bent.", "Tarik, I opened the box."),
    ("Ich lese gerade den Zauberberg.", 'Ana liest "Der Zauberberg".'),
    ("My screen is 27 inches wide, the old one was 24.", 'The screen is 27" (the old one 24").'),
]
"""Companions, passives and titles: right facts in the order of other words."""


BESIDE_OTHERS = [
    ("I've no strops, could I borrow somebody's?", "Ana has no strops of her own."),
    ("Ich hab keine Leiter, kann ich deine haben?", "Ana hat keine Leiter."),
    ("I need a break until June.", "Ana takes a break until June."),
    ("The comb has a crack that nobody wrote down.", "The comb has a crack."),
    ("Bahçeyi bu hafta Rıza suluyor, haftaya Gülcan.", "Haftaya sulama Gülcanlarda."),
]
"""What is stated beside a question or a condition."""


@pytest.mark.parametrize(("told", "fact"), [*NAMES, *MOODS, *DOERS, *BESIDE_OTHERS])
def test_a_fact_that_follows_passes(told: str, fact: str) -> None:
    assert judge(told, fact) is None


@pytest.mark.parametrize(("told", "fact"), OTHERS)
def test_a_fact_of_another_or_in_another_mood_is_rejected(told: str, fact: str) -> None:
    assert judge(told, fact) is not None


def test_a_later_answer_settles_a_question_and_a_condition() -> None:
    cited = [
        Source("¿Ha pagado ya Arrieta?", "Eulalia", "2026-09-16T08:44:00+02:00"),
        Source("Todavía no.", "Ana", "2026-09-16T09:01:00+02:00"),
    ]
    assert ungrounded("Arrieta todavía no ha pagado.", "Ana", cited, before=cited) is None
    cited = [
        Source("My vote goes to Maud if that's allowed", "Ben", "2026-09-16T08:44:00+02:00"),
        Source("It's allowed, in writing.", "Ana", "2026-09-16T09:01:00+02:00"),
    ]
    assert ungrounded("Ben's vote for Maud is allowed.", "Ana", cited, before=cited) is None


def test_words_of_an_entry_that_is_not_cited_are_no_paraphrase() -> None:
    cited = [Source("The hall is free on Sunday.", "Ana", AT)]
    other = Source("The boiler needs a new pump and a valve.", "Ben", AT)
    why = ungrounded("A pump and a valve are missing.", "Ana", cited, before=[*cited, other])
    assert why is not None
    assert "cite the entry" in why


@pytest.mark.parametrize(
    ("told", "fact"),
    [
        ("I've no strops, could I borrow somebody's?", "Ana borrows somebody's strops."),
        (
            "The hull is sanded, we paint it on Saturday, if it stays dry.",
            "They paint it on Saturday.",
        ),
    ],
)
def test_the_question_and_what_hangs_on_the_condition_are_not(told: str, fact: str) -> None:
    assert judge(told, fact) is not None
