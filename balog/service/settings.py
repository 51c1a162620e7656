"""The config of `balog serve`: the address, the topics, the registry and the version store."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from msgspec import Meta, Struct

from balog.common.storage import Options
from balog.topics.url import TopicsUrl

_Text = Annotated[str, Meta(min_length=1)]
_Fallback = Annotated[_Text, Meta(description="Topics that store events while the others fail, such as local:PATH.")]
_Name = Annotated[_Text, Meta(max_length=100, description="Name in status reports; host and port if omitted.")]
_Registry = Annotated[_Text, Meta(description="Folder or URL of the schemas; only balog's own types if omitted.")]
_Control = Annotated[_Text, Meta(description="Folder or URL of the document's versions; an empty document if omitted.")]
_Tokens = Annotated[
    _Text, Meta(description="File of hashed bearer tokens with rights; if omitted, only this machine may connect.")
]


class RequestLimits(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """Limits of requests."""

    body_bytes: Annotated[int, Meta(ge=1024, le=256 << 20, description="Bytes of a body as sent.")] = 8 << 20
    inflated_bytes: Annotated[int, Meta(ge=1024, le=1 << 30, description="Bytes of a body after decompression.")] = (
        32 << 20
    )
    event_bytes: Annotated[int, Meta(ge=256, le=16 << 20, description="Bytes of one event.")] = 1 << 20
    events: Annotated[int, Meta(ge=1, le=100_000, description="Events of one request.")] = 10_000
    depth: Annotated[
        int, Meta(ge=1, le=500, description="Levels of objects and arrays; the object that is sent is level 1.")
    ] = 64
    seconds: Annotated[float, Meta(gt=0, le=600, description="Seconds for a client to send its request.")] = 30.0
    connections: Annotated[int, Meta(ge=1, le=100_000, description="Concurrent connections.")] = 2000
    in_flight_bytes: Annotated[int, Meta(ge=1 << 20, description="Bytes of events that are not durable yet.")] = (
        64 << 20
    )


class DocumentAccess(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What the control document may name on this machine and in its networks. By default nothing."""

    variables: Annotated[
        tuple[str, ...], Meta(description="Environment variables for secrets; globs with * and ?, such as HOOK_*.")
    ] = ()
    folders: Annotated[
        tuple[str, ...],
        Meta(description="Folders of files with secrets or certificates; symbolic links are resolved first."),
    ] = ()
    networks: Annotated[
        tuple[str, ...],
        Meta(description="Private networks that tables, and callbacks with private, may connect to: 10.1.0.0/16."),
    ] = ()
    clusters: Annotated[
        tuple[str, ...], Meta(description="Proxies of YTsaurus that tables may name, spelled the same.")
    ] = ()


class ServiceConfig(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The config of a service. The control document (``balog config push``) holds its streams and jobs."""

    examples: ClassVar = (
        {
            "topics": "local:topics",
            "listen": ":8080",
            "name": "events-1",
            "registry": "schemas",
            "control": "control",
            "fallback": "local:fallback",
        },
        {
            "topics": "kafka:localhost:9092",
            "fallback": "local:fallback",
            "listen": "0.0.0.0:8443",
            "tokens": "tokens.json",
            "registry": "s3://schemas/events",
            "registry_options": {"endpoint_url": "http://localhost:9000"},
            "control": "s3://schemas/control",
            "control_options": {"endpoint_url": "http://localhost:9000"},
            "document_access": {
                "variables": ["HOOK_*"],
                "folders": ["/run/secrets"],
                "networks": ["10.1.0.0/16"],
                "clusters": ["hahn.example.com"],
            },
        },
    )

    topics: TopicsUrl
    fallback: _Fallback | None = None
    listen: Annotated[str, Meta(min_length=1, description="HOST:PORT, or :PORT for this machine only.")] = ":8080"
    name: _Name | None = None
    registry: _Registry | None = None
    registry_options: Options = {}
    unknown_types: Annotated[
        Literal["refuse", "accept"], Meta(description="What to do with events of an unknown type or version.")
    ] = "refuse"
    control: _Control | None = None
    control_options: Options = {}
    tokens: _Tokens | None = None
    document_access: DocumentAccess = DocumentAccess()
    limits: RequestLimits = RequestLimits()
    drain: Annotated[
        float, Meta(ge=0, le=3600, description="Seconds of a stop until remaining events go to the fallback.")
    ] = 20.0
    tls_cert: (
        Annotated[
            str, Meta(min_length=1, description="PEM file of the certificate; with tls_key.", examples=["server.pem"])
        ]
        | None
    ) = None
    tls_key: Annotated[str, Meta(min_length=1, description="PEM file of the key.", examples=["server.key"])] | None = (
        None
    )
