#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Makes .venv from nothing: a Python of at least 3.11, the pinned uv, then exactly what uv.lock says.
# Called by `make setup`. PYTHON=/path/to/python chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

UV_VERSION=0.13.8
VENV=.venv

say() { printf '%s\n' "setup: $*" >&2; }

find_python() {
    for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.14 python; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then
            command -v "$candidate"
            return 0
        fi
    done
    return 1
}

make_venv() {
    if [ -x $VENV/bin/python ] && $VENV/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        return 0
    fi
    python=$(find_python) || {
        say "no Python of at least 3.11 on the PATH (python3 is $(python3 --version 2>&1 || echo missing))."
        say "Install one, or name it: make setup PYTHON=/path/to/python3.11"
        exit 1
    }
    say "making $VENV with $("$python" --version) ($python)"
    rm -rf $VENV
    if "$python" -c 'import ensurepip' >/dev/null 2>&1; then
        "$python" -m venv $VENV
    else
        "$python" -m venv --without-pip $VENV   # some systems split pip off; scripts/get_uv.py stands in for it
    fi
}

get_uv() {
    case "$($VENV/bin/uv --version 2>/dev/null || true)" in "uv $UV_VERSION"*) return 0 ;; esac
    say "fetching uv $UV_VERSION"
    if $VENV/bin/python -m pip --version >/dev/null 2>&1; then
        $VENV/bin/python -m pip install --quiet --disable-pip-version-check --no-input "uv==$UV_VERSION"
    else
        $VENV/bin/python scripts/get_uv.py "$UV_VERSION" $VENV/bin
    fi
}

sync() {
    # Trust what the machine trusts (a company's own authority included), when it has a trust store at all.
    for store in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        if [ -e "$store" ]; then export UV_SYSTEM_CERTS=true; fi
    done
    # A home that cannot be written to (a service account) must not stop the set-up.
    cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}
    if [ -z "${UV_CACHE_DIR:-}" ] && ! mkdir -p "$cache/uv" 2>/dev/null; then export UV_CACHE_DIR=$VENV/.uv-cache; fi
    unset VIRTUAL_ENV UV_PROJECT_ENVIRONMENT UV_PYTHON
    export UV_PYTHON_DOWNLOADS=never
    say "installing the versions of uv.lock"
    $VENV/bin/uv sync --quiet --frozen --all-extras --all-groups
}

make_venv
get_uv
sync
say "ready: $VENV"
