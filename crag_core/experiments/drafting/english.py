"""The English words and verb forms that questions are made with: closed lists, since no model is at hand."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from crag_core.base.text.words import words

DETERMINERS = frozenset(words("the a an our your my any all most some many several both another"))
DISTRIBUTIVES = frozenset(words("each every"))
PREPOSITIONS = frozenset(
    words(
        """about above across after against along alongside among around aside at before behind below beneath
        beside besides between beyond by despite down during except for from in inside into like near of off on
        onto opposite out outside over past per since through throughout till to toward towards under until
        unlike up upon via with within without"""
    )
)
CONJUNCTIONS = frozenset(words("and but or nor so yet then"))
RELATIVES = frozenset(
    words(
        """who whom whose which that what where why how because although though while whereas whether as than once
        whenever wherever whatever"""
    )
)
CONDITIONS = frozenset(words("if when unless"))
AUXILIARIES = frozenset(words("is are was were will can could may might must should shall would"))
THIRD_PERSON = frozenset(
    words(
        """it its itself he him his himself she her hers herself they them their theirs themselves this these those
        that one ones former latter such same other others here there then thus therefore hence both either
        neither each another"""
    )
)
FIRST_PERSON = frozenset(words("i me my mine we us ours you yours"))
NEGATIVES = frozenset(words("not no never cannot nobody nothing none nor neither hardly seldom rarely"))
ADVERBS = frozenset(
    words(
        """also always usually often sometimes normally generally typically currently now still already only just
        mainly mostly originally officially finally initially later earlier ahead ago away again together today
        annually yearly monthly weekly daily nearly almost approximately roughly exactly long wide high tall
        deep thick old apart overnight longer more less fewer once twice too even first last next respectively"""
    )
)
ASKING = frozenset(words("what which who whom whose where when why how many much often whether"))
OPENERS = frozenset(
    words(
        """however therefore thus hence otherwise but and so or then also moreover furthermore instead meanwhile
        nevertheless still yet please note remember yes no not only even further overall"""
    )
)
_MONTHS = "January February March April May June July August September October November December"
MONTHS = frozenset(_MONTHS.split())
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
WEEKDAYS = frozenset([*_DAYS, *(f"{day}s" for day in _DAYS)])
_TITLES = "Mr. Mrs. Ms. Dr. Prof. Capt. Sir Lady Lord Captain Professor President Queen King Pope"
TITLES = frozenset(_TITLES.split())
ROLES = frozenset(
    words(
        """accountant adviser advisor ambassador architect artist assistant author bishop boss captain caretaker
        chair chairman chairperson chairwoman chef chief clerk coach commander commissioner composer conductor
        contact coordinator curator dean deputy designer developer director doctor editor engineer explorer
        founder governor head headmaster headteacher inspector inventor investigator king lawyer lead leader
        librarian manager mate mayor minister nurse officer owner painter pharmacist physician pilot poet
        president producer professor queen rector representative scientist secretary spokesman spokesperson
        spokeswoman steward superintendent supervisor surgeon teacher technician treasurer trainer warden winner
        writer woman man person"""
    )
)
"""Nouns that say what somebody is, so that one asks for a name with "who"."""

NUMBER_WORDS = frozenset(
    words(
        """two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen
        eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"""
    )
)
TIME_UNITS = frozenset(words("seconds minutes hours days nights weeks months years decades centuries"))
_PLURALS = frozenset(words("people staff police children men women feet teeth mice geese cattle pence times"))
_SINGULARS = frozenset(
    words(
        """diabetes news series species mathematics physics politics economics rabies herpes measles always perhaps
        whereas"""
    )
)

FUNCTION_WORDS = (
    DETERMINERS | DISTRIBUTIVES | PREPOSITIONS | CONJUNCTIONS | RELATIVES | CONDITIONS | AUXILIARIES | THIRD_PERSON
    | FIRST_PERSON | NEGATIVES | ADVERBS | ASKING | OPENERS | NUMBER_WORDS
    | frozenset(words("be been being has have had do does did up year date time day percentage there much your"))
)  # fmt: skip
"""Words that do not tell what a text is about."""


class Form(StrEnum):
    """How a verb is bent; `S` is the third person of the present, `PART` the past participle."""

    BASE = "base"
    S = "s"
    PAST = "past"
    PART = "part"


_REGULAR = """
abandon accelerate accept accompany accuse achieve acquire act add adjoin adjust administer adopt advertise advise
affect agree aim alert allocate allow alter analyse analyze announce answer apologise appear apply appoint approach
approve argue arrange arrive ask assemble assess assign assist assume attach attack attempt attend attract authorise
authorize average avoid award base belong board boil bomb book borrow bounce brush bury calculate call campaign capture
carry cause celebrate chair change charge check circulate cite claim classify clean clear climb close coincide collapse
collect combine command comment commission communicate compare compete complain complete compose comprise compromise
concentrate conclude conduct confine confirm connect conquer consider consist construct consult consume contain contest
continue contribute control convert convince cool cooperate correspond count cover crash create cross crown cultivate
cure damage dance debut decide declare decline decrease dedicate defeat defend define deliver demand demolish depart
depend depict deploy deposit derive describe design destine destroy detect determine develop devote diagnose dictate
die differ diminish dine direct discharge discover discuss dismiss display dissolve distribute divide dominate donate
drain drift drill drown earn echo edit elect emerge emigrate emit emphasise employ enable enclose encourage end endorse
endure enforce engage enjoy ensure enter equal erupt escape escort establish estimate evacuate evaluate evolve examine
exceed exchange exclude execute exhibit exist expand expect expire explain exploit explore export expose express extend
face facilitate fail favour fear feature fetch file fill finance finish fix float flood flourish flow focus fold follow
force form forward function fund fuse gain gather generate glow govern graduate grant greet guarantee guard guide hand
handle happen harvest heat help hire honour hook host house hunt identify ignore illustrate import impose imprison
improve include incorporate increase indicate infect inflate influence inform inhabit inherit initiate insert inspect
inspire install intend interpret interview introduce invent invest investigate invite involve irrigate isolate issue
join jump justify kill knock lack land lapse last laugh launch lean learn lecture lift limit link list listen live load
locate lock log love lower maintain manage manufacture march mark marry mature measure melt merge migrate mine monitor
mount move multiply name narrate need negotiate nominate note notify number obey observe obtain occupy offer open
operate oppose orbit order organise organize originate outlaw outnumber overflow overlook own paint park pass peak
penetrate perceive perform persuade pick pioneer place play pose possess post practise preach predict premiere prepare
present preserve press prevent print proceed process proclaim produce prohibit promote pronounce propose prosper
protect prove provide publish pull pump punish purchase pursue push qualify quote radiate raid raise range rank ratify
reach react realise realize receive reckon recognise recognize recommend reconstruct record recover recruit reduce
reflect refund refurbish refuse regain register regulate reign reinforce reject relate release relocate rely remain
remove rename render renew renovate rent reorganise repair repeat replace reply report represent request require rescue
resemble reserve resign resist respond rest restore restrict result resume retain retire return reunite reveal review
revive revolve reward rinse rotate rule rush sail salute sample sanction save scan scatter score screen seal search
seat secure seize select separate serve settle share shelter shift ship sign simplify situate slow smoke soak solve
sort spark specialise specialize specify spill stabilise start state stay stimulate store strengthen stretch struggle
study substitute succeed suffer suggest suit supply support surrender surround survive sustain swallow switch tackle
talk target taste telephone tend terminate test thicken threaten tick tighten total touch trace track trade train
transform translate transport treat trigger trust tune turn type unite unlock unveil update urge use utilise value
vanish vary vent venture vibrate view violate visit volunteer vote wait walk wander want warm warn wash weigh widen
wipe witness work worship wound yield
"""
_DOUBLED = """
admit ban cancel commit control drop enrol equip fit fulfil label level occur patrol permit plan prefer refer regret
ship shred signal span step stop strip submit transfer trap travel trim wrap
"""
_IRREGULAR = """
arise/arose/arisen become/became/become begin/began/begun bring/brought/brought build/built/built burn/burned/burned
buy/bought/bought choose/chose/chosen come/came/come cost/cost/cost cut/cut/cut do/did/done draw/drew/drawn
drink/drank/drunk drive/drove/driven eat/ate/eaten fall/fell/fallen feed/fed/fed fight/fought/fought find/found/found
fly/flew/flown forbid/forbade/forbidden forget/forgot/forgotten get/got/got give/gave/given go/went/gone
grow/grew/grown hang/hung/hung have/had/had hear/heard/heard hit/hit/hit hold/held/held keep/kept/kept know/knew/known
lead/led/led leave/left/left lend/lent/lent lie/lay/lain lose/lost/lost make/made/made meet/met/met pay/paid/paid
put/put/put read/read/read rebuild/rebuilt/rebuilt ring/rang/rung rise/rose/risen run/ran/run see/saw/seen
seek/sought/sought sell/sold/sold send/sent/sent set/set/set shrink/shrank/shrunk shut/shut/shut sing/sang/sung
sink/sank/sunk sit/sat/sat sleep/slept/slept speak/spoke/spoken spend/spent/spent spread/spread/spread
stand/stood/stood steal/stole/stolen stick/stuck/stuck strike/struck/struck swim/swam/swum swing/swung/swung
take/took/taken teach/taught/taught tell/told/told throw/threw/thrown undergo/underwent/undergone
undertake/undertook/undertaken wear/wore/worn win/won/won withdraw/withdrew/withdrawn write/wrote/written
"""


def _third_person(base: str) -> str:
    if base == "have":
        return "has"
    if base.endswith(("s", "x", "z", "ch", "sh", "o")):
        return f"{base}es"
    return f"{base[:-1]}ies" if base.endswith("y") and base[-2] not in "aeiou" else f"{base}s"


def _past(base: str) -> str:
    if base.endswith("e"):
        return f"{base}d"
    return f"{base[:-1]}ied" if base.endswith("y") and base[-2] not in "aeiou" else f"{base}ed"


def _verbs() -> dict[str, dict[Form, str]]:
    found: dict[str, dict[Form, str]] = {}

    def learn(base: str, pasts: Iterable[str], participles: Iterable[str]) -> None:
        found.setdefault(base, {})[Form.BASE] = base
        found.setdefault(_third_person(base), {})[Form.S] = base
        for past in pasts:
            found.setdefault(past, {})[Form.PAST] = base
        for participle in participles:
            found.setdefault(participle, {})[Form.PART] = base

    for base in _REGULAR.split():
        learn(base, [_past(base)], [_past(base)])
    for base in _DOUBLED.split():
        pasts = [f"{base}{base[-1]}ed"] + ([_past(base)] if base.endswith("l") else [])
        learn(base, pasts, pasts)
    for entry in _IRREGULAR.split():
        base, past, participle = entry.split("/")
        learn(base, [past], [participle])
    found["founded"] = {Form.PAST: "found", Form.PART: "found"}  # "found" itself is nearly always the past of "find"
    return found


VERBS = _verbs()
"""The forms that a word can be, each with the verb's base."""


def is_plural(noun: str) -> bool:
    """Whether a lower-case noun looks like a plural."""
    looks_so = len(noun) > 3 and noun.endswith("s") and not noun.endswith(("ss", "us", "is", "'s", "’s"))
    return noun in _PLURALS or (looks_so and noun not in _SINGULARS)


def is_participle(word: str) -> bool:
    return Form.PART in VERBS.get(word, ()) or (word.endswith("ed") and len(word) > 4) or word == "been"
