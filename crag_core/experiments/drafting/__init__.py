"""Labelled questions drafted from the documents themselves, by patterns or in the words of a language model. Pure."""
