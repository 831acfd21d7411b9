"""Many questions at once: labelled sets, thresholds, comparisons of configurations."""
