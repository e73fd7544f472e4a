"""Queries that people expect to run without a question, by database."""

from __future__ import annotations

from tests.tables import table

from signoff.policy.sql import read_sql

# Long queries go on in the next line after a backslash.
READS = {
    "postgres": r"""
SELECT id, name FROM users WHERE created_at > now() - interval '7 days' ORDER BY id DESC LIMIT 10
SELECT u.id, count(o.*) FROM users u LEFT JOIN orders o ON o.user_id = u.id GROUP BY u.id HAVING count(o.id) > 5
SELECT date_trunc('day', created_at)::date AS d, sum(amount)::numeric(10,2) FROM orders GROUP BY 1 ORDER BY 1
SELECT * FROM information_schema.tables WHERE table_schema = 'public'
SELECT relname, pg_size_pretty(pg_total_relation_size(c.oid)) FROM pg_catalog.pg_class c JOIN pg_namespace n ON \
n.oid = c.relnamespace WHERE n.nspname NOT IN ('pg_catalog','information_schema')
SELECT * FROM pg_stat_activity WHERE state = 'active'
WITH RECURSIVE tree AS (SELECT id, parent_id, 1 AS depth FROM cat WHERE parent_id IS NULL UNION ALL SELECT c.id, \
c.parent_id, t.depth+1 FROM cat c JOIN tree t ON c.parent_id = t.id) SELECT * FROM tree
SELECT data->>'name', data#>>'{a,b}', data @> '{"a":1}'::jsonb, data ? 'x' FROM docs
SELECT DISTINCT ON (user_id) user_id, created_at FROM events ORDER BY user_id, created_at DESC
SELECT row_number() OVER (PARTITION BY a ORDER BY b) rn, sum(x) FILTER (WHERE y > 0) FROM t
SELECT a, CASE WHEN b > 1 THEN 'x' WHEN b IS NULL THEN 'y' ELSE 'z' END FROM t
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY amount) FROM orders
SELECT * FROM generate_series(1, 10) AS g(n)
SELECT n FROM generate_series('2024-01-01'::date, '2024-02-01'::date, '1 day') n
SELECT string_agg(name, ', ' ORDER BY name) FROM users
SELECT array_agg(DISTINCT x), array[1,2,3], arr[1], arr[1:2] FROM t
SELECT a FROM t UNION ALL SELECT b FROM u EXCEPT SELECT c FROM v
SELECT EXTRACT(EPOCH FROM (a - b)) / 3600 FROM t
SELECT 'users'::regclass::oid
SELECT * FROM t WHERE name ILIKE '%bob%' AND email ~* '^a.*z$' AND x SIMILAR TO 'a|b'
SELECT * FROM a JOIN LATERAL (SELECT * FROM b WHERE b.id = a.id LIMIT 1) x ON true
SELECT * FROM unnest(ARRAY[1,2]) WITH ORDINALITY AS u(v, i)
SELECT jsonb_pretty(jsonb_build_object('a', 1)), to_jsonb(t) FROM t
SELECT COALESCE(a, 'it''s'), NULLIF(b, ''), GREATEST(1,2) FROM t
SELECT * FROM "Users" WHERE "firstName" = 'x'
SELECT version(), current_database(), current_user, current_schema()
SELECT a AT TIME ZONE 'UTC' FROM t
SELECT * FROM t TABLESAMPLE BERNOULLI (10)
SELECT * FROM t TABLESAMPLE SYSTEM (1) LIMIT 5
SELECT count(*) FROM t WHERE id = ANY('{1,2,3}'::int[])
SELECT count(*) FROM t WHERE id = ANY($1) AND b = $2
SELECT exists(SELECT 1 FROM t WHERE a = 1)
SELECT to_tsvector('english', body) @@ plainto_tsquery('cats') FROM posts
SELECT a, b FROM t GROUP BY GROUPING SETS ((a), (b), ())
SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b)
SELECT * FROM t ORDER BY a NULLS LAST OFFSET 5 FETCH FIRST 10 ROWS ONLY
SELECT sum(a) OVER w FROM t WINDOW w AS (PARTITION BY b ORDER BY c ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
SELECT lower(name) || ' ' || upper(x), length(trim(both ' ' from y)), position('a' in z), substring(a from 1 for \
3) FROM t
EXPLAIN ANALYZE SELECT * FROM t
EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT * FROM t WHERE id = 1
EXPLAIN (FORMAT JSON) UPDATE t SET a = 1
SHOW search_path
SHOW server_version
TABLE users
TABLE users ORDER BY id LIMIT 3
WITH x AS (SELECT 1 AS a) TABLE x
SELECT pg_get_viewdef('v'::regclass, true)
SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'users'
SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint
SELECT * FROM t WHERE (a, b) IN ((1,2),(3,4))
SELECT a::text, b::timestamptz, c::double precision, d::varchar(10), e::uuid, f::bytea, CAST(g AS bigint) FROM t
SELECT $$it's$$ AS x
SELECT round(avg(x)::numeric, 2), stddev(x), max(x) - min(x) FROM t
SELECT json_agg(row_to_json(t)) FROM (SELECT 1 AS a) t
SELECT last_value FROM my_seq
SELECT * FROM t WHERE d BETWEEN '2024-01-01' AND '2024-12-31' AND NOT deleted
SELECT date '2024-01-01' + 5, interval '1 day' * 3
SELECT 1 -- trailing
SELECT /* inline */ 1
SELECT a, (SELECT max(b) FROM u WHERE u.id = t.id) FROM t
SELECT t.* FROM t CROSS JOIN u NATURAL JOIN v
SELECT xpath('/a', x) FROM t
SELECT make_interval(days => 10)
SELECT age(timestamp '2001-04-10'), to_char(now(), 'YYYY-MM-DD'), to_timestamp(0)
SELECT regexp_matches(a, 'x(.*)', 'g'), regexp_replace(a, '\s+', ' ', 'g'), split_part(a, ',', 1) FROM t
SELECT * FROM json_to_recordset('[{"a":1}]') AS x(a int, b text)
SELECT * FROM jsonb_each_text('{"a":1}')
SELECT key, value FROM t, jsonb_each(t.data)
(SELECT 1) UNION (SELECT 2) ORDER BY 1
SELECT a IS DISTINCT FROM b, a IS NOT NULL, b IS TRUE FROM t
SELECT * FROM ONLY t
SELECT schemaname, n_live_tup FROM pg_stat_user_tables ORDER BY n_live_tup DESC
SELECT 1; SELECT 2;
SELECT größe FROM straße
SELECT * FROM users u(id, name)
SELECT gen_random_uuid(), random(), md5('x')
SELECT set_bit(B'1010'::bit(4), 1, 1)
SELECT current_setting('work_mem')
SELECT E'a\nb', x'1F'
SELECT * FROM t WHERE a <> 1 AND b != 2 AND c % 2 = 0 AND d & 1 = 1 AND -e < 3 AND f=-1
SELECT comment, lock, show FROM t
SELECT format('%s-%s', a, b), quote_literal(c), left(d, 3), concat_ws(',', a, b) FROM t
SELECT lag(a) OVER (ORDER BY b), first_value(x) OVER (PARTITION BY y ORDER BY z RANGE BETWEEN INTERVAL '1 day' \
PRECEDING AND CURRENT ROW) FROM t
SELECT has_table_privilege('t', 'select')
VALUES (1, 'a'), (2, 'b')
WITH a AS MATERIALIZED (SELECT 1), b AS NOT MATERIALIZED (SELECT 2) SELECT * FROM a, b
WITH a(x, y) AS (SELECT 1, 2) SELECT x FROM a
SELECT count(*) AS total, count(DISTINCT a) FROM s.t
SELECT ROW(1,2), ARRAY(SELECT 1)
SELECT pg_catalog.lower(a) FROM t
SELECT a +++ b FROM t
SELECT U&'d\0061t', U & 1 FROM t
SELECT /* /* nested */ */ 1
SELECT "delete", 'DROP TABLE t; --', $$DELETE FROM t$$ FROM t
""",
    "sqlite": r"""
SELECT name FROM sqlite_master WHERE type='table'
SELECT sql FROM sqlite_schema
PRAGMA table_info('users')
PRAGMA main.table_info(users)
PRAGMA foreign_keys
PRAGMA user_version;
PRAGMA database_list
PRAGMA integrity_check
PRAGMA index_info("i")
SELECT * FROM pragma_table_info('users')
SELECT m.name, p.name FROM sqlite_master m JOIN pragma_table_info(m.name) p
SELECT strftime('%Y-%m', created), count(*) FROM t GROUP BY 1
SELECT datetime('now', '-1 day'), date('now'), julianday('now'), unixepoch()
SELECT json_extract(data, '$.a'), data->>'$.b', json_each.value FROM t, json_each(t.data)
SELECT group_concat(name, ', ') FROM t
SELECT IFNULL(a, 0), COALESCE(b, 1), iif(c, 1, 2), typeof(d), instr(e, 'x'), printf('%d', f) FROM t
SELECT * FROM t WHERE a GLOB '*x*' AND b LIKE '%y%' ESCAPE '\' AND c REGEXP 'z'
SELECT rowid, * FROM t LIMIT 10 OFFSET 5
SELECT * FROM t WHERE x MATCH 'foo'
SELECT snippet(fts, 0, '<', '>', '…', 10), bm25(fts) FROM fts WHERE fts MATCH 'a'
SELECT [a b], `c`, "d" FROM [my table]
SELECT * FROM main.t AS x INDEXED BY i WHERE x.a = ?1 AND b = :name AND c = @p AND d = $q AND e = ?
EXPLAIN QUERY PLAN SELECT * FROM t WHERE a = 1
EXPLAIN SELECT 1
.tables
.schema users
WITH RECURSIVE cnt(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM cnt LIMIT 10) SELECT x FROM cnt
WITH RECURSIVE cnt(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM cnt WHERE x<100) SELECT x FROM cnt
SELECT total(a), avg(b), max(c, d), abs(-1), round(1.5, 1), hex(x), quote(y), random() FROM t
SELECT sqlite_version(), last_insert_rowid(), changes()
SELECT CAST(a AS INTEGER), CAST(b AS TEXT) FROM t
SELECT a FROM t ORDER BY a COLLATE NOCASE DESC
SELECT row_number() OVER (ORDER BY a) FROM t
VALUES (1,2),(3,4)
SELECT * FROM t1 LEFT OUTER JOIN t2 USING (id) WHERE t2.id IS NULL
SELECT x'ABCD', 'it''s', 1e5, .5, 0x1F
SELECT count(*) FILTER (WHERE a > 1) FROM t
SELECT * FROM 'users'
SELECT randomblob(16), zeroblob(4)
SELECT substr(a, 1, 3) || '-' || upper(b), replace(c, 'x', 'y'), trim(d), length(e) FROM t
SELECT a FROM t WHERE b IN (SELECT c FROM u) AND EXISTS (SELECT 1 FROM v WHERE v.id = t.id)
SELECT a == 1, b <> 2, c << 1, ~d, e IS NOT f FROM t
SELECT 'a''; DELETE FROM t; --'
""",
    "mysql": r"""
SHOW TABLES
SHOW DATABASES
SHOW CREATE TABLE users
SHOW FULL COLUMNS FROM users FROM db
SHOW INDEX FROM users
SHOW TABLES LIKE 'a%'
SHOW VARIABLES LIKE 'max%'
SHOW PROCESSLIST
SHOW GLOBAL STATUS
SHOW TABLE STATUS WHERE Name = 'x'
SHOW ENGINE INNODB STATUS
DESCRIBE users
DESC db.users
EXPLAIN users
EXPLAIN SELECT * FROM users
EXPLAIN FORMAT=JSON SELECT * FROM users
EXPLAIN ANALYZE SELECT * FROM users
SELECT `id`, `name` FROM `db`.`users` WHERE `name` = "bob" LIMIT 5, 10
SELECT DATE_FORMAT(created, '%Y-%m') AS m, COUNT(*) FROM t GROUP BY m WITH ROLLUP
SELECT NOW(), CURDATE(), DATE_SUB(NOW(), INTERVAL 7 DAY), UNIX_TIMESTAMP(), DATEDIFF(a, b), YEAR(c) FROM t
SELECT IF(a, 1, 2), IFNULL(b, 0), CONCAT(a, ' ', b), GROUP_CONCAT(DISTINCT c ORDER BY c SEPARATOR ', ') FROM t
SELECT @@version, @@global.max_connections
SELECT VERSION(), DATABASE(), USER(), CONNECTION_ID()
SELECT JSON_EXTRACT(d, '$.a'), d->'$.b', d->>'$.c', JSON_UNQUOTE(x) FROM t
SELECT SUBSTRING_INDEX(a, ',', 1), FIND_IN_SET('a', b), LPAD(c, 5, '0'), FORMAT(d, 2) FROM t
SELECT * FROM t USE INDEX (i) WHERE a REGEXP '^b' AND c RLIKE 'd'
SELECT * FROM t WHERE MATCH(a, b) AGAINST ('x' IN NATURAL LANGUAGE MODE)
SELECT SQL_NO_CACHE * FROM t
SELECT a DIV 2, b MOD 3, c XOR d, e <=> NULL, f && g, NOT h FROM t
SELECT * FROM information_schema.columns WHERE table_name = 'x'
SELECT STR_TO_DATE('2020', '%Y'), TIMESTAMPDIFF(MONTH, a, b), LAST_DAY(c) FROM t
SELECT CAST(a AS UNSIGNED), CONVERT(b, CHAR), CONVERT(c USING utf8mb4), BINARY d FROM t
SELECT a FROM t WHERE b LIKE '%\_x%' AND c = 'a\\b'
WITH c AS (SELECT 1) SELECT * FROM c
SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t
SELECT * FROM t1 STRAIGHT_JOIN t2 ON t1.a = t2.a
SELECT COUNT(*) FROM t # trailing
SELECT 1 -- comment
TABLE t
VALUES ROW(1,2), ROW(3,4)
SELECT EXTRACT(YEAR FROM a), TRIM(LEADING 'x' FROM b), INSERT('abc', 1, 1, 'x'), REPLACE(a, 'b', 'c'), CHAR(77), \
MD5('a'), RAND(), UUID() FROM t
SELECT * FROM t PARTITION (p0)
SELECT * FROM a, b WHERE a.id = b.id ORDER BY RAND() LIMIT 10
SELECT _utf8mb4'abc' COLLATE utf8mb4_bin
SELECT * FROM performance_schema.threads
""",
    "generic": r"""
SELECT COUNT(*), MAX(a) FROM t
SELECT * FROM "Users"
SELECT name FROM users WHERE name LIKE 'DELETE%' OR note = 'DROP TABLE x; --'
SELECT u.name, o.total FROM users u INNER JOIN orders o ON u.id = o.user_id WHERE o.total > 100
WITH x AS (SELECT 1 AS a) SELECT * FROM x
WITH RECURSIVE n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT * FROM n
SELECT 1; SELECT 2
SHOW TABLES
SHOW DATABASES
SHOW CREATE TABLE users
DESC users
EXPLAIN ANALYZE SELECT * FROM users
EXPLAIN INSERT INTO t VALUES (1)
EXPLAIN QUERY PLAN SELECT 1
SELECT 1 UNION SELECT 2
SELECT 1 UNION ALL SELECT 2 INTERSECT SELECT 3
(SELECT 1)
VALUES (1)
PRAGMA table_info(users)
TABLE users
SELECT CASE WHEN a THEN 1 ELSE 2 END, CAST(b AS INTEGER), COALESCE(c, 'x'), CURRENT_TIMESTAMP FROM t
SELECT * FROM t WHERE id = ? AND a IN (1,2) AND b BETWEEN 1 AND 2 AND c IS NULL
SELECT ROW_NUMBER() OVER (PARTITION BY a ORDER BY b) FROM t
SELECT updated_at, deleted, created_by, insert_date FROM t
SELECT DISTINCT a FROM t GROUP BY a HAVING COUNT(*) > 1 ORDER BY 1 LIMIT 3 OFFSET 1
SELECT GROUP_CONCAT(a), STRFTIME('%Y', b) FROM t
SELECT DATE('now'), LOWER(a) || 'x' FROM t
SELECT a FROM t WHERE EXISTS (SELECT 1 FROM u) AND NOT EXISTS (SELECT 2)
SELECT t.*, (SELECT COUNT(*) FROM u WHERE u.tid = t.id) AS n FROM t
SELECT * FROM db.users
SELECT a AS "Total Amount" FROM t
SELECT a FROM t WHERE b = 'café'
""",
    "duckdb": r"""
FROM t
FROM t SELECT a
SELECT * EXCLUDE (a) FROM t
SELECT list_transform([1,2], x -> x + 1), {'a': 1}
SELECT * FROM range(10)
SHOW TABLES
SHOW ALL TABLES
SHOW t
DESCRIBE SELECT * FROM t
SUMMARIZE t
PRAGMA table_info('t')
SELECT count(*) FROM t GROUP BY ALL
SELECT strftime(d, '%Y'), epoch(d), date_diff('day', a, b) FROM t
SELECT * FROM t QUALIFY row_number() OVER (ORDER BY a) = 1
EXPLAIN SELECT 1
SELECT * FROM duckdb_tables()
""",
    "mssql": r"""
SELECT TOP 10 * FROM dbo.users ORDER BY id
SELECT TOP (5) [name] FROM [dbo].[users] WITH (NOLOCK)
SELECT GETDATE(), DATEADD(day, -1, GETDATE()), DATEDIFF(day, a, b), ISNULL(c, 0), LEN(d), CONVERT(varchar(10), e, \
120) FROM t
SELECT name FROM sys.tables
SELECT @@VERSION
SELECT * FROM t ORDER BY a OFFSET 5 ROWS FETCH NEXT 10 ROWS ONLY
SELECT a FROM t FOR JSON PATH
WITH c AS (SELECT 1 AS a) SELECT * FROM c
SELECT STRING_AGG(a, ',') WITHIN GROUP (ORDER BY a) FROM t
SELECT * FROM a CROSS APPLY (SELECT TOP 1 * FROM b WHERE b.id = a.id) x
SELECT CASE WHEN a = 1 THEN 'x' END, CAST(b AS nvarchar(max)), N'abc' FROM t
SELECT * FROM INFORMATION_SCHEMA.TABLES
""",
    "oracle": r"""
SELECT * FROM employees WHERE ROWNUM <= 10
SELECT sysdate FROM dual
SELECT 1 FROM dual
SELECT NVL(a, 0), TO_CHAR(b, 'YYYY'), TO_DATE('2020', 'YYYY'), DECODE(c, 1, 'x') FROM t
SELECT table_name FROM user_tables
SELECT e.name FROM emp e, dept d WHERE e.id = d.id(+)
SELECT level FROM t START WITH a IS NULL CONNECT BY PRIOR b = c
SELECT LISTAGG(a, ',') WITHIN GROUP (ORDER BY a) FROM t
SELECT * FROM t FETCH FIRST 5 ROWS ONLY
SELECT a FROM t MINUS SELECT b FROM u
SELECT * FROM t WHERE a = :id
SELECT USER FROM DUAL
""",
}
CASES = [(dialect, sql) for dialect, lines in READS.items() for sql in lines.strip().replace(" \\\n", " ").splitlines()]


@table(("dialect", "sql"), CASES)
def test_it_is_a_read(dialect: str, sql: str) -> None:
    facts = read_sql(sql, dialect)
    assert facts.read_only, facts.why
    assert facts.why == "" and facts.word == ""


@table(("dialect", "sql"), CASES)
def test_with_a_write_after_it_it_is_not(dialect: str, sql: str) -> None:
    for tail in ("; DELETE FROM t", "\n;\nDROP TABLE t;", "; UPDATE t SET a = 1 -- x"):
        assert not read_sql(sql + ("\n" if "--" in sql or "#" in sql else "") + tail, dialect).read_only
