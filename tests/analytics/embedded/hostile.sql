-- Statements that reach for files, URLs, programs, settings or Java, one a line; no engine runs them.
SELECT * FROM csv.`/etc/passwd`
SELECT * FROM text.`/etc/passwd`
SELECT * FROM binaryFile.`/etc/passwd`
SELECT * FROM parquet.`https://example.com/a.parquet`
SELECT * FROM delta.`/tmp/a`
SELECT * FROM balog.`/etc/passwd`
SELECT * FROM balog.`RAW/../../../etc/passwd`
SELECT * FROM balog.`RAW,/etc/passwd`
SELECT * FROM balog.`file:///etc/passwd`
SELECT * FROM balog.`RAW/%2e%2e/x`
SELECT * FROM `balog.RAW`
SELECT * FROM balog.`s3://bucket/a`
TABLE csv.`/etc/passwd`
DESCRIBE csv.`/etc/passwd`
DESCRIBE EXTENDED balog.`/etc/passwd`
SHOW COLUMNS IN balog.`/etc/passwd`
EXPLAIN SELECT * FROM text.`/etc/passwd`
WITH a AS (SELECT * FROM json.`/etc/passwd`) SELECT * FROM a
SELECT id FROM events WHERE id IN (SELECT value FROM text.`/etc/passwd`)
SELECT id FROM events UNION ALL SELECT value FROM text.`/etc/passwd`
SELECT * FROM '/etc/passwd'
SELECT * FROM `/etc/passwd`
SELECT * FROM read_csv('/etc/passwd')
SELECT * FROM read_text('/etc/passwd')
SELECT * FROM read_parquet('https://example.com/a.parquet')
SELECT * FROM read_json_auto('/etc/passwd')
SELECT * FROM glob('/etc/*')
SELECT * FROM sniff_csv('/etc/passwd')
SELECT * FROM read_files('/etc')
SELECT * FROM duckdb_settings()
SELECT * FROM duckdb_secrets()
SELECT * FROM pragma_version()
SELECT * FROM query('SELECT 1')
SELECT * FROM query_table('events')
SELECT * FROM information_schema.tables
SELECT * FROM sqlite_master
SELECT * FROM pg_catalog.pg_tables
SELECT * FROM IDENTIFIER('csv.`/etc/passwd`')
SELECT getenv('HOME') AS home
SELECT current_setting('memory_limit') AS m
SELECT read_text('/etc/passwd') AS t
SELECT load_aws_credentials() AS c
SELECT reflect('java.lang.System', 'getenv', 'HOME') AS r
SELECT java_method('java.lang.Runtime', 'getRuntime') AS r
SELECT try_reflect('java.lang.System', 'getenv') AS r
SELECT TRANSFORM (id) USING 'cat' FROM events
SELECT id FROM events INTO OUTFILE '/tmp/x'
COPY events TO '/tmp/x'
COPY (SELECT 1) TO '/tmp/x.csv'
EXPORT DATABASE '/tmp/x'
INSERT OVERWRITE DIRECTORY '/tmp/x' USING csv SELECT * FROM events
CREATE TABLE x AS SELECT 1
CREATE TEMPORARY VIEW x USING csv OPTIONS (path '/etc/passwd')
CREATE OR REPLACE TEMPORARY FUNCTION f AS 'java.lang.System'
ATTACH '/tmp/x.db'
DETACH memory
INSTALL httpfs
LOAD httpfs
PRAGMA database_list
CALL pragma_version()
SET threads = 100
SET spark.sql.warehouse.dir = '/tmp'
RESET
USE default
ADD JAR '/tmp/x.jar'
ADD FILE '/etc/passwd'
LIST FILE
LOAD DATA LOCAL INPATH '/etc/passwd' INTO TABLE events
REFRESH TABLE events
CACHE TABLE events
ANALYZE TABLE events COMPUTE STATISTICS
DROP VIEW events
DROP TABLE events
ALTER VIEW events AS SELECT 1
MSCK REPAIR TABLE events
TRUNCATE TABLE events
DELETE FROM events
UPDATE events SET id = 1
MERGE INTO events USING log ON true WHEN MATCHED THEN DELETE
SHOW FUNCTIONS
SHOW CREATE TABLE events
SHOW PARTITIONS events
SELECT 1; SELECT 2
BEGIN SELECT 1; END
EXECUTE IMMEDIATE 'SELECT 1'
DECLARE x INT
CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')
SELECT ${env:HOME}
