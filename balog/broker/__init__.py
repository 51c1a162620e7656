"""The Unix filter ``tap | balog broker | target``, and the sidecar ``balog run -- tap``.

``pipe`` moves bytes and finds LOG lines; ``broker`` joins it to sinks; ``sidecar`` makes LOG lines of a tap's stderr.
"""
