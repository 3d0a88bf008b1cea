"""The kernels: integers of every length, and the choice between C and plain Python."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.codec.avro_writer import long
from tests.kernels import ENGINES, compiled_engine

from icefield.codec.avro import engine as avro_engine
from icefield.codec.avro import library
from icefield.codec.avro.compiled import CompiledEngine
from icefield.codec.avro.engine import Engine, PlainEngine, chosen, new_slots
from icefield.codec.avro.kernel import BAD_VARINT, REASONS, Blocks, Slots, Source, read_varint, write_varint
from icefield.codec.avro.program import Program, Wanted, compile_program
from icefield.codec.avro.schema import ROOT_ID, Field, Record, Value
from icefield.errors import InvalidInput

EDGES = [0, -1, 63, 64, -64, -65, 2**31, 2**62, 2**63 - 1, -(2**63)]
ROWS = [b"\x00" + long(value) for value in EDGES] + [b"\x02"]
DATA = b"\0" + b"".join(ROWS)


@pytest.fixture
def fresh_choice() -> Iterator[None]:
    """Have the engine chosen in the test, and again after it."""
    chosen.cache_clear()
    yield
    chosen.cache_clear()


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fresh_choice: None) -> Path:
    """A copy of kernel.c and its library, in a directory with a space in its name, where the loader looks."""
    folder = tmp_path / "a package"
    folder.mkdir()
    shutil.copy(library.FOLDER / "kernel.c", folder)
    shutil.copy(library_in(library.FOLDER), folder)
    load = library.load_library
    monkeypatch.setattr(library, "load_library", lambda: load(folder))
    return folder


def library_in(folder: Path) -> Path:
    return folder / library.library_name((folder / "kernel.c").read_bytes(), library.this_system())


def program_of_one_column() -> Program:
    schema = Record((Field("x", 1, Value("long"), null_branch=1),))
    return compile_program(schema, Wanted(values=frozenset({(ROOT_ID, 1)})))


def decode(engine: Engine, data: bytes = DATA) -> tuple[int, Slots]:
    """Decode the rows of one block that ends with the data."""
    program = program_of_one_column()
    blocks = Blocks(np.array([1]), np.array([len(data)]), np.array([len(ROWS)]))
    slots = new_slots(program.longs, program.spans, len(ROWS))
    return engine.decode(Source(data, program.code, program.keys), blocks, slots)[0], slots


@given(st.integers(-(2**63), 2**63 - 1) | st.sampled_from(EDGES))
def test_integers_are_written_as_avro_has_them_and_read_back(value: int) -> None:
    out = bytearray(10)
    size = write_varint(out, 0, value)
    assert out[:size] == long(value)
    assert read_varint(bytes(out[:size]), 0, size) == (value, size)


@pytest.mark.parametrize("data", [b"", b"\x80", b"\xff" * 9, b"\xff" * 10 + b"\x01", b"\xff" * 9 + b"\x02"])
def test_integers_that_are_cut_off_or_too_long_are_errors(data: bytes) -> None:
    assert read_varint(data, 0, len(data)) == (0, BAD_VARINT)


def test_an_error_is_handed_on() -> None:
    assert read_varint(b"\x02", BAD_VARINT, 1) == (0, BAD_VARINT)
    assert BAD_VARINT in REASONS


@pytest.mark.parametrize("name", sorted(ENGINES))
@pytest.mark.parametrize("damage", [b"", b"\0"])
def test_both_engines_read_the_same_integers(name: str, damage: bytes) -> None:
    status, slots = decode(ENGINES[name](), DATA + damage)
    assert (status < 0) == bool(damage)
    assert slots.longs[0].tolist() == [*EDGES, 0]
    assert slots.valid[0].tolist() == [1] * len(EDGES) + [0]


def test_threads_decode_at_the_same_time() -> None:
    engine = compiled_engine()
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: decode(engine)[1].longs.tolist(), range(200)))
    assert found == [[[*EDGES, 0]]] * 200


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_process_goes_on_with_the_library() -> None:
    engine = compiled_engine()
    child = os.fork()
    if child == 0:
        os._exit(decode(engine)[1].longs.tolist() != [[*EDGES, 0]])
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.usefixtures("package")
def test_c_is_used_where_its_library_is() -> None:
    assert isinstance(chosen().engine, CompiledEngine)
    assert chosen().description == "C"
    assert avro_engine.current_engine() is chosen().engine


def test_a_package_that_cannot_be_written_to_has_its_library(package: Path) -> None:
    package.chmod(0o555)
    try:
        assert isinstance(chosen().engine, CompiledEngine)
        assert decode(chosen().engine)[1].longs.tolist() == [[*EDGES, 0]]
    finally:
        package.chmod(0o755)


def test_without_a_library_plain_python_is_used(package: Path) -> None:
    library_in(package).unlink()
    assert isinstance(chosen().engine, PlainEngine)
    assert chosen().description == f"plain Python (there is no {library_in(package).name} in {package})"


def test_a_library_of_another_source_is_not_used(package: Path) -> None:
    (package / "kernel.c").write_text("/* another layout */")
    assert isinstance(chosen().engine, PlainEngine)


def test_a_library_for_another_system_is_not_used(package: Path) -> None:
    library_in(package).rename(package / library.library_name((package / "kernel.c").read_bytes(), "plan9-mips"))
    assert isinstance(chosen().engine, PlainEngine)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec/v1\n" * 200])
def test_a_file_that_is_no_library_is_not_used(package: Path, content: bytes) -> None:
    path = library_in(package)
    path.write_bytes(content)
    assert isinstance(chosen().engine, PlainEngine)
    assert str(path) in chosen().description


def test_a_library_without_the_kernels_is_not_used(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "FUNCTIONS", (*library.FUNCTIONS, "decode_columns"))
    assert isinstance(chosen().engine, PlainEngine)
    assert "has no decode_columns" in chosen().description


def test_a_package_in_an_archive_runs_in_plain_python(package: Path) -> None:
    shutil.rmtree(package)
    package.write_bytes(b"an archive")
    assert isinstance(chosen().engine, PlainEngine)


@pytest.mark.usefixtures("package")
def test_plain_python_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_KERNEL", "plain")
    assert isinstance(chosen().engine, PlainEngine)
    assert chosen().description == "plain Python (ICEFIELD_KERNEL=plain)"


@pytest.mark.usefixtures("package")
def test_nothing_else_can_be_forced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ICEFIELD_KERNEL", "cuda")
    with pytest.raises(InvalidInput, match="ICEFIELD_KERNEL is 'cuda'. It can be 'plain' or not set"):
        chosen()


@pytest.mark.parametrize(("setting", "shown"), [("", "C"), ("plain", "plain Python (ICEFIELD_KERNEL=plain)")])
def test_the_command_line_says_which_kernel_runs(setting: str, shown: str) -> None:
    program = "from icefield.cli.main import run; run(['--version'])"
    variables = {**os.environ, "ICEFIELD_KERNEL": setting}
    done = subprocess.run([sys.executable, "-c", program], env=variables, capture_output=True, text=True, check=True)
    assert done.stdout.endswith(f", Avro kernel: {shown}\n")


class TestArguments:
    """C trusts what it is given: arrays of another kind are refused before, positions outside them by C itself."""

    def source(self) -> Source:
        program = program_of_one_column()
        return Source(DATA, program.code, program.keys)

    def blocks(self, begin: int = 1, end: int = len(DATA)) -> Blocks:
        return Blocks(np.array([begin]), np.array([end]), np.array([len(ROWS)]))

    @pytest.mark.parametrize(("begin", "end"), [(-1, 5), (1, len(DATA) + 1), (1, 2**40)])
    def test_a_block_outside_the_data(self, begin: int, end: int) -> None:
        with pytest.raises(IndexError):
            compiled_engine().decode(self.source(), self.blocks(begin, end), new_slots(1, 0, len(ROWS)))

    def test_slots_of_another_type(self) -> None:
        slots = new_slots(1, 0, len(ROWS))
        with pytest.raises(TypeError, match="an array of int32"):
            compiled_engine().decode(self.source(), self.blocks(), slots._replace(longs=slots.longs.astype(np.int32)))

    def test_slots_with_gaps_between_their_values(self) -> None:
        slots = new_slots(1, 0, 2 * len(ROWS))
        halves = Slots(*(array[:, ::2] for array in slots))
        with pytest.raises(TypeError):
            compiled_engine().decode(self.source(), self.blocks(), halves)

    def test_slots_of_different_lengths(self) -> None:
        slots = new_slots(1, 0, len(ROWS))
        with pytest.raises(TypeError):
            compiled_engine().decode(self.source(), self.blocks(), slots._replace(valid=slots.valid[:, 1:].copy()))
        with pytest.raises(TypeError):
            compiled_engine().decode(self.source(), self.blocks(), new_slots(1, 0, 5)._replace(begins=slots.begins))

    def test_lists_of_blocks_of_different_lengths(self) -> None:
        with pytest.raises(TypeError):
            compiled_engine().decode(
                self.source(), self.blocks()._replace(end=np.array([2, 3])), new_slots(1, 0, len(ROWS))
            )

    @pytest.mark.parametrize("capacity", [0, 10, 20])
    def test_too_little_room_to_encode(self, capacity: int) -> None:
        slots = decode(compiled_engine())[1]
        with pytest.raises(IndexError):
            compiled_engine().encode(self.source(), slots, capacity, len(ROWS))
        with pytest.raises(IndexError):
            compiled_engine().encode_arrays(self.source(), slots, capacity, np.array([0, len(ROWS)]))

    def test_more_rows_to_encode_than_there_are(self) -> None:
        slots = decode(compiled_engine())[1]
        with pytest.raises(IndexError):
            compiled_engine().encode(self.source(), slots, 1000, len(ROWS) + 1)
        for offsets in ([0, len(ROWS) + 1], [-1, 2]):
            with pytest.raises(IndexError):
                compiled_engine().encode_arrays(self.source(), slots, 1000, np.array(offsets))

    @pytest.mark.parametrize(("begin", "end"), [(-1, 3), (3, 2), (1, len(DATA) + 1)])
    def test_bytes_to_encode_that_are_not_there(self, begin: int, end: int) -> None:
        schema = Record((Field("x", 1, Value("string")),))
        program = compile_program(schema, Wanted(values=frozenset({(ROOT_ID, 1)})))
        slots = new_slots(0, 1, 1)
        slots.begins[:], slots.ends[:] = begin, end
        with pytest.raises(IndexError):
            compiled_engine().encode(Source(DATA, program.code, program.keys), slots, 1000, 1)
