"""Every table that the labels of a task allow, from what the evaluators said of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from benchmarks.contenders import Graded
from benchmarks.measures import auroc
from benchmarks.routing import route_all
from benchmarks.sets import Comparison, Task
from benchmarks.strips import measure_strips
from benchmarks.tables import Cell, Table


def measure_task(task: Task, graded: Mapping[str, Graded]) -> dict[str, Table]:
    """Every table that the task's labels allow, by its name in the report."""
    tables = {}
    if task.comparisons:
        rows = {told.title: _tell_apart(told, task, graded) for told in task.comparisons}
        tables["apart"] = Table("telling apart, AUROC", rows)
    if task.is_routing:
        routed = [one for each in graded.values() for one in route_all(each, task)]
        tables["routes"] = Table(f"routing {len(task.questions)} questions", {one.title: one.row() for one in routed})
    if task.is_strips:
        strips = {
            f"{column}{', one answer' if alone else ''}": measure_strips(
                scores, task, each.evaluator.card.strip_cutoff if column == name else None, alone=alone
            )
            for name, each in graded.items()
            for column, scores in each.columns.items()
            for alone in (False, True)
        }
        tables["strips"] = Table(f"strips of {len(task.questions)} texts", strips)
    return tables


def _tell_apart(told: Comparison, task: Task, graded: Mapping[str, Graded]) -> dict[str, Cell]:
    """A cell a column of scores, and how many there are of either side."""
    questions = np.arange(len(task.questions))
    if told.by_best:
        labels, homes = np.array([question.label for question in task.questions]), questions
    else:
        labels = np.array([label for question in task.questions for label in question.labels])
        homes = np.repeat(questions, [len(question.passages) for question in task.questions])
    first, second = np.isin(labels, told.positive), np.isin(labels, told.negative)
    row: dict[str, Cell] = {"of": f"{first.sum()} / {second.sum()}"}
    for each in graded.values():
        flat = {name: np.concatenate(column) for name, column in each.columns.items()}
        for name, scores in (each.best if told.by_best else flat).items():
            used = (first | second) & np.isfinite(scores)
            row[name] = auroc(scores[used], first[used], homes[used])
    return row
