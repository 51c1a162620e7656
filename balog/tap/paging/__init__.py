"""Pages of a source: the walk over them, and paging that a declaration names."""
