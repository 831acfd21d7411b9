"""Records the runs of data/runs over the sample documents: `python -m tests.stand_ins.record_runs`.

The decisions are the application's own. Web pages come from a practice server on this machine, since a recording must
not hold other people's texts; they are written below.
"""

from __future__ import annotations

import json
import tempfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

from crag_core.app.config import Config
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.data_files import DATA
from crag_core.decision.policy import Doubtful
from crag_core.evaluators.policies import default_evaluator, suit
from crag_core.pipeline.pipeline import Pipeline
from crag_core.pipeline.run import WebMode
from crag_core.trace.trace import Trace
from tests.stand_ins.duckduckgo_server import WebResult
from tests.stand_ins.searxng_server import SearXNGServer

FOLDER = DATA / "runs"
PAGES = {
    "shipyard": [
        WebResult(
            "Hybrid ferry Tystie joins the islands",
            "https://practice.example/hybrid-ferry-tystie",
            "The hybrid ferry Tystie was built by the shipyard Larkness Marine in Birkhaven and delivered in May 2019. "
            "She runs on batteries for most of her working day.",
        ),
        WebResult(
            "What is a tystie?",
            "https://practice.example/black-guillemot",
            "Tystie is the islanders’ word for the black guillemot, a small seabird that nests under piers.",
        ),
    ],
    "blight": [
        WebResult(
            "Late blight on tomatoes",
            "https://practice.example/late-blight",
            "Late blight spreads on wet leaves. Protect tomato plants from late blight with a roof against rain, water "
            "them at the root, and take off the lowest leaves. Remove plants that are ill at once.",
        ),
        WebResult(
            "Tomatoes on the balcony",
            "https://practice.example/balcony-tomatoes",
            "A pot of ten litres is enough for one tomato plant. It wants six hours of sun a day.",
        ),
    ],
}


def main() -> None:
    listed = tomllib.loads((FOLDER / "runs.toml").read_text("utf-8"))["run"]
    with tempfile.TemporaryDirectory() as home:
        sample = [(path.name, path.read_bytes()) for path in sorted((DATA / "sample").iterdir())]
        Workbench(Config(home=Path(home))).store.ingest(sample)
        for one in listed:
            trace = record(one, Path(home))
            text = json.dumps(trace.to_dict(), ensure_ascii=False, indent=0)
            (FOLDER / one["file"]).write_text(text + "\n", "utf-8")
            print(f"{one['file']}: {trace.decision and trace.decision.action}, {len(text) // 1000} kB")


def record(one: dict[str, Any], home: Path) -> Trace:
    with SearXNGServer(PAGES.get(one.get("pages", ""), [])) as server:
        settings = Config(home=home, web_providers="searxng", searxng_url=server.url, cache="off", audit="off")
        workbench = Workbench(settings)
        pipeline = _pipeline(workbench, one)
        # The name tells from a link that this run is a recorded one.
        return pipeline.resume(replace(pipeline.begin(one["question"]), id=f"demo-{Path(one['file']).stem}"))


def _pipeline(workbench: Workbench, one: dict[str, Any]) -> Pipeline:
    policy = workbench.policies[one["policy"]]
    judge = default_evaluator(policy, "extractive")
    suited = suit(policy, judge)
    chosen = suited.with_thresholds(upper=one.get("upper", suited.upper))
    chosen = chosen.with_doubtful(Doubtful(one.get("doubtful", suited.doubtful)))
    web = WebMode.AUTO if one.get("pages") else WebMode.OFF
    return workbench.engine(Choice(chosen, judge, web=web))


if __name__ == "__main__":
    main()
