"""SQL that does more than read, each with the effect it is said to have. `unknown` asks all the same."""

from __future__ import annotations

from tests.tables import table

from signoff.policy.sql import read_sql

EFFECTS = {
    "postgres": r"""
writes    SELECT a replace INTO z FROM t
writes    SELECT a ignore INTO z FROM t
unknown   SELECT x FROM t, LATERAL f_write() y
unknown   SELECT "in"(1)
unknown   SELECT * FROM f_write() AS f_write
unknown   SELECT * FROM f_write() f_write(a)
waits     SELECT * FROM pg_sleep(1) AS pg_sleep
unknown   SELECT lower (f_write ())
unknown   EXPLAIN UPDATE t SET (a, b) = (f_write(), 1)
unknown   WITH x AS (SELECT f_write()) SELECT 1
unknown   SELECT a COLLATE "x" FROM t GROUP BY f_write()
unknown   SELECT 1 UNION SELECT f_write()
writes    SELECT 1 UNION SELECT 2 INTO z
unknown   SELECT a FROM t JOIN u ON f_write()
discloses SELECT * FROM "/etc/passwd"
writes    SELECT * INTO x FROM t
writes    SELECT * INTO TEMPORARY TABLE x FROM t
writes    CREATE TABLE x AS SELECT 1
changes   SELECT * FROM t FOR UPDATE
changes   SELECT * FROM t FOR NO KEY UPDATE
changes   SELECT * FROM t FOR SHARE NOWAIT
changes   SELECT * FROM t FOR KEY SHARE
changes   SELECT (SELECT * FROM t FOR UPDATE LIMIT 1)
writes    WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x
writes    WITH x AS (UPDATE t SET a=1 RETURNING *) SELECT * FROM x
changes   SELECT nextval('s')
changes   SELECT setval('s', 1)
discloses SELECT pg_read_file('/etc/passwd')
discloses SELECT pg_read_binary_file('x')
writes    SELECT lo_import('/etc/passwd')
writes    SELECT lo_export(1, '/tmp/x')
runs      SELECT query_to_xml('delete from t', true, true, '')
waits     SELECT pg_advisory_lock(1)
sends     SELECT pg_notify('a', 'b')
changes   SELECT pg_reload_conf()
sends     SELECT dblink_exec('x', 'drop table t')
unknown   SELECT public.lower(a) FROM t
unknown   SELECT "Lower"(a) FROM t
unknown   SELECT "f_write" (1)
unknown   SELECT f_write /**/ (1)
unknown   SELECT f_write/* x */(1)
unknown   SELECT * FROM f_write()
unknown   SELECT * FROM f_write() AS x(a int)
unknown   SELECT * FROM ROWS FROM (f_write())
unknown   SELECT a FROM t WHERE f_write(a)
unknown   SELECT a FROM t ORDER BY f_write(a)
unknown   SELECT a OPERATOR(public.+) b FROM t
unknown   SELECT 'x'::mytype
unknown   SELECT CAST(a AS myschema.mytype) FROM t
writes    COPY (SELECT 1) TO '/tmp/x'
writes    COPY t TO STDOUT
unknown   EXPLAIN ANALYZE CREATE TABLE x AS SELECT 1
unknown   EXPLAIN CREATE TABLE x AS SELECT 1
unknown   EXPLAIN EXECUTE foo
unknown   EXPLAIN (ANALYZE) SELECT f_write()
unknown   EXPLAIN SELECT f_write()
writes    EXPLAIN (ANALYZE on) DELETE FROM t
writes    EXPLAIN (ANALYZE 1) DELETE FROM t
writes    EXPLAIN (VERBOSE, ANALYZE) DELETE FROM t
unknown   EXPLAIN (ANALYZE yes) DELETE FROM t
writes    EXPLAIN VERBOSE ANALYZE DELETE FROM t
writes    EXPLAIN ANALYZE VERBOSE DELETE FROM t
writes    EXPLAIN (ANALYZE 'true') DELETE FROM t
unknown   EXPLAIN ("analyze") DELETE FROM t
unknown   EXPLAIN (COSTS false, "analyze" true) DELETE FROM t
changes   SELECT 1; COMMIT
changes   BEGIN
runs      PREPARE x AS DELETE FROM t
runs      EXECUTE x
writes    IMPORT FOREIGN SCHEMA x FROM SERVER y INTO z
waits     SELECT pg_sleep (10)
waits     SELECT "pg_sleep"(10)
waits     SELECT pg_catalog.pg_sleep(10)
waits     SELECT pg_catalog . pg_sleep ( 10 )
unknown   SELECT 1 \gexec
unknown   SELECT :x
unknown   SELECT :'x'
discloses SELECT * FROM pg_shadow
discloses SELECT * FROM pg_catalog.pg_authid
unknown   SELECT 'a\'; DELETE FROM t; --'
writes    SELECT 'a' ; DELETE FROM t --'
writes    SELECT $a$ $b$ $a$; DELETE FROM t; --$b$
writes    SELECT * FROM t; ; DELETE FROM t
writes    SELECT a FROM t WHERE x = $1; DELETE FROM t
sends     NOTIFY x
changes   DISCARD ALL
changes   RESET ALL
changes   SET ROLE x
writes    REFRESH MATERIALIZED VIEW v
runs      SELECT ts_rewrite('a'::tsquery, 'SELECT x FROM t')
runs      SELECT * FROM crosstab('select 1') AS x(a int)
runs      SELECT database_to_xml(true,true,'')
changes   SELECT current_setting('x'), set_config('a','b',true)
unknown   WITH f_write(a) AS (SELECT 1) SELECT f_write(1)
unknown   WITH f_write(a) AS (SELECT 1) SELECT * FROM f_write() x(a)
unknown   SELECT * FROM t AS f_write(a), f_write(1)
waits     WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c
waits     SELECT generate_series(1, 100000000000)
waits     SELECT repeat('x', 1000000000)
unknown   SELECT system('x')
unknown   SELECT top(1)
unknown   SELECT DISTINCT ON (a) f_write(b) FROM t
unknown   SELECT index(1)
unknown   SELECT U&"d\0061t" FROM t
unknown   select ſleep(1)
unknown   SELECT pg_ſleep(1)
writes    CREATE TEMP TABLE x(a int)
writes    MERGE INTO t USING s ON t.id=s.id WHEN MATCHED THEN DELETE
writes    TRUNCATE t
writes    DELETE FROM t
changes   GRANT ALL ON t TO x
discloses SELECT lo_get(1)
unknown   SELECT xmlparse(document f_write())
unknown   SELECT * FROM xmltable('/a' PASSING f_write() COLUMNS x int)
unknown   SELECT * FROM t WHERE CURRENT OF c
changes   FETCH NEXT FROM c
changes   SELECT txid_current()
unknown   SELECT over(1)
unknown   SELECT a filter(1)
sends     SELECT inet_server_addr(), dblink_connect('x')
unknown   SELECT CASE WHEN true THEN f_write() END
unknown   SELECT ARRAY[f_write()]
unknown   SELECT (f_write()).*
unknown   SELECT t.f_write() FROM t
unknown   SELECT lower(f_write())
unknown   SELECT count(*) FILTER (WHERE f_write()) FROM t
unknown   SELECT sum(a) OVER (PARTITION BY f_write()) FROM t
unknown   VALUES (f_write())
writes    TABLE t; DROP TABLE t
unknown   SELECT 1 LIMIT f_write()
unknown   SELECT 1 WHERE 1 = ANY(f_write())
writes    SHOW work_mem; DROP TABLE t
unknown   SHOW f_write()
runs      DO 'x'
writes    VACUUM
""",
    "sqlite": r"""
changes   ATTACH 'x.db' AS x
changes   ATTACH DATABASE 'x' AS y
changes   PRAGMA journal_mode=WAL
changes   PRAGMA journal_mode(WAL)
changes   PRAGMA main.user_version = 4
changes   PRAGMA user_version(4)
changes   PRAGMA writable_schema=ON
changes   PRAGMA optimize
changes   PRAGMA incremental_vacuum
changes   PRAGMA foo
writes    PRAGMA table_info(t); DELETE FROM t
changes   PRAGMA case_sensitive_like(1)
unknown   EXPLAIN PRAGMA user_version=3
writes    SELECT writefile('x', 'y')
discloses SELECT readfile('/etc/passwd')
discloses SELECT * FROM fsdir('/')
runs      SELECT "load_extension"('x')
runs      SELECT [load_extension]('x')
runs      SELECT `load_extension`('x')
runs      SELECT load_extension ('x')
writes    INSERT OR REPLACE INTO t VALUES (1)
writes    CREATE VIRTUAL TABLE x USING fts5(a)
writes    DROP TABLE t
writes    UPDATE t SET a=1
unknown   .shell rm x
unknown   .system ls
unknown   .open x
unknown   .dump
unknown   .once x
writes    .schema; DELETE FROM t
changes   SAVEPOINT a
waits     SELECT zeroblob(1000000000)
waits     SELECT zeroblob(a) FROM t
waits     SELECT randomblob(1e12)
writes    SELECT optimize(t) FROM t
runs      SELECT fts3_tokenizer('x', 1)
unknown   SELECT * FROM pragma_wal_checkpoint
unknown   SELECT * FROM pragma_optimize()
waits     WITH RECURSIVE c AS (SELECT 1 x UNION ALL SELECT x+1 FROM c) SELECT * FROM c
unknown   SELECT 1 /* unterminated
unknown   SELECT 1 /* /* */ ; DELETE FROM t; /* */ */
writes    SELECT 'a\'; DELETE FROM t; --'
writes    INSERT INTO t VALUES (1) RETURNING *
writes    VACUUM
runs      SELECT eval('delete from t')
unknown   SELECT $x::y(z) FROM t
changes   BEGIN; DELETE FROM t; COMMIT
""",
    "mysql": r"""
writes    SELECT * FROM t INTO OUTFILE '/tmp/x'
writes    SELECT 1 INTO DUMPFILE '/tmp/x'
writes    SELECT 1 INTO @x
writes    SELECT a INTO @x FROM t
unknown   SELECT @a := 1
unknown   SELECT @a:=@a+1 FROM t
discloses SELECT LOAD_FILE('/etc/passwd')
waits     SELECT GET_LOCK('a', 10)
changes   SELECT RELEASE_LOCK('a')
changes   SELECT LAST_INSERT_ID(5)
changes   SELECT * FROM t LOCK IN SHARE MODE
changes   SELECT * FROM t FOR SHARE
runs      SELECT * FROM t PROCEDURE ANALYSE()
unknown   SELECT /*+ SET_VAR(sql_mode='') */ 1
unknown   SELECT 1 /*M! ; DELETE FROM t */
unknown   SELECT 1 /*!; DELETE FROM t */
unknown   SELECT 'a\'; DELETE FROM t; -- '
unknown   SELECT "a\"; DELETE FROM t; -- "
unknown   SELECT 1 --1; DELETE FROM t
unknown   SHOW TABLES WHERE f_write()
changes   HANDLER t READ FIRST
runs      CALL p()
runs      DO SLEEP(5)
changes   SET @a = 1
writes    DELETE a FROM a JOIN b
writes    REPLACE INTO t VALUES (1)
writes    INSERT IGNORE INTO t VALUES (1)
runs      LOAD DATA INFILE 'x' INTO TABLE t
writes    RENAME TABLE a TO b
writes    OPTIMIZE TABLE t
writes    ANALYZE TABLE t
writes    ANALYZE UPDATE t SET a=1
writes    ANALYZE FORMAT=JSON DELETE FROM t
writes    EXPLAIN ANALYZE DELETE FROM t
unknown   EXPLAIN INTO @x FOR SELECT 1
writes    DESCRIBE DELETE FROM t; DELETE FROM t
changes   KILL 5
unknown   SELECT db.f(1)
waits     SELECT `sleep`(5)
waits     SELECT sleep (5)
discloses SELECT * FROM mysql.user
unknown   SELECT 1 \G
unknown   \! ls
unknown   system ls
unknown   delimiter //
changes   use db
unknown   XA START 'x'
runs      PREPARE s FROM 'delete from t'
waits     SELECT * FROM t1 JOIN (SELECT SLEEP(5)) x
unknown   SELECT {fn sleep(5)}
waits     SELECT IF(1, sleep(3), 0)
unknown   SELECT * FROM (DELETE FROM t) x
""",
    "generic": r"""
writes    SELECT 1 # ; comment
unknown   SELECT 1 --1
writes    SELECT 'a\'; DELETE FROM t; --'
waits     SELECT sleep(1)
waits     SELECT pg_sleep(1)
runs      SELECT load_extension('x')
unknown   SELECT my_func(1)
writes    SELECT `a` FROM t; DELETE FROM t
changes   PRAGMA user_version=1
unknown   .tables
unknown   \dt
writes    SELECT * INTO x FROM y
writes    SELECT 1; DELETE FROM t
writes    WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x
writes    EXPLAIN ANALYZE DELETE FROM t
writes    EXPLAIN PLAN FOR DELETE FROM t; DELETE FROM t
runs      CALL x()
changes   SET x = 1
changes   USE db
changes   BEGIN
writes    DROP TABLE t
writes    ALTER TABLE t ADD COLUMN a int
changes   GRANT SELECT ON t TO u
changes   REVOKE SELECT ON t FROM u
writes    CREATE VIEW v AS SELECT 1
unknown   garbage
unknown   SELECT
unknown   SELECT FROM WHERE
writes    VACUUM
runs      EXEC foo
writes    COPY t TO 'x'
runs      LOAD DATA INFILE 'x' INTO TABLE t
writes    REPLACE INTO t VALUES (1)
changes   SELECT * FROM t FOR UPDATE
""",
    "duckdb": r"""
discloses SELECT * FROM "a.anything"
discloses SELECT * FROM t POSITIONAL JOIN 'x.csv'
discloses SELECT * FROM dir.arrow
writes    COPY t TO 'x.csv'
discloses FROM 'x.csv'
discloses SHOW sec.csv
discloses FROM "x.csv"
discloses SELECT * FROM x.parquet
discloses SELECT * FROM read_parquet('s3://x')
discloses SELECT * FROM glob('*')
discloses SELECT getenv('HOME')
changes   ATTACH 'x'
runs      INSTALL httpfs
writes    EXPORT DATABASE 'x'
changes   SELECT nextval('s')
changes   SET x = 1
changes   PRAGMA enable_profiling
runs      CALL pragma_version()
runs      SELECT * FROM query('delete from t')
discloses SELECT * FROM sqlite_scan('a','b')
writes    CREATE TABLE t AS FROM x
discloses SELECT * FROM 'https://x/y.csv'
discloses DESCRIBE SELECT * FROM 'x.csv'
unknown   SUMMARIZE 'x.csv'
discloses SUMMARIZE SELECT * FROM read_csv('x')
unknown   DESCRIBE 'x.csv'
discloses DESCRIBE "x.csv"
discloses SELECT * FROM duckdb_secrets()
unknown   EXPLAIN ANALYZE COPY t TO 'x'
unknown   PIVOT t ON a USING f_write(b)
writes    UPDATE EXTENSIONS
""",
    "mssql": r"""
unknown   SELECT 1 DELETE FROM t
unknown   SELECT 1 EXEC xp_cmdshell 'dir'
unknown   SELECT a INTO #x FROM t
writes    SELECT a INTO x FROM t
unknown   sp_help 't'
unknown   SELECT 1 DROP TABLE t
discloses SELECT * FROM OPENROWSET('a','b','c')
sends     SELECT * FROM OPENQUERY(x, 'delete from t')
sends     SELECT * FROM srv.db.dbo.t
unknown   SELECT dbo.f(1)
waits     WAITFOR DELAY '0:0:10'
changes   SELECT * FROM t WITH (UPDLOCK)
changes   SELECT * FROM t WITH (TABLOCKX)
unknown   SELECT * FROM (DELETE FROM t OUTPUT deleted.*) x
writes    MERGE t USING s ON 1=1 WHEN MATCHED THEN DELETE;
unknown   SELECT 1 SHUTDOWN
unknown   SELECT 1 AS x UPDATE t SET a=1
changes   SELECT @x = 1
changes   SELECT @x = a FROM t
unknown   IF 1=1 DELETE FROM t
""",
    "oracle": r"""
changes   SELECT * FROM t FOR UPDATE
unknown   SELECT utl_http.request('http://x') FROM dual
unknown   SELECT dbms_pipe.receive_message('a', 10) FROM dual
changes   BEGIN DELETE FROM t; END;
unknown   SELECT pkg.f FROM dual
unknown   SELECT f FROM dual
unknown   SELECT f() FROM t
unknown   SELECT pkg.f FROM t
changes   SELECT s.nextval FROM t
changes   SELECT s.currval FROM dual
unknown   SELECT q'[it's; ]' FROM dual; DELETE FROM t
unknown   SELECT * FROM t@remote
changes   WITH FUNCTION f RETURN NUMBER IS BEGIN RETURN 1; END; SELECT f FROM dual
writes    EXPLAIN PLAN FOR DELETE FROM t
writes    EXPLAIN PLAN SET STATEMENT_ID='x' FOR SELECT 1 FROM dual
changes   LOCK TABLE t IN EXCLUSIVE MODE
writes    INSERT ALL INTO t VALUES (1) SELECT 1 FROM dual
writes    MERGE INTO t USING dual ON (1=1) WHEN MATCHED THEN UPDATE SET a=1
runs      CALL p()
unknown   SELECT (SELECT f FROM dual) FROM dual
unknown   SELECT * FROM TABLE(f())
unknown   SELECT XMLTYPE('x') FROM dual
sends     SELECT HTTPURITYPE('http://x').getclob() FROM dual
""",
}
CASES = [(dialect, *line.split(None, 1)) for dialect, lines in EFFECTS.items() for line in lines.strip().splitlines()]


@table(("dialect", "effect", "sql"), CASES)
def test_it_is_no_read_and_the_reason_says_what_it_does(dialect: str, effect: str, sql: str) -> None:
    facts = read_sql(sql, dialect)
    assert not facts.read_only
    assert facts.why.partition(": ")[0] == effect, facts.why
