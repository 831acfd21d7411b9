"""Plain RAG beside every policy, on questions that documents answer, that only the web answers, and that nothing does.

Run: python benchmarks/quality.py                (needs the shared evaluation data, see CRAG_SHARED_DATA)
     python benchmarks/quality.py --limit 200    (fewer questions of each set, drawn with a fixed seed)
     python benchmarks/quality.py --model small --sets route_dev --limit 40
                                                 (answers by the small real model of the tests; or ollama/NAME)

A fifth of the documents is not indexed. In route_dev they stand in an offline web beside 6,119 other pages, and every
policy is run with the web and without. What was run is kept: the same command goes on where it was stopped. Policies
that were described with a language model as judge are judged by the evaluator of this project.
Intervals are 95 %, by resampling the questions; "less" is in relation to plain RAG, on the same questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median_low
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.evaluator import DATA, show
from benchmarks.held_out import HeldOut, as_published, leaflet_set, route_set
from benchmarks.running import HOME, SMALL, Opened, open_held_out, run_configurations, serving
from benchmarks.tables import Cell, Table
from crag_core.app.choice import Configuration, read_configurations
from crag_core.app.workbench import Workbench
from crag_core.evaluators.policies import OWN_JUDGE, PLAIN, load_policies
from crag_core.experiments.comparison import table as measured
from crag_core.experiments.comparison.metrics import MEASURES, Unit
from crag_core.experiments.comparison.table import figure, to_data
from crag_core.experiments.labelled.questions import Expected, LabelledQuestion
from crag_core.experiments.statistics.intervals import Estimate
from crag_core.trace.grounding.quoted_answer import EXTRACTIVE

ROUTE, LEAFLETS, NEGATIVES = "route_dev", "health-leaflets", "nomiracl_en_dev"
SETS: Mapping[str, Callable[[Path, Path], HeldOut]] = {
    ROUTE: route_set,
    LEAFLETS: leaflet_set,
    NEGATIVES: lambda data, into: as_published(NEGATIVES, data),
}

HALLUCINATED, ELSEWHERE = "answered_unanswerable", "answered_elsewhere"
ANSWERS = {
    HALLUCINATED: "answered although unanswerable",
    "contains": "known answer given",
    ELSEWHERE: "known answer, only in the web",
    "abstained_answerable": "abstained although answerable",
    "irrelevant_after": "irrelevant in the context",
    "hit_after": "document in the context",
    "grounded": "grounded sentences",
}
WAYS = {
    "right": "right route",
    "improved": "corrections that raised the best score",
    "web": "sent to the web",
    "needless_web": "the same, although answerable",
    "calls": "model calls",
    "tokens": "tokens",
}
_UNITS = {measure.name: measure.unit for measure in MEASURES}


def main(arguments: Sequence[str] | None = None) -> None:
    data = DATA / "dev"
    if not data.is_dir():
        print("skipped: shared data not found")
        return
    chosen = _parse(arguments)
    report: dict[str, Any] = {}
    with serving(chosen.model) as (model, ollama):
        for name in chosen.sets:
            held = SETS[name](data, chosen.home / "sets" / name)
            opened = open_held_out(held, chosen.home, ollama)
            wanted = configurations(opened.workbench, model, has_web=held.web is not None)
            report[name] = measure(opened, wanted, chosen.limit, model)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n", "utf-8")


def configurations(workbench: Workbench, model: str, has_web: bool) -> tuple[Configuration, ...]:
    """Plain RAG, every policy without the web, and with it."""
    ways = {"": "off", " + web": "auto"} if has_web else {"": "off"}
    specs = [f"{PLAIN},model={model}"]
    for way, web in ways.items():
        for name, policy in load_policies()[0].items():
            judge = OWN_JUDGE if policy.evaluator.startswith("llm") else policy.evaluator
            specs.append(f"{name},name={name}{way},evaluator={judge},model={model},web={web}")
    return read_configurations([specs[0] + f",name={PLAIN}", *specs[1:]], workbench)


def measure(opened: Opened, wanted: Sequence[Configuration], limit: int | None, model: str) -> dict[str, Any]:
    """Prints the tables of one set; everything that was measured as plain data."""
    table = run_configurations(opened, wanted, limit)
    writer = "quotations" if model == EXTRACTIVE else model
    print(f"\n## {opened.labelled.name}, {writer}\n\n{counts_of(table, len(opened.labelled.questions))}")
    show({"answers": answers_of(table), "kinds": kinds_of(table), "ways": ways_of(table)})
    return to_data(table)


def answers_of(table: measured.Table) -> Table:
    """With how much less than under plain RAG there is of the answers that nobody should have given."""
    rows, wrong = shown_rows(table, ANSWERS), table.row(HALLUCINATED)
    in_the_web = shown_rows(_among(table, _is_in_the_web), {ELSEWHERE: ANSWERS[ELSEWHERE]})
    for place, name in enumerate(table.names):
        first, *others = (rows[name] | in_the_web[name]).items()
        rows[name] = dict([first, ("less", _less(wrong, place) if wrong else None), *others])
    return Table("answers", rows)


def kinds_of(table: measured.Table) -> Table:
    """Answers that nobody should have given, by what the questions are about; of the kinds that the set tells apart."""
    rows: dict[str, dict[str, Cell]] = {name: {} for name in table.names}
    for told, is_of in KINDS.items():
        for name, cells in shown_rows(_among(table, is_of), {HALLUCINATED: told}).items():
            rows[name] |= cells
    return Table("answered although unanswerable, by kind", rows)


def ways_of(table: measured.Table) -> Table:
    rows = shown_rows(table, WAYS)
    for name in table.names:
        rows[name]["half within"] = f"{median_low(one.seconds for one in table.found[name]):.2f} s"
    rows[PLAIN][WAYS["right"]] = None  # it takes one way only: that tells of the set
    return Table("ways and costs", rows)


def _among(table: measured.Table, wanted: Callable[[LabelledQuestion], bool]) -> measured.Table:
    """Some of the questions by themselves."""
    questions = [asked for asked in table.questions if wanted(asked)]
    return measured.Table(questions, {name: {one.key: one for one in found} for name, found in table.found.items()})


def shown_rows(table: measured.Table, wanted: Mapping[str, str]) -> dict[str, dict[str, Cell]]:
    """By configuration, the `wanted` measures under their headings; those that the set has."""
    found = {name: row for name in wanted if (row := table.row(name))}
    return {
        configuration: {wanted[name]: _shown(row.cells[place].found, name) for name, row in found.items()}
        for place, configuration in enumerate(table.names)
    }


def counts_of(table: measured.Table, of: int) -> str:
    asked = table.questions
    answerable = sum(one.expected.is_answerable for one in asked)
    in_the_web = sum(map(_is_in_the_web, asked))
    drawn = f" of {of:,}" if len(asked) < of else ""
    return (
        f"{len(asked):,}{drawn} questions: {answerable} that the documents answer, {in_the_web} that only the web "
        f"answers, {len(asked) - answerable - in_the_web} that nothing answers."
    )


def _is_in_the_web(asked: LabelledQuestion) -> bool:
    """The other questions with known answers that the documents do not answer are answered nowhere."""
    return asked.expected is Expected.UNANSWERABLE and bool(asked.answers)


KINDS: Mapping[str, Callable[[LabelledQuestion], bool]] = {
    "on the subject": lambda asked: asked.expected is Expected.UNANSWERABLE and not asked.answers,
    "about something else": lambda asked: asked.expected is Expected.INCORRECT,
    "only in the web": _is_in_the_web,
}


def _shown(found: Estimate | None, name: str) -> Cell:
    if found is None:
        return None
    unit = _UNITS[name]
    return _percent(found) if unit is Unit.SHARE else figure(found.value, unit)


def _less(row: measured.Row, place: int) -> str | None:
    """Than the first configuration has, without an interval."""
    found, first = row.cells[place].found, row.cells[0].found
    return f"{1 - found.value / first.value:z.0%}" if place and found and first and first.value else None


def _percent(found: Estimate) -> str:
    return f"{found.value:z.0%} ({found.low:z.0%} to {found.high:z.0%})"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sets", choices=SETS, nargs="+", default=list(SETS), help="names; all")
    parser.add_argument("--limit", type=int, help="questions of a set, drawn with a fixed seed; all")
    parser.add_argument("--model", default=EXTRACTIVE, help=f"{EXTRACTIVE}, {SMALL}, ollama/NAME or openai/NAME")
    parser.add_argument("--home", type=Path, default=HOME, help="where sets are indexed and runs are kept")
    parser.add_argument("--json", type=Path, help="write every figure to this file too")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
