"""What a broker's config may say about BATCH messages."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct, field

from balog.common.storage import Options
from balog.singer.batch.dialects import Dialect

Pattern = Annotated[str, Meta(min_length=1, max_length=1000, description="A stream's name, or a pattern with * ? [].")]
Place = Annotated[
    str, Meta(min_length=1, max_length=2000, description="A folder, or a URL that files' URLs begin with.")
]


class BatchConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What becomes of BATCH messages. Two brokers in a row do what one can't."""

    examples: ClassVar = (
        {
            "to": "batch",
            "streams": ["orders"],
            "location": "s3://lake/batches",
            "options": {"endpoint_url": "http://localhost:9000"},
            "format": "parquet",
            "allowed": ["s3://lake/"],
        },
        {"to": "records", "root": "/var/spool/tap"},
    )

    to: Annotated[
        Literal["pass", "records", "batch"],
        Meta(
            description=(
                "pass: a BATCH goes on as it came. records: its rows go on as RECORDs. batch: it goes on in the "
                "dialect, format and compression below, and so do RECORDs where there is a location."
            )
        ),
    ] = "pass"
    streams: Annotated[
        list[Pattern], Meta(min_length=1, description="The streams that `to` is for; all by default.")
    ] = field(default_factory=lambda: ["*"])
    dialect: Annotated[Dialect, Meta(description="A BATCH keeps its own by default, RECORDs get sdk.")] | None = None
    format: Annotated[
        Literal["jsonl", "csv", "parquet"] | None, Meta(description="A BATCH keeps its own, RECORDs get jsonl.")
    ] = None
    compression: Annotated[
        Literal["none", "gzip", "zstd"] | None, Meta(description="A BATCH keeps its own, RECORDs get gzip.")
    ] = None
    location: Annotated[Place, Meta(description="Where new files go: a folder, or a URL such as s3://…")] | None = None
    options: Options = {}
    max_records: Annotated[int, Meta(ge=1, le=100_000_000, description="Rows of a new file at most.")] = 100_000
    max_bytes: Annotated[int, Meta(ge=1024, le=64 << 30, description="Bytes of a new file's rows as JSON, about.")] = (
        256 << 20
    )
    min_records: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000_000,
            description=(
                "Rows that have to wait before a STATE makes files of them; until then the STATE waits with them, and "
                "a later one takes its place."
            ),
        ),
    ] = 1
    root: Annotated[str, Meta(min_length=1, description="The folder where relative paths of a manifest begin.")] = "."
    allowed: Annotated[
        list[Place], Meta(description="Locations of files of a BATCH. The default allows local files only, anywhere.")
    ] = field(default_factory=lambda: ["/"])

    def is_for(self, stream: str) -> bool:
        """Return whether ``to`` applies to a stream."""
        return self.to != "pass" and any(fnmatchcase(stream, pattern) for pattern in self.streams)

    @property
    def collects(self) -> bool:
        """Whether RECORDs become files."""
        return self.to == "batch" and self.location is not None
