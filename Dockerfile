# CRAG Explorer with everything that it needs to start without a network. docs/operations.md tells how to run it.
#
#   docker build -t crag-explorer .
#   docker run --rm -p 127.0.0.1:8501:8501 -v crag:/var/lib/crag crag-explorer

# A tag is moved when its image is made anew with corrections; a digest (python@sha256:…) stays. See docs/operations.md.
FROM python:3.11.13-slim-bookworm

# Where pip finds the build of PyTorch without graphics cards. Empty: what the usual index has, on x86-64 gigabytes more.
ARG TORCH_INDEX=""

ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    HF_HUB_OFFLINE=1 \
    CRAG_HOME=/var/lib/crag/home

# The folder is made here, so that a new volume belongs to this user.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /tmp --shell /usr/sbin/nologin crag \
    && install --directory --owner crag --group crag --mode 0700 /var/lib/crag

WORKDIR /app

# Changes of our own files leave this layer, by far the largest, as it is.
COPY requirements.txt requirements-servers.txt ./
RUN if [ -n "$TORCH_INDEX" ]; then \
        pip install --no-cache-dir --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.txt)"; \
    fi \
    && pip install --no-cache-dir -r requirements.txt -r requirements-servers.txt

# Nothing of this belongs to the user that runs it. .dockerignore says what is left out of it.
COPY LICENSE app.py ./
COPY .streamlit/config.toml .streamlit/config.toml
COPY data data
COPY crag_core crag_core
COPY ui ui
COPY pages pages
RUN python -m compileall -q crag_core ui pages app.py

# By number, so that a system which refuses root can tell.
USER 10001:10001
VOLUME /var/lib/crag
EXPOSE 8501 9464

# It ends within ten seconds, indexing under way is finished at the next start, and each document is whole or absent.
STOPSIGNAL SIGTERM

HEALTHCHECK --interval=15s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]

CMD ["python", "-m", "streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.port", "8501", "--server.headless", "true"]
