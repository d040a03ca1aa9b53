#!/bin/bash
set -e
PATH=$(echo /opt/postgresql/usr/lib/postgresql/*/bin):$PATH
initdb -D /work/db -A trust --no-sync >/work/log 2>&1 || { cat /work/log; exit 1; }
pg_ctl -D /work/db -o "-k /tmp -c listen_addresses=''" -l /work/log -w start >/dev/null || { cat /work/log; exit 1; }
psql -h /tmp -d postgres -Atc 'create table t(x int); insert into t select * from generate_series(1, 100); select sum(x) from t'
pg_ctl -D /work/db -m fast stop | tail -n 1
