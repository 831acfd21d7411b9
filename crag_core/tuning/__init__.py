"""Choosing thresholds with labelled questions: everything that can be worked out from grades recorded once. Pure."""
