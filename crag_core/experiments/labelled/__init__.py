"""Labelled questions out of files, evaluation sets and feedback, with what is wrong with them. Pure; reads no file."""
