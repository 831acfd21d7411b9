"""The answer on the screen: sentences with their marks, links and quotes; and the card of a question not answered."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from crag_core.base.protocols import SupportMeter
from crag_core.base.types.answers import Answer, AnswerState
from crag_core.base.types.grades import Grade
from crag_core.decision.policy import Doubtful
from crag_core.decision.refine import decompose
from crag_core.evaluators.support.by_model import ModelSupport
from crag_core.evaluators.support.words import WordSupport
from crag_core.pipeline.answer_stages import check
from crag_core.pipeline.run import Parts, Run
from crag_core.trace.grounding.citation_check import WORDS
from crag_core.trace.reroute import reroute
from crag_core.trace.trace import Trace, context_key
from crag_core.view.run_view import view_run
from tests.builders import passage, policy, trace
from tests.fakes import FakeModel
from tests.ui.drawn import drawn, parts, said
from ui.run.answer_card.card import draw_answer

STOP_WORDS = frozenset({"the", "a", "of", "at", "are", "in", "and", "on", "was", "to"})
PETS = passage("p1", "# Pets\n\nDogs travel free of charge if they are kept on a leash.", source="faq.html")
DUES = passage("p2", "A yacht pays 14 pounds a night. The office closes at eight.", source="dues.pdf", page=3)
MIXED = (
    "Dogs travel free of charge on a leash [1]. Yachts pay 14 pounds a night [1]. Yachts pay 99 pounds [2]. "
    "The captain loved herring [7].\n\nAccording to the documents:"
)


@pytest.fixture(scope="module")
def meter() -> WordSupport:
    from crag_core.evaluators.shipped import EVALUATOR_FOLDER

    return WordSupport(EVALUATOR_FOLDER, STOP_WORDS)


def answered(
    meter: SupportMeter | None,
    text: str,
    writer: str = "llama3.2",
    state: AnswerState = AnswerState.COMPLETE,
    message: str = "",
    grades: float = 0.9,
    strips: float = 0.9,
    name: str = "run-1",
    judge: str = WORDS,
) -> Trace:
    """A run on two passages that was answered so, and measured."""
    found = (PETS, DUES)
    scored = tuple(replace(strip, score=strips) for one in found for strip in decompose(one))
    run = trace(
        policy("paper"), id=name, passages=found, grades=tuple(Grade(one.id, grades) for one in found), strips=scored
    )
    run = replace(run, settings=replace(run.settings, support=judge))
    routed = reroute(run, run.settings.policy)
    key = context_key(run.question, routed.decision.action, routed.knowledge.excerpts)
    run = replace(run, answer=Answer(text, state, writer, key, message))
    result = check(run, Parts(None, None, None, support=meter), Run())  # type: ignore[arg-type]
    return replace(run, **result.changes) if result else run


def page(run: Trace) -> None:
    draw_answer(view_run(run))


def shown(run: Trace) -> AppTest:
    return drawn(page, run=run)


def data(app: AppTest) -> dict[str, Any]:
    (found,) = parts(app, "answer")
    return found


def sentences(app: AppTest) -> list[dict[str, Any]]:
    return [one for block in data(app)["blocks"] for one in block["sentences"]]


def words(one: dict[str, Any]) -> str:
    return "".join(part[0] for part in one["parts"])


def links(one: dict[str, Any]) -> dict[str, str]:
    return {text: href for text, href, _ in one["parts"] if href}


# --- sentences --------------------------------------------------------------------------------------------------------


def test_each_sentence_has_its_standing_in_a_sign_and_in_words(meter: WordSupport) -> None:
    app = shown(answered(meter, MIXED))
    found = sentences(app)
    assert [(one["standing"], one["sign"], one["word"]) for one in found] == [
        ("supported", "✓", ""),
        ("supported", "✓", ""),
        ("weak", "≈", "words found in part"),
        ("none", "✗", "words not found"),
        ("unchecked", "–", "not checked"),
    ]
    wrong = {1: "cites [1], but its words are in [2]", 3: "cites [7], which is not among its sources"}
    assert {at: one["note"] for at, one in enumerate(found) if one["note"]} == wrong
    assert [words(one) for one in found] == [part for part in re.split(r"(?<=\.) |\n\n", MIXED)]
    assert [len(block["sentences"]) for block in data(app)["blocks"]] == [4, 1]
    assert data(app)["sum"] == (
        "The words of 2 of 4 sentences are found in the evidence, of 1 in part, of 1 not; 1 could not be checked."
    )


def test_citations_lead_to_their_passages_and_an_absent_one_nowhere(meter: WordSupport) -> None:
    found = sentences(shown(answered(meter, "Dogs travel free on a leash [1, 2]. A yacht pays 14 [9].")))
    assert links(found[0]) == {"[1]": "#passage-1", "[2]": "#passage-2"}
    assert words(found[0]) == "Dogs travel free on a leash [1] [2]."
    assert links(found[1]) == {} and found[1]["note"] == "cites [9], which is not among its sources"


def test_what_supports_a_sentence_is_shown_word_for_word_with_a_link(meter: WordSupport) -> None:
    found = sentences(shown(answered(meter, MIXED)))
    assert found[0]["quotes"] == [
        {
            "text": "Dogs travel free of charge if they are kept on a leash.",
            "source": "[1] faq.html",
            "href": "#passage-1",
            "index": 0,
        }
    ]
    assert found[1]["quotes"][0]["source"] == "[2] dues.pdf, page 3"
    assert "“A yacht pays 14 pounds a night.”" in found[1]["hint"]
    assert found[2]["head"].startswith("Score 0.50. 0.55 would count as found. Not in the evidence: “99”.")
    assert found[3]["quotes"] == [] and "less than 0.35" in found[3]["head"]
    assert found[4]["quotes"] == [] and "Not compared" in found[4]["head"]


def test_a_plain_quotation_stays_compact(meter: WordSupport) -> None:
    text = "“Dogs travel free of charge if they are kept on a leash.” [1]\n\n“A yacht pays 14 pounds a night.” [2]"
    app = shown(answered(meter, text, writer="extractive"))
    assert {one["standing"] for one in sentences(app)} == {"plain"}
    assert not any(one["sign"] for one in sentences(app))
    assert data(app)["sum"] == "" and "Quoted word for word" in said(app)
    written = data(shown(answered(meter, text)))
    assert written["sum"] == "The words of both sentences are found in the evidence.", "of a model that is worth saying"


def test_lists_and_code_keep_their_lines(meter: WordSupport) -> None:
    text = "Fees:\n\n- Dogs: free [1]\n- Yachts: 14 [2]\n\n```\na  b\n c\n```"
    blocks = data(shown(answered(meter, text)))["blocks"]
    assert [block["code"] for block in blocks] == [False, False, False, True]
    assert "\n" in words(blocks[3]["sentences"][0]) and words(blocks[1]["sentences"][0]) == "- Dogs: free [1]"


# --- a model as judge -------------------------------------------------------------------------------------------------

JUDGE = "ollama/llama3.2"
VERDICTS = {
    "Dogs": '{"verdict": "supported", "sentences": [1]}',
    "Yachts": '{"verdict": "partly", "sentences": [2]}',
    "The": '{"verdict": "not supported", "sentences": []}',
    "Cats": "Who knows?",
    "Horses": '{"verdict": "supported", "sentences": []}',
}


def opined(text: str) -> Trace:
    """The same, judged by a model."""
    model = FakeModel(check=lambda messages: VERDICTS[messages[1][1].rpartition("Statement: ")[2].split()[0]])
    return answered(ModelSupport(model, STOP_WORDS), text, judge=JUDGE)


def test_a_judged_answer_says_who_judged_and_shows_no_made_up_score() -> None:
    app = shown(opined("Dogs cost nothing [1]. Yachts pay fees [2]. The captain loved herring. Cats swim."))
    found = sentences(app)
    assert [one["sign"] for one in found] == ["✓", "≈", "✗", "–"]
    assert [one["head"] for one in found] == [
        f"Judged by {JUDGE}: supported. It rests on:",
        f"Judged by {JUDGE}: weakly supported. It rests on:",
        f"Judged by {JUDGE}: nothing in the evidence supports this.",
        "Not judged: the model's reply could not be read, or it is code or claims nothing by itself.",
    ]
    assert found[0]["hint"].startswith(f"Supported, judged by {JUDGE}. [1] faq.html: “Dogs travel free")
    assert found[0]["after"] == f"supported, judged by {JUDGE}; details"
    assert [one["quotes"][0]["text"] for one in found[:2]] == [
        "Dogs travel free of charge if they are kept on a leash.",
        "A yacht pays 14 pounds a night.",
    ]
    told = data(app)
    assert told["sum"] == (
        f"Judged by {JUDGE}: 1 of 3 sentences are supported by the evidence, 1 weakly, 1 by nothing in it; "
        "1 could not be checked."
    )
    everything = str(told)
    for not_of_words in ("0.55", "0.35", "1.00", "0.45", "0.50", "85 of 100", "compares words"):
        assert not_of_words not in everything
    assert "may be wrong" in told["about"] and "--judge" in told["about"]


# --- what was not measured --------------------------------------------------------------------------------------------


def test_an_answer_that_was_not_measured_is_shown_without_marks() -> None:
    app = shown(answered(None, MIXED))
    assert [words(one) for one in sentences(app)] == MIXED.split("\n\n")
    assert data(app)["sum"] == "" and links(sentences(app)[0])["[1]"] == "#passage-1"
    assert "What stands behind each sentence was not measured in this run" in said(app)


@pytest.mark.parametrize(
    ("state", "told"),
    [
        (AnswerState.STOPPED, "Stopped."),
        (AnswerState.CUT, "written until then"),
        (AnswerState.FAILED, "The answer broke off."),
    ],
)
def test_an_unfinished_answer_is_said_to_be_unchecked(meter: WordSupport, state: AnswerState, told: str) -> None:
    app = shown(answered(meter, "Dogs travel free of", state=state))
    assert told in said(app) and "unchecked" in said(app)
    assert data(app)["sum"] == "" and "What stands behind" not in said(app)
    assert "Nothing was written until then." in said(shown(answered(meter, "", state=state)))


def test_sources_are_listed_and_an_answer_without_any_is_warned_of(meter: WordSupport) -> None:
    text = said(shown(answered(meter, "Dogs travel free on a leash [1].")))
    _, line, *others = text.replace("[[1]", "[1]").split("\n")
    assert "[1] faq.html](#passage-1)" in line and "dues.pdf" not in line
    assert "dues.pdf" in "".join(others), "given to the writer, and cited by nothing"
    assert "# Pets" not in text, "a heading is no sentence"
    text = said(shown(answered(meter, "Dogs travel free on a leash.")))
    assert "This answer cites nothing" in text and "dues.pdf" in text


# --- not answered -----------------------------------------------------------------------------------------------------


def test_a_question_that_cannot_be_answered_has_a_card_of_its_own(meter: WordSupport) -> None:
    why = "This cannot be answered from the evidence: <b>nothing</b>."
    run = answered(meter, "", "extractive", AnswerState.CANNOT_ANSWER, why, grades=0.1)
    text = said(app := shown(run))
    assert parts(app, "answer") == []
    assert "Cannot be answered" in text and why in text
    for told in (
        "Closest",
        "“Dogs travel free of charge if they are kept on a leash.” :gray[faq.html · score 0.90: set aside with all",
        "Add documents that hold the answer",
    ):
        assert told in text, told
    assert "<b>" not in "".join(str(one.value) for one in app.markdown).replace("\\<b\\>", "")


def test_a_doubtful_ending_is_headed_as_no_answer(meter: WordSupport) -> None:
    quoted = said(shown(answered(meter, "“A yacht pays 14 pounds a night.” [2]", "extractive", grades=0.5)))
    written = said(shown(answered(meter, "A yacht pays 14 pounds [2].", grades=0.5)))
    assert all("#### :orange-badge[:material/help: Doubtful]" in one for one in (quoted, written))
    assert all("Not certain enough for an answer: best chunk 0.50" in one for one in (quoted, written))


def test_a_policy_that_abstains_shows_the_nearest_sentences_only_when_opened(meter: WordSupport) -> None:
    run = answered(meter, "A yacht pays 14 pounds [2].", grades=0.5)
    abstaining = run.settings.policy.with_doubtful(Doubtful.ABSTAIN)
    app = shown(replace(run, settings=replace(run.settings, policy=abstaining)))
    assert parts(app, "answer") == [] and "Not certain enough for an answer" in said(app)
    assert "Closest matches; may not answer." in said(app)
