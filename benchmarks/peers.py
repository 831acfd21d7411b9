"""Our policies beside the corrective workflow of LlamaIndex's documentation: same index, model, questions and run.

Run: python benchmarks/peers.py    (needs the shared evaluation data, see CRAG_SHARED_DATA)
     python benchmarks/peers.py --limit 100 --asked 5 --model ollama/llama3.2

route_dev with a fifth of its documents only in an offline web, as in benchmarks/quality.py. First the rule "any no goes
to the web" by itself, with quotations: by judges that need no model, one of which is never wrong. Then the workflow as
it is documented, with a model that says yes or no, rewrites and answers: the small real model of the tests, unless
another is named. The workflow retrieves 2 passages unless told otherwise; both 2 and 6 are run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.any_no import LabelsSayYes, ModelSaysYes, ScoreSaysYes, any_no
from benchmarks.evaluator import DATA, show
from benchmarks.held_out import route_set
from benchmarks.quality import HALLUCINATED, ROUTE, counts_of, shown_rows
from benchmarks.running import HOME, SMALL, open_held_out, run_contenders, serving
from benchmarks.tables import Table
from crag_core.app.cli.compare import outcome_log
from crag_core.app.cli.options import Opened
from crag_core.app.configuration_text import read_configurations
from crag_core.app.workbench import Choice, Workbench
from crag_core.base.protocols import Evaluator
from crag_core.evaluators.policies import OWN_JUDGE, PLAIN
from crag_core.experiments.comparison import table as measured
from crag_core.experiments.comparison.run_configurations import Contender
from crag_core.experiments.comparison.setups import Setup
from crag_core.experiments.comparison.table import to_data
from crag_core.pipeline.run import WebMode
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

OURS = ("two-signal", "paper")
FEW, SIX = 2, 6
COLUMNS = {
    "calls": "model calls",
    "tokens": "tokens",
    "web": "sent to the web",
    "needless_web": "the same, although answerable",
    HALLUCINATED: "answered although unanswerable",
    "contains": "known answer given",
    "irrelevant_after": "irrelevant in the context",
}


def main(arguments: Sequence[str] | None = None) -> None:
    if not DATA.is_dir():
        print("skipped: shared data not found")
        return
    chosen = _parse(arguments)
    held = route_set(DATA / "dev", chosen.home / "sets" / ROUTE)
    opened = open_held_out(held, chosen.home)
    report = {"rule": compare_rule(opened, chosen.limit)}
    with serving(chosen.model) as (model, ollama):
        report["model"] = compare_with_model(open_held_out(held, chosen.home, ollama), model, chosen.asked)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def compare_rule(opened: Opened, limit: int | None) -> dict[str, Any]:
    workbench = opened.workbench
    judge = workbench.evaluator(OWN_JUDGE, None, cached=False)
    judges: dict[str, Evaluator] = {
        "the trained evaluator": ScoreSaysYes(judge, judge.card.upper),
        "the labels": LabelsSayYes(opened.labelled.questions),
    }
    names, contenders = ours(workbench, EXTRACTIVE)
    for told, one in judges.items():
        for top_k in (FEW, SIX):
            names.append(f"any no, of {top_k}, by {told}")
            contenders.append(peer(workbench, names[-1], one, EXTRACTIVE, top_k))
    return _measure(opened, names, contenders, limit, "quotations")


def compare_with_model(opened: Opened, model: str, limit: int | None) -> dict[str, Any]:
    workbench = opened.workbench
    names, contenders = ours(workbench, model)
    asked = workbench.servers.model(model)
    assert asked is not None, "the workflow needs a model"
    for top_k in (FEW, SIX):
        names.append(f"any no, of {top_k}, by the model")
        contenders.append(peer(workbench, names[-1], ModelSaysYes(asked), model, top_k))
    return _measure(opened, names, contenders, limit, model)


def ours(workbench: Workbench, model: str) -> tuple[list[str], list[Contender]]:
    """Plain RAG first."""
    specs = [f"{PLAIN},name={PLAIN},model={model}"]
    specs += [f"{name},name={name},evaluator={OWN_JUDGE},model={model},web=auto" for name in OURS]
    found = read_configurations(specs, workbench)
    pipelines = [workbench.engine(one.choice, observed=False, cached=False) for one in found]
    made = [Contender(line, outcome_log(one, workbench)) for line, one in zip(pipelines, found, strict=True)]
    return [one.name for one in found], made


def peer(workbench: Workbench, name: str, judge: Evaluator, model: str, top_k: int) -> Contender:
    choice = Choice(any_no(), OWN_JUDGE, model, WebMode.AUTO, top_k)
    engine = workbench.engine(choice, observed=False, cached=False).with_evaluator(judge)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    setup = Setup(engine.settings, workbench.store.fingerprint(), workbench.searcher.identity, name, now)
    return Contender(engine, workbench.experiments.outcomes(setup))


def _measure(
    opened: Opened, names: Sequence[str], contenders: Sequence[Contender], limit: int | None, writer: str
) -> dict[str, Any]:
    table = run_contenders(opened, names, contenders, limit)
    print(f"\n## {writer}\n\n{counts_of(table, len(opened.labelled.questions))}")
    show({"peers": peers_of(table)})
    return to_data(table)


def peers_of(table: measured.Table) -> Table:
    rows = shown_rows(table, COLUMNS)
    for name in table.names:
        everything = table.paths(name)[-1]
        rows[name] = {"half within": f"{everything.p50.value:.2f} s" if everything.p50 else None} | rows[name]
    return Table("peers", rows)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--limit", type=int, help="questions for the rule by itself, drawn with a fixed seed; all")
    parser.add_argument("--asked", type=int, default=25, help="questions for the model; 25")
    parser.add_argument("--model", default=SMALL, help=f"{SMALL}, ollama/NAME or openai/NAME")
    parser.add_argument("--home", type=Path, default=HOME, help="where the set is indexed and runs are kept")
    parser.add_argument("--json", type=Path, help="write every figure to this file too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
