"""The names that logs have for what they hold, from `data/log-names.toml`."""

from __future__ import annotations

import tomllib

from crag_core.base.data_files import DATA

_TOLD = tomllib.loads((DATA / "log-names.toml").read_text("utf-8"))
FIELDS: dict[str, tuple[str, ...]] = {field: tuple(one["names"]) for field, one in _TOLD["fields"].items()}
"""By what a field means, the names that a column may have for it, the best one first."""

MEANINGS: dict[str, str] = {field: one["meaning"] for field, one in _TOLD["fields"].items()}
"""A field, as people read it."""

SAID, CHUNK, TRACE, STEP = (
    {name: tuple(names) for name, names in _TOLD[part].items()} for part in ("said", "chunk", "trace", "step")
)

COLUMNS: dict[str, dict[str, str]] = _TOLD["columns"]
"""By shape, what the fields are read from."""
