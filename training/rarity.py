"""How rare each word is: in how many of the training passages it occurs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from crag_core.base.text.words import words
from training.pairs import Row

MEDICAL = 3_000
"""Medical passages counted; all 14,000 would make "disease" a filler word."""
KEPT = 25_000


def write_rarity(rows: Sequence[Row], path: Path) -> None:
    """Counts of the `KEPT` commonest words over the distinct passages of `rows`; any other word counts as unseen."""
    texts = list(dict.fromkeys(row.passage for row in rows if row.source not in ("medquad", "selqa_sent")))
    texts += list(dict.fromkeys(row.passage for row in rows if row.source == "medquad"))[:MEDICAL]
    counts = Counter(word for text in texts for word in set(words(text)))
    kept = dict(sorted(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:KEPT]))
    path.write_text(json.dumps({"documents": len(texts), "words": kept}, ensure_ascii=False) + "\n", "utf-8")
