"""The contracts as JSON Schema, installed as the data package ``balog.schemas``."""
