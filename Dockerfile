# syntax=docker/dockerfile:1
# The services and the command line. Built in one image, run from another that has neither pip's cache nor build tools.

FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY protocol ./protocol
COPY contracts ./contracts
COPY services ./services
RUN python -m venv /opt/turngate \
    && /opt/turngate/bin/pip install --no-cache-dir --disable-pip-version-check \
        --constraint constraints.txt '.[fast,console,auth,metrics,otel]' \
    && /opt/turngate/bin/pip uninstall --yes --quiet pip setuptools

FROM python:3.11-slim
RUN useradd --system --uid 10001 --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin turngate \
    && install --directory --owner=10001 --mode=0700 /var/lib/turngate
COPY --from=build /opt/turngate /opt/turngate
ENV PATH=/opt/turngate/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    TURNGATE_METRICS_HOST=0.0.0.0 \
    TURNGATE_METRICS_PORT=9464
USER 10001
EXPOSE 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['TURNGATE_METRICS_PORT'] + '/healthz', timeout=4)"]
ENTRYPOINT ["turngate"]
CMD ["--help"]
