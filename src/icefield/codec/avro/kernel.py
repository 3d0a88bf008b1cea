"""The inner loops of the codec: decode and encode Avro rows by running a program (an array of instructions).

This is the specification, and what runs where there is no compiled library; `kernel.c` has the same functions in C, see
`avro.engine`. Change both together.

The reader does not trust its input: every read is checked against the end of its block, and every iteration consumes at
least one byte (`avro.program` refuses array elements of zero bytes), so hostile input costs linear time.

The writer handles only primitive values; arrays and whole records are spans that were encoded before. The caller makes
`out` large enough (`avro.encode` computes the bound).

Errors: a negative position is one of the codes in `REASONS`, and every function returns it unchanged.
"""

from typing import Any, NamedTuple

# One instruction is WIDTH integers: the opcode; the union branch that is null (-1: no union); the slot of the value
# (-1: skip it); an operand; the jump target on null, or at the start of a loop; the range of the wanted keys of a map;
# and the slot of an array's element count (-1: not wanted).
NULL, SLOT, ARG, JUMP, KEYS, KEYS_END, COUNT = 1, 2, 3, 4, 5, 6, 7
WIDTH = 8

# VARINT and BOOL fill longs; BYTES (length first), FIXED (ARG bytes) and what is between ENTER and LEAVE fill spans.
# The maps are arrays of (integer key, value) with the value's null branch in ARG. LOOP jumps to AGAIN, which goes to
# ARG for each element. In writing, FIXED copies its span as it is, whatever its length.
VARINT, BOOL, BYTES, FIXED, MAP_LONGS, MAP_BYTES, ENTER, LEAVE, LOOP, AGAIN = range(10)

MAX_LOOPS = 8

BAD_VARINT, BAD_LENGTH, BAD_BRANCH, BAD_BOOL, BAD_COUNT, NOT_AT_END = -1, -2, -3, -4, -5, -6

REASONS = {
    BAD_VARINT: "an integer is cut off or has more than 64 bits",
    BAD_LENGTH: "a length is negative or reaches past the end of its block",
    BAD_BRANCH: "a union branch does not exist",
    BAD_BOOL: "a boolean is neither 0 nor 1",
    BAD_COUNT: "a count of elements or rows does not fit its block",
    NOT_AT_END: "the rows do not end where their block ends",
}


class Source(NamedTuple):
    """The input: the bytes, the program, and the wanted map keys, ascending within each map."""

    data: Any
    program: Any
    keys: Any


class Blocks(NamedTuple):
    """The position and row count of each block; -1 rows means an Avro array, whose count is read and stored here."""

    begin: Any
    end: Any
    rows: Any


class Slots(NamedTuple):
    """Values by slot and row, all zero at first. Null is `valid` 0, or `ends` 0 (real data starts at position 1)."""

    longs: Any
    valid: Any
    begins: Any
    ends: Any


def decode_rows(source: Source, blocks: Blocks, slots: Slots, stack: Any) -> tuple[int, int]:
    """Decode all rows of all blocks; return (0, number of rows), or (error code, index of the block)."""
    row = 0
    for block in range(len(blocks.begin)):
        first, position, end = row, blocks.begin[block], blocks.end[block]
        count, framed = blocks.rows[block], blocks.rows[block] < 0
        if framed:
            count, _, position = open_run(source.data, position, end)
        while position >= 0 and count > 0:
            if count > slots.longs.shape[1] - row:
                return BAD_COUNT, block
            for _ in range(count):
                position = decode_row(source, slots, row, position, end, stack)
                if position < 0:
                    return position, block
                row += 1
            count = 0
            if framed:
                count, _, position = open_run(source.data, position, end)
        if position < 0:
            return position, block
        if position != end:
            return NOT_AT_END, block
        blocks.rows[block] = row - first
    return 0, row


def decode_row(source: Source, slots: Slots, row: int, position: int, end: int, stack: Any) -> int:
    """Run the program once; return where the row ends, or an error code."""
    program = source.program
    pc, depth = 0, -1
    while pc < len(program) and position >= 0:
        op = program[pc]
        if program[pc + NULL] >= 0:
            is_null, position = read_branch(source.data, position, end, program[pc + NULL])
            if is_null:
                pc = program[pc + JUMP]
                continue
        if op <= FIXED:
            position = read_leaf(source, slots, row, position, end, pc)
        elif op <= MAP_BYTES:
            position = read_map(source, slots, row, position, end, pc)
        elif op == LOOP:
            depth += 1
            stack[depth] = 0
            pc = program[pc + JUMP]
            continue
        elif op == AGAIN:
            if stack[depth] == 0:
                stack[depth], position = next_run(source, slots, row, position, end, pc)
            if stack[depth] > 0:
                stack[depth] -= 1
                pc = program[pc + ARG]
                continue
            depth -= 1
        else:
            mark_span(slots, op, program[pc + SLOT], row, position)
        pc += WIDTH
    return position


def read_leaf(source: Source, slots: Slots, row: int, position: int, end: int, pc: int) -> int:
    """Read one primitive value."""
    op, slot = source.program[pc], source.program[pc + SLOT]
    if op == VARINT:
        value, position = read_varint(source.data, position, end)
        put_long(slots, slot, row, value)
        return position
    length: int = source.program[pc + ARG]
    if op == BYTES:
        length, position = read_varint(source.data, position, end)
    if position < 0:
        return position
    if length < 0 or length > end - position:
        return BAD_LENGTH
    if op == BOOL:
        if source.data[position] > 1:
            return BAD_BOOL
        put_long(slots, slot, row, source.data[position])
    else:
        put_span(slots, slot, row, position, position + length)
    return position + length


def read_map(source: Source, slots: Slots, row: int, position: int, end: int, pc: int) -> int:
    """Read an array of (integer key, value), keeping the values of wanted keys."""
    data, program = source.data, source.program
    is_bytes, slot, null = program[pc] == MAP_BYTES, program[pc + SLOT], program[pc + ARG]
    first, last = program[pc + KEYS], program[pc + KEYS_END]
    guess, remaining = first, 0
    while position >= 0:
        if remaining == 0:
            remaining, position = next_run(source, slots, row, position, end, pc)
            if remaining == 0:
                break
        remaining -= 1
        key, position = read_varint(data, position, end)
        if null >= 0:
            is_null, position = read_branch(data, position, end, null)
            if is_null:
                continue
        value, position = read_varint(data, position, end)
        if position < 0:
            break
        if is_bytes and (value < 0 or value > end - position):
            return BAD_LENGTH
        found = find_key(source.keys, guess, first, last, key) if first < last else -1
        if found >= 0:
            guess = found + 1
            if is_bytes:
                put_span(slots, slot + found - first, row, position, position + value)
            else:
                put_long(slots, slot + found - first, row, value)
        if is_bytes:
            position += value
    return position


def find_key(keys: Any, guess: int, first: int, last: int, key: int) -> int:
    """Return the index of a key in keys[first:last], or -1. Keys are mostly in order, at `guess` or absent."""
    if guess < last and keys[guess] == key:
        return guess
    if (guess == first or keys[guess - 1] < key) and (guess == last or key < keys[guess]):
        return -1
    while first < last:
        middle = (first + last) >> 1
        if keys[middle] == key:
            return middle
        if keys[middle] < key:
            first = middle + 1
        else:
            last = middle
    return -1


def next_run(source: Source, slots: Slots, row: int, position: int, end: int, pc: int) -> tuple[int, int]:
    """Open the next block of an array: (elements to read, position); 0 at its end. Skips unwanted sized blocks."""
    count_slot = source.program[pc + COUNT]
    while True:
        count, size, position = open_run(source.data, position, end)
        if count_slot >= 0 and position >= 0:
            slots.longs[count_slot, row] += count
        if position < 0 or count == 0 or size < 0 or source.program[pc + SLOT] >= 0:
            return count, position
        position += size


def open_run(data: Any, position: int, end: int) -> tuple[int, int, int]:
    """Read the header of a block of array elements: (count, size in bytes or -1, position); count 0 on error."""
    count, position = read_varint(data, position, end)
    size, room = -1, end - position
    if count < 0:
        count = -count
        size, position = read_varint(data, position, end)
        room = size
        if position >= 0 and (size < 0 or size > end - position):
            return 0, -1, BAD_LENGTH
    if position < 0:
        return 0, -1, position
    # Each element has at least one byte.
    if count > room:
        return 0, -1, BAD_COUNT
    return count, size, position


def read_branch(data: Any, position: int, end: int, null_branch: int) -> tuple[bool, int]:
    """Read the branch of a union: (whether it is null, position). On error it is null, so that reading stops."""
    branch, position = read_varint(data, position, end)
    if position >= 0 and branch != 0 and branch != 1:
        position = BAD_BRANCH
    return position < 0 or branch == null_branch, position


def read_varint(data: Any, position: int, end: int) -> tuple[int, int]:
    """Read a zigzag integer of at most 64 bits: (value, position)."""
    if position < 0:
        return 0, position
    if position >= end:
        return 0, BAD_VARINT
    byte = data[position]
    position += 1
    if byte < 0x80:  # most are, and plain Python is slow
        return (byte >> 1) ^ -(byte & 1), position
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        if position >= end or shift > 63:
            return 0, BAD_VARINT
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        shift += 7
    if shift > 63 and byte > 1:
        return 0, BAD_VARINT
    return (value >> 1) ^ -(value & 1), position


def put_long(slots: Slots, slot: int, row: int, value: int) -> None:
    """Store an integer, if it is wanted."""
    if slot >= 0:
        slots.longs[slot, row] = value
        slots.valid[slot, row] = 1


def put_span(slots: Slots, slot: int, row: int, begin: int, end: int) -> None:
    """Store the span of a value's bytes, if it is wanted."""
    if slot >= 0:
        slots.begins[slot, row] = begin
        slots.ends[slot, row] = end


def mark_span(slots: Slots, op: int, slot: int, row: int, position: int) -> None:
    """Store the begin (ENTER) or end (LEAVE) of a composite value, if its bytes are wanted."""
    if slot >= 0:
        if op == ENTER:
            slots.begins[slot, row] = position
        else:
            slots.ends[slot, row] = position


def encode_rows(source: Source, slots: Slots, out: Any, ends: Any) -> int:
    """Write all rows one after the other, and their ends to `ends`. Return the number of bytes."""
    position = 0
    for row in range(len(ends)):
        position = encode_row(source, slots, row, out, position)
        ends[row] = position
    return position


def encode_arrays(source: Source, slots: Slots, offsets: Any, out: Any, ends: Any) -> int:
    """Write rows as Avro arrays, array i from rows offsets[i] to offsets[i + 1], and their ends to `ends`."""
    position = 0
    for array in range(len(ends)):
        count = offsets[array + 1] - offsets[array]
        if count > 0:
            position = write_varint(out, position, count)
        for row in range(offsets[array], offsets[array + 1]):
            position = encode_row(source, slots, row, out, position)
        out[position] = 0
        position += 1
        ends[array] = position
    return position


def encode_row(source: Source, slots: Slots, row: int, out: Any, position: int) -> int:
    """Write one row; return the position after it."""
    program = source.program
    for pc in range(0, len(program), WIDTH):
        op, slot, null_branch = program[pc], program[pc + SLOT], program[pc + NULL]
        is_long = op <= BOOL
        present = slots.valid[slot, row] != 0 if is_long else slots.ends[slot, row] != 0
        if null_branch >= 0:
            out[position] = (1 - null_branch if present else null_branch) << 1
            position += 1
        if present and is_long:
            position = write_long(out, position, op, int(slots.longs[slot, row]))
        elif present:
            begin, end = int(slots.begins[slot, row]), int(slots.ends[slot, row])
            if op == BYTES:
                position = write_varint(out, position, end - begin)
            position = copy_bytes(source.data, begin, end, out, position)
    return position


def write_long(out: Any, position: int, op: int, value: int) -> int:
    """Write an integer, or a boolean as one byte."""
    if op == VARINT:
        return write_varint(out, position, value)
    out[position] = value
    return position + 1


def write_varint(out: Any, position: int, value: int) -> int:
    """Write a zigzag integer; return the position after it."""
    rest = (value << 1) ^ (value >> 63)
    while rest > 0x7F:
        out[position] = (rest & 0x7F) | 0x80
        position += 1
        rest >>= 7
    out[position] = rest
    return position + 1


def copy_bytes(data: Any, begin: int, end: int, out: Any, position: int) -> int:
    """Copy a span; return the position after it."""
    out[position : position + end - begin] = data[begin:end]
    return position + end - begin
