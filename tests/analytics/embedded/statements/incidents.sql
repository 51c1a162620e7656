-- Statements about incidents, freshness and throughput, one a line, that both engines answer equally.
SELECT application, count(*) AS errors, min(timestamp) AS first, max(timestamp) AS last FROM log WHERE level = 'ERROR' GROUP BY application ORDER BY errors DESC, application
SELECT error.type, count(*) AS n FROM log WHERE error IS NOT NULL GROUP BY error.type ORDER BY 1
SELECT coalesce(error.type, 'none') AS kind, count(*) AS n, max(error.retries) AS retries FROM log GROUP BY 1 ORDER BY 1
SELECT date, level, count(*) AS n FROM events GROUP BY date, level ORDER BY date, level
SELECT date_trunc('DAY', timestamp) AS day, count_if(level IN ('ERROR', 'CRITICAL')) AS errors, count(*) AS events FROM events GROUP BY 1 ORDER BY 1
SELECT run_id, application, message FROM log WHERE level <> 'INFO' AND message <> '' ORDER BY timestamp, id LIMIT 5
SELECT id, timestamp, message FROM log WHERE timestamp >= TIMESTAMP '2026-11-20 00:00:00' AND timestamp < TIMESTAMP '2026-11-21 00:00:00' ORDER BY timestamp, id
SELECT id FROM log WHERE date = DATE '2026-11-20' ORDER BY id
SELECT id FROM log WHERE date BETWEEN '2026-11-20' AND '2026-11-21' ORDER BY id
SELECT message, count(*) AS n FROM log WHERE message LIKE '%rows%' GROUP BY message ORDER BY n DESC, message
SELECT regexp_extract(message, '([0-9]+) rows', 1) AS rows, count(*) AS n FROM log WHERE message RLIKE '[0-9]+ rows' GROUP BY 1 ORDER BY 1
SELECT regexp_replace(message, '[0-9]+', '<n>') AS pattern, count(*) AS n, min(id) AS example FROM log WHERE level = 'ERROR' GROUP BY 1 ORDER BY n DESC, pattern
SELECT split.application, split.errors * 100.0D / split.events AS share FROM (SELECT application, count_if(level = 'ERROR') AS errors, count(*) AS events FROM log GROUP BY application) AS split ORDER BY share DESC, application
SELECT application, max(timestamp) AS seen FROM log GROUP BY application HAVING max(timestamp) < TIMESTAMP '2026-11-30 00:00:00' ORDER BY seen, application
SELECT application, datediff(DATE '2026-11-30', max(date)) AS days_ago FROM log GROUP BY application ORDER BY days_ago DESC, application
SELECT stream, max(timestamp) AS fresh, unix_seconds(max(timestamp)) AS seconds FROM log WHERE stream IS NOT NULL GROUP BY stream ORDER BY stream
SELECT stream, sum(rows) AS rows, sum(took) AS took, try_divide(sum(rows), sum(took)) AS per_second FROM log WHERE stream IS NOT NULL GROUP BY stream ORDER BY stream
SELECT stream, percentile(took, 0.5) AS p50, percentile(took, 0.95) AS p95, max(took) AS most FROM log WHERE took IS NOT NULL GROUP BY stream ORDER BY stream
SELECT metric, type, count(*) AS n, sum(value) AS total, min(value) AS low, max(value) AS high, avg(value) AS mean FROM metric GROUP BY metric, type ORDER BY metric
SELECT metric, percentile(value, 0.5) AS p50, percentile(value, 0.95) AS p95, percentile(value, 0.99) AS p99 FROM metric WHERE type = 'timer' GROUP BY metric
SELECT date_trunc('HOUR', timestamp) AS hour, sum(value) AS records FROM metric WHERE metric = 'record_count' GROUP BY 1 ORDER BY 1
SELECT tags.stream AS stream, tags.endpoint AS endpoint, count(*) AS n FROM metric GROUP BY 1, 2 ORDER BY n, stream
SELECT a.run_id, a.errors, b.records FROM (SELECT run_id, count(*) AS errors FROM log WHERE level = 'ERROR' GROUP BY run_id) a LEFT JOIN (SELECT run_id, sum(value) AS records FROM metric WHERE metric = 'record_count' GROUP BY run_id) b ON a.run_id = b.run_id ORDER BY a.run_id
SELECT l.id, e.cls_type, e.context['application'] AS application FROM log l JOIN events e ON l.id = e.id WHERE l.level = 'ERROR' ORDER BY l.id
SELECT e.id FROM events e LEFT JOIN log l ON e.id = l.id LEFT JOIN metric m ON e.id = m.id WHERE l.id IS NULL AND m.id IS NULL ORDER BY e.id
SELECT l.application, m.metric, count(*) AS n FROM log l FULL JOIN metric m ON l.run_id = m.run_id AND l.application = m.application GROUP BY 1, 2 ORDER BY n, 1, 2
SELECT DISTINCT application FROM log WHERE run_id NOT IN (SELECT run_id FROM metric WHERE value > 6) ORDER BY application
SELECT application FROM log GROUP BY application HAVING count(DISTINCT level) > 1 ORDER BY application
WITH errors AS (SELECT run_id, timestamp AS at FROM log WHERE level = 'ERROR'), later AS (SELECT e.run_id, count(*) AS n FROM errors e JOIN log l ON l.run_id = e.run_id AND l.timestamp > e.at GROUP BY e.run_id) SELECT * FROM later ORDER BY run_id
WITH numbered AS (SELECT *, row_number() OVER (PARTITION BY application ORDER BY timestamp DESC, id) AS place FROM log) SELECT application, message, timestamp FROM numbered WHERE place = 1 ORDER BY application
SELECT application, level, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS place FROM log GROUP BY application, level ORDER BY place, application, level
SELECT id, timestamp, lag(timestamp) OVER (PARTITION BY application ORDER BY timestamp) AS before FROM log ORDER BY id
SELECT id, unix_millis(timestamp) - lag(unix_millis(timestamp)) OVER (PARTITION BY application ORDER BY timestamp) AS gap FROM log ORDER BY id
SELECT id, count(*) OVER (PARTITION BY run_id) AS lines, sum(rows) OVER (PARTITION BY stream ORDER BY id) AS running FROM log ORDER BY id
SELECT id, first_value(level) OVER (PARTITION BY application ORDER BY id) AS first FROM log ORDER BY id
SELECT hour, application, events FROM rollup_events WHERE level = 'ERROR' ORDER BY hour, application
SELECT fingerprint IS NOT NULL AS known, error_type, message, events, example.id AS id FROM rollup_errors ORDER BY error_type, message, hour, id
SELECT application, sum(count) AS n, sum(sum) AS total, max(high) AS high FROM rollup_metrics WHERE metric = 'http_request_duration' GROUP BY application
SELECT channel, sum(events) AS n FROM rollup_events GROUP BY channel HAVING sum(events) >= 4 ORDER BY n DESC, channel LIMIT 3
SELECT CASE WHEN level IN ('ERROR', 'CRITICAL') THEN 'bad' WHEN level = 'WARNING' THEN 'odd' ELSE 'good' END AS state, count(*) AS n FROM events GROUP BY 1 ORDER BY 1
SELECT if(count_if(level = 'ERROR') > 0, 'failed', 'fine') AS outcome, run_id FROM log GROUP BY run_id ORDER BY run_id
SELECT max_by(message, timestamp) AS last, min_by(message, timestamp) AS first, run_id FROM log GROUP BY run_id ORDER BY run_id
SELECT reason, count(*) AS lines FROM quarantine GROUP BY reason
TABLE quarantine
SHOW TABLES LIKE 'rollup_*'
SHOW TABLES LIKE 'log|metr*'
SHOW TABLES 'nothing'
SHOW VIEWS LIKE '*E*'
