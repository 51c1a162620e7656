"""``balog query``: SQL over tables."""
