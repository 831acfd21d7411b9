"""The report of configurations side by side."""
