-- Statements, one a line, that the embedded engine refuses with the name of the engine that answers them.
SELECT n / 1.5 AS a FROM probe
SELECT approx_count_distinct(n) AS a FROM probe
SELECT collect_list(n) AS a FROM probe
SELECT text = 1 AS a FROM probe
SELECT 'a.c' RLIKE 'a(?=b)' AS a
SELECT regexp_replace(text, '(a)', '$1$1') AS a FROM probe
SELECT text RLIKE 'c$' AS a FROM probe
SELECT CAST(x AS STRING) AS a FROM probe
SELECT CAST(text AS DATE) AS a FROM probe
SELECT CAST(text AS TIMESTAMP) AS a FROM probe
SELECT CAST(text AS BOOLEAN) AS a FROM probe
SELECT rand() AS a
SELECT uuid() AS a
SELECT parse_json(payload_json) AS a FROM events
SELECT from_json(payload_json, 'a int') AS a FROM events
SELECT text, count(*) FROM probe GROUP BY ROLLUP (text)
SELECT date_format(timestamp, 'EEE') AS a FROM probe
SELECT date_trunc('CENTURY', timestamp) AS a FROM probe
SELECT substring(text, -2) AS a FROM probe
SELECT transform(items, i -> i + 1) AS a FROM probe
SELECT n | 1 AS a FROM probe
SELECT items[n] AS a FROM probe
SELECT timestamp - timestamp AS a FROM probe
SELECT hash(n) AS a FROM probe
SELECT md5(text) AS a FROM probe
SELECT format_number(x, 2) AS a FROM probe
SELECT n + text AS a FROM probe
SELECT * FROM range(3)
VALUES (1), (2)
SELECT percentile_approx(x, 0.5) AS a FROM probe
SELECT * EXCEPT (id) FROM probe
EXPLAIN SELECT 1
SELECT id FROM probe TABLESAMPLE (10 PERCENT)
SELECT context = context AS a FROM events
SELECT explode(items) AS a FROM probe
SELECT x FROM probe ORDER BY ALL
WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 5) SELECT * FROM r
FROM probe |> SELECT id
SELECT initcap(text) AS a FROM probe
SELECT sha2(text, 256) AS a FROM probe
SELECT from_unixtime(n) AS a FROM probe
SELECT to_timestamp(text) AS a FROM probe
SELECT months_between(date, date) AS a FROM probe
SELECT TRY_CAST(word AS INT) AS n, TRY_CAST(text AS BIGINT) AS m FROM probe ORDER BY id
SELECT sum(CAST(value AS DECIMAL(12,3))) AS exact, max(CAST(value AS DECIMAL(12,3))) AS most FROM metric
SELECT id, x FROM probe WHERE x > 1e3 OR x < 1e-3 ORDER BY x, id
SELECT 'it''s' AS quote
SELECT CAST(n AS BOOLEAN) AS a FROM probe
SELECT to_date('2026-11-20') AS a
SELECT array('x')[0] AS a
SELECT 1e3 AS a
