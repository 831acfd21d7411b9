"""The report of chosen thresholds."""
