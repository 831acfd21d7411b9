"""The Streamlit pages: a folder for each, over `run` (a recorded run on the page), `session` and `shell`."""

from pathlib import Path

PARTS = Path(__file__).parent / "parts"
"""Styles, scripts and pictures of the pages."""
