-- Statements about nested values, casts, dates, nulls, decimals, texts and empty tables, one a line, that both engines answer equally.
SELECT id, tag FROM log LATERAL VIEW explode(tags) t AS tag ORDER BY id, tag
SELECT id, size(tags) AS n, tags[0] AS first FROM log WHERE size(tags) > 0 ORDER BY id
SELECT id, tags FROM log ORDER BY id
SELECT id, error, exception FROM log ORDER BY id
SELECT error.type AS type, error.retries + 1 AS tries FROM log WHERE error.retries IS NOT NULL ORDER BY type
SELECT id, part.inner.b AS b, part.a FROM probe ORDER BY id
SELECT id, get_json_object(payload_json, '$.error.type') AS type FROM events WHERE cls_type = 'log' ORDER BY id
SELECT tags.endpoint, value FROM metric WHERE tags.endpoint IS NOT NULL ORDER BY value
SELECT CAST(value AS INT) AS whole, CAST(value AS BIGINT) AS large, value FROM metric ORDER BY id
SELECT CAST(rows AS DOUBLE) / 7 AS x, CAST(rows AS STRING) AS t, rows FROM log WHERE rows IS NOT NULL ORDER BY id
SELECT CAST('42' AS INT) AS a, CAST('1.5' AS DOUBLE) AS b, CAST(7 AS STRING) AS c, CAST(true AS STRING) AS d
SELECT CAST(timestamp AS DATE) AS day, CAST(date AS TIMESTAMP) AS midnight FROM log ORDER BY id LIMIT 3
SELECT round(took, 1) AS r, floor(took) AS f, ceil(took) AS c, abs(-took) AS a FROM log WHERE took IS NOT NULL ORDER BY id
SELECT round(2.5D) AS a, round(-2.5D) AS b, round(1.005D, 2) AS c, 7 % 3 AS d, -7 % 3 AS e, 7 DIV 2 AS f
SELECT CAST(0.1 AS DECIMAL(10,2)) + CAST(0.2 AS DECIMAL(10,2)) AS s, CAST(1 AS DECIMAL(5,0)) * 1.25 AS p
SELECT stream, sum(CAST(rows AS DECIMAL(10,1))) AS total FROM log GROUP BY stream HAVING sum(CAST(rows AS DECIMAL(10,1))) > 2.5 ORDER BY stream
SELECT sum(CAST(rows AS DECIMAL(12,3))) AS exact, max(CAST(rows AS DECIMAL(12,3))) AS most, min(CAST(rows AS DECIMAL(12,3)) * 1.5) AS least FROM log
SELECT 1.10 + 2.2 AS a, 1.5 * 2 AS b, -0.5 AS c, 1.0 = 1.00 AS d, 0.1D + 0.2D AS e
SELECT year(timestamp) AS y, month(timestamp) AS m, day(timestamp) AS d, hour(timestamp) AS h, minute(timestamp) AS n, second(timestamp) AS s FROM log ORDER BY id LIMIT 4
SELECT date_format(timestamp, 'yyyy-MM-dd HH:mm') AS t, date_trunc('MINUTE', timestamp) AS m FROM log ORDER BY id LIMIT 4
SELECT date + INTERVAL 1 DAY AS tomorrow, date - INTERVAL 1 MONTH AS before, timestamp + INTERVAL 90 MINUTE AS later FROM log ORDER BY id LIMIT 3
SELECT date_add(date, 30) AS a, date_sub(date, 30) AS b, last_day(date) AS c, dayofweek(date) AS d, weekofyear(date) AS e, dayofyear(date) AS f, quarter(date) AS g FROM log ORDER BY id LIMIT 3
SELECT DATE '2024-02-29' + INTERVAL 1 YEAR AS a, datediff(DATE '2024-03-01', DATE '2024-02-01') AS b, to_date(timestamp) AS c FROM log ORDER BY id LIMIT 1
SELECT count(*) AS n FROM log WHERE timestamp > '2026-11-20T12:00:00Z'
SELECT EXTRACT(HOUR FROM timestamp) AS h, count(*) AS n FROM events GROUP BY 1 ORDER BY n DESC, h LIMIT 5
SELECT count(rows) AS some, count(*) AS every, sum(rows) AS s, avg(rows) AS a FROM log
SELECT rows IS NULL AS missing, count(*) AS n FROM log GROUP BY 1 ORDER BY 1
SELECT id FROM log WHERE rows <> 7 ORDER BY id
SELECT id FROM log WHERE NOT (rows > 7) OR rows IS NULL ORDER BY id
SELECT id FROM log WHERE rows <=> NULL AND took <=> NULL ORDER BY id
SELECT coalesce(stream, application, 'none') AS who, nullif(message, '') AS text, nvl(rows, -1) AS rows FROM log ORDER BY id
SELECT rows, id FROM log ORDER BY rows DESC NULLS FIRST, id LIMIT 6
SELECT greatest(rows, 10) AS g, least(took, 1.0D) AS l, nvl2(stream, 1, 0) AS s FROM log ORDER BY id
SELECT NULL AS nothing, CAST(NULL AS INT) AS none, NULL = NULL AS unknown, NULL IS NULL AS yes
SELECT message, length(message) AS n, octet_length(message) AS bytes FROM log WHERE message LIKE '%Zürich%' ORDER BY id
SELECT 'Zürich ☃ 日本' AS a, length('日本') AS b, reverse('abc') AS c, concat('é', NULL) AS d, concat_ws('-', 'a', NULL, 'b') AS e
SELECT substr(message, 1, 6) AS head, left(message, 2) AS two, instr(message, 'rows') AS place FROM log ORDER BY id
SELECT trim('  a  ') AS a, ltrim('  a') AS b, rtrim('a  ') AS c, replace('aXbX', 'X', '') AS d, upper('abc') AS e, lower('ABC') AS f
SELECT message || ' / ' || level AS both, startswith(message, 'orders') AS s, contains(message, ':') AS c FROM log ORDER BY id
SELECT "it's" AS quote, '100 %' AS percent, '' AS empty, 'a"b' AS double
SELECT id FROM log WHERE message = 'Konto gesperrt: Zürich – ошибка ☃ 日本' ORDER BY id
SELECT message FROM log WHERE message > 'm' ORDER BY message, id
SELECT * FROM rollup_runs
SELECT count(*) AS n, sum(events) AS s, max(first) AS f, avg(errors) AS a FROM rollup_runs
SELECT run_id, run.outcome AS outcome, run.duration AS seconds FROM rollup_runs WHERE run.outcome = 'failed' ORDER BY run_id
SELECT l.id FROM log l LEFT JOIN rollup_runs r ON l.run_id = r.run_id WHERE r.run.outcome IS NULL ORDER BY l.id LIMIT 1
SELECT id FROM log WHERE 1 = 0 UNION ALL SELECT run_id FROM rollup_runs
SELECT application, count(*) AS n FROM log WHERE level = 'nothing' GROUP BY application
SELECT max(rows) AS m FROM log WHERE level = 'nothing'
SELECT 9223372036854775807 AS most, -2147483648 AS least, 0.00001D AS small
SELECT array(1, 2, NULL) AS a, array('x', 'y') AS b, -2147483649 AS c, -2147483647 AS d
SELECT map_keys(context) AS k, context['application'] AS a, context.run_id AS r FROM events ORDER BY id LIMIT 3
SELECT id, flag AND n > 1 AS a, flag OR n > 1 AS b, NOT flag AS c FROM probe ORDER BY id
SELECT bool_and(flag) AS every, bool_or(flag) AS some, count_if(flag) AS n FROM probe GROUP BY word ORDER BY n, every, some
SELECT id, count_if(flag) OVER (PARTITION BY word) AS n FROM probe ORDER BY id
SELECT count_if(flag) AS n FROM probe WHERE flag IS NULL
SELECT size(array()) AS a
