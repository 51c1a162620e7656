-- Statements of users, one a line, that both engines answer equally.
SELECT level, count(*) FROM events GROUP BY ALL
SELECT * FROM probe ORDER BY id
SELECT id, payload_json FROM events WHERE cls_type = 'probe' ORDER BY id LIMIT 3
SELECT context['run_id'] AS run, count(*) AS n FROM events GROUP BY context['run_id'] ORDER BY n DESC, run
SELECT context['missing'] AS x, count(*) FROM events GROUP BY 1
SELECT map_keys(context) AS k, map_values(context) AS v, size(context) AS s FROM events ORDER BY id LIMIT 2
SELECT element_at(context, 'application') AS a, map_contains_key(context, 'run_id') AS h FROM events ORDER BY id LIMIT 2
SELECT context FROM events ORDER BY id LIMIT 1
SELECT k, v, count(*) AS n FROM events LATERAL VIEW explode(context) t AS k, v GROUP BY k, v ORDER BY k, v
SELECT id, item FROM probe LATERAL VIEW explode(items) t AS item ORDER BY id, item
SELECT get_json_object(payload_json, '$.text') AS t, get_json_object(payload_json, '$.n') AS n FROM events ORDER BY id
SELECT get_json_object(payload_json, '$.part.a') AS a FROM events WHERE cls_type = 'probe' ORDER BY id
SELECT date, cls_type, count(*) AS n, min(timestamp), max(timestamp) FROM events GROUP BY date, cls_type ORDER BY 1, 2
SELECT date_trunc('HOUR', timestamp) AS hour, count_if(level = 'ERROR') AS errors FROM events GROUP BY hour ORDER BY hour
SELECT count(n), count(DISTINCT text), sum(n), sum(x), min(x), max(n), avg(n), avg(x) FROM probe
SELECT count(*), sum(n), max(text), avg(x) FROM probe WHERE id = 'none'
SELECT text, sum(n) AS total FROM probe GROUP BY text HAVING sum(n) > 2 ORDER BY total DESC NULLS LAST, text
SELECT text, count(*) AS c FROM probe GROUP BY text HAVING c > 1 ORDER BY text
SELECT sum(n) FILTER (WHERE flag) AS flagged, count(*) FILTER (WHERE n IS NULL) AS without FROM probe
SELECT percentile(x, 0.5) AS p50, percentile(n, 0.95) AS p95, median(x) AS m FROM probe
SELECT stddev(x) AS s, variance(x) AS v, stddev_pop(n) AS p, var_pop(n) AS w FROM probe
SELECT max_by(word, x) AS most, min_by(text, x) AS least FROM probe WHERE x IS NOT NULL
SELECT bool_and(flag) AS every, bool_or(flag) AS one, sum(DISTINCT n) AS s FROM probe
SELECT sum(1.5) AS a, sum(CAST(n AS DECIMAL(20,2))) AS b, max(1.25) AS c FROM probe
SELECT id, n FROM probe ORDER BY n, id
SELECT id, n FROM probe ORDER BY n DESC, id
SELECT id, n FROM probe ORDER BY n NULLS LAST, id LIMIT 4 OFFSET 1
SELECT id, x AS n FROM probe ORDER BY n, id
SELECT DISTINCT text FROM probe ORDER BY text
SELECT DISTINCT level, cls_type FROM events
SELECT e.id, p.n FROM events e JOIN probe p ON e.id = p.id ORDER BY e.id
SELECT e.id, p.n FROM events AS e LEFT JOIN probe AS p ON e.id = p.id AND p.n > 2 ORDER BY e.id
SELECT id, e.level, n FROM events e JOIN probe USING (id) ORDER BY id
SELECT count(*) AS n FROM probe a CROSS JOIN probe b
SELECT count(*) AS n FROM probe a, probe b WHERE a.n < b.n
SELECT e.id FROM events e LEFT SEMI JOIN probe p ON e.id = p.id ORDER BY e.id
SELECT e.id FROM events e LEFT ANTI JOIN probe p ON e.id = p.id ORDER BY e.id
SELECT id FROM events WHERE id IN (SELECT id FROM probe WHERE n > 1) ORDER BY id
SELECT id FROM events e WHERE EXISTS (SELECT 1 FROM probe p WHERE p.id = e.id AND p.flag) ORDER BY id
SELECT id, n - (SELECT min(n) FROM probe) AS above FROM probe ORDER BY id
WITH a AS (SELECT text, count(*) AS c FROM probe GROUP BY text), b AS (SELECT max(c) AS m FROM a) SELECT a.text FROM a JOIN b ON a.c = b.m ORDER BY 1
WITH a(t, c) AS (SELECT text, n FROM probe) SELECT t, c FROM a WHERE c > 1 ORDER BY c, t
SELECT t, total FROM (SELECT text AS t, sum(n) AS total FROM probe GROUP BY text) WHERE total > 1 ORDER BY t
SELECT id FROM probe UNION ALL SELECT id FROM events ORDER BY id LIMIT 5
SELECT text FROM probe UNION SELECT word FROM probe
SELECT n FROM probe UNION ALL SELECT x FROM probe
SELECT text FROM probe INTERSECT SELECT word FROM probe
SELECT text FROM probe EXCEPT SELECT word FROM probe
SELECT id, row_number() OVER (PARTITION BY text ORDER BY id) AS r FROM probe ORDER BY id
SELECT id, rank() OVER (ORDER BY n) AS r, dense_rank() OVER (ORDER BY n) AS d FROM probe ORDER BY id
SELECT id, lag(n) OVER (ORDER BY id) AS before, lead(n, 2) OVER (ORDER BY id) AS after FROM probe ORDER BY id
SELECT id, sum(n) OVER (ORDER BY id) AS running, avg(x) OVER (PARTITION BY flag) AS a FROM probe ORDER BY id
SELECT id, n * 100.0D / sum(n) OVER (PARTITION BY flag) AS share FROM probe WHERE n > 0 ORDER BY id
SELECT ID, Text FROM PROBE ORDER BY Id
SELECT `text`, `n` FROM `probe` ORDER BY `id` -- of all
SELECT p.* FROM probe p ORDER BY p.id
SELECT n AS a, a + 1 AS b FROM probe ORDER BY id
SELECT id FROM probe WHERE n > 1 AND text LIKE 'a%' OR flag ORDER BY id
SELECT id FROM probe WHERE NOT flag ORDER BY id
SELECT id FROM probe LIMIT 0
SELECT hour, channel, events FROM rollup_events ORDER BY hour, channel, events
SELECT channel, sum(events) AS n FROM rollup_events GROUP BY channel ORDER BY n DESC, channel
SELECT reason, raw FROM quarantine ORDER BY raw
SELECT n + 1, n * 2, n / 2, -5, 'a', NULL, true, 1.5, text, upper(word), count(*) OVER (PARTITION BY id) AS c FROM probe ORDER BY id LIMIT 1
SELECT coalesce(n, 0), length(text), year(timestamp), n > 2, n <> 3, NOT flag, text = 'a' AND flag, CAST(n AS STRING) FROM probe ORDER BY id LIMIT 1
SELECT count(DISTINCT n), min(x), mean(x), count_if(flag), date_trunc('HOUR', max(timestamp)), items[0] FROM probe WHERE n = 3 GROUP BY items[0]
SELECT 1
SELECT 1 AS one, 'a' AS b, DATE '2026-01-31' AS d
SHOW TABLES
SHOW COLUMNS IN probe
DESCRIBE probe
DESCRIBE events
DESCRIBE QUERY SELECT n, x, text, count(*) AS c FROM probe GROUP BY ALL
