#!/usr/bin/python3
import io
import pandas as pd

f = pd.read_csv(io.StringIO("k,v\na,1\nb,2\na,3\n"))
print(f.groupby("k").v.sum().to_dict())
print(pd.Timestamp("2024-02-29 12:00", tz="Europe/Berlin").isoformat())
