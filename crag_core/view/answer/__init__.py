"""The answer of a run sentence by sentence, or why there is none."""
