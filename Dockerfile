# agentd as a container: `docker run -e ANTHROPIC_API_KEY -v agentd:/var/lib/agentd agentd`
FROM python:3.11-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md ./
COPY agentd agentd
RUN python -m venv /opt/agentd \
    && /opt/agentd/bin/pip install --no-cache-dir --require-hashes -r requirements.lock \
    && /opt/agentd/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/agentd --create-home agentd \
    && chmod 700 /var/lib/agentd
COPY --from=build /opt/agentd /opt/agentd
ENV PATH=/opt/agentd/bin:$PATH AGENTD_HOME=/var/lib/agentd AGENTD_LOG__FORMAT=json
USER agentd
VOLUME /var/lib/agentd
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["agentd", "daemon", "list"]
# The home is made on first use; what exists stays as it is.
ENTRYPOINT ["/bin/sh", "-c", "agentd init >/dev/null && exec agentd \"$@\"", "agentd"]
CMD ["run"]
