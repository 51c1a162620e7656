"""Types that are described by a ``.proto`` file: compiled by protoc, enforced, and stored as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.errors import MissingExtraError
from balog.registry.schema import InvalidSchemaError

if TYPE_CHECKING:
    from balog.registry.protobuf.message import CompiledMessage

__all__ = ["compile_proto"]


def compile_proto(source: bytes, message: str = "", where: str = "") -> CompiledMessage:
    """Compile a ``.proto`` file (proto2, proto3 or an edition that protoc knows) for one of its messages.

    Compiling takes a child process and some 50 ms; the same content is compiled once.

    Args:
        source: the file; it may import what comes with protobuf (``google/protobuf/…``) and
            ``buf/validate/validate.proto``.
        message: the full name of the message that is the payload, or its name without the package; "" for the only
            one at the top of the file that no other one uses.
        where: the file or ``TYPE/VERSION``, for errors.

    Raises:
        InvalidSchemaError: protoc rejects the file (``path`` is ``line:column``), the file has no such message, or its
            payloads could not be stored as JSON.
        MissingExtraError: the extra ``protobuf`` is not installed.
    """
    try:
        import grpc_tools  # noqa: F401
        import protovalidate  # noqa: F401

        from balog.registry.protobuf.message import compiled
    except ImportError:
        raise MissingExtraError("a type in protobuf", "protobuf") from None
    try:
        return compiled(source, message)
    except InvalidSchemaError as error:
        raise InvalidSchemaError(error.reason, where, error.path) from None
