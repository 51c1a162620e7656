"""Reading what arrives: files and messages that are new since the last batch."""
