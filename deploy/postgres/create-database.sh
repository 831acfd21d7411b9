#!/bin/sh
# Run once, by the image of PostgreSQL, before it lets anybody in: a database and a user for the application, which is
# no administrator.
set -eu

psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "${POSTGRES_USER:-postgres}" --dbname postgres \
    --set password="$CRAG_DATABASE_PASSWORD" <<'SQL'
CREATE ROLE crag LOGIN PASSWORD :'password';
CREATE DATABASE crag OWNER crag ENCODING 'UTF8' TEMPLATE template0;
SQL
