-- Every member of the extension, with what the catalogs say of it: for check-release.
-- Not all of pg_attribute: in attoptions, 15.20 keeps a version of each column
-- ("pg_attver"), which is never the same.
WITH member AS (
	SELECT classid, objid, pg_describe_object(classid, objid, 0) AS name
	FROM pg_depend WHERE deptype = 'e' AND refclassid = 'pg_extension'::regclass
		AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'ddblock')),
detail AS (
	SELECT name, 'function', (to_jsonb(p) - 'oid' - 'proargdefaults')::text
		|| pg_get_function_arguments(p.oid) || coalesce(pg_get_function_result(p.oid), '')
	FROM member JOIN pg_proc p ON classid = 'pg_proc'::regclass AND objid = p.oid
UNION ALL
	SELECT name, 'relation', format('%s %s %s %s %s', relkind, relpersistence, relowner,
		relacl, pg_get_viewdef(c.oid))
	FROM member JOIN pg_class c ON classid = 'pg_class'::regclass AND objid = c.oid
UNION ALL
	SELECT name, format('column %s', attnum), format('%s %s %s %s %s %s %s', attname,
		format_type(atttypid, atttypmod), attcollation, attnotnull, attacl,
		pg_get_expr(adbin, adrelid), coalesce(col_description(attrelid, attnum), 'no comment'))
	FROM member JOIN pg_attribute ON classid = 'pg_class'::regclass AND objid = attrelid
		LEFT JOIN pg_attrdef ON adrelid = attrelid AND adnum = attnum
UNION ALL
	SELECT name, 'constraint', conname || pg_get_constraintdef(k.oid)
	FROM member JOIN pg_constraint k ON classid = 'pg_class'::regclass AND objid = conrelid
UNION ALL
	SELECT name, 'index', pg_get_indexdef(indexrelid)
	FROM member JOIN pg_index ON classid = 'pg_class'::regclass AND objid = indrelid
UNION ALL
	SELECT name, 'trigger', format('%s %s', tgenabled, pg_get_triggerdef(t.oid))
	FROM member JOIN pg_trigger t ON classid = 'pg_class'::regclass AND objid = tgrelid
UNION ALL
	SELECT name, 'comment', coalesce(obj_description(objid, classid::regclass::name), 'none')
	FROM member
UNION ALL
	SELECT name, 'initial privileges of column ' || i.objsubid, initprivs::text
	FROM member JOIN pg_init_privs i ON classid = classoid AND objid = objoid
UNION ALL
	SELECT 'extension', 'itself', format('%s %s %s %s %s', extversion, extrelocatable,
		extnamespace::regnamespace, extcondition, (SELECT array_agg(c::regclass)
			FROM unnest(extconfig) c))
	FROM pg_extension WHERE extname = 'ddblock')
SELECT * FROM detail ORDER BY 1, 2, 3;
