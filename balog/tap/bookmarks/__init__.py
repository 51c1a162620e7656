"""State: bookmarks, when they are written, and how a stream's bookmark waits for its substreams."""

from balog.tap.bookmarks.progress import Progress
from balog.tap.bookmarks.reader import read_state, state_of
from balog.tap.bookmarks.state import State, full_table
from balog.tap.bookmarks.strategies import BookmarkStrategy, EveryN, EverySeconds, make_strategy

__all__ = [
    "BookmarkStrategy",
    "EveryN",
    "EverySeconds",
    "Progress",
    "State",
    "full_table",
    "make_strategy",
    "read_state",
    "state_of",
]
