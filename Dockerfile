# syntax=docker/dockerfile:1

# Pinned by the digest of its index, so that two builds have one base. A new digest brings Debian's fixes.
ARG BASE=node:26.10.0-slim@sha256:ec7758ee051e457b468b32bde57b0879010b325bb9862718e9615225ce4aaae1

# Makes the package. No package's scripts are needed: they would fetch a second Node.
FROM $BASE AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
RUN npm run build
# The image has these files of its base: Node, its libraries, the shell that starts `outboxd`, and how to find users and addresses.
# The list of their Debian packages is for scanners that look for security holes.
RUN mkdir -p /image/var/lib/dpkg && mkdir -m 1777 /image/tmp \
  && cp -L --parents /usr/local/bin/node $(ldd /usr/local/bin/node | grep -o '/[^ ]*') /bin/sh \
    /etc/passwd /etc/group /etc/nsswitch.conf /etc/os-release /image \
  && awk -v RS= -v ORS='\n\n' '/^Package: (dash|libatomic1|libc6|libgcc-s1|libstdc\+\+6)\n/' /var/lib/dpkg/status \
    > /image/var/lib/dpkg/status
# `docker exec CONTAINER outboxd status` works with the daemon's own configuration and user.
RUN ln -s /app/bin/outboxd.cjs /image/usr/local/bin/outboxd

# Without PostgreSQL, so `outboxd demo` and `outboxd sandbox --embedded` do not work in this image.
FROM scratch
COPY --from=build /image /
WORKDIR /app
ENV PATH=/usr/local/bin:/bin
ENV NODE_ENV=production
# Inside a container, loopback would hide the metrics from Prometheus.
ENV HTTP_HOST=0.0.0.0
COPY --from=build /app/build/outboxd/package.json /app/build/outboxd/licenses.txt /app/build/outboxd/sbom.json ./
COPY --from=build /app/build/outboxd/dist dist
COPY LICENSE ./
COPY bin bin
COPY migrations migrations
COPY assets assets
# Yours go here: mount them, or build an image on this one.
COPY mappings mappings
USER node
EXPOSE 9464
STOPSIGNAL SIGTERM
# Told to stop, the daemon waits until all that is in hand is known and written: seconds, while the database answers. When it
# does not, the stop timeout is the bound (the daemon gives up after ten minutes), and what is killed before that leaves its
# records uncertain: docker stop --time 660, terminationGracePeriodSeconds: 660.
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 CMD ["outboxd", "health"]
# Not npm: it swallows the signals that a clean end depends on.
# A small young generation: 20 MB less in memory, and no slower (docs/why/performance.md).
ENTRYPOINT ["node", "--max-semi-space-size=4", "dist/main.js"]
CMD ["run"]
# At the end, so that a new commit changes no layer. `created` is missing: it would make each build's digest different.
ARG SOURCE REVISION
LABEL org.opencontainers.image.title=outboxd \
  org.opencontainers.image.version=1.0.0 \
  org.opencontainers.image.licenses=Apache-2.0 \
  org.opencontainers.image.source=$SOURCE \
  org.opencontainers.image.revision=$REVISION
