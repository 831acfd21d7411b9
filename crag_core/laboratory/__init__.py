"""What the threshold laboratory keeps on disk: labelled sets, what was graded of them, and presets."""

from crag_core.laboratory.folder import Laboratory
from crag_core.laboratory.scores import ScoreBook

__all__ = ["Laboratory", "ScoreBook"]
