"""The record of a run: portable, and suspicious of whatever comes back."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.types.answers import Support
from crag_core.base.types.decisions import Action, Correction, CorrectionKind
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade, Opinion
from crag_core.base.types.knowledge import Excerpt, Extraction
from crag_core.base.types.steps import ModelCall, Step, StepState, Usage
from crag_core.decision.decide import decide
from crag_core.trace.reroute import Missing, reroute
from crag_core.trace.trace import SCHEMA, Trace, context_ids, context_key
from tests.builders import answer, even, graded, passage, policy, round_of, searched, strips_of, trace, web_page
from tests.made_up_runs import JUDGE

LATER = passage("p3", "Later text.")


def whole_trace() -> Trace:
    found, grades = graded(0.9, None)
    paper = policy("paper")
    page = web_page("w1", "Fares rose.")
    return trace(
        paper,
        passages=found,
        signals=even(0.5),
        rounds=(round_of("keyword", LATER),),
        grades=grades,
        strips=(*strips_of(found[0], ("Some text.", 0.5)), *strips_of(LATER, ("Later text.", 0.3))),
        decision=decide(paper, found, grades),
        earlier=(decide(paper, found, None),),
        corrections=(Correction(CorrectionKind.REFINE, "because", query="ferry"),),
        extractions=(Extraction("p1", (0,), ("Not there.",)),),
        web_grades=(Grade("w1", 0.5),),
        web=searched(page, strips=strips_of(page, ("Fares rose.", 0.4))),
        context=("p1#0", "w1"),
        answer=answer("0123456789abcdef"),
        support=(Support(0, 4, 0.9, ("p1#0", "w1"), (1,)), Support(5, 15, None)),
        edits=Edits(("p2",), ("w1", "gone"), even(0.25)),
        opinions=(Opinion(JUDGE, "qwen", (Grade("p1", 0.25), Grade("w1", None, cause="away", retryable=True))),),
        steps=(Step("retrieve", "2 chunks", seconds=0.5), Step("grade", "1 of 2", usage=Usage(2, 10, 5))),
        calls=(
            ModelCall("grade", (("system", "Grade."), ("user", "Text")), "0.5", Usage(1, 10, 5)),
            ModelCall("grade", (), "", error="away"),
        ),
    )


def test_a_whole_run_survives_the_way_to_json_and_back() -> None:
    run = whole_trace()
    assert Trace.from_json(run.to_json()) == run
    assert Trace.from_json(run.to_json()).to_json() == run.to_json()
    assert [one["passage_id"] for one in run.to_dict()["grades"]] == [one.passage_id for one in run.grades or ()]


def as_written() -> dict[str, Any]:
    """A run of the policy agentic as version 0.1.0 wrote it."""
    data: dict[str, Any] = json.loads((Path(__file__).parent / "run-0.1.0.json").read_text("utf-8"))
    return data


def test_a_run_of_version_0_1_0_is_still_read() -> None:
    old = as_written()
    run = Trace.from_dict(old)
    assert (old["schema"], run.schema) == (1, SCHEMA)
    assert (run.question, run.usage, run.rounds, run.earlier, run.corrections) == (
        "What does the ferry cost?",
        Usage(3, 10, 5),
        (),
        (),
        None,
    )
    assert [grade.score for grade in run.grades or ()] == [0.5, None, 0.1]
    assert "support" not in old["settings"] and run.settings.support == "words"
    assert Trace.from_json(run.to_json()) == run


def test_a_run_of_version_0_1_0_is_routed_as_it_was() -> None:
    run = Trace.from_dict(as_written())
    routed = reroute(run, run.settings.policy)
    assert routed.decision.reason == "mean of 2 kept chunks 0.50 between lower 0.30 and upper 0.70"
    assert run.decision.decides_like(replace(run.decision, reason="in other words"))
    assert not run.decision.decides_like(replace(run.decision, score=0.51))
    assert context_ids(routed.knowledge.excerpts) == run.context
    assert (routed.answer, routed.missing) == (run.answer, (Missing.RE_RETRIEVAL,))


@pytest.mark.parametrize(
    "text",
    [
        *("", "not json", "{", "[" * 100_000, '{"schema":' * 50_000, "9" * 5000, "\x00", "\ud800"),
        *("[]", "null", "7", '"run"', "{}", "NaN"),
    ],
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(BadRecord, match="not a recorded run"):
        Trace.from_json(text)


@pytest.mark.parametrize(
    "text", ['{"schema": 0}', '{"schema": 7}', '{"schema": "1"}', '{"schema": true}', '{"schema": []}']
)
def test_another_schema_is_refused_with_what_to_do(text: str) -> None:
    with pytest.raises(BadRecord, match="expected one of 1, 2, 3") as refusal:
        Trace.from_json(text)
    assert "Export it again" in refusal.value.hint


@pytest.mark.parametrize("change", [{"passage_id": "p99"}, {"text": "Another."}, {"start": 3}, {"end": 10**9}])
@pytest.mark.parametrize("where", ["run.strips", "run.web.strips"])
def test_a_strip_that_stands_in_no_passage_of_the_run_is_refused(where: str, change: dict[str, Any]) -> None:
    data = whole_trace().to_dict()
    strips = data["strips"] if where == "run.strips" else data["web"]["strips"]
    strips[0] |= change
    if change == {"end": 10**9}:
        strips[0]["text"] += "!"
    with pytest.raises(BadRecord) as refusal:
        Trace.from_dict(data)
    assert refusal.value.message.startswith(f"{where}[0]: this strip does not stand in a chunk")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"end": 16}, "run.support[1]: expected a sentence between 4 and 15"),
        ({"start": 3}, "run.support[1]: expected a sentence between 4 and 15, where the answer goes on, found 3 to 15"),
        ({"start": 10**9, "end": 10**9}, "run.support[1]: expected a sentence"),
        ({"start": 9, "end": 8}, "run.support[1]: expected 0 <= start <= end"),
        ({"pieces": ["p1#0", "p9"]}, "run.support[1].pieces: 'p9' is no chunk and no strip of the run"),
        ({"pieces": ["x" * 10_000]}, "run.support[1].pieces: "),
        ({"cited": ["1"]}, "run.support[1].cited[0]: expected a valid integer"),
        ({"score": 2}, "run.support[1]: expected a score in 0..1"),
        ({"spans": [[0]]}, "run.support[1].spans[0]"),
        ({"spans": [["0", 2]]}, "run.support[1].spans[0][0]: expected a valid integer"),
        ({"spans": 5}, "run.support[1].spans"),
    ],
)
def test_support_that_does_not_fit_answer_and_evidence_is_refused(change: dict[str, Any], message: str) -> None:
    data = whole_trace().to_dict()
    data["support"][1] |= change
    with pytest.raises(BadRecord) as refusal:
        Trace.from_dict(data)
    assert refusal.value.message.startswith(message) and len(refusal.value.message) < 200


@pytest.mark.parametrize("change", [{"lower": 0.9}, {"upper": 1.5}, {"lower": -1}, {"strip_cutoff": 7}, {"batch": 0}])
@pytest.mark.parametrize(
    "where", ["run.settings.evaluator", "run.settings.strip_evaluator", "run.opinions[0].evaluator"]
)
def test_an_evaluator_that_no_policy_could_be_suited_to_is_refused(where: str, change: dict[str, Any]) -> None:
    data = whole_trace().to_dict()
    card = data["opinions"][0]["evaluator"] if "opinions" in where else data["settings"][where.rpartition(".")[2]]
    card |= change
    with pytest.raises(BadRecord) as refusal:
        Trace.from_dict(data)
    assert refusal.value.message.startswith(f"{where}: expected 0 <= lower <= upper <= 1")


@pytest.mark.parametrize(
    ("states", "failed"),
    [
        ((), False),
        ((StepState.DONE,), False),
        ((StepState.DONE, StepState.FAILED), True),
        ((StepState.STOPPED,), True),
        ((StepState.FAILED, StepState.DONE), True),  # the other lane went on
        ((StepState.DONE, StepState.STOPPED, StepState.SKIPPED), True),
        ((StepState.WAITING,), False),
        ((StepState.SKIPPED,), False),
    ],
)
def test_a_run_broke_off_if_any_step_did(states: tuple[StepState, ...], failed: bool) -> None:
    run = trace(policy("paper"), steps=tuple(Step("grade", "", state) for state in states))
    assert (run.failure is not None) is failed


EXCERPTS = (Excerpt(passage("p1"), "One.", ("p1#0",)), Excerpt(passage("p2"), "Two."))


def test_an_answer_is_tied_to_question_action_passages_texts_and_order() -> None:
    key = context_key("Why?", Action.CORRECT, EXCERPTS)
    assert key == context_key("Why?", Action.CORRECT, EXCERPTS)
    others = [
        context_key("Why not?", Action.CORRECT, EXCERPTS),
        context_key("Why?", Action.AMBIGUOUS, EXCERPTS),
        context_key("Why?", Action.CORRECT, EXCERPTS[::-1]),
        context_key("Why?", Action.CORRECT, EXCERPTS[:1]),
        context_key("Why?", Action.CORRECT, (replace(EXCERPTS[0], text="One. More."), EXCERPTS[1])),
        context_key("Why?", Action.CORRECT, (replace(EXCERPTS[0], passage=passage("p3")), EXCERPTS[1])),
    ]
    assert len({key, *others}) == 7


# --- the words of schemas 1 to 4 ------------------------------------------------------------------------------------

OLD_AGENTIC: dict[str, Any] = {
    "aggregation": "mean-of-kept",
    "ungraded_score": 0.5,
    "web_query_words": 10,
    "web_when_ungraded": False,
    "without_model": "",
    "second_opinion": {"evaluator": "llm", "band": [0.3, 0.7]},
    "fast_path": {"read_file": True, "few_context": 2, "high_vector_score": 0.8, "always": False},
    "loop": {"max_iterations": 3, "strategies": ["keyword", "rewritten", "expanded", "web"]},
    "strips": {"cutoff": None, "order": "document", "token_budget": None, "top": None, "scorer": "cross-encoder"},
    "correct": {"label": "Generate", "passages": "whole", "web": "never", "re_retrieve": None},
    "ambiguous": {"label": "Refine", "passages": "whole", "web": "never", "re_retrieve": "refine"},
    "incorrect": {
        "label": "Re-retrieve",
        "passages": "discard",
        "web": "never",
        "re_retrieve": "next-strategy",
        "keep_original_without_web": True,
    },
}
SECOND = {"evaluator": "llm", "lower": 0.3, "upper": 0.7, "score": 0.9, "usage": {"calls": 1}}


def in_schema_5(run: Trace) -> dict[str, Any]:
    """`run` with the grades that decide apart from those of others, and those of the web with its results."""
    data = run.to_dict() | {"schema": 5}
    own, *data["opinions"] = data["opinions"]
    of_web = [one for one in own["grades"] if one["passage_id"].startswith("w")]
    data["grades"] = [one for one in own["grades"] if one not in of_web]
    data["web"]["grades"] = of_web or None
    return data


def in_the_form_before(run: Trace) -> dict[str, Any]:
    """`run` of the policy agentic as schema 4 wrote it, with a second reading of each grade."""
    data = in_schema_5(run) | {"schema": 4}
    plain = data["settings"]["policy"]
    told = {name: plain[name] for name in ("name", "title", "summary", "source", "evaluator", "lower", "upper")}
    data["settings"] |= {"policy": told | OLD_AGENTIC}
    graded_twice = [*data["grades"], *data["web"]["grades"], *(g for one in data["opinions"] for g in one["grades"])]
    for one in graded_twice:
        one["second"] = SECOND
    for one in (data["decision"], *data["earlier"]):
        one["handling"] = {"keep": "whole"}.get(one["handling"], one["handling"])
        asks_the_web = one["next_round"] is None and "web_search" in [step["kind"] for step in one["plan"]]
        one["next_round"] = "web" if asks_the_web else one["next_round"]
    return data


def test_a_record_of_schema_4_is_read_in_the_words_of_today() -> None:
    of = policy("agentic")
    found, grades = graded(0.1, 0.1, 0.1)
    made = [decide(of, found, grades, path=path) for path in ((), ("keyword",), ("keyword", "rewritten"))]
    to_the_web = decide(replace(of, max_rounds=9), found, grades, path=("keyword", "rewritten", "expanded"))
    run = trace(
        of,
        passages=found,
        grades=grades,
        web_grades=(Grade("w1", 0.5),),
        decision=made[2],
        earlier=(to_the_web, *made[:2]),
        web=searched(web_page("w1", "Fares rose.")),
        opinions=(Opinion(JUDGE, "qwen", (Grade("p1", 0.25),)),),
    )
    old = in_the_form_before(run)
    assert old["decision"]["handling"] == "whole" and old["earlier"][0]["next_round"] == "web"
    assert Trace.from_dict(old) == run and Trace.from_dict(old).fingerprint == run.fingerprint
    assert reroute(Trace.from_dict(old), of).decision == reroute(run, of).decision
    for schema in (2, 3):
        assert Trace.from_dict(old | {"schema": schema}) == run


def test_a_record_of_schema_5_has_its_grades_by_evaluator() -> None:
    run, old = whole_trace(), in_schema_5(whole_trace())
    assert "opinions" in old and Trace.from_dict(old) == run
    assert [len(one.grades) for one in run.opinions] == [3, 2] and run.deciding is run.opinions[0]
    del old["opinions"]
    assert Trace.from_dict(old) == replace(run, opinions=run.opinions[:1])
    never = Trace.from_dict(old | {"grades": None, "web": old["web"] | {"grades": None}})
    assert (never.opinions, never.grades, never.web_grades) == ((), None, None)
    empty = {"grades": [], "passages": [], "rounds": [], "web": None, "strips": [], "support": None}
    nothing = Trace.from_dict(old | empty)
    assert (nothing.grades, nothing.web_grades) == ((), None)


@pytest.mark.parametrize("change", [{"grades": 7}, {"grades": [7]}, {"web": {"grades": {}}}, {"opinions": 7}])
def test_a_record_of_schema_5_with_grades_of_another_form_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadRecord, match=r"^run"):
        Trace.from_dict(in_schema_5(whole_trace()) | change)


@pytest.mark.parametrize("path", sorted((Path(__file__).parents[2] / "data" / "runs").glob("*.json")), ids=str)
def test_a_run_that_is_shipped_is_read_and_decides_as_it_did(path: Path) -> None:
    run = Trace.from_json(path.read_text("utf-8"))
    routed = reroute(run, run.settings.policy)
    assert run.decision == routed.decision and routed.missing == () and routed.answer == run.answer


def test_a_second_opinion_that_broke_off_is_no_failure_of_the_run() -> None:
    steps = (Step("second opinion", "away", StepState.FAILED), Step("answer", ""))
    assert trace(policy("paper"), steps=steps).failure is None
    assert trace(policy("paper"), steps=(*steps, Step("grade", "", StepState.FAILED))).failure is not None


def test_a_run_that_found_nothing_in_the_corpus_has_graded_that_nothing() -> None:
    of_web = {"web": searched(web_page("w1", "Fares rose.")), "web_grades": (Grade("w1", 0.5),)}
    assert trace(policy("paper"), passages=(), **of_web).grades == ()
    assert trace(policy("paper"), passages=(LATER,), **of_web).grades is None
