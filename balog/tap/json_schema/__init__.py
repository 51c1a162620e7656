"""JSON Schema with the standard library alone, for the configs, schemas and records of taps.

``keywords`` has the table of keywords, ``references`` follows JSON pointers, ``checks`` compiles the rules for single
values, and ``validator`` reports all mismatches of a config. ``balog.tap.records`` compiles whole schemas from the
same parts, because it also coerces values.
"""
