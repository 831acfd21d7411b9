"""The Ask page: the question, its cost, pinned files, earlier runs and demos."""
