#!/bin/sh
# `make env`: .env and the secrets of docker-compose.yml. What is there stays as it is; a .env of
# 0.1.0, which held the secrets itself, gives them to secrets/.
set -eu
umask 077
mkdir -p secrets
touch .env

# Of a file in secrets/: its name, the variable of 0.1.0, and a command that makes a new one. Containers
# read the file as another user, so that only the folder keeps others of this machine out.
keep() {
    [ -e "secrets/$1" ] && return
    value=$(sed -n "s/^$2=//p" .env)
    [ -n "$value" ] || value=$(eval "$3")
    printf %s "$value" > "secrets/$1.new"
    chmod 0444 "secrets/$1.new"
    mv "secrets/$1.new" "secrets/$1"
}

keep secret_key SECRET_KEY "head -c 48 /dev/urandom | base64 | tr -d '\n'"
keep agency_master_key AGENCY_MASTER_KEY "head -c 32 /dev/urandom | base64"
keep postgres_password POSTGRES_PASSWORD "od -An -N24 -tx1 /dev/urandom | tr -d ' \n'"
keep database_url "" 'echo "postgres://agency:$(cat secrets/postgres_password)@postgres:5432/agency"'

{
    sed '/^SECRET_KEY=/d; /^AGENCY_MASTER_KEY=/d; /^POSTGRES_PASSWORD=/d' .env
    grep -q '^PUBLIC_URL=' .env || echo "PUBLIC_URL=http://127.0.0.1:8000"
    grep -q '^ALLOWED_HOSTS=' .env || echo "ALLOWED_HOSTS=127.0.0.1,localhost"
} > .env.new
mv .env.new .env
