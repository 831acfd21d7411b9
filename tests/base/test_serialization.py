"""Records to plain JSON and back, and what is refused on the way."""

from __future__ import annotations

import dataclasses
import json
import re
import types
import typing
from enum import StrEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import fingerprint, from_plain, to_plain
from crag_core.base.types import (
    Action,
    Answer,
    Correction,
    Decision,
    Edits,
    EvaluatorCard,
    Excerpt,
    Extraction,
    Grade,
    Knowledge,
    Opinion,
    Passage,
    Retrieval,
    Round,
    SecondGrade,
    Step,
    Strip,
    StripVerdict,
    Support,
    Usage,
    WebAttempt,
    WebSearch,
)
from crag_core.decision.policy import (
    Aggregation,
    Expansion,
    FastPath,
    Loop,
    Policy,
    Preset,
    Route,
    SecondOpinion,
    StripRules,
)
from crag_core.trace.trace import RunSettings, Trace
from tests.builders import POLICIES, policy

RECORDS = [
    Answer,
    Correction,
    Decision,
    Edits,
    EvaluatorCard,
    Excerpt,
    Expansion,
    Extraction,
    FastPath,
    Grade,
    Knowledge,
    Loop,
    Opinion,
    Passage,
    Policy,
    Preset,
    Retrieval,
    Round,
    Route,
    RunSettings,
    Step,
    Strip,
    StripRules,
    StripVerdict,
    Support,
    Trace,
    Usage,
    WebAttempt,
    WebSearch,
]

shares = st.floats(0.0, 1.0)
texts = st.text(st.characters(), max_size=8)  # lone surrogates too
LEAVES: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    float: shares,
    int: st.integers(1, 10**6),
    bool: st.booleans(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.none() | st.one_of([values_of(option) for option in inner if option is not type(None)])
    if origin is tuple and inner[-1] is Ellipsis:
        return st.lists(values_of(inner[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, inner))
    if dataclasses.is_dataclass(hint):
        return records_of(typing.cast(type, hint))
    if issubclass(hint, StrEnum):
        return st.sampled_from(hint)
    return LEAVES[hint]


def records_of(kind: type) -> st.SearchStrategy[Any]:
    fields = {name: values_of(hint) for name, hint in typing.get_type_hints(kind).items()}
    if kind is Round:
        fields["path"] = st.lists(texts, min_size=1, max_size=2).map(tuple)
        fields["retrievals"] = st.lists(records_of(Retrieval), min_size=1, max_size=2).map(tuple)
    if kind is Support:
        ends = st.lists(st.integers(0, 20), max_size=4, unique=True).map(sorted)
        fields["spans"] = ends.map(lambda at: tuple(zip(at[::2], at[1::2], strict=False)))
        fields |= {"start": st.integers(0, 99), "end": st.integers(120, 200)}
    if kind is SecondGrade:
        rest = {name: values for name, values in fields.items() if name not in ("lower", "upper")}
        ends = st.tuples(shares, shares).map(sorted)
        return ends.flatmap(lambda two: st.builds(SecondGrade, lower=st.just(two[0]), upper=st.just(two[1]), **rest))
    if kind is SecondOpinion:
        fields["evaluator"], fields["band"] = st.just("llm"), st.tuples(st.floats(0.0, 0.4), st.floats(0.5, 1.0))
    if kind is Edits:
        fields["dropped"], fields["pinned"] = (st.sets(texts.map(mark.__add__), max_size=2).map(tuple) for mark in "-+")
    return policies(fields) if kind is Policy else st.builds(kind, **fields)


OF_THE_SET = ("signals", "whole_context")
"""Need no chunk's own score, and so no second opinion and no other retrieval."""


def policies(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Policy]:
    """Policies within the bounds that they check: lower <= upper, seconds above 0, one preset a name, and the like."""
    names = ("weights", "aggregation", "web_seconds", "web_cooldown", "presets", "own_knowledge")
    free = {name: values for name, values in fields.items() if name not in ("lower", "upper", *names)}
    pair = st.tuples(shares, shares).map(sorted)
    seconds = st.none() | st.floats(0.1, 60.0)
    presets = st.lists(
        st.tuples(texts, pair).map(lambda drawn: Preset(drawn[0], drawn[1][0], drawn[1][1])),
        max_size=2,
        unique_by=lambda preset: preset.name,
    ).map(tuple)
    weights = st.tuples(st.tuples(st.just("agreement"), st.floats(0.1, 1.0)))
    by_grades = st.sampled_from([one for one in Aggregation if one not in OF_THE_SET])
    made = pair.flatmap(
        lambda ends: st.builds(
            Policy,
            **free,
            lower=st.just(ends[0]),
            upper=st.just(ends[1]),
            aggregation=by_grades,
            weights=weights,
            presets=presets,
            web_seconds=seconds,
            web_cooldown=seconds,
        )
    )
    remembering = st.builds(dataclasses.replace, made, own_knowledge=st.integers(1, 3), consolidate=st.just(True))
    made = made | remembering
    return made | st.tuples(made, st.sampled_from(OF_THE_SET)).map(lambda given: by_set(*given))


def by_set(of: Policy, aggregation: Aggregation) -> Policy:
    routes: dict[str, Any] = {
        str(action).lower(): dataclasses.replace(of.route(action), re_retrieve=None) for action in Action
    }
    return dataclasses.replace(of, aggregation=aggregation, second_opinion=None, **routes)


@pytest.mark.parametrize("kind", RECORDS)
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_every_record_survives_the_way_to_json_and_back(kind: type, data: st.DataObject) -> None:
    record = data.draw(records_of(kind))
    plain = json.loads(json.dumps(to_plain(record)))
    assert from_plain(kind, plain) == record
    assert fingerprint(from_plain(kind, plain)) == fingerprint(record)


@pytest.mark.parametrize(
    ("kind", "data", "found"),
    [
        (Support, {"start": 3, "end": 2, "score": None}, "expected 0 <= start <= end, found 3 and 2"),
        (Support, {"start": -1, "end": 2, "score": None}, "expected 0 <= start <= end, found -1 and 2"),
        (Support, {"start": 0, "end": 2, "score": 1.5}, "expected a score in 0..1"),
        (Edits, {"dropped": ["p1", "p2"], "pinned": ["p2"]}, "either dropped or pinned, found both: p2"),
    ],
)
def test_records_that_contradict_themselves_are_refused(kind: type, data: dict[str, Any], found: str) -> None:
    with pytest.raises(BadRecord, match=re.escape(found)):
        from_plain(kind, data)


def test_plain_values_are_plain() -> None:
    verdict = StripVerdict(Strip("p1", 0, 0, 4, "Text", 0.5), True, "kept")
    assert to_plain(verdict) == {
        "strip": {"passage_id": "p1", "index": 0, "start": 0, "end": 4, "text": "Text", "score": 0.5},
        "kept": True,
        "reason": "kept",
    }


def test_missing_fields_take_their_defaults() -> None:
    assert from_plain(Passage, {"id": "p1", "text": "", "source": "a.txt"}) == Passage("p1", "", "a.txt")


def test_none_and_empty_stay_apart() -> None:
    none = from_plain(Extraction, {"passage_id": "p1", "strip_indexes": [], "raw": None})
    empty = from_plain(Extraction, {"passage_id": "p1", "strip_indexes": [], "raw": ""})
    assert (none.raw, empty.raw) == (None, "")


def test_whole_numbers_pass_where_a_float_is_meant() -> None:
    score = from_plain(Grade, {"passage_id": "p1", "score": 1}).score
    assert score == 1.0 and isinstance(score, float)


def test_a_table_passes_for_named_numbers() -> None:
    data = {"id": "p1", "text": "", "source": "", "scores": {"cosine": 0.5, "bm25": 7}}
    assert from_plain(Passage, data).scores == (("cosine", 0.5), ("bm25", 7.0))


GOOD = {"passage_id": "p1", "score": 0.5}


@pytest.mark.parametrize(
    ("data", "path", "found"),
    [
        (GOOD | {"score": "0.5"}, "score", "expected float, found str '0.5'"),
        (GOOD | {"score": True}, "score", "expected float, found bool True"),
        (GOOD | {"score": [0.5]}, "score", "expected float, found list"),
        (GOOD | {"score": float("nan")}, "score", "expected a finite number"),
        (GOOD | {"score": float("inf")}, "score", "expected a finite number"),
        (GOOD | {"score": 10**400}, "score", "expected a finite number"),
        (GOOD | {"score": 1.01}, "Grade", "0..1"),
        (GOOD | {"score": -0.01}, "Grade", "0..1"),
        (GOOD | {"reason": None}, "reason", "expected str, found NoneType"),
        (GOOD | {"reason": 7}, "reason", "expected str, found int 7"),
        (GOOD | {"retryable": 1}, "retryable", "expected bool, found int 1"),
        (GOOD | {"retryable": "no"}, "retryable", "expected bool, found str"),
        (GOOD | {"parts": 3}, "parts", "expected a list"),
        (GOOD | {"parts": "ab"}, "parts", "expected a list"),
        (GOOD | {"parts": [["cosine"]]}, "parts[0]", "expected 2 values, found 1"),
        (GOOD | {"parts": [["cosine", "x"]]}, "parts[0][1]", "expected float"),
        (GOOD | {"usage": []}, "usage", "expected a table of fields"),
        (GOOD | {"usage": {"calls": 1.5}}, "usage.calls", "expected int, found float 1.5"),
        (GOOD | {"usage": {"calls": True}}, "usage.calls", "expected int, found bool"),
        ({"passage_id": "p1"}, "score", "missing"),
        ([GOOD], "Grade", "expected a table of fields, found list"),
        (None, "Grade", "expected a table of fields, found NoneType"),
        ("p1", "Grade", "expected a table of fields, found str"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_path(data: Any, path: str, found: str) -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Grade, data)
    assert refusal.value.message.startswith(f"{path}: ")
    assert found in refusal.value.message


def test_an_unknown_name_of_a_choice_is_answered_with_the_known_ones() -> None:
    with pytest.raises(
        BadRecord, match="state: expected one of done, skipped, failed, stopped, waiting, found str 'ok'"
    ):
        from_plain(Step, {"name": "grade", "summary": "", "state": "ok"})


@pytest.mark.parametrize("value", [[], {}, 3, None])
def test_a_choice_that_is_no_name_at_all_is_refused(value: Any) -> None:
    with pytest.raises(BadRecord, match="state: expected one of"):
        from_plain(Step, {"name": "grade", "summary": "", "state": value})


def test_an_unknown_key_is_answered_with_the_nearest_known_one() -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Grade, GOOD | {"reson": "typo"}, "run.grades[3]")
    assert refusal.value.message == "run.grades[3].reson: unknown key."
    assert "Did you mean 'reason'?" in refusal.value.hint


def test_an_unknown_key_far_from_all_lists_the_known_ones() -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Usage, {"__class__": 1})
    assert refusal.value.hint == "Known keys: calls, prompt_tokens, completion_tokens, cut."


def test_long_wrong_values_are_cut_in_the_message() -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Grade, GOOD | {"score": "x" * 10_000})
    assert len(refusal.value.message) < 120


def test_wrong_values_of_any_depth_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadRecord, match="score: expected float, found list"):
        from_plain(Grade, GOOD | {"score": deep})


def test_nested_records_are_named_down_to_the_field() -> None:
    with pytest.raises(BadRecord, match=r"^run\.plan\[1\]\.kind: expected one of keep, discard"):
        from_plain(
            Decision,
            {
                "action": "CORRECT",
                "label": "",
                "score": None,
                "reason": "",
                "plan": [{"kind": "keep", "reason": ""}, {"kind": "delete", "reason": ""}],
            },
            "run",
        )


def test_equal_records_have_equal_fingerprints() -> None:
    first = policy("paper").with_thresholds(0.25, 0.75)
    second = policy("paper").with_thresholds(0.5, 0.5).with_thresholds(0.25, 0.75)
    assert fingerprint(first) == fingerprint(second)


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    # SHA-256 of {"calls":1,"completion_tokens":3,"cut":0,"prompt_tokens":2}
    assert fingerprint(Usage(1, 2, 3)) == "45091bfecfc4f5ed"


def test_every_setting_is_part_of_the_fingerprint() -> None:
    of = policy("signals")
    changes: dict[str, Any] = {
        "lower": 0.31,
        "upper": 0.71,
        "aggregation": "best",
        "upper_is_exclusive": True,
        "ungraded_score": 0.5,
        "web_limit": 6,
        "weights": (("agreement", 1.0),),
        "strips": StripRules(0.51),
        "fast_path": FastPath(few_context=1),
        "correct": dataclasses.replace(of.correct, label="Right"),
        "expansion": Expansion(3),
        "loop": Loop(4),
        "presets": (Preset("mine", 0.1, 0.2),),
        "web_cooldown": 31.0,
        "web_seconds": 11.0,
    }
    prints = {fingerprint(dataclasses.replace(of, **{name: value})) for name, value in changes.items()}
    assert len(prints | {fingerprint(of)}) == len(changes) + 1


def test_policies_have_different_fingerprints() -> None:
    assert len({fingerprint(policy(name)) for name in POLICIES}) == len(POLICIES)
