"""Schemas of replies take no other key: some servers let a small model write keys until its tokens are used up."""

from collections.abc import Iterator
from typing import Any

import pytest

from crag_core.base.prompts import replies
from crag_core.experiments.drafting.draft_with_model import QUESTION_SCHEMA

SCHEMAS = {name: value for name, value in vars(replies).items() if name.endswith("_SCHEMA")} | {
    "batch": replies.batch_schema(3),
    "list": replies.list_schema(3),
    "recall": replies.recall_schema(3),
    "draft": QUESTION_SCHEMA,
}


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if schema.get("type") == "object":
            yield schema
        for part in schema.values():
            yield from objects(part)


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_object_has_all_of_its_keys_and_no_other(schema: dict[str, Any]) -> None:
    found = [*objects(schema)]
    assert found
    assert all(one["additionalProperties"] is False and one["required"] == [*one["properties"]] for one in found)
