"""The main job on real data: two taps that know nothing of balog, a broker, a target, handlers and a Spark report.

`make demo` installs what this needs and runs it; every command is shown as one could type it after
`. .venv/bin/activate`. What it makes lies in `.demo/out`, which is cleaned at each start.
"""
