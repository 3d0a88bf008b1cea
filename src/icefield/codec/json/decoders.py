"""Decoders of JSON values that table metadata and view metadata share."""

import uuid
from typing import Any

import msgspec

from icefield.codec.json.snapshots import Int, Long

ENCODER = msgspec.json.Encoder()
RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])
RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
OBJECTS = msgspec.json.Decoder(list[dict[str, Any]])
INT = msgspec.json.Decoder(Int)
LONG = msgspec.json.Decoder(Long)
TEXT = msgspec.json.Decoder(str)
UUID = msgspec.json.Decoder(uuid.UUID)
