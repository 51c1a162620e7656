"""Bands of normal values, learned from history."""
