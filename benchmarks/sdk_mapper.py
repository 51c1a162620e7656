"""A mapper of the Meltano SDK, as its stream maps are run: `python sdk_mapper.py CONFIG {json,msgspec}` < stream.

Runs in an environment of its own that has singer-sdk; `benchmarks.records` starts it.
"""

import json
import sys
from collections.abc import Iterable
from typing import Any

import singer_sdk.singerlib as singer
from singer_sdk import typing as th
from singer_sdk.mapper import PluginMapper
from singer_sdk.mapper_base import InlineMapper


class Mapper(InlineMapper):
    name = "mapper"
    config_jsonschema = th.PropertiesList(
        th.Property("stream_maps", th.ObjectType(additional_properties=True))
    ).to_dict()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.mapper = PluginMapper(plugin_config=dict(self.config), logger=self.logger)

    def map_schema_message(self, message_dict: dict) -> Iterable[singer.Message]:
        stream = message_dict["stream"]
        self.mapper.register_raw_stream_schema(stream, message_dict["schema"], message_dict["key_properties"])
        for stream_map in self.mapper.stream_maps[stream]:
            yield singer.SchemaMessage(
                stream_map.stream_alias, stream_map.transformed_schema, stream_map.transformed_key_properties
            )

    def map_record_message(self, message_dict: dict) -> Iterable[singer.Message]:
        for stream_map in self.mapper.stream_maps[message_dict["stream"]]:
            record = stream_map.transform(message_dict["record"])
            if record is not None:
                yield singer.RecordMessage(stream=stream_map.stream_alias, record=record)

    def map_state_message(self, message_dict: dict) -> Iterable[singer.Message]:
        yield singer.StateMessage(value=message_dict["value"])

    def map_activate_version_message(self, message_dict: dict) -> Iterable[singer.Message]:
        yield singer.ActivateVersionMessage(stream=message_dict["stream"], version=message_dict["version"])


def main() -> None:
    config, codec = sys.argv[1:]
    if codec == "msgspec":
        from singer_sdk.contrib.msgspec import MsgSpecReader, MsgSpecWriter

        Mapper.message_reader_class, Mapper.message_writer_class = MsgSpecReader, MsgSpecWriter
    Mapper(config=json.loads(config)).listen()


if __name__ == "__main__":
    main()
