"""A version with a filter that can't do its work is taken back, end to end."""

import json

from balog.event import decode

GOOD = {
    "filters": [{"name": "big", "sources": ["order"], "to": "big", "where": "payload.n >= 5"}],
    "watch": {"window": 1},
}


def test_a_filter_that_fails_is_taken_back_and_the_old_one_goes_on(controlled, api, until, tmp_path):
    assert api("POST", "/v1/config?message=good", GOOD)[1]["applied"]["number"] == 1
    controlled.send_orders(10)
    until(lambda: controlled.topics.topic("big").exists() and controlled.topics.topic("big").describe().messages == 5)
    until(lambda: not controlled.applier._monitor.is_watching)

    (file,) = (path for path in (tmp_path / "topics").iterdir() if path.stem == "big" and "-" not in path.suffix)
    file.with_stem("broken").write_bytes(b"no database at all" * 500)
    bad = {"filters": [GOOD["filters"][0] | {"to": "broken"}], "watch": {"window": 4}}
    assert api("POST", "/v1/config?message=bad", bad)[1]["applied"]["number"] == 2
    controlled.send_orders(10)

    entry = until(lambda: (head := controlled.control.head()).number == 3 and head)
    assert (entry.action, entry.origin, entry.who) == ("automatic rollback", 1, "service service one")
    assert entry.message.startswith("version 2: filter big")
    assert json.loads(controlled.control.document(entry)) == GOOD
    told = controlled.topics.topic("config_rollback")
    (message,) = until(lambda: told.exists() and told.peek())
    event = decode(message.body)
    assert event.header.level == "ERROR"
    assert (event.payload["rolled_back"], event.payload["restored"]) == (2, 1)
    # What came while the bad version held is not lost: the good filter goes on where its group was.
    until(lambda: controlled.topics.topic("big").describe().messages == 10)
    status = until(lambda: next((one for one in controlled.control.services() if one.number == 3), None))
    assert status.state == "rolled back"
