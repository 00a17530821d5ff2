#!/bin/bash
#
# lock-server.sh: makes a new PostgreSQL with ddblock a lock server (doc/recipes/managed.md).  The
# image's entrypoint runs it once, before the server accepts connections from outside.
#
#	LOCK_ROLES		roles to create, one for each managed database: "shop bank".  Locks of the
#					role shop begin with "shop/"
#	LOCK_SECRETS	the folder with a file for each role, which has its password (/run/secrets)

set -eu

secrets=${LOCK_SECRETS:-/run/secrets}

for role in $LOCK_ROLES
do
	[ -s "$secrets/$role" ] || { echo "lock-server.sh: no password in $secrets/$role" >&2; exit 1; }
done

# Any certificate will do: clients trust who knows the password (channel_binding).
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=lock-server \
	-out "$PGDATA/server.crt" -keyout "$PGDATA/server.key" 2>/dev/null
chmod 600 "$PGDATA/server.key"

cat >>"$PGDATA/postgresql.conf" <<-CONF
	ssl = on
	password_encryption = 'scram-sha-256'
	max_connections = 500
	client_connection_check_interval = '2s'
	tcp_keepalives_idle = 10
	tcp_keepalives_interval = 5
	tcp_keepalives_count = 3
	tcp_user_timeout = '25s'
CONF

cat >"$PGDATA/pg_hba.conf" <<-HBA
	local	all	all	trust
	hostssl	all	+ddblock_user	all	scram-sha-256
HBA

psql=(psql -Xq -v ON_ERROR_STOP=1 -U "${POSTGRES_USER:-postgres}" -d "${POSTGRES_DB:-postgres}")

"${psql[@]}" -o /dev/null <<-'SQL'
	CREATE EXTENSION ddblock;
	SELECT ddb_role_setup('ddblock_user');
	SELECT format('REVOKE TEMP ON DATABASE %I FROM PUBLIC', current_database()) \gexec
SQL

for role in $LOCK_ROLES
do
	file=$secrets/$role "${psql[@]}" -v role="$role" <<-'SQL'
		\set password `cat "$file"`
		CREATE ROLE :"role" LOGIN PASSWORD :'password' CONNECTION LIMIT 200 IN ROLE ddblock_user;
		\set prefix :role /
		ALTER ROLE :"role" SET ddblock.lock_prefix = :'prefix';
		ALTER ROLE :"role" SET ddblock.release_on_rollback = on;
		ALTER ROLE :"role" SET temp_file_limit = '100MB';
	SQL
done
