"""The state of monitors between runs, and the leader of several watchers."""
