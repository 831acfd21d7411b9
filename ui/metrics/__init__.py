"""The Metrics page."""
