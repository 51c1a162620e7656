"""The pages on handlers to copy and on declared types: their blocks run."""

from pathlib import Path

from balog.topics import open_topics
from tests.documentation import run_page, run_task


def test_the_handlers_of_a_clone_run_as_they_are(tmp_path: Path) -> None:
    run_task("copy-a-handler.md", tmp_path)
    assert list(tmp_path.glob("tour/shop-archive/singer-events/date=*/*.jsonl.gz"))
    with open_topics(f"local:{tmp_path / 'tour/shop-topics'}") as topics, topics.topic("singer-events") as topic:
        assert {group.name for group in topic.describe().groups} == {"ops", "archive"}


def test_payloads_that_do_not_match_their_declared_type_are_tagged(tmp_path: Path) -> None:
    (printed,) = run_page("declare-a-payload-type.md", tmp_path)
    refund, note = printed.splitlines()
    assert "$.amount" in refund
    assert "text" in note
