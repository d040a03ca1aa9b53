#!/usr/bin/python3
import sqlite3

db = sqlite3.connect("/work/a.db")
print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t(x)")
db.executemany("insert into t values (?)", [(i,) for i in range(1000)])
db.commit()
print(sqlite3.connect("/work/a.db").execute("select sum(x) from t").fetchone())
