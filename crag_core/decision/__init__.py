"""From recorded scores to one action: policies, thresholds, rounds, refinement. Pure.

The same arguments always give the same decision; calls no model, file or network.
"""
