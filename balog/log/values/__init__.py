"""Any Python value as JSON: conversions of types, limits, and the fallback for values without a JSON form."""
