"""Types in ``.proto`` files: compiled by protoc, validated, and stored as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from balog.common.errors import MissingExtraError
from balog.registry.schema import InvalidSchemaError

if TYPE_CHECKING:
    from balog.registry.protobuf.message import CompiledMessage

__all__ = ["compile_proto"]


def compile_proto(source: bytes, message: str = "", where: str = "") -> CompiledMessage:
    """Compile a ``.proto`` file (proto2, proto3 or an edition that protoc knows) for one of its messages.

    Compilation runs in a child process and takes about 50 ms. The result is cached by content.

    Args:
        source: the file. It may import the files of protobuf (``google/protobuf/…``) and
            ``buf/validate/validate.proto``.
        message: the name of the payload's message, with or without the package; "" for the only top-level message that
            no other message uses.
        where: the file or ``TYPE/VERSION``, for errors.

    Raises:
        InvalidSchemaError: protoc rejects the file (``path`` is ``line:column``), the file has no such message, or its
            payloads could not be stored as JSON.
        MissingExtraError: the extra ``protobuf`` is not installed.
    """
    try:
        import grpc_tools  # noqa: F401
        import protovalidate  # noqa: F401

        from balog.registry.protobuf.message import compile_message
    except ImportError:
        raise MissingExtraError("a type in protobuf", "protobuf") from None
    try:
        return compile_message(source, message)
    except InvalidSchemaError as error:
        raise InvalidSchemaError(error.reason, where, error.path) from None
