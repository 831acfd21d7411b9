"""Words of quantity, frequency and negation in English, German, French and Spanish. Data.

A word that means something else in another of the four languages is left out (Spanish "once", French "cent").
"""

from __future__ import annotations

_COUNTED = (
    "two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen "
    "nineteen twenty",
    "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn "
    "neunzehn zwanzig",
    "deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize dix-sept dix-huit dix-neuf "
    "vingt",
    "dos tres cuatro cinco seis siete ocho nueve diez - doce trece catorce quince dieciséis diecisiete dieciocho "
    "diecinueve veinte",
)
_ORDERED = (
    "second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth",
    "zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte",
    "deuxième troisième quatrième cinquième sixième septième huitième neuvième dixième onzième douzième",
    "segundo tercero - quinto sexto séptimo octavo noveno décimo",
)
_TENS = (
    "twenty thirty forty fifty sixty seventy eighty ninety",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig",
    "vingt trente quarante cinquante soixante",
    "veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa",
)
_GERMAN_ENDINGS = ("", "n", "r", "s", "m")

NUMBERS: dict[str, int] = {
    word: number for line in (*_COUNTED, *_ORDERED) for number, word in enumerate(line.split(), 2) if word != "-"
}
TENS: dict[str, int] = {word: 10 * tens for line in _TENS for tens, word in enumerate(line.split(), 2)}
NUMBERS |= TENS
NUMBERS |= {
    f"{word}{ending}": number for number, word in enumerate(_ORDERED[1].split(), 2) for ending in _GERMAN_ENDINGS
}
NUMBERS |= {f"{word}mal": number for number, word in enumerate(_COUNTED[1].split(), 2)}
NUMBERS |= {"twice": 2, "thrice": 3, "dozen": 12, "dutzend": 12, "douzaine": 12, "docena": 12, "dreissig": 30}
NUMBERS |= {"segunda": 2, "tercera": 3, "tercer": 3, "cuarta": 4, "quinta": 5, "seconde": 2, "zwo": 2}
"""Numbers and ordinals from two on; "one" is an article in three of the four languages."""

MULTIPLIERS = {
    **dict.fromkeys(("hundred", "hundert"), 100),
    **dict.fromkeys(("thousand", "tausend", "mille", "mil"), 1_000),
    **dict.fromkeys(("million", "millions", "millionen", "millón", "millones"), 1_000_000),
    **dict.fromkeys(("billion", "billions", "milliarde", "milliarden", "milliard", "milliards"), 1_000_000_000),
}

UNITS: dict[str, str] = {
    word: line.split()[0]
    for line in (
        "second seconds sec sekunde sekunden secondes segundos",
        "minute minutes min minuten minuto minutos",
        "hour hours hr hrs stunde stunden std heure heures hora horas h",
        "day days tag tage tagen jour jours journée journées día días dia dias",
        "night nights nacht nächte nächten nuit nuits noche noches",
        "week weeks woche wochen semaine semaines semana semanas",
        "month months monat monate monaten monats mois mes meses",
        "quarter quarters quartal quartale trimestre trimestres",
        "year years jahr jahre jahren jahres ans année années año años yr yrs",
        "decade decades jahrzehnt jahrzehnte décennie década décadas",
        "metre metres meter meters metern mètre mètres metro metros m",
        "kilometre kilometres kilometer kilometers kilomètre kilomètres kilómetro kilómetros km",
        "centimetre centimetres centimeter centimeters centimètre centimètres centímetro centímetros cm",
        "millimetre millimetres millimeter millimeters mm",
        "mile miles meile meilen milla millas",
        "foot feet ft fuß",
        "inch inches zoll",
        "gram grams gramm gramme grammes gramo gramos g",
        "kilogram kilograms kilo kilos kilogramm kilogramme kilogrammes kilogramo kilogramos kg",
        "tonne tonnes tonnen tonelada toneladas t",
        "litre litres liter liters litern litro litros l",
        "pound pounds pfund livre livres libra libras gbp £",
        "euro euros eur €",
        "dollar dollars dólar dólares usd $",
        "yen jpy ¥",
        "cents cent céntimos",
        "pence penny p",
        "percent % prozent",
        "degree degrees grad degré degrés grado grados °",
    )
    for word in line.split()
}
"""By what stands beside a number, its unit."""

TIMES = frozenset(["second", "minute", "hour", "day", "night", "week", "month", "quarter", "year", "decade"])
"""Units that something can happen once in."""

DAYS = {"day": 1, "week": 7}
MONTHS = {"month": 1, "quarter": 3, "year": 12, "decade": 120}
"""Units of time that are multiples of each other."""

ADVERBS: dict[str, tuple[int, int, str]] = {
    word: (times, count, unit)
    for (times, count, unit), line in (
        ((1, 1, "hour"), "hourly stündlich"),
        ((1, 1, "day"), "daily täglich quotidien quotidienne quotidiennement diario diaria diariamente"),
        ((1, 1, "night"), "nightly"),
        ((1, 1, "week"), "weekly wöchentlich hebdomadaire semanal semanalmente"),
        ((1, 2, "week"), "fortnightly biweekly"),
        ((1, 1, "month"), "monthly monatlich mensuel mensuelle mensuellement mensual mensualmente"),
        ((1, 1, "quarter"), "quarterly vierteljährlich trimestriel trimestrielle trimestral"),
        ((2, 1, "year"), "halbjährlich semiannual semiannually semestriel semestral"),
        ((1, 1, "year"), "yearly annual annually jährlich annuel annuelle annuellement anual anualmente"),
        ((1, 2, "year"), "biennial biennially zweijährlich bisannuel bienal"),
    )
    for word in line.split()
}
"""(times, in so many, units of time)."""

BOUNDS = {
    "also": (
        r"not (?:only|just|merely|simply)|nicht (?:nur|bloß)|(?:pas|non) (?:seulement|uniquement)|"
        r"no (?:solo|sólo|solamente|únicamente)"
    ),
    "at most": (
        r"at (?:the )?most|(?:not|no|never|cannot|nicht|\w+n['’]t) (?:\w+ ){0,2}"
        r"(?:more|longer|later|higher|greater|larger|often|mehr|"
        r"länger|später|höher|größer|öfter|häufiger) (?:often )?(?:than|als)|(?:not|\w+n['’]t) exceed(?:ing)?|"
        r"a maximum of|höchstens|maximal|allenfalls|au (?:plus|maximum)|"
        r"(?:pas|jamais) (?:\w+ ){0,2}plus (?:\w+ )?(?:de|que|d)|"
        r"como máximo|a lo sumo|no (?:\w+ ){0,2}más (?:\w+ )?(?:de|que)"
    ),
    "at least": (
        r"at (?:the )?(?:very )?least|(?:not|no|never|cannot|nicht|\w+n['’]t) (?:\w+ ){0,2}"
        r"(?:less|fewer|shorter|earlier|lower|smaller|"
        r"weniger|kürzer|früher|kleiner|seltener) (?:often )?(?:than|als)|a minimum of|mindestens|wenigstens|"
        r"zumindest|au (?:moins|minimum)|(?:pas|jamais) (?:\w+ ){0,2}moins (?:\w+ )?(?:de|que|d)|al menos|por lo menos|"
        r"como mínimo|no (?:\w+ ){0,2}menos (?:\w+ )?(?:de|que)"
    ),
    "more than": r"more (?:\w+ )?than|mehr als|plus de #\S+|más de #\S+",
    "less than": r"(?:less|fewer) (?:\w+ )?than|weniger als|moins de #\S+|menos de #\S+",
    "only": (
        r"only|solely|exclusively|nur|lediglich|ausschließlich|seulement|uniquement|solo|sólo|solamente|únicamente|"
        r"exclusivamente"
    ),
    "always": r"always|at all times|immer(?! (?:mehr|\w+er)\b)|stets|jederzeit|toujours|siempre",
    "never": r"never|at no time|niemals|nie|jamais|nunca",
}
"""What a word says of the bounds of a thing; longer phrases come first where one holds another."""

ALSO = {
    "at most": r"up to|maximum|max|limit(?:ed)?|bis zu|grenze|jusqu\w*|hasta|máximo|less than|under|within",
    "at least": r"minimum|min|mínimo|more than|over|exceed\w*|from|ab",
    "more than": r"over|above|exceed\w*|at least|über|supérieur\w*|superior",
    "less than": r"under|below|at most|within|unter|inférieur\w*|inferior",
    "only": r"sole|restricted|limited|unless|except|alone|must|one|single|no other|einzig\w*|except\w*|seul\w*|único",
    "always": r"every|each|all|must|constant\w*|permanent\w*|continuous\w*|whenever|invariably|jede\w*|alle\w*|chaque|"
    r"tou(?:s|tes)|cada|tod[oa]s",
}
"""What else in the evidence may be meant by such a word."""

AGAINST = {
    "at most": ("at least", "more than"),
    "at least": ("at most", "less than"),
    "more than": ("at most", "less than"),
    "less than": ("at least", "more than"),
}
STRICT = ("at most", "at least")
"""Bounds that the evidence must have, too; "more" and "less" may compare any two things."""
SOFT = (
    r"(?:not|nicht|pas|no) (?:<always>|all|every)|sometimes|usually|often|rarely|seldom|manchmal|meist(?:ens)?|oft|"
    r"selten|parfois|souvent|rarement|a veces|a menudo|rara vez"
)
"""Contradicts "always" and "never"."""
