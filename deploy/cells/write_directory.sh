#!/bin/sh
# Writes the directory of haproxy.cfg from the rows of all cells, or nothing. Then let haproxy
# read it: systemctl reload haproxy.
#
#   write_directory.sh /etc/haproxy/directory.map a=service=a b=service=b
#
# Behind each name of a cell: how psql reaches its PostgreSQL, here by a service of pg_service.conf.
set -eu
file=$1
shift
rows=$(mktemp -d)
trap 'rm -r "$rows"' EXIT
for cell in "$@"; do
    psql -XqAt -F ' ' -v ON_ERROR_STOP=1 -f "$(dirname "$0")/rows.sql" "${cell#*=}" >"$rows/rows"
    sed "s/\$/ ${cell%%=*}/" "$rows/rows" >>"$rows/all"
done
# Of two lines of a key haproxy takes the first one: that of the cell where it is not frozen.
sort "$rows/all" | cut -d' ' -f2- >"$file.new"
mv "$file.new" "$file"
