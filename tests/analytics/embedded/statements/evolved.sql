-- Objects that gained objects, on both engines; the first line is a comment.
SELECT * FROM evolved ORDER BY id
SELECT id, buyer FROM evolved ORDER BY id
SELECT id, buyer.name, buyer.address.city, buyer.address.geo.lat FROM evolved ORDER BY id
SELECT id, absent_first, null_first FROM evolved ORDER BY id
SELECT id, items, lists, lists_recovered FROM evolved ORDER BY id
SELECT count(*) AS n FROM evolved WHERE buyer IS NULL
SELECT count(*) AS n FROM evolved WHERE buyer.address IS NOT NULL
SELECT date, max(buyer.name) AS name FROM evolved WHERE date >= DATE '2026-11-21' GROUP BY date ORDER BY date
