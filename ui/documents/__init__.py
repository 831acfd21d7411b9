"""The Documents page."""
