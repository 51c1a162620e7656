"""What waits in an engine: calls that are ready, delayed, in flight or to be settled."""
