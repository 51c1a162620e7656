"""A type with every kind of field, for tests."""

from google.protobuf import json_format, message_factory

from balog.registry.protobuf.message import CompiledMessage

ORDER = b"""
syntax = "proto3";
package shop;
import "google/protobuf/duration.proto";
import "google/protobuf/field_mask.proto";
import "google/protobuf/struct.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";

message Order {
  string order_id = 1;
  int32 count = 2;
  uint64 total = 3;
  float weight = 4;
  double price = 5;
  bool paid = 6;
  bytes blob = 7;
  Color color = 8;
  repeated Line lines = 9;
  map<string, Line> by_name = 10;
  map<int32, string> by_number = 11;
  map<bool, int64> by_truth = 12;
  oneof pay { string card = 13; int32 cash = 14; }
  optional int32 maybe = 15;
  google.protobuf.Timestamp at = 16;
  google.protobuf.Duration took = 17;
  google.protobuf.Int64Value wrapped = 18;
  google.protobuf.Struct free = 19;
  google.protobuf.Value any = 20;
  google.protobuf.FieldMask mask = 21;
  Order inner = 22;
  repeated double samples = 23;
}
message Line { string sku = 1; repeated int32 sizes = 2; }
enum Color { NONE = 0; RED = 1; }
"""


def encoded(type_: CompiledMessage, payload: bytes) -> bytes:
    """Encode a payload with google.protobuf, which skips the members beside the fields."""
    message = message_factory.GetMessageClass(type_.descriptor)()
    json_format.Parse(payload, message, ignore_unknown_fields=True, max_recursion_depth=101)
    return bytes(message.SerializeToString(deterministic=True))
