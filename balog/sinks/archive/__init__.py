"""Files of a store: written, uploaded, listed in a manifest."""
