"""Events counted: small rows that can be merged, by hour."""
