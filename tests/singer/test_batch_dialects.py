import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from balog.singer.batch.dialects import (
    DIALECTS,
    BatchError,
    BatchManifest,
    Dialect,
    find_credentials,
    read_batch,
    shown,
    without_credentials,
    write_batch,
)

names = st.text(min_size=1, max_size=20)
batches = st.builds(
    BatchManifest,
    stream=names,
    files=st.lists(
        st.sampled_from(["file:///tmp/a", "s3://bucket/b.gz", "https://host/c?sig=1"]), min_size=1, unique=True
    ),
    format=st.sampled_from(["jsonl", "csv", "parquet", "arrow"]),
    compression=st.sampled_from([None, "none", "gzip", "zstd", "snappy"]),
    options=st.sampled_from([{}, {"delimiter": "\t"}]),
    size=st.none() | st.integers(0, 2**40),
    time_extracted=st.none() | st.just("2017-11-20T16:45:33.000Z"),
    version=st.none() | st.integers(0, 2**40),
    rest=st.sampled_from([{}, {"part": 3}]),
)


def as_line(**message: Any) -> bytes:
    return json.dumps({"type": "BATCH", "stream": "a", **message}).encode()


PROPOSAL = as_line(
    time_extracted="2017-11-20T16:45:33.000Z",
    size=100000,
    format={"name": "csv", "options": {"delimiter": "\t", "quote_char": '"'}},
    compression={"name": None, "options": {}, "enabled": False},
    manifest=["s3://path/to/file001.csv", "s3://path/to/file002.csv"],
)
SDK = as_line(encoding={"format": "jsonl", "compression": "gzip"}, manifest=["file:///tmp/a.gz"], version=7)
PIPELINEWISE = as_line(filepath="/tmp/a b.csv", format="csv", compression="gzip", batch_size=5)


class TestReadBatch:
    def test_the_example_of_the_proposal(self):
        assert read_batch(PROPOSAL) == BatchManifest(
            stream="a",
            files=["s3://path/to/file001.csv", "s3://path/to/file002.csv"],
            dialect="proposal",
            format="csv",
            compression="none",
            options={"delimiter": "\t", "quote_char": '"'},
            size=100000,
            time_extracted="2017-11-20T16:45:33.000Z",
        )

    def test_the_sdk(self):
        expected = BatchManifest(
            stream="a", files=["file:///tmp/a.gz"], dialect="sdk", format="jsonl", compression="gzip", version=7
        )
        assert read_batch(SDK) == expected

    def test_pipelinewise_says_exactly_how_many_rows(self):
        expected = BatchManifest(
            stream="a",
            files=["/tmp/a b.csv"],
            dialect="pipelinewise",
            format="csv",
            compression="gzip",
            size=5,
            is_exact=True,
        )
        assert read_batch(PIPELINEWISE) == expected

    @pytest.mark.parametrize(
        ("compression", "read"),
        [
            ({"name": "gzip", "enabled": True}, "gzip"),
            ({"name": "gzip"}, "gzip"),
            ({"name": "gzip", "enabled": False}, "none"),
            ({"name": None}, "none"),
            ({}, None),
            ("GZ", "gzip"),
            ("zst", "zstd"),
            ("none", "none"),
            ("", "none"),
            (None, None),
            ("lzma", "lzma"),
        ],
    )
    def test_compressions_in_all_their_forms(self, compression, read):
        assert read_batch(as_line(manifest=["a"], compression=compression)).compression == read

    @pytest.mark.parametrize(
        ("format", "read"),
        [(None, "jsonl"), ("JSONL", "jsonl"), ({"name": "json"}, "jsonl"), ({}, "jsonl"), ("orc", "orc")],
    )
    def test_the_format_is_jsonl_where_it_is_not_said(self, format, read):
        assert read_batch(as_line(manifest=["a"], format=format)).format == read

    @pytest.mark.parametrize(
        ("line", "problem"),
        [
            (b"{", "not JSON"),
            (b"[]", "$: "),
            (b"[" * 100_000, "not JSON"),
            (b'{"type":"BATCH","manifest":[]}', "stream"),
            (b'{"type":"BATCH","stream":"a"}', "neither manifest nor filepath"),
            (as_line(manifest="a"), "$.manifest"),
            (as_line(manifest=[1]), "$.manifest"),
            (as_line(manifest=["a"], size=-1), "below 0"),
            (as_line(manifest=["a"], encoding="gzip"), "$.encoding"),
            (as_line(manifest=["a"], encoding={"format": 3}), "$.format"),
            (as_line(manifest=["a"], format={"name": 3}), "$.format"),
            (as_line(manifest=["a"], format={"options": 3}), "$.format"),
        ],
    )
    def test_what_is_none_is_refused_with_the_place(self, line, problem):
        with pytest.raises(BatchError) as caught:
            read_batch(line)
        assert problem in str(caught.value)


class TestWriteBatch:
    @pytest.mark.parametrize("line", [PROPOSAL, SDK, PIPELINEWISE])
    def test_its_own_dialect_says_the_same(self, line):
        (written,) = write_batch(read_batch(line), read_batch(line).dialect)
        assert json.loads(written) == json.loads(line)

    def test_pipelinewise_has_a_message_for_each_file(self):
        lines = list(write_batch(read_batch(PROPOSAL), "pipelinewise"))
        assert [json.loads(line)["filepath"] for line in lines] == read_batch(PROPOSAL).files
        assert all("batch_size" not in json.loads(line) for line in lines)  # the proposal's size is an upper limit

    def test_the_sdk_gets_only_keys_that_it_knows(self):
        batch = read_batch(PIPELINEWISE.replace(b"}", b', "part": 1}'))
        (line,) = write_batch(batch, "sdk")
        assert set(json.loads(line)) == {"type", "stream", "encoding", "manifest"}

    def test_a_path_is_a_url_where_urls_are_wanted_and_back(self):
        (as_sdk,) = write_batch(read_batch(PIPELINEWISE), "sdk")
        assert json.loads(as_sdk)["manifest"] == ["file:///tmp/a%20b.csv"]
        (back,) = write_batch(read_batch(as_sdk), "pipelinewise")
        assert json.loads(back)["filepath"] == "/tmp/a b.csv"

    @given(batches, st.sampled_from(DIALECTS), st.sampled_from(DIALECTS))
    def test_every_dialect_becomes_every_other(self, batch: BatchManifest, first: Dialect, second: Dialect):
        """Given any batch, when it goes through two dialects, then every file still has its format and compression."""
        lines = [again for line in write_batch(batch, first) for again in write_batch(read_batch(line), second)]
        read = [read_batch(line) for line in lines]
        assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
        assert {found.dialect for found in read} == {second}
        assert [file.removeprefix("file://") for found in read for file in found.files] == [
            file.removeprefix("file://") for file in batch.files
        ]
        packed = None if batch.compression == "none" else batch.compression
        for found in read:
            assert (found.stream, found.format, found.version) == (batch.stream, batch.format, batch.version)
            assert (None if found.compression == "none" else found.compression) == packed

    @given(batches)
    def test_the_proposal_loses_nothing(self, batch: BatchManifest):
        (line,) = write_batch(batch, "proposal")
        assert read_batch(line) == batch

    def test_every_dialect_is_named(self):
        assert get_args(Dialect) == DIALECTS


class TestFindCredentials:
    @pytest.mark.parametrize(
        ("message", "place"),
        [
            (
                {"format": {"name": "csv", "options": {"aws_secret_access_key": "hidden"}}},
                "$.format.options.aws_secret_access_key",
            ),
            ({"options": {"password": "hidden"}}, "$.options.password"),
            ({"storage": {"credentials": {"user": "hidden"}}}, "$.storage.credentials"),
            ({"aws_session_token": "hidden"}, "$.aws_session_token"),
            ({"account_key": "hidden"}, "$.account_key"),
            ({"manifest": ["s3://a/b", "s3://key:hidden@bucket/a"]}, "$.manifest[1]"),
            ({"manifest": ["https://hidden@host/a"]}, "$.manifest[0]"),
            ({"manifest": ["s3://bucket/a?aws_secret_access_key=hidden"]}, "$.manifest[0]"),
            ({"filepath": "ftp://me:hidden@host/a"}, "$.filepath"),
        ],
    )
    def test_they_are_found_and_taken_out(self, message, place):
        line = as_line(**message)
        assert find_credentials(line) == place
        assert b"hidden" not in without_credentials(line)
        assert b"***" in without_credentials(line)

    @pytest.mark.parametrize(
        "message",
        [
            {"manifest": ["https://bucket.s3.amazonaws.com/a?X-Amz-Signature=abc&X-Amz-Security-Token=d"]},
            {"manifest": ["abfss://container@account.dfs.core.windows.net/a"]},
            {"manifest": ["/tmp/passwords/token.csv"]},
            {"options": {"password": None, "token": "", "is_secret": False}},
            {"format": {"name": "csv", "options": {"delimiter": ","}}},
        ],
    )
    def test_what_is_none_is_let_be(self, message):
        line = as_line(**message)
        assert find_credentials(line) is None
        assert without_credentials(line) == line

    def test_a_name_is_shown_without_its_query(self):
        assert shown("https://me:pw@host/a/b?X-Amz-Signature=abc#d") == "https://host/a/b"
        assert shown("/tmp/a?b") == "/tmp/a?b"
        assert "\n" not in shown("/tmp/a\nb")
