"""A tap of a folder: its CSV and JSON files, also compressed ones. The folder may be s3://bucket/folder.

TAP_FOLDER_PATH=./exports python examples/tap_folder.py
"""

from balog.tap import Tap
from balog.tap.endpoints import FileStream

tap = Tap("tap-folder", config_spec=["path"])


@tap.discover
def files(config):
    yield FileStream("orders", folder=config["path"], pattern="orders*.csv*", key_properties=["id"])
    yield FileStream("events", folder=config["path"], pattern="events*.jsonl*")


if __name__ == "__main__":
    tap.run()
