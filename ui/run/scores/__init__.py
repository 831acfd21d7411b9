"""The score line with its thresholds."""
