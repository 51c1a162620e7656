"""``balog tap verify``: does a tap, of this toolkit or not, keep to Singer's specification and practices?

``running`` runs the tap as a pipeline would, again and again; ``rules`` look at what it wrote; ``report`` scores.
"""
