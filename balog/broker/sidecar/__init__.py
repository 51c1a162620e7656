"""``balog run``: a tap as a child process, its log lines as events, and a report of the run."""
