"""Where files that are no modules lie: in a checkout, or where a wheel puts them (`pyproject.toml`)."""

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_IS_INSTALLED = (_PACKAGE / "data").is_dir()

DATA = (_PACKAGE if _IS_INSTALLED else _PACKAGE.parent) / "data"
"""Policies, the trained evaluator, word lists, sample documents, labelled questions and recorded runs."""
APPLICATION = _PACKAGE.parent / "crag_app" if _IS_INSTALLED else _PACKAGE.parent
