"""What ships with the project for every run: the trained evaluator and the lists of words."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from crag_core.base.data_files import DATA
from crag_core.base.protocols import StripEvaluator
from crag_core.decision.query_expansion import parse_synonyms
from crag_core.decision.signals import SignalMeter
from crag_core.evaluators.cross_encoder import CrossEncoderStripEvaluator
from crag_core.evaluators.shared.parts import MINILM

EVALUATOR_FOLDER = DATA / "models" / "retrieval-evaluator"


@cache
def signal_meter() -> SignalMeter:
    return SignalMeter(frozenset((DATA / "stopwords.txt").read_text("utf-8").split()))


@cache
def synonyms() -> Mapping[str, tuple[str, ...]]:
    return parse_synonyms((DATA / "synonyms.txt").read_text("utf-8"))


def strip_evaluator(embedding: str = "") -> StripEvaluator:
    """Who scores the sentences of every run; `embedding` is the model of the retriever's cosines, "": not known."""
    return CrossEncoderStripEvaluator(EVALUATOR_FOLDER, trusts_cosines=embedding == MINILM)
