"""The shop orders of the demo: order `i` is the same from Spark and from Arrow, whole or in slices.

Every value is computed from the order's number with integer arithmetic that is the same in both engines: `mix` hashes
the number, and the rest is picked from the hash.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

SCHEMA = """
    order_id long not null, customer_id long not null, ts timestamptz not null, country string, status string,
    amount decimal(10, 2), items list<struct<sku: string, quantity: int>>
"""
FIRST_DAY = "2026-01-01"
DAYS = 30
CUSTOMERS = 4_000
COUNTRIES = ("DE", "FR", "DE", "US", "GB", "DE", "NL", "FR", "US", "PL", "ES", "DE", "IT", "GB", "US", "AT")
STATUSES = ("delivered", "shipped", "delivered", "paid", "delivered", "returned")
MAX_ITEMS = 3
SKUS = 5_000
MOST_CENTS = 50_000

FIRST_MICROS = int(np.datetime64(FIRST_DAY, "us").astype(np.int64))
PERIOD_MICROS = DAYS * 86_400_000_000
_PRIME = 2_147_483_647
_FACTORS = (48_271, 69_621_133, 16_807)

Numbers = npt.NDArray[np.int64]


def arrow_orders(start: int, stop: int, total: int) -> pa.Table:
    """Generate the orders from start up to stop, of a month that has `total` of them."""
    ids = np.arange(start, stop, dtype=np.int64)
    customers = mix(ids, 1) % CUSTOMERS + 1
    return pa.table(
        {
            "order_id": ids,
            "customer_id": customers,
            "ts": pa.array(_micros(ids, total)).view(pa.timestamp("us", "UTC")),
            "country": pa.array(np.array(COUNTRIES)[mix(customers, 2) % len(COUNTRIES)]),
            "status": pa.array(np.array(STATUSES)[mix(ids, 3) % len(STATUSES)]),
            "amount": _decimals(mix(ids, 4) % MOST_CENTS + 99),
            "items": _items(ids),
        }
    )


def spark_orders(total: int) -> list[str]:
    """Return the same columns as expressions over the column `id` of a Spark range."""
    step = _step(total)
    customer = f"({_sql_mix('id', 1)} % {CUSTOMERS} + 1)"
    key = f"(id * {MAX_ITEMS} + n)"
    sku = f"concat('SKU-', lpad({_sql_mix(key, 6)} % {SKUS}, 4, '0'))"
    item = f"struct({sku} AS sku, cast({_sql_mix(key, 7)} % 5 + 1 AS int) AS quantity)"
    return [
        "id AS order_id",
        f"{customer} AS customer_id",
        f"timestamp_micros({FIRST_MICROS} + id * {step} + {_sql_mix('id', 0)} % {step}) AS ts",
        f"{_sql_pick(COUNTRIES, _sql_mix(customer, 2))} AS country",
        f"{_sql_pick(STATUSES, _sql_mix('id', 3))} AS status",
        f"cast(cast({_sql_mix('id', 4)} % {MOST_CENTS} + 99 AS decimal(10, 0)) * 0.01BD AS decimal(10, 2)) AS amount",
        f"transform(sequence(0L, {_sql_mix('id', 5)} % {MAX_ITEMS}), n -> {item}) AS items",
    ]


def mix(numbers: Numbers, salt: int) -> Numbers:
    """Hash numbers to 0 … 2^31 - 2, differently for each salt."""
    spread = (numbers * _FACTORS[0] + (salt + 1) * _FACTORS[1]) % _PRIME
    # Without the shift all columns would be linear in each other, and a customer would always buy the same items.
    return (spread ^ (spread >> 13)) * _FACTORS[2] % _PRIME


def customer_of(order_id: int) -> int:
    """Return the customer of an order."""
    return int(mix(np.array([order_id], dtype=np.int64), 1)[0]) % CUSTOMERS + 1


def _step(total: int) -> int:
    return PERIOD_MICROS // total


def _micros(ids: Numbers, total: int) -> Numbers:
    step = _step(total)
    return FIRST_MICROS + ids * step + mix(ids, 0) % step


def _decimals(cents: Numbers) -> pa.Array:
    """Convert cents to decimals; Arrow stores them as 128-bit integers, low word first."""
    words = np.stack([cents, cents >> 63], axis=1)
    return pa.Array.from_buffers(pa.decimal128(10, 2), len(cents), [None, pa.py_buffer(words.tobytes())])


def _items(ids: Numbers) -> pa.Array:
    counts = mix(ids, 5) % MAX_ITEMS + 1
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    keys = np.repeat(ids * MAX_ITEMS, counts) + np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
    skus = pa.array([f"SKU-{number:04d}" for number in (mix(keys, 6) % SKUS).tolist()], pa.string())
    quantities = pa.array((mix(keys, 7) % 5 + 1).astype(np.int32))
    return pa.ListArray.from_arrays(
        pa.array(offsets), pa.StructArray.from_arrays([skus, quantities], ["sku", "quantity"])
    )


def _sql_mix(number: str, salt: int) -> str:
    spread = f"(({number} * {_FACTORS[0]} + {(salt + 1) * _FACTORS[1]}) % {_PRIME})"
    return f"(({spread} ^ shiftright({spread}, 13)) * {_FACTORS[2]} % {_PRIME})"


def _sql_pick(words: tuple[str, ...], scattered: str) -> str:
    options = ", ".join(f"'{word}'" for word in words)
    return f"element_at(array({options}), cast({scattered} % {len(words)} AS int) + 1)"
