"""Records to plain JSON and back, and what is refused on the way."""

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
from crag_core.base.types.answers import Answer, Support
from crag_core.base.types.decisions import Action, Correction, Decision
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import EvaluatorCard, Grade, Opinion
from crag_core.base.types.knowledge import Excerpt, Extraction, Knowledge, Strip, StripVerdict
from crag_core.base.types.passages import Passage, Retrieval, Round
from crag_core.base.types.steps import Step, Usage
from crag_core.base.types.web import WebAttempt, WebSearch
from crag_core.decision.policy import Expansion, Policy, Preset, Refinement, WebRules
from crag_core.trace.trace import RunSettings, Trace
from tests.builders import POLICIES, changing, policy, policy_file

RECORDS = [
    Answer,
    Correction,
    Decision,
    Edits,
    EvaluatorCard,
    Excerpt,
    Expansion,
    Extraction,
    Grade,
    Knowledge,
    Opinion,
    Passage,
    Policy,
    Preset,
    Refinement,
    Retrieval,
    Round,
    RunSettings,
    Step,
    Strip,
    StripVerdict,
    Support,
    Trace,
    Usage,
    WebAttempt,
    WebRules,
    WebSearch,
]

shares = st.floats(0.0, 1.0)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)  # no halves of surrogate pairs
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
    if kind is Policy:
        return policies()
    fields = {name: values_of(hint) for name, hint in typing.get_type_hints(kind).items()}
    if kind is Round:
        fields["path"] = st.lists(texts, min_size=1, max_size=2).map(tuple)
        fields["retrievals"] = st.lists(records_of(Retrieval), min_size=1, max_size=2).map(tuple)
    if kind is Support:
        ends = st.lists(st.integers(0, 20), max_size=4, unique=True).map(sorted)
        fields["spans"] = ends.map(lambda at: tuple(zip(at[::2], at[1::2], strict=False)))
        fields |= {"start": st.integers(0, 99), "end": st.integers(120, 200)}
    if kind is WebRules:
        fields["seconds"] = fields["cooldown"] = st.none() | st.floats(0.1, 60.0)
    if kind is Edits:
        fields["dropped"], fields["pinned"] = (st.sets(texts.map(mark.__add__), max_size=2).map(tuple) for mark in "-+")
    return st.builds(kind, **fields)


def policies() -> st.SearchStrategy[Policy]:
    """Policies that are shipped, with other thresholds, texts, tables and presets."""
    tables = {"refinement": records_of(Refinement), "web": records_of(WebRules), "expansion": records_of(Expansion)}
    names = st.lists(texts, max_size=2, unique=True)
    presets = names.map(lambda found: tuple(Preset(name, 0.1, 0.2) for name in found))
    options = {"low_variance_promotes": st.booleans(), "ungraded": st.none() | shares, "top": st.none() | LEAVES[int]}
    fields = tables | options | {"title": texts, "labels": st.tuples(texts, texts, texts), "presets": presets}
    shipped = st.sampled_from(POLICIES).map(policy_file)
    drawn = st.tuples(shipped, st.tuples(shares, shares).map(sorted), st.fixed_dictionaries(fields))
    return drawn.map(lambda one: dataclasses.replace(one[0].with_thresholds(*one[1]), **one[2]))


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


GOOD = {"passage_id": "p1", "score": 0.5}


@pytest.mark.parametrize(
    ("data", "path", "found"),
    [
        (GOOD | {"score": "0.5"}, "score", "expected a valid number, found str '0.5'"),
        (GOOD | {"score": True}, "score", "expected a valid number, found bool True"),
        (GOOD | {"score": [0.5]}, "score", "expected a valid number, found list"),
        (GOOD | {"score": float("nan")}, "score", "expected a finite number"),
        (GOOD | {"score": float("inf")}, "score", "expected a finite number"),
        (GOOD | {"score": 10**400}, "score", "expected a finite number"),
        (GOOD | {"score": 1.01}, "Grade", "0..1"),
        (GOOD | {"score": -0.01}, "Grade", "0..1"),
        (GOOD | {"reason": None}, "reason", "expected a valid string, found NoneType"),
        (GOOD | {"reason": 7}, "reason", "expected a valid string, found int 7"),
        (GOOD | {"retryable": 1}, "retryable", "expected a valid boolean, found int 1"),
        (GOOD | {"retryable": "no"}, "retryable", "expected a valid boolean, found str"),
        (GOOD | {"parts": 3}, "parts", "expected a valid array"),
        (GOOD | {"parts": "ab"}, "parts", "expected a valid array"),
        (GOOD | {"parts": [["cosine"]]}, "parts[0][1]", "missing"),
        (GOOD | {"parts": [["cosine", "x"]]}, "parts[0][1]", "expected a valid number"),
        (GOOD | {"usage": []}, "usage", "expected an object"),
        (GOOD | {"usage": {"calls": 1.5}}, "usage.calls", "expected a valid integer, found float 1.5"),
        (GOOD | {"usage": {"calls": True}}, "usage.calls", "expected a valid integer, found bool"),
        ({"passage_id": "p1"}, "score", "missing"),
        ([GOOD], "Grade", "expected an object, found list"),
        (None, "Grade", "expected an object, found NoneType"),
        ("p1", "Grade", "expected an object, found str"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_path(data: Any, path: str, found: str) -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Grade, data)
    assert refusal.value.message.startswith(f"{path}: ")
    assert found in refusal.value.message


def test_an_unknown_key_is_answered_with_the_nearest_known_one() -> None:
    with pytest.raises(BadRecord) as refusal:
        from_plain(Grade, GOOD | {"reson": "typo"}, "run.grades[3]")
    assert refusal.value.message == "run.grades[3].reson: unknown key."
    assert "Did you mean 'reason'?" in refusal.value.hint


def test_wrong_values_of_any_depth_are_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(BadRecord, match="Grade: nested too deep"):
        from_plain(Grade, GOOD | {"score": deep})


def test_the_fingerprint_is_the_same_in_every_process() -> None:
    # SHA-256 of {"calls":1,"completion_tokens":3,"cut":0,"ended":"","prompt_tokens":2}
    assert fingerprint(Usage(1, 2, 3)) == "5db0b25e2e028d64"


def test_every_setting_is_part_of_the_fingerprint() -> None:
    of = policy("signals")
    changes: dict[str, Any] = {
        "lower": 0.31,
        "upper": 0.71,
        "score": "best",
        "at_upper": Action.AMBIGUOUS,
        "ungraded": 0.5,
        "web_limit": 6,
        "weights": (("agreement", 1.0),),
        "refinement": Refinement(0.51),
        "skip": (("few_context", 1),),
        "labels": ("Right", "Ambiguous", "Incorrect"),
        "correct": (("keep", None),),
        "expansion": Expansion(3),
        "max_rounds": 4,
        "presets": (Preset("mine", 0.1, 0.2),),
        "web_cooldown": 31.0,
        "web_seconds": 11.0,
    }
    prints = {fingerprint(changing(of, **{name: value})) for name, value in changes.items()}
    assert len(prints | {fingerprint(of)}) == len(changes) + 1
