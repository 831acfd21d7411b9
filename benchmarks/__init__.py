"""Figures of quality, speed and memory, each a ratio measured side by side in one run."""
