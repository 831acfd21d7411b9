"""The web query: cleaned from a model's reply, or made of the question's own keywords."""

from __future__ import annotations

import pytest

from crag_core.decision.signals import SignalMeter
from crag_core.pipeline.web_stages import clean_query, keyword_query


@pytest.mark.parametrize(
    ("reply", "query"),
    [
        ("ferry fares 2025", "ferry fares 2025"),
        ('"ferry fares 2025"', "ferry fares 2025"),
        ("“ferry fares 2025”", "ferry fares 2025"),
        ("**ferry fares 2025**", "ferry fares 2025"),
        ("Query: ferry fares 2025", "ferry fares 2025"),
        ("Search query: ferry fares 2025", "ferry fares 2025"),
        ("Web search query: ferry fares 2025", "ferry fares 2025"),
        ("**Query:** ferry fares 2025", "ferry fares 2025"),
        ("Keywords: ferry fares 2025", "ferry fares 2025"),
        ("Rewritten: ferry fares 2025", "ferry fares 2025"),
        ("Rewritten query: ferry fares 2025", "ferry fares 2025"),
        ("Here is the query:\nferry fares 2025", "ferry fares 2025"),
        ("- ferry fares 2025.", "ferry fares 2025"),
        ("\n\n  ferry   fares\t2025 \nI hope this helps!", "ferry fares 2025"),
        ("```\nferry fares 2025\n```", "ferry fares 2025"),
        ("<think>What do they want?</think>\nferry fares 2025", "ferry fares 2025"),
        ("What do they want?\n</think>\nferry fares 2025", "ferry fares 2025"),
        ("one two three four five six seven", "one two three four five"),
        ("Fährpreise 2025", "Fährpreise 2025"),
        ("渡船 票价", "渡船 票价"),
        ("site:example.org ferry", "site:example.org ferry"),
        ("", ""),
        (" \n```\n", ""),
        ("<think>Endless", ""),
        ("Query:", ""),
    ],
)
def test_the_query_in_a_reply(reply: str, query: str) -> None:
    assert clean_query(reply, 5) == query


def test_a_query_has_an_end() -> None:
    assert clean_query("x" * 1000, 5) == "x" * 200


METER = SignalMeter(frozenset(["what", "does", "the", "was", "die"]))


@pytest.mark.parametrize(
    ("question", "limit", "query"),
    [
        ("What does the ferry to Kiel cost?", 10, "ferry Kiel cost"),
        ("What does the ferry to Kiel cost?", 2, "ferry Kiel"),
        ("Was kostet die Überfahrt nach „Öland“?", 10, "kostet Überfahrt nach Öland"),
        ("What does (the) e-mail say, please?", 10, "e-mail say please"),
        ("東京都の人口は?", 10, "東京都の人口は"),
        ("What does the...?", 10, "What does the...?"),
        ("", 10, ""),
    ],
)
def test_without_a_model_the_questions_own_words_are_searched(question: str, limit: int, query: str) -> None:
    assert keyword_query(question, METER.keywords, limit) == query


def test_keywords_have_an_end_too() -> None:
    assert len(keyword_query("longword " * 100, METER.keywords, 100)) == 200
