"""Events laid out as tables: loaded once each, evolved, compacted, kept for so long."""
