"""JSON Schema in the schemas and records of taps: keywords, references, mismatches, dates.

jsonschema-rs validates configs and records; ``balog.tap.records`` compiles schemas, because it also coerces values.
"""
