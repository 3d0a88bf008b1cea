/* The inner loops of the codec in C: decode and encode Avro rows by running a program.
 *
 * kernel.py is the specification: each function here has its name, does the same, and returns the same errors. The
 * tests compare the two. This file knows neither Python nor a C library: flat arrays come in, and their owner has made
 * them as long as the program needs (compiled.py checks types and shapes). Slots are arrays of `rows` values for each
 * slot, one slot after the other.
 *
 * A reader or writer whose position is negative has failed; the position is the error. Unlike Python, C does not check
 * its indexes: every read of `data` is checked against the end of its block, and every write against its room.
 */

#include <stdint.h>

#ifdef _WIN32
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum { NULL_BRANCH = 1, SLOT, ARG, JUMP, KEYS, KEYS_END, COUNT, WIDTH };
enum { VARINT, BOOL, BYTES, FIXED, MAP_LONGS, MAP_BYTES, ENTER, LEAVE, LOOP, AGAIN };
enum { BAD_VARINT = -1, BAD_LENGTH = -2, BAD_BRANCH = -3, BAD_BOOL = -4, BAD_COUNT = -5, NOT_AT_END = -6 };
enum { OUTSIDE = -7 }; /* what would be an IndexError in Python: the caller is wrong, not the file */
enum { MAX_LOOPS = 8, MAX_VARINT_BYTES = 10 };

typedef struct {
    const uint8_t *data;
    int64_t size;
    const int64_t *program;
    int64_t length;
    const int64_t *keys;
} Source;

typedef struct {
    const int64_t *begin, *end;
    int64_t *rows;
    int64_t count;
} Blocks;

typedef struct {
    int64_t *longs;
    uint8_t *valid;
    int32_t *begins, *ends;
    int64_t rows;
} Slots;

typedef struct {
    const uint8_t *data;
    int64_t position, end;
} Reader;

typedef struct {
    uint8_t *bytes;
    int64_t position, capacity;
} Writer;

static inline int64_t fail(Reader *in, int64_t error)
{
    in->position = error;
    return 0;
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

static inline int64_t read_varint(Reader *in)
{
    if (in->position < 0)
        return 0;
    if (in->position >= in->end)
        return fail(in, BAD_VARINT);
    uint64_t byte = in->data[in->position++];
    uint64_t value = byte & 0x7F;
    int shift = 7;
    while (byte >= 0x80) {
        if (in->position >= in->end || shift > 63)
            return fail(in, BAD_VARINT);
        byte = in->data[in->position++];
        value |= (byte & 0x7F) << shift;
        shift += 7;
    }
    if (shift > 63 && byte > 1)
        return fail(in, BAD_VARINT);
    return unzigzag(value);
}

static inline int read_branch(Reader *in, int64_t null_branch)
{
    int64_t branch = read_varint(in);
    if (in->position >= 0 && branch != 0 && branch != 1)
        in->position = BAD_BRANCH;
    return in->position < 0 || branch == null_branch;
}

static inline int64_t open_run(Reader *in, int64_t *size)
{
    int64_t count = read_varint(in);
    int64_t room = in->end - in->position;
    *size = -1;
    if (count < 0) {
        count = (int64_t)(0 - (uint64_t)count); /* the least integer stays negative, and is refused below */
        room = read_varint(in);
        if (in->position >= 0 && (room < 0 || room > in->end - in->position))
            return fail(in, BAD_LENGTH);
        *size = room;
    }
    if (in->position < 0)
        return 0;
    if (count < 0 || count > room)
        return fail(in, BAD_COUNT);
    return count;
}

static inline int64_t next_run(const int64_t *step, Reader *in, Slots slots, int64_t row)
{
    for (;;) {
        int64_t size, count = open_run(in, &size);
        if (step[COUNT] >= 0 && in->position >= 0)
            slots.longs[step[COUNT] * slots.rows + row] += count;
        if (in->position < 0 || count == 0 || size < 0 || step[SLOT] >= 0)
            return count;
        in->position += size;
    }
}

static inline void put_long(Slots slots, int64_t slot, int64_t row, int64_t value)
{
    if (slot >= 0) {
        slots.longs[slot * slots.rows + row] = value;
        slots.valid[slot * slots.rows + row] = 1;
    }
}

static inline void put_span(Slots slots, int64_t slot, int64_t row, int64_t begin, int64_t end)
{
    if (slot >= 0) {
        slots.begins[slot * slots.rows + row] = (int32_t)begin;
        slots.ends[slot * slots.rows + row] = (int32_t)end;
    }
}

static inline void mark_span(Slots slots, int64_t op, int64_t slot, int64_t row, int64_t position)
{
    if (slot >= 0)
        (op == ENTER ? slots.begins : slots.ends)[slot * slots.rows + row] = (int32_t)position;
}

static inline void read_leaf(const int64_t *step, Reader *in, Slots slots, int64_t row)
{
    int64_t op = step[0], length = step[ARG];
    if (op == VARINT) {
        int64_t value = read_varint(in);
        put_long(slots, step[SLOT], row, value);
        return;
    }
    if (op == BYTES)
        length = read_varint(in);
    if (in->position < 0)
        return;
    if (length < 0 || length > in->end - in->position) {
        in->position = BAD_LENGTH;
        return;
    }
    if (op == BOOL) {
        if (in->data[in->position] > 1) {
            in->position = BAD_BOOL;
            return;
        }
        put_long(slots, step[SLOT], row, in->data[in->position]);
    } else {
        put_span(slots, step[SLOT], row, in->position, in->position + length);
    }
    in->position += length;
}

static inline int64_t find_key(const int64_t *keys, int64_t guess, int64_t first, int64_t last, int64_t key)
{
    if (guess < last && keys[guess] == key)
        return guess;
    if ((guess == first || keys[guess - 1] < key) && (guess == last || key < keys[guess]))
        return -1;
    while (first < last) {
        int64_t middle = (first + last) >> 1;
        if (keys[middle] == key)
            return middle;
        if (keys[middle] < key)
            first = middle + 1;
        else
            last = middle;
    }
    return -1;
}

static inline void read_map(const int64_t *step, const int64_t *keys, Reader *in, Slots slots, int64_t row)
{
    int is_bytes = step[0] == MAP_BYTES;
    int64_t first = step[KEYS], last = step[KEYS_END], guess = first, remaining = 0;
    while (in->position >= 0) {
        if (remaining == 0) {
            remaining = next_run(step, in, slots, row);
            if (remaining == 0)
                return;
        }
        remaining--;
        int64_t key = read_varint(in);
        if (step[ARG] >= 0 && read_branch(in, step[ARG]))
            continue;
        int64_t value = read_varint(in);
        if (in->position < 0)
            return;
        if (is_bytes && (value < 0 || value > in->end - in->position)) {
            in->position = BAD_LENGTH;
            return;
        }
        int64_t found = first < last ? find_key(keys, guess, first, last, key) : -1;
        if (found >= 0) {
            guess = found + 1;
            if (is_bytes)
                put_span(slots, step[SLOT] + found - first, row, in->position, in->position + value);
            else
                put_long(slots, step[SLOT] + found - first, row, value);
        }
        if (is_bytes)
            in->position += value;
    }
}

static inline void decode_row(Source source, Reader *in, Slots slots, int64_t row)
{
    int64_t stack[MAX_LOOPS];
    int64_t pc = 0, depth = -1;
    while (pc < source.length && in->position >= 0) {
        const int64_t *step = source.program + pc;
        int64_t op = step[0];
        if (step[NULL_BRANCH] >= 0 && read_branch(in, step[NULL_BRANCH])) {
            pc = step[JUMP];
            continue;
        }
        if (op <= FIXED) {
            read_leaf(step, in, slots, row);
        } else if (op <= MAP_BYTES) {
            read_map(step, source.keys, in, slots, row);
        } else if (op == LOOP) {
            stack[++depth] = 0;
            pc = step[JUMP];
            continue;
        } else if (op == AGAIN) {
            if (stack[depth] == 0)
                stack[depth] = next_run(step, in, slots, row);
            if (stack[depth] > 0) {
                stack[depth]--;
                pc = step[ARG];
                continue;
            }
            depth--;
        } else {
            mark_span(slots, op, step[SLOT], row, in->position);
        }
        pc += WIDTH;
    }
}

/* Return 0, with the number of rows in `value`, or an error, with the index of the block. */
EXPORT int64_t decode_rows(const Source *source_in, const Blocks *blocks_in, const Slots *slots_in, int64_t *value)
{
    Source source = *source_in;
    Blocks blocks = *blocks_in;
    Slots slots = *slots_in;
    int64_t row = 0;
    for (int64_t block = 0; block < blocks.count; block++) {
        *value = block;
        Reader in = {source.data, blocks.begin[block], blocks.end[block]};
        if (in.position < 0 || in.end > source.size || source.size > INT32_MAX)
            return OUTSIDE;
        int64_t first = row, size, count = blocks.rows[block];
        int framed = count < 0;
        if (framed)
            count = open_run(&in, &size);
        while (in.position >= 0 && count > 0) {
            if (count > slots.rows - row)
                return BAD_COUNT;
            for (; count > 0; count--) {
                decode_row(source, &in, slots, row);
                if (in.position < 0)
                    return in.position;
                row++;
            }
            if (framed)
                count = open_run(&in, &size);
        }
        if (in.position < 0)
            return in.position;
        if (in.position != in.end)
            return NOT_AT_END;
        blocks.rows[block] = row - first;
    }
    *value = row;
    return 0;
}

static inline void write_varint(Writer *out, int64_t value)
{
    uint64_t rest = ((uint64_t)value << 1) ^ (uint64_t)(value >> 63);
    for (; rest > 0x7F; rest >>= 7)
        out->bytes[out->position++] = (uint8_t)(rest | 0x80);
    out->bytes[out->position++] = (uint8_t)rest;
}

static inline void copy_bytes(Source source, int64_t begin, int64_t length, Writer *out)
{
    const uint8_t *from = source.data + begin;
    uint8_t *to = out->bytes + out->position;
    out->position += length;
    /* Most are short: words, the last of which may overlap the one before, cost less than a call. */
    if (length >= 8) {
        for (int64_t i = 0; i < length - 8; i += 8)
            __builtin_memcpy(to + i, from + i, 8);
        __builtin_memcpy(to + length - 8, from + length - 8, 8);
    } else {
        for (int64_t i = 0; i < length; i++)
            to[i] = from[i];
    }
}

/* Return whether an instruction has room for its branch, an integer and its bytes; the caller's bound counts so too. */
static inline int has_room(Writer *out, int64_t length)
{
    return out->capacity - out->position >= 1 + MAX_VARINT_BYTES + length;
}

static inline void encode_row(Source source, Slots slots, int64_t row, Writer *out)
{
    for (int64_t pc = 0; pc < source.length && out->position >= 0; pc += WIDTH) {
        const int64_t *step = source.program + pc;
        int64_t at = step[SLOT] * slots.rows + row, begin = 0, length = 0;
        int is_long = step[0] <= BOOL;
        int present = is_long ? slots.valid[at] != 0 : slots.ends[at] != 0;
        if (present && !is_long) {
            begin = slots.begins[at];
            length = slots.ends[at] - begin;
        }
        if (begin < 0 || length < 0 || begin + length > source.size || !has_room(out, length)) {
            out->position = OUTSIDE;
            return;
        }
        if (step[NULL_BRANCH] >= 0)
            out->bytes[out->position++] = (uint8_t)((present ? 1 - step[NULL_BRANCH] : step[NULL_BRANCH]) << 1);
        if (present && step[0] == BOOL)
            out->bytes[out->position++] = (uint8_t)slots.longs[at];
        else if (present && is_long)
            write_varint(out, slots.longs[at]);
        else if (present) {
            if (step[0] == BYTES)
                write_varint(out, length);
            copy_bytes(source, begin, length, out);
        }
    }
}

/* Return the number of bytes, or an error. */
EXPORT int64_t encode_rows(
    const Source *source, const Slots *slots, uint8_t *bytes, int64_t capacity, int64_t *ends, int64_t count)
{
    Writer out = {bytes, 0, capacity};
    for (int64_t row = 0; row < count && out.position >= 0; row++) {
        encode_row(*source, *slots, row, &out);
        ends[row] = out.position;
    }
    return out.position;
}

/* Return the number of bytes, or an error. Array i has the rows from offsets[i] to offsets[i + 1]. */
EXPORT int64_t encode_arrays(const Source *source, const Slots *slots, const int64_t *offsets, uint8_t *bytes,
    int64_t capacity, int64_t *ends, int64_t count)
{
    Writer out = {bytes, 0, capacity};
    for (int64_t array = 0; array < count; array++) {
        int64_t begin = offsets[array], end = offsets[array + 1];
        if (begin < 0 || end > slots->rows || !has_room(&out, 0))
            return OUTSIDE;
        if (end > begin)
            write_varint(&out, end - begin);
        for (int64_t row = begin; row < end && out.position >= 0; row++)
            encode_row(*source, *slots, row, &out);
        if (out.position < 0 || out.position >= out.capacity)
            return OUTSIDE;
        out.bytes[out.position++] = 0;
        ends[array] = out.position;
    }
    return out.position;
}
