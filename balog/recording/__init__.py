"""What all ways of logging share: from one call's level, channel and payload to an event's bytes at every output.

``configuring`` puts a ``recorder`` in place; ``context`` says who logs; ``rendering``, ``exceptions`` and ``salvage``
make JSON of whatever was given; ``volume`` and ``validation`` decide what passes; ``ending`` delivers the rest at the
end.
"""
