"""All decoders by name."""

from importlib import import_module

from tests.fuzz.decoders import FILE_DECODERS
from tests.fuzz.harness import Decoder
from tests.fuzz.table_decoders import TABLE_DECODERS
from tests.fuzz.text_decoders import TEXT_DECODERS

DECODERS = (*FILE_DECODERS, *TEXT_DECODERS, *TABLE_DECODERS)


def find_decoder(name: str) -> Decoder:
    """Return the decoder of a name, or of a place such as `tests.fuzz.test_harness:HANGS`."""
    if ":" in name:
        module, _, attribute = name.partition(":")
        found = getattr(import_module(module), attribute)
        assert isinstance(found, Decoder)
        return found
    return {decoder.name: decoder for decoder in DECODERS}[name]
