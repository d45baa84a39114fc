"""Chorale's server: sessions, scheduling, workers and the doors to them."""

__version__ = "0.1.0"
