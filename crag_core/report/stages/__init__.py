"""The stages of a log's questions as a page."""
