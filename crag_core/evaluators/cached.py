"""An evaluator that reuses cached grades of the same question and text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from crag_core.base.protocols import Cancel, Evaluator, GradeCache
from crag_core.base.types.grades import Grade
from crag_core.base.types.passages import Passage
from crag_core.base.types.steps import Usage
from crag_core.evaluators.shared.pair_encoder import heading_of

KEY_VERSION = 2


class CachedEvaluator:
    """Grades as `evaluator` does, and asks it only for what `cache` does not hold.

    `identity` names all that its grades depend on besides question and passage, such as
    "llm|ollama/llama3.2|prompts 2". Passages without a score are not kept: they are asked for again.
    """

    def __init__(self, evaluator: Evaluator, cache: GradeCache, identity: str) -> None:
        self.card = evaluator.card
        self.uncached = evaluator
        self._cache = cache
        self._identity = identity

    def grade(self, question: str, passages: Sequence[Passage], cancel: Cancel) -> tuple[Grade, ...]:
        keys = [self._key(question, passage) for passage in passages]
        kept = self._cache.get_many(keys)
        missing = [place for place, key in enumerate(keys) if key not in kept]
        made = self.uncached.grade(question, [passages[place] for place in missing], cancel) if missing else ()
        fresh = dict(zip(missing, made, strict=True))
        self._cache.put_many({keys[place]: grade for place, grade in fresh.items() if _is_worth_keeping(grade)})
        return tuple(
            fresh[place] if place in fresh else _as_reused(kept[key], passages[place].id)
            for place, key in enumerate(keys)
        )

    def _key(self, question: str, passage: Passage) -> str:
        # Without a model the grade may be made of the cosine that the retriever found, and of the headings.
        seen = [None] if self.card.calls_model else [passage.score("cosine"), heading_of(passage)]
        named = json.dumps([KEY_VERSION, self._identity, question, passage.text, *seen], ensure_ascii=False)
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()


def _is_worth_keeping(grade: Grade) -> bool:
    return grade.score is not None and not grade.retryable


def _as_reused(grade: Grade, passage_id: str) -> Grade:
    """What it cost then is no cost of this run."""
    return replace(grade, passage_id=passage_id, seconds=0.0, usage=Usage(), from_cache=True)
