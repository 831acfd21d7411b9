"""What the threshold laboratory keeps on disk: labelled sets, what was graded of them, and presets."""

from crag_core.experiments.store.experiment_folder import Laboratory
from crag_core.experiments.store.score_log import OutcomeLog, ScoreLog

__all__ = ["Laboratory", "OutcomeLog", "ScoreLog"]
