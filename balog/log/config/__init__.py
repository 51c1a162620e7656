"""The logger's configuration: its struct, its schema, its checks, the environment."""
