"""Whether the evidence supports a sentence of an answer: by words, or as a model says."""
