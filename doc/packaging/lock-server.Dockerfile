# A lock server, for databases that cannot load ddblock: see doc/recipes/managed.md.  In the top
# folder, after the image postgres-ddblock of doc/packaging/Dockerfile:
#
#	docker build -f doc/packaging/lock-server.Dockerfile -t ddblock-lock-server .
#
# It needs no volume.  doc/packaging/managed.yaml runs it; nobody has built this image yet, but the
# tests set up their lock servers with lock-server.sh.

FROM postgres-ddblock
COPY doc/packaging/lock-server.sh /docker-entrypoint-initdb.d/
