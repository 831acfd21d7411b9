"""Labelled sets, grades and outcomes of their questions, and presets, on disk."""

from crag_core.experiments.store.experiment_folder import ExperimentFolder
from crag_core.experiments.store.score_log import OutcomeLog, ScoreLog

__all__ = ["ExperimentFolder", "OutcomeLog", "ScoreLog"]
