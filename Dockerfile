# agentd as a container: `docker run -e ANTHROPIC_API_KEY -v agentd:/var/lib/agentd agentd`
# More: docs/service.md. tests/e2e/test_dockerfile.py carries these lines out without Docker.
FROM python:3.11-slim AS build
WORKDIR /src
# What changes seldom comes first: a change of agentd alone downloads nothing again.
COPY requirements.lock ./
RUN python -m venv /opt/agentd
RUN /opt/agentd/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml README.md ./
COPY agentd agentd
RUN /opt/agentd/bin/pip install --no-cache-dir --no-deps --no-build-isolation --no-index .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/agentd --create-home agentd \
    && chmod 700 /var/lib/agentd
COPY --from=build /opt/agentd /opt/agentd
ENV PATH=/opt/agentd/bin:$PATH AGENTD_HOME=/var/lib/agentd AGENTD_LOG__FORMAT=json
USER agentd
WORKDIR /var/lib/agentd
VOLUME /var/lib/agentd
# The first one drains (daemon.drain_seconds): give `docker stop` more time than that.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=20s --retries=3 CMD ["agentd", "health"]
# The home is made on first use; what exists stays as it is.
ENTRYPOINT ["/bin/sh", "-c", "agentd init >/dev/null && exec agentd \"$@\"", "agentd"]
CMD ["run"]
