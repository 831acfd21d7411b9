"""Queries: cleaned from a model's reply, or made of the question's own keywords."""

import pytest

from crag_core.decision.signals import SignalMeter
from crag_core.pipeline.web_stages import clean_query, key_phrases, keyword_query


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("ferry fares 2025", "ferry fares 2025"),
        ('"ferry fares 2025"', "ferry fares 2025"),
        ("Web search query: ferry fares 2025", "ferry fares 2025"),
        ("Rewritten query: ferry fares 2025", "ferry fares 2025"),
        ("Here is the query:\nferry fares 2025", "ferry fares 2025"),
        ("Web-optimized version: boat", "boat"),  # the label of description 004
        ("Original: How do I get there?\nWeb-optimized version: boat", "boat"),
        ("Question: boat", "boat"),
        ("Sure! Here's a better search query: boat", "boat"),
        ("Here is the web-optimized version of the query: boat", "boat"),
        ("The rewritten query is: boat", "boat"),
        ("Web-optimised version – boat", "boat"),
        ("Search query - boat: fares", "boat: fares"),
        ("Search engine query：boat", "boat"),
        ("Mots-clés : boat", "boat"),
        ("<query>boat</query>", "boat"),
        ('```json\n{"query": "boat"}\n```', "boat"),
        ("Query: " * 500 + "boat", "boat"),
        # what only looks like a label
        ("Python: list comprehension", "Python: list comprehension"),
        ("Star Wars: A New Hope", "Star Wars: A New Hope"),
        ("Query optimization: index hints", "Query optimization: index hints"),
        ("the best search engine: history", "the best search engine: history"),
        ("ferry 10:30 Vennick", "ferry 10:30 Vennick"),
        ("- ferry fares 2025.", "ferry fares 2025"),
        ("\n\n  ferry   fares\t2025 \nI hope this helps!", "ferry fares 2025"),
        ("<think>What do they want?</think>\nferry fares 2025", "ferry fares 2025"),
        (
            "one two three four five six seven eight nine ten eleven twelve",
            "one two three four five six seven eight nine ten eleven twelve",
        ),
        ("渡船 票价", "渡船 票价"),
        ("site:example.org ferry", "site:example.org ferry"),
        ("", ""),
        (" \n```\n", ""),
        ("<think>Endless", ""),
        ("Query:", ""),
    ],
)
def test_the_query_in_a_reply(reply: str, query: str) -> None:
    assert clean_query(reply) == query


def test_a_query_has_an_end() -> None:
    assert clean_query("x" * 1000) == "x" * 200


METER = SignalMeter(frozenset(["what", "does", "the", "was", "die"]))


@pytest.mark.parametrize(
    ("question", "query"),
    [
        ("What does the ferry to Kiel cost?", "ferry Kiel cost"),
        ("Was kostet die Überfahrt nach „Öland“?", "kostet Überfahrt nach Öland"),
        ("What does (the) e-mail say, please?", "e-mail say please"),
        ("東京都の人口は?", "東京都の人口は"),
        ("What does the...?", "What does the...?"),
        ("", ""),
    ],
)
def test_the_keywords_of_a_question_are_its_own_words(question: str, query: str) -> None:
    assert keyword_query(question, METER.keywords) == query


def test_keywords_have_an_end_too() -> None:
    assert keyword_query("longword " * 100, METER.keywords) == " ".join(["longword"] * 22)


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("Hurricane Milton, Tampa Bay, 2024", "Hurricane Milton, Tampa Bay, 2024"),
        ("Hurricane Milton, Tampa Bay, 2024, damage", "Hurricane Milton, Tampa Bay, 2024"),
        ("effects of Hurricane Milton on Tampa Bay in October 2024", None),
        ("1. Hurricane Milton\n2. Tampa Bay\n3. 2024", "Hurricane Milton, Tampa Bay, 2024"),
        ("Here are the phrases:\n- Hurricane Milton\n- Tampa Bay", "Hurricane Milton, Tampa Bay"),
        ('Key phrases: "Hurricane Milton"; "Tampa Bay"', "Hurricane Milton, Tampa Bay"),
        ("Web-optimized version: Hurricane Milton, Tampa Bay", "Hurricane Milton, Tampa Bay"),
        ("Hurricane Milton, hurricane milton, Tampa Bay", "Hurricane Milton, Tampa Bay"),
        ("ハリケーン・ミルトン、タンパ湾", "ハリケーン・ミルトン, タンパ湾"),
        ("<think>Which?</think>Hurricane Milton, Tampa\nI hope this helps!", "Hurricane Milton, Tampa"),
        (f"{'x' * 150}, {'y' * 40}, {'z' * 40}", f"{'x' * 150}, {'y' * 40}"),
        ("Key phrases:", ""),
        ("", ""),
    ],
)
def test_key_phrases_are_kept_whole(reply: str, query: str | None) -> None:
    assert key_phrases(reply, 3) == (reply if query is None else query)
