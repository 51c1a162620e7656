"""JSON Schema in the schemas and records of taps: keywords, references, checks of values, dates.

``balog.tap.records`` compiles whole schemas from these parts, because it also coerces values. Configs are validated by
jsonschema-rs, see ``balog.tap.config``.
"""
