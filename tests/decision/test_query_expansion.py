"""What a question is widened by, and where each term comes from; the users' file of synonyms and its ugly lines."""

from pathlib import Path

import pytest

from crag_core.base.errors import BadRecord
from crag_core.decision.query_expansion import ExpandedQuery, expand, parse_synonyms
from crag_core.decision.signals import SignalMeter
from tests.builders import passage

DATA = Path(__file__).parents[2] / "data"
STOP_WORDS = frozenset((DATA / "stopwords.txt").read_text("utf-8").split())
METER = SignalMeter(STOP_WORDS)
SYNONYMS = parse_synonyms(
    "ferry: boat, vessel, ship\nprice: fare\nhund: tier\nday off: leave\n渡船料金: 運賃\nbox: crate"
)
QUESTION = "What does the ferry cost?"


def widen(
    question: str, *texts: str, synonyms: dict[str, tuple[str, ...]] | None = None, **limits: int
) -> ExpandedQuery:
    found = [passage(f"p{number}", text) for number, text in enumerate(texts)]
    known = {} if synonyms is None else synonyms
    return expand(question, METER.keywords(question), known, found, STOP_WORDS, **limits)


def terms(expansion: ExpandedQuery) -> list[str]:
    return [term for term, _ in expansion.added]


# --- synonyms ---------------------------------------------------------------------------------------------------------


def test_a_keyword_gains_its_first_two_synonyms() -> None:
    assert widen(QUESTION, synonyms=SYNONYMS) == ExpandedQuery(
        "What does the ferry cost? boat vessel", (("boat", "synonym of ferry"), ("vessel", "synonym of ferry"))
    )


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("Which ferries sail?", ["boat", "vessel"]),
        ("FERRY", ["boat", "vessel"]),
        ("ferry ferry, Ferry!", ["boat", "vessel"]),
        ("The price of the ferry", ["fare", "boat", "vessel"]),
        ("Which prices are there?", ["fare"]),
        ("Was kosten zwei Hunde?", ["tier"]),
        ("Futter für den Hund, den Hunden, des Hundes", ["tier"]),
        ("Where are the boxes?", ["crate"]),
        ("How many ferry boats are there?", ["vessel", "ship"]),  # what the question says takes no place
        ("Is the ferry a boat, a vessel or a ship?", []),
        ("When is my day off?", ["leave"]),
        ("Sunday offer", []),  # holds the letters of "day off", not the words
        ("渡船料金はいくらですか", ["運賃"]),
        ("The ferryman", []),
        ("", []),
        ("?!", []),
    ],
)
def test_synonyms_of_plurals_endings_and_phrases(question: str, found: list[str]) -> None:
    expansion = widen(question, synonyms=SYNONYMS)
    assert terms(expansion) == found
    assert expansion.query == " ".join([question, *found])


# --- words of the passages --------------------------------------------------------------------------------------------


def test_words_beside_a_keyword_in_two_passages() -> None:
    expansion = widen(
        QUESTION,
        "The ferry to Vennick leaves at nine. Galley food is warm.",
        "Galley food is good. Every ferry from Vennick is blue.",
        "In winter the ferry stays in Vennick, in Vennick harbour.",
    )
    assert expansion.added == (("Vennick", "beside words of the question in 3 chunks"),), (
        "galley and food stand elsewhere"
    )
    assert expansion.query == "What does the ferry cost? Vennick"


def test_a_single_passage_must_say_it_twice() -> None:
    text = "The ferry goes to Vennick. Crew live in Vennick. Vennick is a ferry port; a small port."
    assert widen(QUESTION, text).added == (
        ("Vennick", "beside words of the question 2 times"),
        ("port", "beside words of the question 2 times"),
    )


# --- scripts, size, nothing -------------------------------------------------------------------------------------------


def test_chinese_and_japanese_add_whole_pairs_of_characters() -> None:
    japanese = widen("電波塔はどこですか", "電波塔は東京にあります。", "東京の電波塔は高いです。")
    assert japanese.query == "電波塔はどこですか 東京"
    assert japanese.added == (("東京", "beside words of the question in 2 chunks"),)
    capital = widen("電波塔はどこですか", "電波塔は東京都港区にあります。", "東京都港区の電波塔は高いです。")
    assert terms(capital) == ["東京", "都港"], "not 京都, which is only a piece of what is there already"
    chinese = widen("渡船多少钱", "渡船去北京。", "北京的渡船很大。", synonyms=parse_synonyms("渡船: 轮渡, 客船, 船"))
    assert terms(chinese) == ["轮渡", "客船", "北京"]


# --- the file ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ferry: boat, vessel", {"ferry": ("boat", "vessel")}),
        ("  Ferry :  BOAT ,guest   House  ", {"ferry": ("boat", "guest house")}),
        ("ferry: boat # and ship", {"ferry": ("boat",)}),
        ("# ferry: boat\n\n   \n#\nprice: fare", {"price": ("fare",)}),
        ("\ufeffferry: boat\r\nprice: fare\r\n", {"ferry": ("boat",), "price": ("fare",)}),
        (
            "ferry: boat, ship\nprice: fare\nFERRY: ship, liner",
            {"ferry": ("boat", "ship", "liner"), "price": ("fare",)},
        ),
        ("c#: csharp", {"c#": ("csharp",)}),
        ("fa\u0308hre: schiff", {"fähre": ("schiff",)}),
        ("day off: leave", {"day off": ("leave",)}),
        ("", {}),
    ],
)
def test_reading_synonyms(text: str, found: dict[str, tuple[str, ...]]) -> None:
    assert parse_synonyms(text) == found


@pytest.mark.parametrize(
    "line",
    [
        *[
            "ferry",
            "ferry boat",
            "ferry:",
            "ferry: ",
            ": boat",
            ":",
            "ferry: boat,",
            "ferry: , boat",
            "ferry: boat,, ship",
        ],
        *["ferry: boat: ship", "ferry = boat", "ferry; boat", "?: boat", "ferry: ???", "ferry: # boat", "x" * 5000],
        "<script>alert(1)</script>",
    ],
)
def test_a_malformed_line_is_named_with_its_number(line: str) -> None:
    with pytest.raises(BadRecord) as caught:
        parse_synonyms(f"# first\nprice: fare\n{line}\nfee: charge", "mine.txt")
    message = str(caught.value)
    assert message.startswith("mine.txt, line 3: expected 'term: synonym, other synonym', found '")
    assert line[:12].split(" #")[0].strip() in message and len(message) < 250 and caught.value.hint


def test_the_file_that_comes_with_the_project() -> None:
    text = (DATA / "synonyms.txt").read_text("utf-8")
    synonyms = parse_synonyms(text)
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert 60 <= len(lines) == len(synonyms), "no term is there twice"
    for term, others in synonyms.items():
        expansion = expand(term, METER.keywords(term), synonyms, (), STOP_WORDS)
        assert (others[0], f"synonym of {term}") in expansion.added, "a stop word or an inflection hides it"
        assert (others[1], f"synonym of {term}") in expansion.added


NINE = ("function", "variable", "error", "class", "async", "explain", "compare", "implement", "optimize")


def test_the_nine_entries_of_description_000_are_there_as_written() -> None:
    synonyms = parse_synonyms((DATA / "synonyms.txt").read_text("utf-8"))
    assert {term: ", ".join(synonyms[term]) for term in NINE} == {
        "function": "method, procedure, routine, callable",
        "variable": "parameter, argument, value, identifier",
        "error": "exception, failure, bug, issue",
        "class": "type, object, structure, entity",
        "async": "asynchronous, concurrent, non-blocking",
        "explain": "describe, clarify, illustrate, define",
        "compare": "contrast, differentiate, distinguish",
        "implement": "create, build, develop, code",
        "optimize": "improve, enhance, refactor, speed up",
    }


def test_the_example_of_description_000_is_expanded() -> None:
    synonyms = parse_synonyms((DATA / "synonyms.txt").read_text("utf-8"))
    expansion = widen("explain async function", synonyms=synonyms)
    assert expansion.query.startswith("explain async function ")
    assert {"asynchronous", "concurrent"} & set(terms(expansion)) and {"describe", "clarify"} & set(terms(expansion))
