SELECT * FROM orders
;;
SELECT o.* FROM orders o
;;
SELECT count(*) FROM orders
;;
SELECT count(*) AS n, count(DISTINCT customer) AS c FROM orders
;;
WITH a AS (SELECT * FROM orders), b AS (SELECT id FROM a WHERE qty > 1) SELECT * FROM b
;;
WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r
;;
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY ts DESC) AS rn FROM orders
;;
SELECT id, sum(amount) OVER (ORDER BY ts RANGE BETWEEN INTERVAL 2 DAYS PRECEDING AND CURRENT ROW) AS s FROM orders
;;
SELECT id, tag FROM orders LATERAL VIEW explode(tags) t AS tag
;;
SELECT id, tag FROM orders LATERAL VIEW OUTER explode(tags) t AS tag
;;
SELECT id, pos, tag FROM orders LATERAL VIEW posexplode(tags) t AS pos, tag
;;
SELECT id, explode(tags) AS tag FROM orders
;;
SELECT id, k, v FROM orders LATERAL VIEW explode(attrs) AS k, v
;;
SELECT id, i.sku FROM orders LATERAL VIEW explode(items) x AS i
;;
SELECT o.id, i.sku FROM orders o, LATERAL explode(o.items) AS t(i)
;;
SELECT o.id, x FROM orders o, LATERAL (SELECT o.id + 1 AS x)
;;
SELECT o.id, x FROM orders o CROSS JOIN LATERAL (SELECT max(since) AS x FROM customers c WHERE c.name = o.customer) z
;;
SELECT * FROM orders JOIN (SELECT name AS customer, country FROM customers) USING (customer)
;;
SELECT o.id, c.country FROM orders o LEFT JOIN customers c ON o.customer = c.name
;;
SELECT o.id, c.country FROM orders AS o LEFT OUTER JOIN customers AS c ON o.customer <=> c.name AND c.since > 1
;;
SELECT o.id FROM orders o LEFT SEMI JOIN customers c ON o.customer = c.name
;;
SELECT o.id FROM orders o LEFT ANTI JOIN customers c ON o.customer = c.name
;;
SELECT o.id, c.name FROM orders o CROSS JOIN customers c
;;
SELECT o.id, c.name FROM orders o FULL OUTER JOIN customers c ON o.customer = c.name
;;
SELECT name FROM customers NATURAL JOIN (SELECT name FROM customers) b
;;
SELECT * FROM orders WHERE customer IN (SELECT name FROM customers WHERE country = 'UK')
;;
SELECT * FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.name = o.customer)
;;
SELECT id, (SELECT max(since) FROM customers) AS m FROM orders
;;
SELECT id, CASE WHEN amount > 50 THEN 'big' WHEN amount > 20 THEN 'mid' ELSE 'small' END AS size FROM orders
;;
SELECT CASE customer WHEN 'ada' THEN 1 ELSE 0 END AS a FROM orders
;;
SELECT CAST(amount AS double) AS a, CAST(id AS STRING) s, amount::int AS i, try_cast(customer AS int) AS t FROM orders
;;
SELECT CAST(amount AS DECIMAL(12, 4)) AS a, CAST(NULL AS ARRAY<STRING>) AS b, CAST(NULL AS STRUCT<a: INT, b: STRING>) AS c, CAST(NULL AS MAP<STRING, INT>) AS d FROM orders
;;
SELECT CAST(NULL AS ARRAY<STRUCT<a: INT, b: ARRAY<STRING>>>) AS x FROM orders
;;
SELECT date_trunc('month', ts) AS m, date_format(ts, 'yyyy-MM-dd') AS f, to_date('2026-01-01') AS t, date_add(d, 3) AS a, datediff(d, DATE '2026-01-01') AS dd, year(d) AS y, month(d) AS mo, dayofweek(d) AS w, last_day(d) AS l, add_months(d, 1) AS am FROM orders
;;
SELECT EXTRACT(YEAR FROM ts) AS y, EXTRACT(MONTH FROM d) AS m, date_part('day', d) AS dd FROM orders
;;
SELECT d + INTERVAL 1 DAY AS a, ts - INTERVAL '2' HOUR AS b, ts + INTERVAL '1 02:03:04' DAY TO SECOND AS c, d + INTERVAL '1-2' YEAR TO MONTH AS e FROM orders
;;
SELECT * FROM orders WHERE ts >= TIMESTAMP '2026-01-05 00:00:00Z' AND d < DATE'2026-01-10'
;;
SELECT to_timestamp('2026-01-01 10:00:00') AS a, unix_timestamp(ts) AS u, from_unixtime(0) AS f, timestampdiff(HOUR, ts, TIMESTAMP '2026-02-01 00:00:00Z') AS td, timestampadd(DAY, 2, ts) AS ta, dateadd(DAY, 2, d) AS da FROM orders
;;
SELECT upper(customer) AS u, lower(customer) l, length(customer) AS n, concat(customer, '-', id) AS c, customer || 'x' AS cc, substring(customer, 1, 2) AS s, substr(customer, 2) AS s2, trim(customer) AS t, replace(customer, 'a', 'b') AS r, regexp_replace(customer, '[aeiou]+', '') AS rr, regexp_extract(customer, '(\\w)a', 1) AS re, split(customer, ',')[0] AS sp, lpad(customer, 10, '0') AS lp, initcap(customer) AS ic FROM orders
;;
SELECT TRIM(BOTH 'a' FROM customer) AS t, TRIM(LEADING 'a' FROM customer) AS l, SUBSTRING(customer FROM 1 FOR 2) AS s, OVERLAY(customer PLACING 'x' FROM 1 FOR 1) AS o, POSITION('a' IN customer) AS p FROM orders
;;
SELECT 1.5BD AS a, 2.50 AS b, 1e3 AS c, 10L AS d, 1.0D AS e, 0.1F AS f, 3S AS g, 2Y AS h, .5 AS i, -1 AS j, 5. AS k FROM orders
;;
SELECT customer, qty, sum(amount) AS s FROM orders GROUP BY GROUPING SETS ((customer, qty), (customer), ())
;;
SELECT customer, qty, sum(amount) AS s, grouping_id() AS g, grouping(customer) AS gc FROM orders GROUP BY CUBE (customer, qty)
;;
SELECT customer, sum(amount) AS s FROM orders GROUP BY ROLLUP (customer)
;;
SELECT customer, sum(amount) AS s FROM orders GROUP BY customer WITH ROLLUP
;;
SELECT customer, sum(amount) AS s FROM orders GROUP BY 1 HAVING sum(amount) > 100 ORDER BY 2 DESC
;;
SELECT customer, sum(amount) AS s FROM orders GROUP BY ALL
;;
SELECT customer, sum(amount) AS s FROM orders GROUP BY customer ORDER BY ALL
;;
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY ts DESC) AS rn FROM orders QUALIFY rn = 1
;;
SELECT id FROM orders UNION ALL SELECT since FROM customers
;;
SELECT id FROM orders UNION SELECT since FROM customers ORDER BY 1
;;
(SELECT id FROM orders) INTERSECT (SELECT since FROM customers)
;;
SELECT id FROM orders EXCEPT SELECT since FROM customers
;;
SELECT id FROM orders MINUS SELECT since FROM customers
;;
SELECT `odd name`, `id` FROM `orders`
;;
SELECT `o`.`odd name` AS `größe mit leer` FROM orders AS `o`
;;
SELECT 'Ünïcödé 你好 🎉' AS s, "double 'quoted'" AS d, 'it''s' AS q, 'a\tb\n' AS e, r'raw\d' AS r FROM orders
;;
SELECT id -- a comment
/* block
comment */ FROM orders -- the end
;;
SELECT addr.city, addr.zip AS z, orders.addr.city AS c2 FROM orders
;;
SELECT addr.* FROM orders
;;
SELECT tags[0] AS a, attrs['k'] AS k, items[0].sku AS s, element_at(tags, 1) AS e, get(tags, 5) AS g FROM orders WHERE size(tags) > 0
;;
SELECT transform(tags, x -> upper(x)) AS t, filter(tags, x -> x = 'a') AS f, aggregate(tags, 0, (acc, x) -> acc + length(x)) AS a, exists(tags, x -> x = 'b') AS e, transform(tags, (x, i) -> concat(x, i)) AS ti FROM orders
;;
SELECT id, array(1, 2, 3) AS a, map('a', 1) AS m, named_struct('a', 1, 'b', 'x') AS s, struct(id, qty) AS st FROM orders
;;
SELECT array_contains(tags, 'a') AS c, array_join(tags, ',') AS j, sort_array(tags) AS s, map_keys(attrs) AS k, collect_list(1) OVER () AS cl FROM orders
;;
SELECT customer, collect_set(qty) AS s, collect_list(id) AS l FROM (SELECT * FROM orders ORDER BY id) GROUP BY customer
;;
SELECT customer, count(*) FILTER (WHERE qty > 1) AS n, sum(IF(qty > 1, 1, 0)) AS m, max_by(id, ts) AS mb, percentile_approx(price, 0.5) AS p, stddev(price) AS sd FROM orders GROUP BY customer
;;
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price) AS p FROM orders
;;
SELECT coalesce(customer, 'none') AS c, nvl(customer, 'x') AS n, ifnull(customer, 'x') i, nullif(customer, 'ada') AS nu, nvl2(customer, 1, 2) AS n2 FROM orders
;;
SELECT * FROM orders WHERE customer LIKE 'a%' OR customer ILIKE 'G%' OR customer RLIKE '^e' OR customer IS NULL
;;
SELECT * FROM orders WHERE customer NOT LIKE 'a\\_%' AND customer IS NOT NULL AND qty BETWEEN 1 AND 3 AND NOT (qty = 2) AND customer LIKE ANY ('a%', 'g%')
;;
SELECT * FROM orders WHERE customer IN ('ada', 'grace') AND qty NOT IN (1, 2) AND customer IS DISTINCT FROM 'x'
;;
SELECT * FROM orders WHERE qty <> 1 AND qty != 2 AND id % 2 = 0 AND id & 1 = 0 AND ~id < 0
;;
SELECT DISTINCT customer FROM orders
;;
SELECT id FROM orders ORDER BY id DESC NULLS LAST LIMIT 3
;;
SELECT id FROM orders ORDER BY id LIMIT 3 OFFSET 2
;;
SELECT * FROM VALUES (1, 'a'), (2, 'b') AS t(x, y)
;;
SELECT * FROM (VALUES (1, 'a'), (2, 'b')) t(x, y)
;;
SELECT id FROM range(10)
;;
SELECT * FROM (SELECT customer, qty, amount FROM orders) PIVOT (sum(amount) FOR qty IN (0, 1, 2))
;;
SELECT * FROM (SELECT customer, qty, amount FROM orders) PIVOT (sum(amount) AS s, count(*) AS n FOR qty IN (0 AS zero, 1 AS one))
;;
SELECT * FROM (SELECT id, qty AS a, `order` AS b FROM orders) UNPIVOT (v FOR k IN (a, b))
;;
SELECT id, stack(2, 'a', qty, 'b', `order`) AS (k, v) FROM orders
;;
SELECT id FROM shop.orders
;;
SELECT id FROM icefield.shop.orders
;;
SELECT /*+ BROADCAST(c) */ o.id FROM orders o JOIN customers c ON o.customer = c.name
;;
SELECT current_date() AS d, current_date AS e FROM orders WHERE ts < current_timestamp()
;;
SELECT round(price, 1) AS r, floor(price) AS f, ceil(price) AS c, abs(price) AS a, sqrt(price) AS s, pow(price, 2) AS p, mod(id, 3) AS m, greatest(id, 3) AS g, least(id, 3) AS l, price / 2 AS h, id DIV 2 AS dv FROM orders
;;
SELECT md5(customer) AS m, sha2(customer, 256) AS s, hash(id) AS h, xxhash64(id) AS x, base64(cast(customer as binary)) AS b FROM orders
;;
SELECT from_json('{"a": 1, "b": "x"}', 'a INT, b STRING') AS j, get_json_object('{"a": {"b": 1}}', '$.a.b') AS g, to_json(struct(id)) AS t, json_tuple('{"a":1}', 'a') AS jt FROM orders
;;
SELECT get_json_object('{"a": [1,2]}', '$.a[0]') AS x, '$' AS d, '{}' AS b, '{x}' AS c, '%s' AS p FROM orders
;;
SELECT date, user, `order` FROM orders
;;
SELECT o.date, o.user, o.`order`, o.d AS `date2` FROM orders o
;;
SELECT id AS `value`, qty AS year, customer AS name, d AS day FROM orders
;;
SELECT id key, qty value, customer type, price data FROM orders
;;
SELECT first(customer) AS f, last(customer, true) AS l, any_value(1) AS a, bool_and(qty > 0) AS b, approx_count_distinct(id) AS n, count_if(qty > 1) AS ci FROM (SELECT * FROM orders ORDER BY id)
;;
SELECT first_value(customer) IGNORE NULLS OVER (ORDER BY ts) AS f, nth_value(id, 2) OVER (ORDER BY ts) AS n, rank() OVER (ORDER BY qty) AS r, dense_rank() OVER (ORDER BY qty) AS dr, ntile(4) OVER (ORDER BY ts) AS nt, percent_rank() OVER (ORDER BY ts) AS pr FROM orders
;;
SELECT sequence(1, 3) AS s, explode(sequence(DATE '2026-01-01', DATE '2026-01-03', INTERVAL 1 DAY)) AS e FROM orders LIMIT 3
;;
SELECT inline(items) FROM orders
;;
SELECT id, x.* FROM orders LATERAL VIEW inline(items) x AS sku, n
;;
SELECT window.start, sum(amount) AS s FROM orders GROUP BY window(ts, '2 days')
;;
SELECT window(ts, '2 days') AS w, sum(amount) AS s FROM orders GROUP BY window(ts, '2 days')
;;
SELECT id FROM orders TABLESAMPLE (100 PERCENT) AS t
;;
SELECT id FROM orders TABLESAMPLE (100 PERCENT)
;;
SELECT id FROM orders WHERE (id, qty) IN (SELECT since, since FROM customers)
;;
SELECT * EXCEPT (tags, attrs) FROM orders
;;
FROM orders
;;
SELECT id FROM orders DISTRIBUTE BY qty SORT BY id
;;
SELECT a.id, b.id AS id2 FROM orders a, orders b WHERE a.id = b.id
;;
SELECT sum(amount) total, avg(price) average, min(ts) AS `min`, max(ts) AS max FROM orders
;;
SELECT id FROM orders WHERE amount > 10.00 AND -qty < +3 AND price > 1.5e0
;;
SELECT timestamp('2026-01-01') AS t, date('2026-01-01') AS d, int('3') AS i, string(3) AS s, double(3) AS db, decimal(3) AS dc FROM orders
;;
SELECT from_utc_timestamp(ts, 'Europe/Berlin') AS t, convert_timezone('UTC', 'Europe/Berlin', timestamp_ntz'2026-01-01 00:00:00') AS c, make_date(2026, 1, 2) AS m, weekofyear(d) AS w, months_between(d, DATE'2026-01-01') AS mb, next_day(d, 'MO') AS nd, quarter(d) AS q FROM orders
;;
SELECT X'1F' AS b, TRUE AS t, false AS f, cast(null as int) AS ni FROM orders
;;
select o.customer, o.amount, sum(o.amount) over(partition by o.customer order by o.ts rows between 1 preceding and 1 following) as mv from shop.orders o where o.amount is not null and o.customer is not null
;;
with x as (with y as (select id from orders) select * from y) select * from x
;;
WITH orders AS (SELECT 1 AS id) SELECT * FROM orders
;;
SELECT CASE WHEN id > 1 THEN (SELECT count(*) FROM customers) ELSE 0 END AS x FROM orders
;;
SELECT o.id, e.name FROM orders o JOIN customers c ON o.customer = c.name JOIN customers e ON e.since = c.since
;;
SELECT id, date AS my_date FROM orders WHERE date = '2026-02-01'
;;
SELECT id FROM orders WHERE d BETWEEN date_sub(current_date(), 30000) AND current_date() + INTERVAL 30 YEARS
;;
SELECT try_divide(1, 0) AS a, try_add(1, 2) AS b, safe AS c FROM (SELECT 1 AS safe)
;;
SELECT zip_with(tags, tags, (a, b) -> a || b) AS z, map_filter(attrs, (k, v) -> k = 'k') AS m, flatten(array(tags)) AS f, array_distinct(tags) AS ad, slice(tags, 1, 1) AS sl FROM orders
;;
SELECT mode(customer) AS m, listagg(customer, ',') WITHIN GROUP (ORDER BY customer) AS l, string_agg(customer) AS sa FROM orders
;;
SELECT id, rank() over (order by amount desc) rnk, first FROM (SELECT id, amount, customer AS first FROM orders)
;;
SELECT left(customer, 1) AS l, right(customer, 1) AS r, char_length(customer) AS c, if(id > 1, 'a', 'b') AS i, mod(id, 2) AS m, `left`(customer, 2) AS l2 FROM orders
;;
SELECT id, CASE WHEN customer = 'ada' THEN named_struct('x', 1) END.x AS y FROM orders
;;
SELECT named_struct('x', 1).x AS y, (array(1,2))[0] AS z, split('a,b', ',')[1] AS w FROM orders
;;
SELECT 1 AS `select`, 2 AS `from` FROM orders
;;
SELECT id FROM orders WHERE customer = 'a;b' OR customer = '--x' OR customer = '/* */' OR id = 1
;;
SELECT id FROM orders o1 WHERE qty = (SELECT max(qty) FROM orders o2 WHERE o2.customer = o1.customer)
;;
SELECT any(qty > 1) AS a, some(qty > 1) AS s, every(qty > 1) AS e FROM orders
;;
SELECT uuid() IS NOT NULL AS u, rand(1) < 2 AS r, monotonically_increasing_id() >= 0 AS m, typeof(id) AS t FROM orders
;;
SELECT customer COLLATE UTF8_LCASE AS c FROM orders ORDER BY c
;;
SELECT amount, customer FROM orders WHERE amount >= 10 ;
;;
SELECT id, year, month FROM (SELECT id, year(d) AS year, month(d) AS month FROM orders)
;;
SELECT id, t.year FROM (SELECT id, year(d) AS year FROM orders) t WHERE year = 2026 GROUP BY id, year ORDER BY year
;;
SELECT source, target, status, comment, location, format, partition, schema, version, start, `end`, rows, range FROM (SELECT 1 source, 2 target, 3 status, 4 comment, 5 location, 6 format, 7 partition, 8 schema, 9 version, 10 start, 11 `end`, 12 rows, 13 range)
;;
SELECT position, percent, bucket, first, last, row, current, of, `to`, view, void, string, date, time, timestamp, second, hour, exclude, include, out FROM (SELECT 1 position, 2 percent, 3 bucket, 4 first, 5 last, 6 row, 7 current, 8 of, 9 `to`, 10 view, 11 void, 12 string, 13 date, 14 time, 15 timestamp, 16 second, 17 hour, 18 exclude, 19 include, 20 out)
;;
SELECT t.timestamp, t.offset, t.date, t.values, t.map, t.key, t.partition FROM (SELECT 1 timestamp, 2 `offset`, 3 date, 4 `values`, 5 map, 6 key, 7 partition) t
;;
SELECT window.start AS ws, window.end AS we, sum(amount) AS s FROM orders GROUP BY window(ts, '1 hour', '30 minutes')
;;
SELECT session_window.start AS s, count(*) AS n FROM orders GROUP BY session_window(ts, '2 days'), customer
;;
SELECT w.start, w.end, s FROM (SELECT window(ts, '1 day') AS w, sum(amount) AS s FROM orders GROUP BY 1)
;;
WITH ranked AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY customer ORDER BY ts DESC, id) AS rn
  FROM orders
  WHERE amount IS NOT NULL
)
SELECT id, customer, amount FROM ranked WHERE rn = 1
;;
with base as (select id, customer, amount, date_trunc('MONTH', ts) as month from shop.orders), agg as (select month, customer, sum(amount) as total, count(distinct id) as n from base group by 1, 2) select a.*, total / sum(total) over (partition by month) as share from agg a
;;
SELECT COALESCE(c.country, 'unknown') AS country, SUM(o.amount) AS revenue, SUM(CASE WHEN o.qty > 2 THEN o.amount ELSE 0 END) AS big FROM shop.orders AS o LEFT JOIN shop.customers AS c ON LOWER(TRIM(o.customer)) = LOWER(TRIM(c.name)) WHERE o.d >= DATE '2026-01-01' AND o.d < DATE '2026-01-01' + INTERVAL '1' MONTH GROUP BY COALESCE(c.country, 'unknown') HAVING COUNT(*) > 0 ORDER BY revenue DESC NULLS LAST
;;
SELECT id, LAG(amount) OVER (PARTITION BY customer ORDER BY ts) AS prev, LEAD(amount, 1, 0) OVER (PARTITION BY customer ORDER BY ts) AS nxt, amount - LAG(amount) OVER (PARTITION BY customer ORDER BY ts) AS delta FROM orders
;;
SELECT customer, AVG(amount) OVER (PARTITION BY customer ORDER BY unix_timestamp(ts) RANGE BETWEEN 86400 PRECEDING AND CURRENT ROW) AS a FROM orders
;;
SELECT LAST_VALUE(customer) IGNORE NULLS OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS l FROM orders
;;
SELECT last_value(customer, true) OVER (ORDER BY ts) AS l, first_value(customer) OVER (PARTITION BY qty ORDER BY ts) f, cume_dist() OVER (ORDER BY ts) AS cd FROM orders
;;
SELECT sum(amount) OVER (w1) AS a, sum(amount) OVER w2 AS b FROM orders WINDOW w1 AS (PARTITION BY customer), w2 AS (ORDER BY ts)
;;
SELECT customer, max(struct(ts, id)).id AS last_id, min(named_struct('a', amount, 'b', id)).b AS cheapest FROM orders GROUP BY customer
;;
SELECT id, s.col AS tag FROM orders LATERAL VIEW explode(tags) s
;;
SELECT id, tag, k FROM orders LATERAL VIEW OUTER explode(tags) t AS tag LATERAL VIEW explode(map_keys(attrs)) m AS k
;;
SELECT id, item.sku, item.n * 2 AS dbl FROM orders LATERAL VIEW explode_outer(items) e AS item WHERE item.n > 1
;;
SELECT id, pos, x.sku FROM orders LATERAL VIEW posexplode(items) p AS pos, x
;;
SELECT o.id, t.* FROM orders o LATERAL VIEW json_tuple('{"a": 1, "b": 2}', 'a', 'b') t AS a, b
;;
SELECT id, e.* FROM orders o, LATERAL (SELECT explode(o.tags) AS tag) e
;;
SELECT id, tag FROM orders o, explode(array(1, 2)) AS t(tag)
;;
SELECT * FROM explode(array(1, 2, 3)) AS t(x)
;;
SELECT id, tag FROM orders o LEFT JOIN LATERAL explode(o.tags) AS t(tag)
;;
SELECT * FROM (SELECT customer, month(d) AS m, amount FROM orders) PIVOT (sum(amount) AS total FOR m IN (1 AS jan, 2 AS feb)) ORDER BY customer
;;
SELECT * FROM (SELECT customer, qty, amount, price FROM orders) PIVOT (sum(amount) AS a, max(price) AS p FOR (customer, qty) IN (('ada', 0) AS x, ('grace', 1) AS y))
;;
SELECT id, metric, val FROM (SELECT id, price AS a, cast(amount AS double) AS b FROM orders) UNPIVOT INCLUDE NULLS (val FOR metric IN (a AS `x`, b AS `y`)) AS u
;;
SELECT * FROM (SELECT id, qty, `order` FROM orders) UNPIVOT ((v1) FOR k IN ((qty), (`order`)))
;;
SELECT get_json_object(j, '$.user.name') AS n, from_json(j, 'user STRUCT<name: STRING, tags: ARRAY<STRING>>').user.tags[0] AS t FROM (SELECT '{"user": {"name": "x", "tags": ["a"]}}' AS j)
;;
SELECT from_json('{"a":1}', 'struct<a:int>') AS s, from_json('[1,2]', 'array<int>') AS a, from_json('{"k": 1}', 'map<string,int>') AS m, from_csv('1,x', 'a INT, b STRING') AS c FROM orders
;;
SELECT from_json('{"d":"01/02/2026"}', 'd DATE', map('dateFormat', 'dd/MM/yyyy')) AS x, to_json(named_struct('t', ts), map('timestampFormat', 'yyyy')) AS y FROM orders
;;
SELECT from_json('{"a":1}', schema_of_json('{"a":2}')) AS x, schema_of_json('{"a":[1]}') AS y
;;
SELECT to_json(collect_list(struct(id, customer))) AS j FROM (SELECT * FROM orders ORDER BY id)
;;
SELECT variant_get(parse_json('{"a": 5}'), '$.a', 'int') AS x, try_variant_get(parse_json('{"a": "q"}'), '$.a', 'int') AS y FROM orders
;;
SELECT json_object_keys('{"a":1}') AS k, json_array_length('[1,2]') AS n FROM orders
;;
SELECT date_format(ts, "yyyy-MM-dd'T'HH:mm") AS f, date_format(d, 'E') AS e, to_date('01-02-2026', 'dd-MM-yyyy') AS t, to_timestamp('2026-01-01T00:00:00Z') AS z, trunc(d, 'MM') AS tr, date_trunc('week', ts) AS w FROM orders
;;
SELECT date_add(d, qty) AS a, date_sub(d, 1) AS b, d - 3 AS c, d + 3 AS e, datediff(d, '2025-12-31') AS g, months_between(d, add_months(d, -2)) AS h FROM orders
;;
SELECT dateadd(MONTH, 1, d) AS a, datediff(WEEK, DATE '2025-01-01', d) AS b, date_diff(DAY, DATE '2025-01-01', d) AS c, timestampdiff(MINUTE, ts, ts + INTERVAL 3 HOURS) AS e, date_add(MONTH, 2, d) AS g FROM orders
;;
SELECT extract(DOW FROM d) AS a, extract(week FROM d) AS b, extract(QUARTER FROM ts) AS c, extract(SECOND FROM ts) AS e, date_part('YEAR', ts) AS f FROM orders
;;
SELECT ts - INTERVAL 90 MINUTES AS a, ts + make_interval(0, 0, 0, 1) AS b, ts + INTERVAL -3 DAYS AS g, ts - INTERVAL '2:30' HOUR TO MINUTE AS h, ts + INTERVAL '1 day 2 hours' AS i FROM orders
;;
SELECT * FROM orders WHERE ts BETWEEN TIMESTAMP '2026-01-02 00:00:00' AND TIMESTAMP '2026-01-05 00:00:00' AND cast(ts AS date) = d
;;
SELECT year(d) * 100 + month(d) AS ym, hour(ts) AS h, minute(ts) AS mi, dayofyear(d) dy, weekday(d) wd, dayname(d) AS dn, monthname(d) mn FROM orders
;;
SELECT from_unixtime(unix_timestamp(ts), 'yyyy') AS y, timestamp_seconds(0) AS e, unix_millis(ts) AS um, to_utc_timestamp('2026-01-01 00:00:00', 'Asia/Tokyo') AS t, current_timezone() AS tz FROM orders
;;
SELECT regexp_replace(customer, r'(\w+)a', '$1') AS a, regexp_extract(customer, '^(.)(.*)$', 2) AS b, regexp_extract_all(customer, '[a-z]', 0) AS c, regexp_like(customer, '^a') AS e, regexp_count(customer, 'a') AS f, customer rlike 'a|b' AS g, split(customer, '[,;]') AS h FROM orders
;;
SELECT concat_ws('-', customer, cast(id AS string), null) AS a, format_string('%s-%05d', customer, id) AS b, printf('%d%%', id) AS p, lpad(id, 5, '0') AS c, repeat('x', qty) AS e, reverse(customer) AS f, translate(customer, 'abc', 'xyz') AS g, initcap(customer) AS h, substring_index('a.b.c', '.', 2) AS i, instr(customer, 'a') AS j, locate('a', customer, 2) AS k, ascii(customer) AS l, left(customer, 2) AS m, right(customer, 2) AS n, char_length(customer) AS o, startswith(customer, 'a') AS q, contains(customer, 'a') AS r, split_part('a,b', ',', 2) AS s FROM orders
;;
SELECT sha2(concat(customer, '|', id), 256) AS h, md5(cast(id AS string)) AS m, crc32(customer) AS c, xxhash64(id, customer) AS x, hex(id) AS hx, unhex('41') AS u, bin(id) AS b, conv('ff', 16, 10) AS cv, base64(encode(customer, 'UTF-8')) AS b64, decode(unbase64('YQ=='), 'UTF-8') AS dc FROM orders
;;
SELECT size(tags) AS a, array_contains(tags, 'a') AS b, tags[0] AS c, element_at(tags, -1) AS e, array_sort(tags) AS f, array_sort(tags, (l, r) -> CASE WHEN l < r THEN 1 WHEN l > r THEN -1 ELSE 0 END) AS g, array_union(tags, array('z')) AS h, array_position(tags, 'b') AS i, cardinality(tags) AS j, array_remove(tags, 'a') AS k, array_max(tags) AS l, concat(tags, tags) AS m, array_repeat(1, 2) AS n, array_except(tags, array('a')) AS o FROM orders WHERE size(tags) > 0
;;
SELECT transform_values(attrs, (k, v) -> concat(k, v)) AS a, map_from_entries(array(struct('a', 1))) AS b, map_concat(attrs, map('z', '9')) AS c, attrs['k'] AS e, map_contains_key(attrs, 'k') AS f, map_entries(attrs) AS g, str_to_map('a:1,b:2', ',', ':') AS h, transform_keys(attrs, (k, v) -> upper(k)) AS i, map_from_arrays(array(1), array(2)) AS j, attrs.k AS l FROM orders
;;
SELECT transform(items, i -> i.n + 1) AS a, filter(items, i -> i.n > 2 AND i.sku LIKE 's%') AS b, aggregate(items, cast(0 AS bigint), (acc, i) -> acc + i.n, acc -> acc * 2) AS c, forall(items, i -> i.n >= 0) AS e, items.sku AS f, transform(items, (x, ix) -> named_struct('i', ix, 's', x.sku)) AS g, reduce(items, 0, (a, b) -> a + b.n) AS h FROM orders
;;
SELECT addr.city AS city, addr.zip + 1 AS z, named_struct('a', addr.city, 'b', struct(id AS i)).b.i AS n, struct(id AS x, customer) AS st FROM orders
;;
SELECT cast(amount AS string) AS a, cast('2026-01-01' AS date) AS b, cast(id AS decimal(20,2)) AS c, cast('1.5' AS float) AS e, cast(tags AS string) AS f, cast(ts AS bigint) AS g, bigint('3') AS h, cast(d AS timestamp) AS i, try_cast('x' AS int) AS j, '5'::int + 1 AS l, cast(named_struct('a', 1) AS struct<b: bigint>) AS m FROM orders
;;
SELECT CAST(NULL AS TIMESTAMP_NTZ) AS a, CAST(NULL AS VARCHAR(10)) AS b, CAST(NULL AS CHAR(3)) AS c, CAST(NULL AS SMALLINT) AS e, CAST(NULL AS TINYINT) AS f, CAST(NULL AS REAL) AS g, CAST(NULL AS NUMERIC(10)) AS h, CAST(NULL AS DEC(10, 2)) AS i, CAST(NULL AS INTERVAL DAY TO SECOND) IS NULL AS j, CAST(NULL AS BOOLEAN) AS k, CAST(NULL AS MAP<STRING, ARRAY<STRUCT<x: DECIMAL(5,2)>>>) AS l
;;
SELECT id FROM orders WHERE customer = (SELECT max(name) FROM customers WHERE since < 3) OR id IN (SELECT since FROM customers WHERE country LIKE 'U%')
;;
SELECT id FROM orders o WHERE NOT EXISTS (SELECT * FROM customers c WHERE c.name = o.customer AND c.since > 1)
;;
SELECT id, (SELECT c.country FROM customers c WHERE c.name = o.customer LIMIT 1) AS country FROM orders o
;;
SELECT name FROM customers WHERE name NOT IN (SELECT customer FROM orders WHERE customer IS NOT NULL)
;;
SELECT 'o' AS src, id AS k FROM orders UNION ALL SELECT 'c', since FROM customers UNION ALL (SELECT 'x', 1 LIMIT 1)
;;
(SELECT id FROM orders WHERE id < 5 ORDER BY id LIMIT 2) UNION ALL (SELECT id FROM orders WHERE id > 8)
;;
SELECT id FROM orders EXCEPT ALL SELECT since FROM customers
;;
SELECT id FROM orders INTERSECT SELECT since FROM customers UNION SELECT 99
;;
SELECT DISTINCT customer, qty FROM orders ORDER BY customer, qty
;;
SELECT DISTINCT ON_ FROM (SELECT qty AS on_ FROM orders)
;;
SELECT /*+ BROADCAST(c), MERGE(o) */ o.id FROM orders o JOIN customers c ON o.customer = c.name
;;
SELECT /*+ SHUFFLE_HASH(c) */ /* plain */ o.id FROM orders o JOIN customers c ON o.customer = c.name
;;
SELECT /*+ REPARTITION(4) */ id FROM orders
;;
SELECT /*+ COALESCE(1) */ id FROM orders
;;
SELECT /*+ REPARTITION(3, customer), BROADCAST(c) */ id FROM orders o JOIN customers c ON o.customer = c.name
;;
SELECT /*+ REBALANCE */ id FROM orders
;;
SELECT /*+ MAPJOIN(c) */ o.id FROM orders o, customers c WHERE o.customer = c.name
;;
SELECT /*+ BROADCASTJOIN (c) */ o.id FROM orders o, customers c WHERE o.customer = c.name
;;
-- header comment; with 'quotes" and `ticks`
/* multi
   line */
SELECT id, -- trailing 'comment
       customer /* inline */ AS c
FROM orders -- the end; really
WHERE id > 1 -- done
;;
SELECT "id" AS a, 'id' AS b, `id` AS c FROM orders
;;
SELECT id AS `my id`, customer AS `Kunde-Name`, amount AS `1st`, qty AS `a.b` FROM orders
;;
SELECT `my id` FROM (SELECT id AS `my id` FROM orders) WHERE `my id` > 2
;;
SELECT t.`a.b`, t.`1st` FROM (SELECT id AS `a.b`, qty AS `1st` FROM orders) t
;;
SELECT CASE WHEN amount < 20 THEN 'low' WHEN amount BETWEEN 20 AND 60 THEN 'mid' ELSE 'high' END AS bucket, count(1) AS cnt FROM orders GROUP BY CASE WHEN amount < 20 THEN 'low' WHEN amount BETWEEN 20 AND 60 THEN 'mid' ELSE 'high' END
;;
SELECT customer, count(*) n FROM orders GROUP BY customer HAVING n > 1 ORDER BY n DESC, customer
;;
SELECT customer, qty, count(*) AS c FROM orders GROUP BY customer, qty WITH CUBE
;;
SELECT customer, qty, grouping(qty) g, count(*) AS c FROM orders GROUP BY customer, ROLLUP(qty)
;;
SELECT customer, qty, count(*) AS c FROM orders GROUP BY customer, qty GROUPING SETS ((customer), (qty))
;;
SELECT approx_percentile(price, array(0.25, 0.5), 100) AS p, percentile(price, 0.5) AS q, median(price) AS m, stddev_pop(price) s, variance(price) v, corr(price, id) c, covar_samp(price, id) cs, skewness(price) sk, kurtosis(price) ku, count(DISTINCT customer, qty) cd, sum(DISTINCT qty) sd, avg(DISTINCT qty) ad, min_by(id, ts) mb, array_agg(DISTINCT qty) IS NOT NULL aa, bit_or(qty) bo, histogram_numeric(price, 3) IS NOT NULL h FROM orders
;;
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY price DESC) AS p, listagg(DISTINCT customer, ';') WITHIN GROUP (ORDER BY customer) AS l FROM orders
;;
SELECT any_value(customer IGNORE NULLS) IS NOT NULL AS a, first(customer IGNORE NULLS) IS NOT NULL AS b, last(qty) IS NOT NULL AS c FROM orders
;;
SELECT nvl(customer, 'x') a, decode(qty, 1, 'one', 2, 'two', 'many') AS b, iff AS c FROM (SELECT *, if(id > 3, 1, 0) AS iff FROM orders)
;;
SELECT greatest(id, qty, 3) g, least(id, 2) l, sign(id) s, log(2, 8) lg, ln(2.0) n, exp(1) e, pmod(-1, 3) p, width_bucket(5, 0, 10, 5) w, cbrt(27) c, radians(180) r, factorial(5) f, bround(2.5, 0) b, rint(2.5) ri, shiftleft(1, 3) sh, 1 << 3 AS s2, 5 ^ 3 AS x, 5 | 3 AS o, 5 & 3 AS a, hypot(3, 4) h FROM orders
;;
SELECT * FROM orders WHERE NOT customer <=> 'ada' AND (qty = 1 OR qty = 2) AND NOT (amount > 100 AND price < 2) AND !(id = 3)
;;
SELECT * FROM orders WHERE customer LIKE 'a\_%' ESCAPE '\\' OR customer LIKE '10!%' ESCAPE '!'
;;
SELECT * FROM orders WHERE customer LIKE ALL ('a%', '%a') OR customer NOT LIKE ANY ('g%', 'e%') OR customer RLIKE '^(a|g)'
;;
SELECT * FROM orders WHERE (customer, qty) IN (('ada', 0), ('grace', 1))
;;
SELECT id IS NOT NULL AS a, (customer IS NULL) = false AS b, id IS NOT DISTINCT FROM 1 AS c, (id = 1) IS TRUE AS e, (id = 1) IS NOT FALSE AS f, (customer = 'a') IS UNKNOWN AS g FROM orders
;;
SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.name AND o.qty > 0 LEFT JOIN customers e ON e.since = c.since AND e.name <> c.name WHERE e.name IS NULL
;;
SELECT * FROM orders o RIGHT OUTER JOIN customers c ON o.customer = c.name
;;
SELECT o.id FROM (orders o JOIN customers c ON o.customer = c.name)
;;
SELECT x.id FROM (SELECT * FROM orders) AS x INNER JOIN (SELECT name n FROM customers) y ON x.customer = y.n CROSS JOIN (SELECT 1 AS one) z
;;
SELECT id, customer FROM orders a LEFT ANTI JOIN (SELECT name FROM customers) b ON a.customer = b.name
;;
SELECT * FROM orders TABLESAMPLE (100 ROWS)
;;
SELECT * FROM orders TABLESAMPLE (100 PERCENT) REPEATABLE (7) WHERE id > 1
;;
SELECT * FROM shop.orders TABLESAMPLE (5 ROWS) o JOIN customers TABLESAMPLE (100 PERCENT) ON o.customer = customers.name
;;
SELECT customer, amount FROM orders SORT BY amount
;;
SELECT customer FROM orders CLUSTER BY customer
;;
SELECT * FROM orders LIMIT 5 OFFSET 2
;;
SELECT * FROM orders ORDER BY rand(1) LIMIT ALL
;;
WITH RECURSIVE cal(day) AS (SELECT DATE '2026-01-01' UNION ALL SELECT date_add(day, 1) FROM cal WHERE day < DATE '2026-01-05') SELECT cal.day, count(o.id) AS n FROM cal LEFT JOIN orders o ON o.d = cal.day GROUP BY cal.day
;;
WITH a(x, y) AS (SELECT id, qty FROM orders), b AS (SELECT x FROM a WHERE y > 1) SELECT a.x, b.x AS bx FROM a LEFT JOIN b ON a.x = b.x
;;
WITH dates AS (SELECT explode(sequence(DATE '2026-01-01', DATE '2026-01-05', INTERVAL 1 DAY)) AS day) SELECT d.day, coalesce(sum(o.amount), 0) AS s FROM dates d LEFT JOIN orders o ON o.d = d.day GROUP BY d.day
;;
SELECT id, count(*) OVER () AS total, row_number() OVER (ORDER BY id) % 3 AS g, ntile(3) OVER (ORDER BY id) AS nt, sum(qty) OVER (ORDER BY id ROWS 2 PRECEDING) AS r FROM orders
;;
SELECT id, value, timestamp, key, type, name, status FROM (SELECT id, qty AS value, ts AS timestamp, customer AS key, price AS type, 'n' AS name, 's' AS status FROM orders) WHERE timestamp > '2020-01-01' AND value >= 0
;;
SELECT date, sum(amount) AS total FROM orders GROUP BY date ORDER BY date
;;
SELECT user, date, count(*) AS count FROM orders GROUP BY user, date
;;
SELECT max(date) AS max_date, min(o.user) AS u, first(order) FROM orders o
;;
SELECT year, month, day, hour, count FROM (SELECT year(d) year, month(d) month, day(d) day, hour(ts) hour, 1 count FROM orders) WHERE year = 2026 AND month IN (1, 2) AND day > 3 GROUP BY year, month, day, hour, count
;;
SELECT o.date, o.user, o.left, o.right, o.values FROM (SELECT date, user, 1 AS left, 2 AS right, 3 AS values FROM orders) o
;;
SELECT first, last, row, rows, range, filter, percent, current, position, view FROM (SELECT 1 AS first, 2 AS last, 3 AS row, 4 AS rows, 5 AS range, 6 AS filter, 7 AS percent, 8 AS current, 9 AS position, 10 AS view) WHERE first = 1 AND last = 2 ORDER BY row, rows, range
;;
SELECT data.value, data.key FROM (SELECT named_struct('value', id, 'key', qty) AS data FROM orders)
;;
SELECT map.key FROM (SELECT map('key', 1) AS map)
;;
SELECT array[0] AS a, struct.x AS b FROM (SELECT array(1) AS array, named_struct('x', 2) AS struct)
;;
SELECT * EXCEPT (tags, attrs, addr.zip) FROM orders
;;
SELECT o.* EXCEPT (tags) FROM orders o
;;
SELECT id, transform(sequence(1, 3), x -> x * id) AS s, filter(array(1, 2, 3), x -> x > qty) AS f FROM orders
;;
SELECT explode(map('a', 1, 'b', 2)) AS (k, v) FROM orders
;;
SELECT posexplode(tags) AS (p, t), id FROM orders
;;
SELECT inline(array(struct(1, 'a'), struct(2, 'b'))) AS (n, s)
;;
SELECT * FROM VALUES (1, 'a'), (2, 'b')
;;
SELECT col1, col2 FROM VALUES (1, 'a')
;;
SELECT * FROM (VALUES (1), (2)) AS v(x) JOIN (VALUES (2), (3)) w(y) ON x = y
;;
SELECT t.x FROM (SELECT 1 x UNION ALL SELECT 2 x) t WHERE x > 1
;;
SELECT CURRENT_DATE AS a, CURRENT_TIMESTAMP IS NOT NULL AS b, now() IS NOT NULL AS c, current_timestamp() > ts AS e FROM orders
;;
SELECT equal_null(customer, 'ada') a, ifnull(customer, '') b, zeroifnull(qty) c, nullifzero(qty) e, nanvl(price, 0) f FROM orders
;;
SELECT named_struct('a', id)['a'] AS x, map('a', 1)['a'] AS y, array(array(1, 2))[0][1] AS z FROM orders
;;
SELECT aes_encrypt('x', '0000111122223333') IS NOT NULL AS a, hash(id, customer) AS b, sha1('x') AS c, parse_url('http://a/b?c=1', 'QUERY', 'c') AS e, url_encode('a b') f FROM orders
;;
SELECT to_char(amount, '999.99') AS a, to_number('12', '99') AS b, format_number(amount, 2) AS c, to_varchar(amount, '$999.99') AS e FROM orders
;;
SELECT collate(customer, 'UTF8_LCASE') = 'ADA' AS a, customer COLLATE UNICODE_CI = 'ADA' AS b FROM orders
;;
SELECT make_timestamp(2026, 1, 2, 3, 4, 5) AS a, timestamp_millis(1) AS e, date_from_unix_date(1) AS f, last_day(d) AS g, next_day(d, 'Mon') AS h FROM orders
;;
SELECT TIMESTAMP_NTZ '2026-01-01 00:00:00' AS a, TIMESTAMP_LTZ '2026-01-01 00:00:00' AS b, TIME '10:00:00' IS NOT NULL AS c, X'00FF' AS e, 1.5E3 AS f, 10BD AS g, DATE '2026-02-03' AS h
;;
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY d ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS a, sum(amount) OVER (PARTITION BY customer ORDER BY d RANGE BETWEEN INTERVAL '2' DAY PRECEDING AND INTERVAL '1' DAY FOLLOWING) AS b FROM orders
;;
SELECT a.id FROM orders a WHERE a.amount > (SELECT avg(b.amount) FROM orders b WHERE b.customer = a.customer) AND EXISTS (SELECT 1 FROM customers)
;;
SELECT 'it''s' AS a, "say ""hi""" AS b, 'a\'b' AS c, 'back\\slash' AS e, 'per%cent_under' AS f, 'new\nline' AS g, '\u00e9' AS h, 'a' 'b' AS i, r'\d+' AS j FROM orders
;;
SELECT id, struct(customer, amount) AS s, (id, qty) AS t FROM orders
;;
SELECT sum(qty) FILTER (WHERE customer = 'ada') AS a, count(*) FILTER (WHERE qty > 1 AND customer IS NOT NULL) b FROM orders
;;
SELECT orders.id, customers.name FROM orders, customers WHERE orders.customer = customers.name AND orders.addr.city = 'Paris'
;;
SELECT shop.orders.id, shop.customers.name FROM shop.orders JOIN shop.customers ON shop.orders.customer = shop.customers.name
;;
SELECT icefield.shop.orders.id FROM icefield.shop.orders
;;
SELECT id FROM orders WHERE d = '2026-01-03' AND ts > '2026-01-01' AND amount > '5'
;;
SELECT TRY_ADD(id, 1) a, try_divide(id, 0) b, try_to_timestamp('x') c, try_element_at(tags, 5) e, try_to_number('x', '99') f, try_sum(qty) OVER () g FROM orders
;;
SELECT count(*) AS `count(*)`, count(1) FROM orders
;;
SELECT sum(amount), avg(qty), max(d) FROM orders
;;
SELECT id + 1, upper(customer), CASE WHEN id > 1 THEN 1 END FROM orders
;;
SELECT IF(qty > 1, 'a', IF(qty > 0, 'b', 'c')) AS x, CASE WHEN qty IN (1, 2) AND NOT qty = 2 THEN NULL ELSE qty END y FROM orders
;;
SELECT sort_array(collect_list(named_struct('t', ts, 'i', id)), false)[0].i AS x FROM orders GROUP BY customer
;;
SELECT o1.id AS a, o2.id AS b FROM orders o1 JOIN orders o2 ON o1.id < o2.id AND o1.customer <=> o2.customer
;;
SELECT *, id AS id2 FROM orders
;;
SELECT o.*, c.country FROM orders o LEFT JOIN customers c ON c.name = o.customer
;;
SELECT id, amount * 1.19 AS gross, round(amount * 1.19, 2) AS r, amount / 3 AS t, amount % 7 AS m, -amount AS n, cast(amount AS int) div 2 AS dv FROM orders
;;
SELECT stack(3, 'a', 1, 'b', 2, 'c', 3) AS (k, v)
;;
SELECT k, v FROM orders LATERAL VIEW stack(2, 'q', qty, 'o', `order`) s AS k, v
;;
SELECT date '2026-01-01' + 1 AS a, timestamp '2026-01-01 00:00:00' + interval '1' day AS b, d = date'2026-01-01' AS c FROM orders
;;
SELECT customer AS select_, id AS from_, qty AS `group` FROM orders
;;
SELECT id FROM orders WHERE `date` > '2020-01-01' AND `order` > 0 AND `user` = 'u'
;;
SELECT approx_top_k(customer, 2, 100) AS a FROM orders
;;
SELECT hll_sketch_estimate(hll_sketch_agg(id, 12)) AS a, count_min_sketch(id, 0.5D, 0.5D, 1) IS NOT NULL AS b FROM orders
;;
SELECT max_by(customer, id, 2) AS a, min_by(customer, id, 2) AS b FROM orders
;;
SELECT mask(customer, 'X', 'x', 'n') a, levenshtein('a', 'b', 3) AS l, soundex(customer) AS s, quote(customer) AS q, sentences('a b') AS se FROM orders
;;
SELECT elt(1, 'a', 'b') a, find_in_set('a', 'b,a') b, overlay('abc' PLACING 'x' FROM 2) c, overlay('abc', 'x', 2, 1) e, substring('abc', 2) f, substr('abc' FROM 2) g, btrim('  a ') h, ltrim('x', 'xa') i, trim(TRAILING 'a' FROM 'ba') j, position('a', 'ba') k, trim(' a ') l FROM orders
;;
SELECT ceil(1.234, 1) a, floor(1.234, 1) b, round(1.5) c, round(-1.5, 0) e, log10(10) f, log(10) g, e() h, pi() i, power(2, 3) j, mod(7, 3) k, atan2(1, 1) l, uuid() IS NOT NULL m FROM orders
