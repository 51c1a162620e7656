"""Where tables are: a folder, Hive, Delta."""
