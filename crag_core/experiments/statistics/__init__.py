"""Intervals, curves and calibration of scores. Pure."""
