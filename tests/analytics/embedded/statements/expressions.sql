-- Expressions over one row of the table probe, one a line, that both engines answer equally.
n + 1
n - 7
n * 3
n / 4
n % 3
n div 2
-n
abs(n)
n + x
x * 2
x / n
n + 0.5
n * 1.25
1.5 + 2
2 * 3.25
1 - 0.75
x + 0.1
x > 1.5
n = 3.0
round(x, 2)
round(x)
round(n)
round(x, 0)
round(1.255, 2)
floor(x)
ceil(x)
sqrt(abs(x))
CAST(x AS BIGINT)
CAST(n AS DOUBLE)
CAST(n AS STRING)
CAST(n % 100 AS INT)
CAST(n AS DECIMAL(12,2))
greatest(n, 2)
least(n, x)
try_divide(n, 0)
try_divide(n, 4)
10L
2.5D
1.10BD
9223372036854775807
x <=> n
n BETWEEN 1 AND 5
n NOT BETWEEN 1 AND 5
n IN (1, 2, NULL)
n NOT IN (1, 2)
coalesce(n, 0)
nvl(x, 0.5D)
nullif(n, 2)
ifnull(n, -1)
nvl2(n, 'a', 'b')
-7 div 2
-7 % 3
7 % -3
text || '!'
concat(text, '-', n)
concat_ws('/', text, word)
length(text)
char_length(text)
octet_length(text)
upper(word)
lower(word)
substring(text, 2)
substring(text, 2, 3)
substr(text, 0, 2)
substring(text FROM 2 FOR 1)
left(text, 2)
trim(text)
ltrim(text)
rtrim(text)
reverse(word)
replace(text, 'a', 'bb')
instr(text, 'a')
position('a' IN text)
text LIKE '%a%'
text LIKE 'a_c'
text NOT LIKE '%a'
word ILIKE '%AB%'
text RLIKE 'a.c'
text RLIKE '^[a-c]+'
regexp_extract(text, '([a-z])([a-z])', 2)
regexp_extract(text, '[0-9]+', 0)
regexp_replace(text, '[aeiou]', '*')
text < 'b'
text = word
startswith(text, 'a')
endswith(text, 'c')
contains(text, 'b')
text IS NULL
text IS NOT NULL
'日本' || text
isnull(text)
isnotnull(n)
CASE WHEN n > 2 THEN 'many' WHEN n IS NULL THEN 'none' ELSE 'few' END
CASE n WHEN 1 THEN 'one' WHEN 2 THEN 'two' END
CASE WHEN n > 2 THEN n ELSE x END
if(n > 2, 1, 0)
n > 2 AND x < 3
n > 2 OR x IS NULL
NOT (n > 2)
flag
NOT flag
flag IS TRUE
flag AND NULL
flag OR true
flag = (n > 2)
timestamp
date
year(timestamp)
month(timestamp)
day(timestamp)
hour(timestamp)
minute(timestamp)
second(timestamp)
dayofweek(timestamp)
dayofyear(timestamp)
weekofyear(timestamp)
quarter(date)
date_trunc('HOUR', timestamp)
date_trunc('day', timestamp)
date_trunc('WEEK', timestamp)
date_trunc('month', timestamp)
to_date(timestamp)
CAST(timestamp AS DATE)
CAST(date AS STRING)
CAST(date AS TIMESTAMP)
CAST(timestamp AS STRING)
date_format(timestamp, 'yyyy-MM-dd HH:mm:ss')
date_format(date, 'yyyy/MM')
date_add(date, 3)
date_sub(timestamp, 1)
datediff(date, DATE '2026-10-01')
last_day(date)
unix_micros(timestamp)
unix_millis(timestamp)
unix_seconds(timestamp)
timestamp + INTERVAL 1 HOUR
timestamp - INTERVAL 2 DAYS
date + INTERVAL 1 MONTH
timestamp >= '2026-11-20'
timestamp < TIMESTAMP '2026-11-20T08:00:00Z'
timestamp >= TIMESTAMP '2026-11-20 08:00:00+02:00'
date = '2026-11-20'
date < timestamp
date BETWEEN '2026-11-19' AND '2026-11-21'
extract(YEAR FROM timestamp)
extract(hour FROM timestamp)
DATE '2026-02-28'
items
items[0]
size(items)
cardinality(items)
part
part.a
part.inner.b
element_at(items, 1)
array(n, 2)
size(array(1, 2))
text NOT RLIKE 'a'
word NOT ILIKE 'a%'
NOT text LIKE 'a%'
n IS NOT DISTINCT FROM 3
n IS DISTINCT FROM 3
flag IS NOT TRUE
-n IS NULL
CAST(NULL AS INT)
