"""What the threshold laboratory keeps on disk: labelled sets, what was graded of them, and presets."""

from crag_core.laboratory.books import RunBook, ScoreBook
from crag_core.laboratory.folder import Laboratory

__all__ = ["Laboratory", "RunBook", "ScoreBook"]
