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
# The libraries in /system are of the Debian that built them: build on the one of the server's image,
# --build-arg DEBIAN=bookworm for example; those of another Debian fail with "symbol lookup error" or
# "version not found".
#
# CloudNativePG mounts it as /extensions/ddblock, and sets extension_control_path and
# dynamic_library_path.  Nobody has built this image yet; test/tap/305_extension_volume.pl lays
# out the files as its COPY lines say, and runs a server with them.

ARG PG_MAJOR=18
ARG DEBIAN=trixie

FROM postgres:${PG_MAJOR}-${DEBIAN} AS build
ARG PG_MAJOR
RUN apt-get update && \
    apt-get install -y --no-install-recommends build-essential libcjson-dev \
        libcurl4-openssl-dev libkrb5-dev libssl-dev "postgresql-server-dev-$PG_MAJOR"
WORKDIR /build
COPY Makefile ddblock*.control ddblock*--*.sql ./
COPY src src
COPY test/undefined-symbols test/
RUN make PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" && \
    make install PG_CONFIG="/usr/lib/postgresql/$PG_MAJOR/bin/pg_config" DESTDIR=/out
# What the server's image may lack: libcurl and cJSON, and what they need.  Not the C library: the
# server has its own, and all of its parts must be of one version.
RUN mkdir /out/system && ldd "/out/usr/lib/postgresql/$PG_MAJOR/lib/ddblock.so" | \
    sed -nE 's,.* => (/.*/(lib[^/]*)) .*,\1,p' | grep -vE '/lib(anl|c|dl|m|pthread|resolv|rt|util)\.so' | xargs cp -Lt /out/system

FROM scratch
ARG PG_MAJOR
COPY --from=build /out/usr/lib/postgresql/${PG_MAJOR}/lib/ /lib/
COPY --from=build /out/usr/share/postgresql/${PG_MAJOR}/extension/ /share/extension/
COPY --from=build /out/system/ /system/
