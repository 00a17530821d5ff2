--
-- Who may do what: ordinary roles nothing, unless they are granted it.
--
CREATE ROLE regress_ddblock_user;
CREATE ROLE regress_ddblock_monitor IN ROLE pg_monitor;

-- What each of them may use of the extension; none of its objects is listed here.
-- pg_monitor may read the views.
SELECT rolname AS role, pg_describe_object(classid, objid, 0) AS may_use
  FROM pg_roles, pg_depend
 WHERE rolname LIKE 'regress_ddblock_%' AND deptype = 'e'
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
   AND CASE classid
       WHEN 'pg_proc'::regclass THEN has_function_privilege(pg_roles.oid, objid, 'EXECUTE')
       WHEN 'pg_class'::regclass THEN has_table_privilege(pg_roles.oid, objid,
           'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER')
       END
 ORDER BY rolname, pg_describe_object(classid, objid, 0) COLLATE "C";
SET ROLE regress_ddblock_monitor;
SELECT count(*) >= 0 AS readable FROM ddb_locks, ddb_stats, ddb_operations, ddb_status;
RESET ROLE;

-- What is granted works; a holder is known by the user who logged in.
GRANT EXECUTE ON FUNCTION ddb_lock_try_acquire, ddb_lock_release, ddb_lock_info
   TO regress_ddblock_user;
SET ROLE regress_ddblock_user;
SELECT ddb_lock_try_acquire('a') AS acquired;
SELECT held, usename = session_user AS usename FROM ddb_lock_info('a');
SELECT ddb_lock_acquire('a');
SELECT ddb_lock_release('a');
RESET ROLE;

-- A view needs its function, too: it runs with its reader's rights.
GRANT SELECT ON ddb_locks TO regress_ddblock_user;
SET ROLE regress_ddblock_user;
SELECT count(*) >= 0 AS readable FROM ddb_locks;
RESET ROLE;
GRANT EXECUTE ON FUNCTION ddb_locks() TO regress_ddblock_user;
SET ROLE regress_ddblock_user;
SELECT count(*) >= 0 AS readable FROM ddb_locks;
RESET ROLE;

--
-- Roles: ddb_role_setup() creates them, or takes those that are there.
--
SELECT ddb_role_setup('regress_ddblock_made');
SELECT ddb_role_setup('regress_ddblock "odd"');
SELECT ddb_role_setup('regress_ddblock_operator', operator => true);
SELECT ddb_role_setup('regress_ddblock_operator', operator => NULL);

-- Other functions of the same names do not matter, nor do types.
CREATE FUNCTION ddb_lock_token(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE DOMAIN text AS pg_catalog.text;
SET search_path = public, pg_catalog;
SELECT ddb_role_setup('regress_ddblock_made');
RESET search_path;
DROP DOMAIN public.text;
DROP FUNCTION ddb_lock_token(integer);
SELECT rolname, rolcanlogin, rolsuper, rolcreaterole FROM pg_roles
 WHERE rolname ~ '^regress_ddblock(_made|_operator| "odd")' ORDER BY rolname COLLATE "C";
CREATE VIEW may_use AS
    SELECT rolname, pg_describe_object(classid, objid, 0) AS object
      FROM pg_roles, pg_depend
     WHERE rolname LIKE 'regress_ddblock%' AND deptype = 'e'
       AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
       AND CASE classid
           WHEN 'pg_proc'::regclass THEN has_function_privilege(pg_roles.oid, objid, 'EXECUTE')
           WHEN 'pg_class'::regclass THEN has_table_privilege(pg_roles.oid, objid, 'SELECT')
           END;
SELECT object FROM may_use WHERE rolname = 'regress_ddblock_made' ORDER BY object COLLATE "C";
SELECT count(*) AS differences
  FROM (SELECT object FROM may_use WHERE rolname = 'regress_ddblock_made'
        EXCEPT SELECT object FROM may_use WHERE rolname = 'regress_ddblock "odd"') AS d;
SELECT object
  FROM (SELECT object FROM may_use WHERE rolname = 'regress_ddblock_operator'
        EXCEPT SELECT object FROM may_use WHERE rolname = 'regress_ddblock_made') AS more
 ORDER BY object COLLATE "C";
-- What neither gets: the owner's calls, and what triggers call.
SELECT pg_describe_object(classid, objid, 0) AS object FROM pg_depend
 WHERE deptype = 'e' AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')
   AND classid = 'pg_proc'::regclass AND NOT has_function_privilege('regress_ddblock_operator', objid, 'EXECUTE')
 ORDER BY pg_describe_object(classid, objid, 0) COLLATE "C";
SELECT has_table_privilege('regress_ddblock_operator', 'ddb_locks', 'INSERT, UPDATE, DELETE, TRUNCATE');

-- Who is no superuser cannot give what he has not, nor what he may not pass on.
SELECT call, code, message
  FROM unnest(ARRAY['ddb_role_setup(NULL)', 'ddb_role_setup(''public'')',
                    'ddb_role_setup(''pg_odd'')', 'ddb_role_setup('''')']) AS call,
       failure('SELECT ' || call);
CREATE ROLE regress_ddblock_creator CREATEROLE;
SET ROLE regress_ddblock_creator;
SELECT code, message FROM failure('SELECT ddb_role_setup(''regress_ddblock_new'')');
RESET ROLE;
GRANT EXECUTE ON FUNCTION ddb_role_setup TO regress_ddblock_creator;
GRANT regress_ddblock_operator TO regress_ddblock_creator;
SET ROLE regress_ddblock_creator;
SELECT code, message, hint
  FROM unnest(ARRAY['regress_ddblock_new', 'regress_ddblock_user']) AS name,
       failure(format('SELECT ddb_role_setup(%L)', name));
RESET ROLE;
SELECT count(*) AS left FROM pg_roles WHERE rolname = 'regress_ddblock_new';
DROP VIEW may_use;
DROP OWNED BY regress_ddblock_made, "regress_ddblock ""odd""", regress_ddblock_operator,
    regress_ddblock_creator;
DROP ROLE regress_ddblock_made, "regress_ddblock ""odd""", regress_ddblock_operator,
    regress_ddblock_creator;

--
-- Credentials
--
-- They are in no list, and secrets are shown to nobody, not even where they
-- are set.
SELECT name FROM pg_settings WHERE name ~ '^ddblock.*(key_id|access_key|token)';
SELECT current_setting('ddblock.access_key_id') <> '' AS access_key_id,
       current_setting('ddblock.secret_access_key') AS secret_access_key,
       current_setting('ddblock.session_token') AS session_token;
SET ROLE regress_ddblock_monitor;
SHOW ddblock.secret_access_key;
SHOW ddblock.session_token;
SET ROLE regress_ddblock_user;
SELECT call, code
  FROM unnest(ARRAY['SHOW ddblock.access_key_id',
                    'SHOW ddblock.secret_access_key',
                    'SELECT current_setting(''ddblock.secret_access_key'')',
                    'SHOW ddblock.session_token',
                    'SET ddblock.secret_access_key = ''x''',
                    'SET ddblock.endpoint_url = ''http://example.com''']) AS call,
       failure(call);
RESET ROLE;

DROP OWNED BY regress_ddblock_user;
DROP ROLE regress_ddblock_user;
DROP ROLE regress_ddblock_monitor;
