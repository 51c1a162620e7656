-- Statements on raw events, one a line; RAW is their folder.
SELECT * FROM balog.`RAW` ORDER BY id
TABLE balog.`RAW` ORDER BY id LIMIT 2
SELECT level, count(*) AS n FROM balog.`RAW/a.jsonl` GROUP BY ALL
SELECT count(*) FROM balog.`RAW/*.jsonl`
SELECT count(*) AS n, count(DISTINCT id) AS d FROM balog.`RAW` WHERE quarantine IS NULL
SELECT quarantine.reason, quarantine.offset AS o, quarantine.raw AS raw FROM balog.`RAW` WHERE quarantine IS NOT NULL
SELECT context['run_id'] AS run, min(timestamp) AS first, max(timestamp) AS last FROM balog.`RAW` GROUP BY 1 ORDER BY run
SELECT id, get_json_object(payload_json, '$.n') AS n FROM balog.`RAW` WHERE cls_type = 'probe' ORDER BY id
SELECT r.id, e.date FROM balog.`RAW` r JOIN events e ON r.id = e.id AND r.level = e.level ORDER BY r.id
SELECT id FROM balog.`RAW` WHERE NOT EXISTS (SELECT 1 FROM probe p WHERE p.n > 1 AND p.id = `balog.RAW`.id) ORDER BY id
WITH r AS (SELECT * FROM balog.`RAW`) SELECT schema, composition, count(*) AS n FROM r GROUP BY ALL ORDER BY n
DESCRIBE balog.`RAW`
SHOW COLUMNS IN balog.`RAW`
DESCRIBE QUERY SELECT context, quarantine FROM balog.`RAW`
