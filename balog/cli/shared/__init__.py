"""Options, output and signals of all commands."""
