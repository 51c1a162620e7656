"""Handlers that run as they are and that a team copies as its start, a module and a pattern each.

``balog consume consumers.archive --topics URL --set archive=FOLDER`` runs one, ``balog consume consumers …`` all of
them. What a handler needs to know comes by ``--set``, secrets come from the
environment or from files; what is missing is said before any event is given up.
"""
