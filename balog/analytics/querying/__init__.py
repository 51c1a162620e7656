"""SQL over tables: what may be asked, asking it, and writing the answer as it comes."""
