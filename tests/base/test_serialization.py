"""Records to plain JSON and back, and what is refused on the way."""

import re
from typing import Any

import pytest

from crag_core.base.errors import BadRecord
from crag_core.base.serialization import fingerprint, from_plain
from crag_core.base.types.answers import Support
from crag_core.base.types.decisions import Action
from crag_core.base.types.edits import Edits
from crag_core.base.types.grades import Grade
from crag_core.base.types.steps import Usage
from crag_core.decision.policy import Expansion, Preset, Refinement
from tests.builders import changing, policy


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
        (GOOD | {"score": float("nan")}, "score", "expected a finite number"),
        (GOOD | {"score": 1.01}, "Grade", "0..1"),
        (GOOD | {"reason": 7}, "reason", "expected a valid string, found int 7"),
        (GOOD | {"retryable": 1}, "retryable", "expected a valid boolean, found int 1"),
        (GOOD | {"parts": 3}, "parts", "expected a valid array"),
        (GOOD | {"parts": [["cosine"]]}, "parts[0][1]", "missing"),
        (GOOD | {"usage": []}, "usage", "expected an object"),
        (GOOD | {"usage": {"calls": 1.5}}, "usage.calls", "expected a valid integer, found float 1.5"),
        ({"passage_id": "p1"}, "score", "missing"),
        ([GOOD], "Grade", "expected an object, found list"),
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
