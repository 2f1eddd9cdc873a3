#!/bin/sh
# `make env`: .env and the secrets of docker-compose.yml. What is there stays as it is. A .env of
# 0.1.0 held the secrets itself: they move into secrets/, unless another value is there already.
set -eu
umask 077
mkdir -p secrets
touch .env

# The value of a variable in .env, without the quotes around it.
value_of() {
    sed -n "s/^$1=//p" .env | tail -n 1 | sed "s/^\"\(.*\)\"\$/\1/; s/^'\(.*\)'\$/\1/"
}

# Of a file in secrets/: its name, the variable of 0.1.0, and a command that makes a new one. Containers
# read the file as another user, so that only the folder keeps others of this machine out.
keep() {
    value=$(value_of "$2")
    if [ -e "secrets/$1" ]; then
        if [ -n "$value" ] && [ "$value" != "$(cat "secrets/$1")" ]; then
            echo "$2 in .env differs from secrets/$1. Nothing was changed: keep the one that" >&2
            echo "the database was made with in secrets/$1, and remove the line from .env." >&2
            exit 1
        fi
        return
    fi
    [ -n "$value" ] || value=$(eval "$3")
    rm -f "secrets/$1.new"
    printf %s "$value" > "secrets/$1.new"
    chmod 0444 "secrets/$1.new"
    mv "secrets/$1.new" "secrets/$1"
}

keep secret_key SECRET_KEY "head -c 48 /dev/urandom | base64 | tr -d '\n'"
keep agency_master_key AGENCY_MASTER_KEY "head -c 32 /dev/urandom | base64"
keep postgres_password POSTGRES_PASSWORD "od -An -N24 -tx1 /dev/urandom | tr -d ' \n'"
keep database_url "" 'echo "postgres://agency:$(cat secrets/postgres_password)@postgres:5432/agency"'

rm -f .env.new
{
    # awk ends the last line, whatever the file does.
    awk '!/^(SECRET_KEY|AGENCY_MASTER_KEY|POSTGRES_PASSWORD)=/' .env
    grep -q '^PUBLIC_URL=' .env || echo "PUBLIC_URL=http://127.0.0.1:8000"
    grep -q '^ALLOWED_HOSTS=' .env || echo "ALLOWED_HOSTS=127.0.0.1,localhost"
} > .env.new
mv .env.new .env
