"""The data frames that Phoenix makes for evaluation, get_retrieved_documents and get_qa_with_reference, as tables:
https://arize.com/docs/phoenix/how-to/extract-data-from-spans

In both the chunks stand under `reference`: in the first one a row, in the second all of a question in one text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from crag_core.experiments.logs.rows import LogRow
from crag_core.experiments.logs.shapes import table
from crag_core.experiments.logs.shapes.spans import Joined

FIELDS = {
    "question": "input",
    "contexts": "reference",
    "scores": "document_score",
    "answer": "output",
    "ground_truth": "",
    "id": "context.span_id",
}


def fits(rows: Sequence[LogRow]) -> bool:
    return {"context.span_id", "input", "reference"} <= set(table.columns_of(rows))


def read(rows: Sequence[LogRow], chosen: Mapping[str, str]) -> Joined:
    return table.read(rows, FIELDS | dict(chosen))
