"""``/v1/schemas``: reads the registry of a service, and registers versions."""

from __future__ import annotations

from typing import get_args

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from balog.registry import Registry, Schema
from balog.registry.comparing import CompatibilityReport, Mode
from balog.registry.schema import MAX_SCHEMA_BYTES, Form
from balog.service.api.bodies import read_body
from balog.service.api.context import ServiceContext
from balog.service.api.endpoints import authorize, json_response
from balog.service.api.errors import ApiError
from balog.service.remote_registry import FORMS, TypeEntry, VersionEntry

_JSON = "application/json"
_FORMS: dict[str, Form] = {
    "": "json",
    _JSON: "json",
    "application/schema+json": "json",
    "application/x-www-form-urlencoded": "json",  # the default of `curl -d`
    "text/x-protobuf": "protobuf",
    "application/x-protobuf-schema": "protobuf",
}
_MODES: tuple[Mode, ...] = get_args(Mode)


def routes(service: ServiceContext) -> list[Route]:
    """Return the routes of a service.

    ``GET`` lists types and versions, or returns a version (by default the latest) as it was registered; its number is
    in ``ETag`` and ``Balog-Version``. ``POST /v1/schemas/TYPE/VERSION?mode=…`` registers a version: 201 with the
    report, 409 if the version exists with another document, 422 if it is invalid or incompatible.
    """

    async def types(request: Request) -> Response:
        caller = authorize(service, request, "read")
        entries = await run_in_threadpool(_entries, service.registry)
        return json_response([entry for entry in entries if caller.is_for(entry.type)])

    async def one(request: Request) -> Response:
        type, version = request.path_params["type"], request.path_params.get("version")
        authorize(service, request, "read", type=type)
        schema = await run_in_threadpool(service.registry.get, type, version)
        headers = {"ETag": f'"{schema.version}"', "Balog-Version": schema.version}
        if schema.message:
            headers["Balog-Message"] = schema.message
        return Response(schema.source, headers=headers, media_type=FORMS[schema.form])

    async def register(request: Request) -> Response:
        type, version = request.path_params["type"], request.path_params["version"]
        authorize(service, request, "register", type=type)
        wanted, message = request.query_params.get("mode", "backward"), request.query_params.get("message", "")
        mode = next((mode for mode in _MODES if mode == wanted), None)
        if mode is None:
            raise ApiError(422, f"mode: expected one of {', '.join(_MODES)}")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _FORMS:
            raise ApiError(415, f"expected {FORMS['json']}, or {FORMS['protobuf']} for a .proto file")
        source = await read_body(request.receive, request.headers, MAX_SCHEMA_BYTES)
        schema = Schema(type, version, _FORMS[kind], source, message)
        verdict: CompatibilityReport = await run_in_threadpool(service.registry.register, schema, mode)
        return json_response(verdict, 201)

    return [
        Route("/v1/schemas", types, methods=["GET"]),
        Route("/v1/schemas/{type}", one, methods=["GET"]),
        Route("/v1/schemas/{type}/{version}", one, methods=["GET"]),
        Route("/v1/schemas/{type}/{version}", register, methods=["POST"]),
    ]


def _entries(registry: Registry) -> list[TypeEntry]:
    return [
        TypeEntry(type, [VersionEntry(kept.name.version, str(kept.name), kept.mark) for kept in versions.values()])
        for type, versions in registry.listing().items()
    ]
