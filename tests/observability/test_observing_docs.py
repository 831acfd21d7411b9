"""docs/observing.md names every metric with its labels, and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from tests.observability.test_dashboard import exposed

PAGE = (Path(__file__).parents[2] / "docs" / "observing.md").read_text("utf-8")
ROWS = {
    name: set(re.findall(r"`(\w+)`", labels)) for name, labels in re.findall(r"^\| `(\w+)` \| ([^|]*)\|", PAGE, re.M)
}


def test_every_metric_of_a_run_is_told_with_its_labels() -> None:
    names = {
        re.sub(r"_(bucket|count|sum)$", "", name)
        for name in exposed().names
        if name.startswith("crag_") and not name.endswith("_created")
    }
    assert set(ROWS) == names
    for name, labels in ROWS.items():
        sample = f"{name}_count" if name.endswith("_seconds") else name
        assert exposed().labels_of(sample) == labels, name
