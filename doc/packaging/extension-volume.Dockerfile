# ddblock as an extension volume: an image of files only, for servers that mount it, such as
# CloudNativePG's (PostgreSQL 18 or later).  In the top folder:
#
#	docker build -f doc/packaging/extension-volume.Dockerfile -t ddblock-volume .
#
# In the Cluster's postgresql section:
#
#	shared_preload_libraries: [ddblock]
#	extensions:
#	  - name: ddblock
#	    image: {reference: registry.example.org/ddblock-volume}
#	    ld_library_path: [system]
#
# CloudNativePG mounts it as /extensions/ddblock, and sets extension_control_path and
# dynamic_library_path.  Nobody has built this image yet; test/tap/305_extension_volume.pl lays
# out the files as its COPY lines say, and runs a server with them.

ARG PG_MAJOR=18

FROM postgres:${PG_MAJOR} AS build
ARG PG_MAJOR
RUN apt-get update && \
    apt-get install -y --no-install-recommends build-essential libcjson-dev \
        libcurl4-openssl-dev libkrb5-dev libssl-dev "postgresql-server-dev-$PG_MAJOR"
WORKDIR /build
COPY Makefile ddblock.control ddblock--*.sql ./
COPY src src
COPY test/undefined-symbols test/
RUN make PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" && \
    make install PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" DESTDIR=/out
# What the server's image may lack: libcurl and cJSON, and what they need.
RUN mkdir /out/system && ldd "/out/usr/lib/postgresql/$PG_MAJOR/lib/ddblock.so" | \
    sed -nE 's,.* => (/.*/(lib[^/]*)) .*,\1,p' | grep -vE '/lib(c|m)\.so' | xargs cp -Lt /out/system

FROM scratch
ARG PG_MAJOR
COPY --from=build /out/usr/lib/postgresql/${PG_MAJOR}/lib/ /lib/
COPY --from=build /out/usr/share/postgresql/${PG_MAJOR}/extension/ /share/extension/
COPY --from=build /out/system/ /system/
