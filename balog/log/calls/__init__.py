"""The path of a logging call: what is off, what raises, which outputs get it."""
