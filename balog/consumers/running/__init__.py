"""The run of an engine: receive, queue, call, settle."""
