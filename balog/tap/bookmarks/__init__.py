"""State: what was synced up to where, when it is written, and how the bookmarks of a stream's children hold it back."""

from balog.tap.bookmarks.progress import Progress
from balog.tap.bookmarks.reading import read_state, state_of
from balog.tap.bookmarks.state import State
from balog.tap.bookmarks.strategies import BookmarkStrategy, EndOfStream, EveryN, EverySeconds, make_strategy
from balog.tap.bookmarks.versions import FullTable

__all__ = [
    "BookmarkStrategy",
    "EndOfStream",
    "EveryN",
    "EverySeconds",
    "FullTable",
    "Progress",
    "State",
    "make_strategy",
    "read_state",
    "state_of",
]
