"""Waiting, stopping and taking turns: threads of one process. Pure, apart from the signals that end it."""
