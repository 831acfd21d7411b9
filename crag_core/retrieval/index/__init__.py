"""The index: one SQLite file, who writes to it, and the searches in it."""
