"""``python -m balog``: the same as the command ``balog``."""

from balog.cli import main

if __name__ == "__main__":
    main(prog_name="balog")
