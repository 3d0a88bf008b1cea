"""Write to a branch, check the rows there, and publish them only if they pass.

Readers of main see nothing of a load before it is published, and nothing at all of one that fails.

Prints:
    load-1: published, 3 rows on main
    load-2: refused, rows without a price: 1; 3 rows on main
    load-3: published, 5 rows on main
    refs: ['main']
"""

import pyarrow as pa

import icefield
from icefield import Table

LOADS: dict[str, list[float | None]] = {"load-1": [3.5, 4.0], "load-2": [1.0, None], "load-3": [1.0, 2.5]}


def main() -> None:
    with icefield.connect("lake") as lake:
        prices = lake.create_table("shop.prices", "load string, price double")
        prices.append(pa.table({"load": ["load-0"], "price": [1.0]}))
        for name, values in LOADS.items():
            print(f"{name}: {load(prices, name, values)}")
        print(f"refs: {sorted(prices.refs())}")


def load(prices: Table, name: str, values: list[float | None]) -> str:
    prices.create_branch(name)
    staging = prices.at(name)
    staging.append(pa.table({"load": [name] * len(values), "price": pa.array(values, pa.float64())}))
    try:
        missing = staging.scan("price IS NULL").count()
        if missing:
            return f"refused, rows without a price: {missing}; {prices.count()} rows on main"
        prices.publish(name)  # ConcurrentChange if somebody wrote to main since
        return f"published, {prices.count()} rows on main"
    finally:
        prices.drop_branch(name)


if __name__ == "__main__":
    main()
