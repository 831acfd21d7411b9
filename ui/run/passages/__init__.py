"""The chunks and web snippets of a run as cards, sentence by sentence."""
