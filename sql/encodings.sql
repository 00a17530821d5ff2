--
-- Lock names are global: they travel as UTF-8 whatever the encoding of the
-- database.
--
SELECT getdatabaseencoding(), current_database() AS main \gset
CREATE DATABASE regress_ddblock_latin1 TEMPLATE template0 ENCODING 'LATIN1'
    LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regress_ddblock_win1252 TEMPLATE template0 ENCODING 'WIN1252'
    LC_COLLATE 'C' LC_CTYPE 'C';
CREATE DATABASE regress_ddblock_ascii TEMPLATE template0 ENCODING 'SQL_ASCII'
    LC_COLLATE 'C' LC_CTYPE 'C';

-- A released lock keeps its token: that tells whether it is the same lock.
SELECT ddb_lock_acquire('café') AS token \gset
SELECT ddb_lock_release('café');
SELECT ddb_lock_acquire('日本') AS japanese \gset
SELECT ddb_lock_release('日本');

--
-- LATIN1
--
\c regress_ddblock_latin1
\encoding UTF8
CREATE EXTENSION ddblock;
SHOW server_encoding;
SELECT octet_length('café');
SELECT held, token = :token AS same_lock FROM ddb_lock_info('café');
SELECT ddb_lock_acquire('café', data => '\xe9') AS token \gset
SELECT held, datname, data FROM ddb_lock_info('café');
SELECT name, name = 'caf' || chr(233) AS same_name, octet_length(name) FROM ddb_locks;
SELECT ddb_lock_require('café') = :token AS same_token;
SELECT ddb_lock_release('café');
SELECT ddb_lock_release('café');

-- It is the bytes in UTF-8 that count.
SELECT ddb_lock_acquire(repeat('é', 1024)) > 0 AS acquired;
SELECT length(name), octet_length(name) FROM ddb_locks;
SELECT ddb_lock_acquire(repeat('é', 1025));
SELECT ddb_lock_release_all();

-- What a database cannot spell it cannot lock.
SELECT ddb_lock_info('日本');

--
-- WIN1252 has bytes that mean nothing
--
\c regress_ddblock_win1252
\encoding UTF8
CREATE EXTENSION ddblock;
SELECT held, token = :token AS same_lock FROM ddb_lock_info('café');
SELECT ddb_lock_acquire('caf' || chr(129));
\echo :LAST_ERROR_SQLSTATE

--
-- SQL_ASCII: bytes are taken for UTF-8, and must be that
--
\c regress_ddblock_ascii
CREATE EXTENSION ddblock;
SHOW server_encoding;
SELECT held, token = :token AS same_lock FROM ddb_lock_info('café');
SELECT token = :japanese AS same_lock FROM ddb_lock_info(E'\xe6\x97\xa5\xe6\x9c\xac');
SELECT ddb_lock_acquire(E'caf\xc3\xa9') AS token \gset
SELECT name, octet_length(name) FROM ddb_locks;
SELECT ddb_lock_release('café');

\set VERBOSITY sqlstate
SELECT ddb_lock_acquire(E'caf\xe9');			-- LATIN1
SELECT ddb_lock_try_acquire(E'caf\xe9');
SELECT ddb_xact_lock_acquire(E'caf\xe9');
SELECT ddb_xact_lock_try_acquire(E'caf\xe9');
SELECT ddb_lock_release(E'caf\xe9');
SELECT ddb_lock_renew(E'caf\xe9');
SELECT ddb_lock_token(E'caf\xe9');
SELECT ddb_lock_require(E'caf\xe9');
SELECT ddb_lock_info(E'caf\xe9');
SELECT ddb_lock_info(E'caf\xc3');				-- cut
SELECT ddb_lock_info(E'\xc1\xa1');				-- longer than need be
SELECT ddb_lock_info(E'\xed\xa0\x80');			-- a surrogate
SELECT ddb_lock_info(E'\xf4\x90\x80\x80');		-- past the last character
\set VERBOSITY default
SELECT ddb_lock_acquire(E'caf\xe9');
SELECT count(*) FROM ddb_locks WHERE state <> 'releasing';

--
-- Back in UTF8
--
\c :main
\encoding UTF8
SELECT held, token = :token AS same_lock FROM ddb_lock_info('café');
-- Letters that only look alike are others: e and an accent.
SELECT token FROM ddb_lock_info(U&'cafe\0301');

DROP DATABASE regress_ddblock_latin1;
DROP DATABASE regress_ddblock_win1252;
DROP DATABASE regress_ddblock_ascii;
